"""Coded models, with fewer outputs than labels.

A code (``longtail.label_codes``) stands in front of an estimator.
"""

from longtail.coded.declare import DECLARE
from longtail.coded.mach import MACH
from longtail.coded.ridge import Ridge

__all__ = ["DECLARE", "MACH", "Ridge"]
