"""Formats of the field, data sets, and the currency of predictions."""

from longtail.data.dataset import Dataset, Split
from longtail.data.filter_pairs import read_filter_pairs, write_filter_pairs
from longtail.data.topk import TopK
from longtail.data.vocabulary import Vocabulary
from longtail.data.xc_format import (
    read_feature_matrix,
    read_label_matrix,
    read_xc,
    write_feature_matrix,
    write_label_matrix,
    write_xc,
)

__all__ = [
    "Dataset",
    "Split",
    "TopK",
    "Vocabulary",
    "read_feature_matrix",
    "read_filter_pairs",
    "read_label_matrix",
    "read_xc",
    "write_feature_matrix",
    "write_filter_pairs",
    "write_label_matrix",
    "write_xc",
]
