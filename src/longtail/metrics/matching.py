"""From whatever a user passes to ``Matches``: the door of every metric."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from longtail._forms import IDS_ARE_WHOLE, answers_of
from longtail._native import core, csr_args, n_threads
from longtail._validation import as_k, as_labels, check_same_rows
from longtail.answers.topk import TopK
from longtail.metrics.conventions import Convention, convention
from longtail.metrics.matches import Matches
from longtail.metrics.named import number_names

__all__ = ["as_ranking", "match", "matched"]


def match(Y_true: Any, top: Any, k: int | None = None, *, n_jobs: int | None = None) -> Matches:
    """Match a ranking against the truth, so that many metrics can share the work.

    ``Y_true`` is anything that holds labels: a sparse or dense matrix (n, L) with values in [0, 1],
    or a list of lists of label ids. ``top`` is a ``TopK``; ranked label ids, best first (lists, or
    an integer array); or a matrix of scores (n, L), of floats or CSR (only stored entries are
    candidates), that is ranked here: by descending score, ties to the smaller label id. If both are
    lists of label names, these are numbered in sorted order. ``longtail._forms`` tells these forms
    apart. ``k`` is how deep the ranking must go (default: as deep as it goes). ``n_jobs`` is the
    number of threads, all cores by default; results do not depend on it.

    Refuses different numbers of rows or labels, label ids outside the truth, and a ``k`` beyond the
    slots of a TopK, unless its rows end before their slots do or already rank every label.

    Parameters
    ----------
    Y_true : matrix of shape (n, L), or list of lists of int
        True labels of the rows.
    top : TopK, matrix of scores, or lists of ids
        The answers, best first.
    k : int, default=None
        How deep the ranking must go; None is as deep as it goes.
    n_jobs : int, default=None
        Number of threads; None is all cores. Results do not depend on it.

    >>> m = match([[0, 2], [1]], TopK([[0, 1], [2, 1]], [[0.9, 0.8], [0.7, 0.1]], n_labels=3))
    >>> m.gains
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    >>> match([["cat", "emu"], ["dog"]], [["cat", "dog"], ["emu", "dog"]]).hits(1)
    array([1., 0.])
    """
    if k is not None:
        k = as_k(k)
    if isinstance(top, Matches):
        if Y_true is not None and Y_true is not top.source and Y_true is not top.truth:
            raise ValueError(
                "these matches were made from another Y_true: pass the same object, or match again"
            )
        _check_depth(top.top, top.n_labels, k)
        return top
    source = Y_true
    _, Y_true, (top,) = number_names(Y_true, [top])
    ranking = as_ranking(top, k, n_jobs)
    truth = _as_truth(Y_true, ranking, "" if isinstance(top, TopK) else f": {IDS_ARE_WHOLE}")
    check_same_rows(truth.shape[0], len(ranking), "Y_true", "top")
    _check_depth(ranking, truth.shape[1], k)
    if k is not None and k < ranking.k:
        ranking = ranking.head(k)
    gains = core.match_gains(csr_args(truth), ranking.indices, n_threads(n_jobs))
    return Matches(truth, ranking, gains, source=source, n_jobs=n_jobs)


def as_ranking(top: Any, k: int | None, n_jobs: int | None = None) -> TopK:
    """Return a ``TopK`` and ranked ids as they are; scores ranked k deep, or in full if k is
    None.
    """
    if isinstance(top, TopK):
        return top
    form, top = answers_of(top)
    if form == "names":
        raise TypeError(
            "top holds label names, but Y_true does not: give names in both, label ids in both, or "
            "label_names to longtail.evaluate"
        )
    if form == "ids":
        try:
            return TopK.from_ranking(top)
        except ValueError as error:
            raise ValueError(f"top: {error} ({IDS_ARE_WHOLE})") from None
    if top.ndim != 2:
        raise ValueError(
            "top must be a TopK or a matrix of scores (rows, labels), or ranked label ids, got "
            f"{top.ndim} dimension(s) of {top.dtype}"
        )
    if k is None:
        # One slot more than the longest row: its padding shows that nothing was cut off.
        k = (
            top.shape[1]
            if not sp.issparse(top)
            else 1 + int(top.tocsr().getnnz(axis=1).max(initial=0))
        )
    return TopK.from_scores(top, max(1, min(k, top.shape[1])), n_jobs=n_jobs)


def _as_truth(Y_true: Any, top: TopK, hint: str) -> sp.csr_matrix:
    if top.n_labels is not None:
        return as_labels(Y_true, n_labels=top.n_labels, name="Y_true")
    truth = as_labels(Y_true, name="Y_true")
    largest = int(top.indices.max(initial=-1))
    if largest < truth.shape[1]:
        return truth
    if len(getattr(Y_true, "shape", ())) == 2:
        raise ValueError(
            f"top holds the label id {largest}, but Y_true has {truth.shape[1]} labels "
            f"(0 to {truth.shape[1] - 1}){hint}"
        )
    return as_labels(Y_true, n_labels=largest + 1, name="Y_true")  # lists do not say how many


def _check_depth(top: TopK, n_labels: int, k: int | None) -> None:
    if k is None or k <= top.k or top.k >= n_labels or (top.indices[:, -1:] < 0).all():
        return  # deep enough, or the ranking ends before its slots do: what is beyond is empty
    raise ValueError(
        f"k is {k}, but the ranking holds {top.k} labels per row (of {n_labels}): "
        f"predict with k={k} or more"
    )


def matched(Y_true: Any, top: Any, k: int, compat: str | None) -> tuple[Matches, int, Convention]:
    """Return what every metric starts with: matches at least k deep, under the convention asked
    for.
    """
    how, k = convention(compat), as_k(k)
    if how.average_ties:  # which reach beyond k
        top = match(Y_true, top)
    matches = match(Y_true, top, k)
    return (matches if how.graded else matches.binary()), k, how
