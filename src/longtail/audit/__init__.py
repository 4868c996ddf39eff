"""Audits of missing labels.

``find_missing`` asks copies of a model about rows they have not seen, and lists the absent labels
that are probably missing; it also shows where the propensities behind that contradict the data.
``injection`` goes the other way: it drops labels with known propensities from complete data and
measures how well each correction recovers what a model trained on complete labels achieves.
"""

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
