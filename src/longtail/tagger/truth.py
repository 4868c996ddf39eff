"""Labels of evaluation data in the ids of a model; what the model does not know is counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._validation import as_labels
from longtail.answers import TopK, Vocabulary
from longtail.data.label_lists import is_label_matrix, label_lists
from longtail.report import Note
from longtail.tagger.fitting import unnamed

__all__ = ["Truth", "as_truth", "unknown_note"]


@dataclass(frozen=True)
class Truth:
    """``Y`` (n, L) over the model's labels; ``unknown`` (n,) counts those it does not know.

    ``vocabulary``: the labels of ``Y`` where they are more than those of the model.
    """

    Y: sp.csr_matrix
    unknown: np.ndarray
    vocabulary: Vocabulary | None = None

    @property
    def n_unknown(self) -> int:
        return int(self.unknown.sum())


def as_truth(
    labels: Any, vocabulary: Vocabulary, label_names: Sequence[str] | None, unknown: Any = None
) -> Truth:
    """Return the truth from lists of names, or from a matrix whose columns are ``label_names``; as
    in ``fit``.

    ``unknown`` (n,): true labels that the source counted but does not name.
    """
    if not is_label_matrix(labels):
        Y, counts = vocabulary.encode(label_lists(labels), unknown="count")
    elif label_names is None:
        raise unnamed(labels)
    else:
        given = as_labels(labels, n_labels=len(label_names))
        ids = np.array([vocabulary._ids.get(name, -1) for name in label_names], np.int64)
        known = np.flatnonzero(ids >= 0)
        place = sp.csr_matrix(
            (np.ones(len(known), np.float32), (known, ids[known])),
            shape=(len(label_names), len(vocabulary)),
        )
        Y = sp.csr_matrix(given @ place)
        Y.sort_indices()
        counts = np.asarray(np.diff(given.indptr) - np.diff(Y.indptr), np.int64)
    if unknown is not None:
        counts = counts + np.asarray(unknown, np.int64)
    return Truth(Y, counts)


def as_pair(validation: Any) -> tuple[Any, Any]:
    """Return texts and labels; raise TypeError for what is no pair of them."""
    if not isinstance(validation, (tuple, list)) or len(validation) != 2:
        raise TypeError("validation must be a pair of texts and their labels")
    return validation[0], validation[1]


def unknown_note(truth: Truth, top: TopK, k: int) -> Note | None:
    """Return what the report must say where the model does not know some of the true labels."""
    if not truth.n_unknown:
        return None
    total = truth.Y.nnz + truth.n_unknown
    hits = np.asarray(top.head(k).to_csr(binary=True).multiply(truth.Y > 0).sum(axis=1)).ravel()
    per_row = np.diff(truth.Y.indptr) + truth.unknown
    labelled = per_row > 0
    recall = float(np.mean(hits[labelled] / per_row[labelled]))
    return Note(
        "unknown-labels",
        ("R", "nDCG", "micro-R"),
        f"{truth.n_unknown:,} of {total:,} true labels ({100 * truth.n_unknown / total:.1f}%), in "
        f"{int((truth.unknown > 0).sum()):,} rows, are not among the labels this model knows, and "
        f"are left out above. Counted as missed, R@{k} is {100 * recall:.2f}%.",
    )
