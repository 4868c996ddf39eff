"""Two honest baselines: what is frequent, and what similar rows have. Beat these first."""

from longtail.baselines.neighbors import NearestNeighbors
from longtail.baselines.popularity import Popularity

__all__ = ["NearestNeighbors", "Popularity"]
