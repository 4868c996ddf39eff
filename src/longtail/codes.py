"""The old name of ``longtail.label_codes``, until 0.2."""

import warnings

from longtail.label_codes import HashCode, NeighborCode, SVDCode, truncated_svd

__all__ = ["HashCode", "NeighborCode", "SVDCode", "truncated_svd"]

warnings.warn(
    "longtail.codes is called longtail.label_codes now; the old name goes in 0.2",
    DeprecationWarning,
    stacklevel=2,
)
