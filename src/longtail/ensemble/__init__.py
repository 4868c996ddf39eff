"""Several rankers, one answer."""

from longtail.ensemble.combine import combine
from longtail.ensemble.ensemble import Ensemble
from longtail.ensemble.part import Part

__all__ = ["Ensemble", "Part", "combine"]
