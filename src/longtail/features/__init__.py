"""From raw input to the features that models learn from.

::

    texts ──► characters ──► terms ──► Tfidf ──► X, CSR float32 ──► unit_length
              case, accents  words or            │
                             n-grams             ├──► block_rows   dense vectors beside them
                                                 └──► mapped_rows  on disk, mapped
    files ──► vectorized: the same in two passes, for texts that do not fit into memory

``Tfidf`` turns texts into sparse rows; ``beside`` puts dense vectors next to them; ``save_matrix``
and ``load_matrix`` keep rows on disk; ``unit_rows`` scales rows to unit length. ``from_sklearn``
reads vectorisers of scikit-learn; ``tokenizer`` is for models that read texts themselves.
"""

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
