"""From raw input to the features that models learn from."""

from longtail.features.tfidf import Tfidf
from longtail.features.unit_rows import unit_rows

__all__ = ["Tfidf", "unit_rows"]
