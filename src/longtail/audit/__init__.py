"""Audits of missing labels: ``longtail.audit(model, X, Y)``.

``audit`` asks copies of a model about rows they have not seen, and lists the absent labels that are
probably missing; it also shows where the propensities behind that contradict the data.
``injection`` goes the other way: it drops labels with known propensities from complete data and
measures how well each correction recovers what a model trained on complete labels achieves.

The room has the name of its main function, and can be called like it.
"""

import sys
import types
from typing import Any

from longtail.audit.ceiling import FrequencyGroup
from longtail.audit.dropped_labels import Injection, drop_labels, injection
from longtail.audit.examine import audit
from longtail.audit.missing import Suspect, missing_probability
from longtail.audit.summary import Audit, PropensityFit

__all__ = [
    "Audit",
    "FrequencyGroup",
    "Injection",
    "PropensityFit",
    "Suspect",
    "audit",
    "drop_labels",
    "injection",
    "missing_probability",
]


class _Room(types.ModuleType):
    """Importing a module binds it to its name in the package, where ``longtail.audit`` should be
    the function: so the module takes calls too.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Audit:
        return audit(*args, **kwargs)


sys.modules[__name__].__class__ = _Room
