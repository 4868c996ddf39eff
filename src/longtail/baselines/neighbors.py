"""``NearestNeighbors``: what the most similar training rows have."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import persist
from longtail._native import core, csr_args, n_threads
from longtail._products import PackedRows
from longtail._validation import as_features, as_k
from longtail.answers.label_filter import LabelFilter
from longtail.answers.topk import TopK
from longtail.baselines import growing
from longtail.baselines.scaling import ScaledRows, scale_rows
from longtail.calibrate.ranker import ProbabilityRanker
from longtail.exceptions import ModelFormatError

__all__ = ["NearestNeighbors"]

WEIGHTS = ("similarity", "uniform", "softmax")
_DENSE_CHUNK = 1 << 24  # values of a sparse query matrix made dense at a time


class NearestNeighbors(ProbabilityRanker):
    """Exact nearest neighbours by cosine, and a vote of their labels.

    With the neighbours N(x), the ``n_neighbors`` training rows of largest similarity s_i > 0,

        score_j = sum_{i in N(x)} w_i Y[i, j] / sum_{i in N(x)} w_i,    s_i = <x, x_i> / (|x| |x_i|)

    where w_i = s_i, or 1 with ``weights="uniform"``, or ``exp(s_i / temperature)`` with
    ``weights="softmax"``, where the nearest rows count most: the vote for dense rows such as the
    embeddings of a text model (``embed``), all of which resemble each other a little. Equal
    similarities go to the smaller row, equal scores to the smaller label. Rows with no positive
    similarity are never neighbours, so a query may have fewer than ``n_neighbors``, and one that
    resembles nothing (an empty row) gets no answer: its row of the result is padding. Under a label
    filter, where k allowed labels are owed, those that no neighbour has follow with the score 0.

    Sparse features are searched through an inverted index, which touches only rows that share a
    feature with the query; dense ones by blocked products. Nothing is approximated, so the cost
    grows with the training set: a baseline, and a strong one on small data, not a way to serve
    millions.

    Parameters
    ----------
    n_neighbors : int
        How many rows vote.
    weights : str
        ``"similarity"``, ``"uniform"`` for one row, one vote, or ``"softmax"``.
    temperature : float
        Of the softmax, above 0; the smaller, the more the nearest rows count.
    normalize : bool
        Compare directions (cosine); False compares by plain inner product, where long rows are
        everybody's neighbours.
    n_jobs : int or None
        Threads; None for all. The answer does not depend on it.

    After ``fit``: ``postings_`` (the inverted index: CSR arrays, feature by training row) or, for
    dense features, ``rows_`` (n, d) float32; ``row_weights_`` (n,) float64; ``labels_`` (CSR
    arrays, n by L). Rows are kept scaled by powers of two, see ``longtail.baselines.scaling``.

    >>> model = NearestNeighbors(n_neighbors=2).fit([[1, 0], [1, 1], [0, 1]], [[0], [0, 1], [2]])
    >>> model.predict_topk([[2, 1]], k=2)
    TopK(1 rows, k=2, n_labels=3)
    >>> model.kneighbors([[2, 1]]).indices
    array([[1, 0]], dtype=int32)
    """

    type_tag = "nearest-neighbors"

    postings_: persist.CsrArrays | None
    blocks_: np.ndarray | None
    row_weights_: np.ndarray
    labels_: persist.CsrArrays
    exponent_: int | None

    def __init__(
        self,
        *,
        n_neighbors: int = 20,
        weights: str = "similarity",
        temperature: float = 0.05,
        normalize: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.temperature = temperature
        self.normalize = normalize
        self.n_jobs = n_jobs

    def _fit(self, X: Any, Y: Any) -> None:
        self._check_params()
        self._keep(X, Y, self.normalize)

    def _keep(self, X: Any, Y: Any, normalize: bool) -> None:
        scaled = scale_rows(X)
        self.row_weights_, self.exponent_ = scaled.inverse_norms, None
        if not normalize:
            self.exponent_ = int(scaled.exponents.max())
            self.row_weights_ = np.ldexp(1.0, scaled.exponents - self.exponent_)
        self.postings_ = self.blocks_ = None
        if sp.issparse(X):
            self.postings_ = csr_args(scaled.rows.tocsc().T)
        else:
            self.blocks_ = PackedRows(scaled.rows).blocks
        self.labels_ = csr_args(Y)

    def _training_rows(self) -> Any:
        """Return the rows of ``fit``, sparse or dense; normalised ones up to powers of two."""
        n, d = len(self.row_weights_), self.n_features_in_
        exponents = np.zeros(n, np.int32)
        if self.exponent_ is not None:
            exponents = np.frexp(self.row_weights_)[1] - 1 + self.exponent_
        if self.postings_ is None:
            assert self.blocks_ is not None
            rows = self.blocks_.transpose(0, 2, 1).reshape(16 * len(self.blocks_), d)[:n]
            return np.ldexp(rows, exponents[:, None])
        rows = sp.csr_matrix(self.postings_[2::-1], shape=(d, n)).T.tocsr()
        rows.data = np.ldexp(rows.data, np.repeat(exponents, np.diff(rows.indptr)))
        return rows

    def _check_params(self) -> None:
        as_k(self.n_neighbors, "n_neighbors")
        n_threads(self.n_jobs)
        if self.weights not in WEIGHTS:
            raise ValueError(f"weights must be one of {', '.join(WEIGHTS)}, got {self.weights!r}")
        number = isinstance(self.temperature, numbers.Real) and not isinstance(
            self.temperature, bool
        )
        if not number or not 0 < self.temperature < np.inf:
            raise ValueError(f"temperature must be a number above 0, got {self.temperature!r}")

    def kneighbors(self, X: Any, n_neighbors: int | None = None) -> TopK:
        """Return the nearest training rows and their similarities: in the result, ids are row
        numbers.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows of features.
        n_neighbors : int, default=None
            How many; None is the parameter.
        """
        self._check_fitted()
        X = as_features(X, n_features=self.n_features_in_)
        scaled = scale_rows(X)
        k = as_k(self.n_neighbors if n_neighbors is None else n_neighbors, "n_neighbors")
        ids, keys = self._search(scaled.rows, k)
        similarity = self._similarity(scaled, keys)
        similarity = np.clip(similarity, -np.inf, np.finfo(np.float32).max).astype(np.float32)
        similarity[ids < 0] = -np.inf
        return TopK._trusted(ids, similarity, len(self.row_weights_))

    def add_labels(
        self,
        X: Any,
        Y: Any,
        *,
        Y_old: Any = None,
        negatives: tuple[Any, Any] | None = None,
        names: Sequence[str] | None = None,
    ) -> NearestNeighbors:
        """Add labels to a fitted model; their ids follow those it has.

        Rows that the model has get the new labels where they are; others come behind, with all
        their labels. The result is that of ``fit`` on all of them.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows that show the new labels.
        Y : matrix of shape (n, m)
            What the m new labels are for these rows: column j becomes label ``n_labels_ + j``.
        Y_old : matrix of shape (n, L) or None
            The old labels of the same rows; of rows that the model has it knows them itself.
        negatives : tuple or None
            ``(X, Y)``, further rows with their old labels and none of the new ones. Not needed.
        names : sequence of str or None
            Of the new labels, for a model whose labels have names.

        >>> model = NearestNeighbors(n_neighbors=1).fit([[1, 0], [0, 1]], [[0], [1]])
        >>> model.add_labels([[1, 1]], [[0]]).predict_topk([[3, 3]], k=1).indices
        array([[2]], dtype=int32)
        """
        growing.add_labels(self, X, Y, Y_old, negatives, names)
        return self

    def remove_labels(self, labels: Sequence[int] | np.ndarray) -> NearestNeighbors:
        """Take labels out; the others keep their order and close the gaps, as ``numpy.delete``.

        All rows stay: one without labels votes for nothing.

        Parameters
        ----------
        labels : sequence of int
            Ids of the labels that go.

        >>> model = NearestNeighbors().fit([[1, 0], [0, 1]], [[0], [1]])
        >>> model.remove_labels([0]).n_labels_
        1
        """
        growing.remove_labels(self, labels)
        return self

    def _similarity(self, scaled: ScaledRows, keys: np.ndarray) -> np.ndarray:
        """Return similarities (n, m) float64 of queries to their neighbours, from the keys of a
        search.
        """
        if self.exponent_ is None:
            factors = scaled.inverse_norms
        else:
            factors = np.ldexp(1.0, scaled.exponents + self.exponent_)
        with np.errstate(over="ignore", invalid="ignore"):  # where there is no neighbour
            return np.asarray(keys.astype(np.float64) * factors[:, None])

    def _predict_topk(self, X: Any, k: int) -> TopK:
        return self._vote(X, k, None)

    def _predict_allowed(self, X: Any, k: int, labels: LabelFilter) -> TopK:
        return self._vote(X, k, labels.native())

    def _vote(self, X: Any, k: int, labels: Any) -> TopK:
        self._check_params()
        scaled = scale_rows(X)
        ids, keys = self._search(scaled.rows, self.n_neighbors)
        if self.weights == "uniform":
            keys = np.ones_like(keys)
        elif self.weights == "softmax":
            keys = _softmax(self._similarity(scaled, keys), ids, float(self.temperature))
        found, scores = core.vote(ids, keys, self.labels_, k, n_threads(self.n_jobs), labels)
        return TopK._trusted(found, scores, self.labels_[3])

    def _scores_are_probabilities(self) -> bool:
        """Return the weighted share of neighbours with a label estimates its probability.

        As coarse as there are neighbours; ``calibrate`` makes it better.
        """
        return True

    def _search(self, queries: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        threads = n_threads(self.n_jobs)
        k = min(k, len(self.row_weights_))
        if self.postings_ is not None:
            args = csr_args(sp.csr_matrix(queries))
            return core.sparse_neighbors(self.postings_, self.row_weights_, args, k, threads)  # type: ignore[no-any-return]
        if not sp.issparse(queries):
            return core.dense_neighbors(self.blocks_, self.row_weights_, queries, k, threads)  # type: ignore[no-any-return]
        step = max(1, _DENSE_CHUNK // max(1, queries.shape[1]))
        parts = [
            core.dense_neighbors(
                self.blocks_, self.row_weights_, queries[start : start + step].toarray(), k, threads
            )
            for start in range(0, max(1, queries.shape[0]), step)
        ]
        ids, keys = zip(*parts, strict=True)
        return np.concatenate(ids), np.concatenate(keys)

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        if self.temperature == self._defaults["temperature"]:
            del state.params["temperature"]  # as in files from before there was one
        state.meta.update(n_rows=len(self.row_weights_), exponent=self.exponent_)
        state.arrays["row_weights"] = self.row_weights_
        state.put_csr("labels", self.labels_)
        if self.postings_ is not None:
            state.put_csr("postings", self.postings_)
        else:
            assert self.blocks_ is not None
            state.arrays["blocks"] = self.blocks_
        return state

    def _set_state(self, state: persist.State) -> None:
        super()._set_state(state)
        n_rows = state.count("n_rows")
        self.exponent_ = exponent = state.meta.get("exponent")
        if exponent is not None and (type(exponent) is not int or abs(exponent) > 1000):
            raise ModelFormatError(f"exponent {exponent!r} is not a power of two for float32")
        self.row_weights_ = state.array("row_weights", np.float64, (n_rows,))
        self.labels_ = state.csr("labels", n_rows, self.n_labels_)
        self.postings_ = self.blocks_ = None
        if "blocks" in state.arrays:
            shape = (-(-n_rows // 16), self.n_features_in_, 16)
            self.blocks_ = state.array("blocks", np.float32, shape)
        else:
            self.postings_ = state.csr("postings", self.n_features_in_, n_rows)


def _softmax(similarity: np.ndarray, ids: np.ndarray, temperature: float) -> np.ndarray:
    """Return weights (n, m) float32 of neighbours, 1 for the nearest; 0 where there is none."""
    there = ids >= 0
    distance = np.where(there, similarity[:, :1] - np.where(there, similarity, 0.0), 0.0)
    weights = np.exp(-np.maximum(distance, 0.0) / temperature)
    return np.where(there, weights, 0.0).astype(np.float32)
