"""Several rankers, one answer."""

from longtail.ensemble.combine import combine
from longtail.ensemble.ensemble import Ensemble

__all__ = ["Ensemble", "combine"]
