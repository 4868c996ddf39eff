"""``SVDCode``: labels projected on singular directions; the code of DECLARE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import persist
from longtail._native import core, csr_args, n_threads
from longtail._products import PackedRows, times_dense
from longtail._validation import as_k, as_labels, as_seed
from longtail.answers.topk import TopK
from longtail.base import Estimator
from longtail.codes.inverted_lists import InvertedLists
from longtail.codes.randomized_svd import truncated_svd
from longtail.exceptions import ModelFormatError
from longtail.features.unit_length import unit_rows

__all__ = ["RECOVERIES", "SVDCode", "training_labels"]

RECOVERIES = ("inner", "cosine", "labels")
WEIGHTS = ("similarity", "clipped", "uniform")


class SVDCode(Estimator):
    """The c largest singular directions of the label matrix (DECLARE; Bornstein et al. 2024).

    ``Y ≈ U_c S_c V_c^T``. The code of a row is ``z = V_c^T y``; those of the training rows,
    ``Z = Y V_c``, minimise ``|Y Y^T - Z Z^T|_F`` over all n by c matrices. From a predicted z,
    labels come back in one of three ways:

    =============  ==============================================================================
    recovery       score of label j
    =============  ==============================================================================
    ``inner``      the paper's: ``f = sum_{i in I} s_i y_i`` over the q rows of largest
                   ``s_i = <z_i, z>``. Rows with many or frequent labels are long and become hubs
    ``cosine``     the same with ``s_i = <z_i, z> / (|z_i| |z|)``: no hubs, and the better vote
    ``labels``     no rows at all: ``f = V_c z``, the best guess of y within the span (also the
                   smallest store: L c numbers)
    =============  ==============================================================================

    Parameters
    ----------
    n_components : int or None
        c, never more than the rank can be; None for 200, the most of the paper.
    recovery : str
        See above.
    n_neighbors : int
        q.
    weights : str
        "similarity" votes with s_i, also if negative, as the paper does; "clipped" with max(s_i,
        0); "uniform" with 1.
    n_probes : int or None
        None compares with every training code, exactly. A number looks only into that many of the
        sqrt(n) clusters of codes nearest to z: faster, and may miss a neighbour.
    n_passes : int
        Powers of the Krylov space, see ``truncated_svd``.
    random_state, n_jobs : int, Generator, RandomState or None; int or None
        The same seed gives the same bits for any number of threads.

    After ``fit``: ``codes_`` (n, c), ``label_vectors_`` (L, c), ``singular_values_`` (c,),
    ``labels_`` (CSR arrays of the training labels). Only ``ZZ^T`` is unique, not Z: singular
    vectors may change sign or, for equal values, mix.

    >>> code = SVDCode(n_components=3, n_neighbors=2).fit([[0, 1], [0], [2]])
    >>> top = code.decode(code.codes_[:1], k=2)
    >>> top.indices, top.scores.round(4)
    (array([[0, 1]], dtype=int32), array([[3., 2.]], dtype=float32))
    """

    type_tag = "svd-code"
    _not_copied = ("_layouts",)

    codes_: np.ndarray
    label_vectors_: np.ndarray
    singular_values_: np.ndarray
    labels_: persist.CsrArrays

    def __init__(
        self,
        *,
        n_components: int | None = None,
        recovery: str = "inner",
        n_neighbors: int = 25,
        weights: str = "similarity",
        n_probes: int | None = None,
        n_passes: int = 4,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.recovery = recovery
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.n_probes = n_probes
        self.n_passes = n_passes
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, Y: Any) -> SVDCode:
        """Decompose the training labels ``Y`` (n, L); of those alone, never of test rows.

        Parameters
        ----------
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        """
        Y = as_labels(Y)
        self._check_params()
        if 0 in Y.shape:
            raise ValueError(f"Y has the shape {Y.shape}: nothing to decompose")
        threads = n_threads(self.n_jobs)
        c = min(200 if self.n_components is None else self.n_components, *Y.shape)
        _, s, V = truncated_svd(
            Y,
            c,
            seed=as_seed(self.random_state),
            n_passes=as_k(self.n_passes, "n_passes"),
            n_threads=threads,
        )
        self._set(times_dense(Y, V, threads), V, s, csr_args(Y))
        return self

    def _check_params(self) -> None:
        if self.recovery not in RECOVERIES:
            raise ValueError(
                f"recovery must be one of {', '.join(RECOVERIES)}, got {self.recovery!r}"
            )
        if self.weights not in WEIGHTS:
            raise ValueError(f"weights must be one of {', '.join(WEIGHTS)}, got {self.weights!r}")
        as_k(self.n_neighbors, "n_neighbors")
        for name in ("n_components", "n_probes"):
            if getattr(self, name) is not None:
                as_k(getattr(self, name), name)
        as_k(self.n_passes, "n_passes")
        n_threads(self.n_jobs)

    def _set(self, Z: np.ndarray, V: np.ndarray, s: np.ndarray, labels: persist.CsrArrays) -> None:
        vars(self).pop("_layouts", None)
        self.codes_, self.label_vectors_, self.singular_values_, self.labels_ = Z, V, s, labels

    @property
    def n_labels_(self) -> int:
        return len(self.label_vectors_)

    @property
    def n_components_(self) -> int:
        return int(self.label_vectors_.shape[1])

    def encode(self, Y: Any) -> np.ndarray:
        """Return codes ``z = V_c^T y`` (n, c) of any rows.

        Parameters
        ----------
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        """
        self._check_fitted()
        Y = as_labels(Y, n_labels=self.n_labels_)
        return times_dense(Y, self.label_vectors_, n_threads(self.n_jobs))

    def decode(self, scores: Any, k: int) -> TopK:
        """Return the k best labels for codes (n, c) float32. A row whose neighbours have fewer
        labels than k is padded.

        Parameters
        ----------
        scores : array of shape (n, c)
            Codes.
        k : int
            Answers per row.
        """
        self._check_fitted()
        self._check_params()
        queries = self._queries(scores)
        k, threads = min(as_k(k), self.n_labels_), n_threads(self.n_jobs)
        if self.recovery == "labels":
            ids, found = self._index("labels", PackedRows).top(queries, k, threads)
        else:
            rows, votes = self.neighbors(queries)
            if self.weights == "clipped":
                votes = np.maximum(votes, 0)
            elif self.weights == "uniform":
                votes = np.ones_like(votes)
            ids, found = core.sum_votes(rows, votes, self.labels_, k, threads)
        return TopK._trusted(ids, found, self.n_labels_)

    def neighbors(self, queries: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and similarities (n, q) of the training codes most similar to ``queries`` (n,
        c).

        Parameters
        ----------
        queries : array of shape (n, c)
            Codes.
        """
        self._check_fitted()
        self._check_params()
        queries = self._queries(queries)
        name = "inner"
        if self.recovery == "cosine":
            name, queries = "cosine", unit_rows(queries)
        q, threads = min(self.n_neighbors, len(self.codes_)), n_threads(self.n_jobs)
        if self.n_probes is None:
            return self._index(name, PackedRows).top(queries, q, threads)  # type: ignore[no-any-return]
        lists = self._index(name, InvertedLists, seed=as_seed(self.random_state), n_threads=threads)
        return lists.search(queries, q, self.n_probes, threads)  # type: ignore[no-any-return]

    def _queries(self, codes: Any) -> np.ndarray:
        queries = np.ascontiguousarray(codes, dtype=np.float32)
        if queries.ndim != 2 or queries.shape[1] != self.n_components_:
            raise ValueError(f"codes have {self.n_components_} numbers, got {queries.shape}")
        return queries

    def _index(self, name: str, kind: Callable[..., Any], **options: Any) -> Any:
        """Return codes, their directions ("cosine") or label vectors in a layout for search, made
        on first use and not part of the state.
        """
        layouts = vars(self).setdefault("_layouts", {})
        if (name, kind) not in layouts:
            rows = self.label_vectors_ if name == "labels" else self.codes_
            layouts[name, kind] = kind(unit_rows(rows) if name == "cosine" else rows, **options)
        return layouts[name, kind]

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        state.arrays.update(codes=self.codes_, label_vectors=self.label_vectors_)
        state.arrays["singular_values"] = self.singular_values_
        state.put_csr("labels", self.labels_)
        return state

    def _set_state(self, state: persist.State) -> None:
        codes = state.array("codes", np.float32, (None, None))
        label_vectors = state.array("label_vectors", np.float32, (None, codes.shape[1]))
        s = state.array("singular_values", np.float32, (codes.shape[1],))
        labels = state.csr("labels", len(codes), len(label_vectors))
        if not label_vectors.size:
            raise ModelFormatError("an SVD code must have labels and components")
        self._set(codes, label_vectors, s, labels)


def training_labels(code: SVDCode) -> sp.csr_matrix:
    """Return the labels a code was fitted on, as a matrix."""
    indptr, indices, values, width = code.labels_
    return sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, width))
