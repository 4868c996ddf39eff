"""Formats of the field, data sets, and the currency of predictions."""

from longtail.data.dataset import Dataset, Split
from longtail.data.topk import TopK
from longtail.data.vocabulary import Vocabulary

__all__ = ["Dataset", "Split", "TopK", "Vocabulary"]
