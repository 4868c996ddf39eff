"""Several rankers, one answer."""

from longtail.ensemble.ensemble import Ensemble
from longtail.ensemble.fusion import combine
from longtail.ensemble.part import Part

__all__ = ["Ensemble", "Part", "combine"]
