"""From raw input to features."""

from longtail.features.unit_rows import unit_rows

__all__ = ["unit_rows"]
"""From raw input to the features that models learn from."""

from longtail.features.tfidf import Tfidf

__all__ = ["Tfidf"]
