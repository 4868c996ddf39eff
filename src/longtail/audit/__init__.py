"""Audits of missing labels.

``find_missing`` asks copies of a model about rows they have not seen, and lists the absent labels
that are probably missing; it also shows where the propensities behind that contradict the data.
``injection`` goes the other way: it drops labels with known propensities from complete data and
measures how well each correction recovers what a model trained on complete labels achieves.
"""

import sys
import types
import warnings
from typing import Any

from longtail.audit.ceiling import FrequencyGroup
from longtail.audit.dropped_labels import Injection, drop_labels, injection
from longtail.audit.examine import find_missing
from longtail.audit.missing import Suspect, missing_probability
from longtail.audit.summary import Audit, PropensityFit

__all__ = [
    "Audit",
    "FrequencyGroup",
    "Injection",
    "PropensityFit",
    "Suspect",
    "drop_labels",
    "find_missing",
    "injection",
    "missing_probability",
]


def __getattr__(name: str) -> Any:
    if name != "audit":
        raise AttributeError(f"module 'longtail.audit' has no attribute {name!r}")
    _warn("longtail.audit.audit")
    return find_missing


class _Room(types.ModuleType):
    """Until 0.2, ``longtail.audit`` can be called, as it could in 0.1."""

    def __call__(self, *args: Any, **kwargs: Any) -> Audit:
        _warn("longtail.audit(…)")
        return find_missing(*args, **kwargs)


def _warn(old: str) -> None:
    warnings.warn(
        f"{old} is longtail.audit.find_missing now; the old name goes in 0.2",
        DeprecationWarning,
        stacklevel=3,
    )


sys.modules[__name__].__class__ = _Room
