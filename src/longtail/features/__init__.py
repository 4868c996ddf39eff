"""From raw input to the features that models learn from."""

from longtail.features.tfidf import Tfidf

__all__ = ["Tfidf"]
