"""From raw input to the features that models learn from."""

from longtail.features.block_rows import beside
from longtail.features.mapped_rows import load_matrix, save_matrix
from longtail.features.tfidf import Tfidf
from longtail.features.unit_length import unit_rows
from longtail.features.vectorized import load_vectorized, vectorize_files

__all__ = [
    "Tfidf",
    "beside",
    "load_matrix",
    "load_vectorized",
    "save_matrix",
    "unit_rows",
    "vectorize_files",
]
