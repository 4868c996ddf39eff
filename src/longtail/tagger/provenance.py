"""Where a model comes from: when it was made, by which versions, and from what.

``Tagger.provenance_`` is a mapping of plain values that is saved with the model: ``created`` (UTC),
the versions of ``longtail``, ``python``, ``numpy`` and ``scipy``, ``rows`` and ``seconds`` of the
training; the command line adds ``command``, ``data`` (``path``, ``sha256``) and ``reading``, the
options by which the data was read. ``SOURCE_DATE_EPOCH`` replaces the clock, for files that have to
be the same to the byte.
"""

from __future__ import annotations

import os
import platform
from datetime import datetime, timezone
from typing import Any

__all__ = ["made_now"]


def made_now(**facts: Any) -> dict[str, Any]:
    """Return the time and the versions, followed by ``facts``.

    >>> sorted(made_now(rows=3))
    ['created', 'longtail', 'numpy', 'python', 'rows', 'scipy']
    """
    import numpy
    import scipy

    from longtail import __version__

    fixed = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.now(timezone.utc)
    if fixed is not None and fixed.isdigit():
        now = datetime.fromtimestamp(int(fixed), timezone.utc)
    return {
        "created": now.isoformat(timespec="seconds"),
        "longtail": __version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        **facts,
    }
