"""Several rankers, one answer."""

from longtail.ensemble.ensemble import Ensemble
from longtail.ensemble.fusion import combine

__all__ = ["Ensemble", "combine"]
