"""The old place of ``longtail.load`` and ``longtail.register_ranker``, until 0.2."""

import warnings

from longtail._models import TABLE, from_state, is_known, load, register_ranker

__all__ = ["TABLE", "from_state", "is_known", "load", "register_ranker"]

warnings.warn(
    "longtail.models is private now, use longtail.load and longtail.register_ranker; "
    "the old name goes in 0.2",
    DeprecationWarning,
    stacklevel=2,
)
