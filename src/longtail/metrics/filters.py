"""Filter pairs: (row, label) pairs that must not count, because the answer is in the question.

In the label-feature benchmarks some test rows are also labels: the title of an item is both a row
and the text of a label. A model that answers such a row with its own label has learnt nothing, so
the benchmarks come with lists of pairs to remove *from the predictions, before they are ranked*:
later candidates move up. The truth of these benchmarks does not hold the pairs; where it might,
``filter_truth`` takes them out of it too.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._forms import answers_of
from longtail._native import core, csr_args, n_threads
from longtail._validation import as_k, as_labels
from longtail.answers.topk import TopK
from longtail.metrics.matching import as_ranking

__all__ = ["filter_predictions", "filter_truth"]


def filter_predictions(top: Any, pairs: Any, k: int | None = None) -> TopK:
    """Remove (row, label) pairs from rankings; the labels after a removed one move up.

    ``top`` is a ``TopK``, ranked label ids or a matrix of scores. ``pairs`` (m, 2) holds row and
    label ids, in any order, repeated or not; it may be empty.

    A ``TopK`` that is cut off after its last slot has nothing to put in the place of a removed
    label, so predict more labels per row than you evaluate. By default the result has only as many
    slots as every row can still fill, and metrics refuse a larger k. ``k`` asks for that many
    slots: a row that runs short is padded, which counts as a wrong answer, with a warning.

    Refuses pairs that name a row or label that does not exist.

    Parameters
    ----------
    top : TopK, matrix of scores, or lists of ids
        The answers, best first.
    pairs : array of shape (m, 2)
        Pairs (row, label).
    k : int, default=None
        Slots of the result; None is as many as every row can fill.

    >>> top = filter_predictions(TopK([[2, 0, 1]], [[0.9, 0.5, 0.4]], n_labels=9), [[0, 2]])
    >>> top.indices
    array([[0, 1]], dtype=int32)
    """
    if k is not None:
        k = as_k(k)
    if not isinstance(top, TopK):
        form, top = answers_of(top)
        top = top if form == "scores" else as_ranking(top, None)
    n_rows, n_labels = (len(top), top.n_labels) if isinstance(top, TopK) else top.shape
    drop = _pair_matrix(pairs, n_rows, n_labels)
    most = int(np.diff(drop.indptr).max(initial=0))
    ranking = as_ranking(top, None if k is None else k + most)
    found = core.match_gains(csr_args(drop), ranking.indices, n_threads(None)) > 0
    keep = _slots_left(ranking, found, k)
    rows = np.flatnonzero(found.any(axis=1))
    indices, scores = ranking.indices.copy(), ranking.scores.copy()
    indices[found], scores[found] = -1, -np.inf
    order = np.argsort(found[rows], axis=1, kind="stable")  # what is left, in order, comes first
    indices[rows] = np.take_along_axis(indices[rows], order, axis=1)
    scores[rows] = np.take_along_axis(scores[rows], order, axis=1)
    return TopK._trusted(indices, scores, ranking.n_labels).head(keep)


def _slots_left(ranking: TopK, found: np.ndarray, k: int | None) -> int:
    """Return the number of slots after filtering; a row that is full before may have had more to
    come.
    """
    removed = np.count_nonzero(found, axis=1)
    complete = ranking.n_labels is not None and ranking.k >= ranking.n_labels
    cut_off = (ranking.indices[:, -1:] >= 0).any(axis=1) & (not complete)
    left = ranking.k - np.where(cut_off, removed, 0)
    if k is None:
        if left.min(initial=ranking.k) < 1:
            raise ValueError(
                f"filtering leaves nothing of the {ranking.k} labels of row {np.argmin(left)}: "
                "predict more labels per row"
            )
        return int(left.min(initial=ranking.k))
    k = min(k, ranking.k)
    if (left < k).any():
        warnings.warn(
            f"{(left < k).sum()} rows have fewer than {k} labels left after filtering, because the "
            f"ranking ends after {ranking.k}: predict more labels per row than you evaluate",
            UserWarning,
            stacklevel=3,
        )
    return k


def filter_truth(Y_true: Any, pairs: Any) -> sp.csr_matrix:
    """Return the truth without the given (row, label) pairs, as CSR float32.

    Pairs that are not in it are ignored; pairs that name no row or label are refused.

    Parameters
    ----------
    Y_true : matrix of shape (n, L), or list of lists of int
        True labels of the rows.
    pairs : array of shape (m, 2)
        Pairs (row, label).

    >>> filter_truth([[0, 2], [1]], [[0, 2]]).toarray()
    array([[1., 0., 0.],
           [0., 1., 0.]], dtype=float32)
    """
    truth = as_labels(Y_true, name="Y_true")
    drop = _pair_matrix(pairs, *truth.shape)
    if not drop.nnz:
        return truth
    out = (truth - truth.multiply(drop)).tocsr().astype(np.float32)
    out.eliminate_zeros()
    out.sort_indices()
    return out


def _pair_matrix(pairs: Any, n_rows: int, n_labels: int | None) -> sp.csr_matrix:
    """Return pairs as a binary CSR matrix (n_rows, n_labels)."""
    array = np.asarray(pairs)
    if not array.size:
        return sp.csr_matrix((n_rows, n_labels or 0), dtype=np.float32)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"pairs must have the shape (m, 2): row and label, got {array.shape}")
    if array.dtype.kind not in "iu":
        raise TypeError(f"pairs must hold whole numbers, got dtype {array.dtype}")
    width = int(array[:, 1].max()) + 1 if n_labels is None else n_labels
    for ids, what, count in zip(array.T, ("row", "label"), (n_rows, width), strict=True):
        wrong = ids[(ids < 0) | (ids >= count)]
        if len(wrong):
            raise ValueError(
                f"pairs name {what} {wrong[0]}, but there are {count} {what}s: "
                "is this another split's filter?"
            )
    out = sp.csr_matrix((np.ones(len(array), np.float32), array.T), shape=(n_rows, width))
    out.sum_duplicates()
    out.data[:] = 1
    return out
