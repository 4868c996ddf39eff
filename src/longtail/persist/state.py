"""``State``: a model as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["State"]


@dataclass
class State:
    """Everything needed to build a fitted estimator again.

    ``type``: tag from the table in ``longtail.models``; ``params``: keyword arguments of
    ``__init__`` (JSON values); ``arrays``: learned arrays by name; ``meta``: small JSON facts
    (label names, shapes, preprocessing, measurements); ``parts``: states of nested estimators by
    name.
    """

    type: str
    params: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, State] = field(default_factory=dict)
