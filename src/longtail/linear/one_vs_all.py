"""``OneVsAll``: a linear classifier per label, trained against all rows."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._native import n_threads
from longtail._validation import as_seed
from longtail.answers.label_filter import LabelFilter
from longtail.answers.topk import TopK
from longtail.features.unit_length import unit_rows
from longtail.linear.ranker import LinearRanker
from longtail.linear.search.searching import all_scores, n_dense
from longtail.linear.train.level import LevelProblem, all_rows, by_column, check_cost, training_rows
from longtail.linear.train.memory import plan_memory
from longtail.linear.train.parts import TrainingLevel
from longtail.linear.train.together import train_levels

__all__ = ["OneVsAll"]


class OneVsAll(LinearRanker):
    """One linear classifier per label (DiSMEC; Babbar and Schölkopf 2017, Schultheis 2022).

    For every label, ``min_w 1/2 |w|^2 + l1 sum_f |w_f| + sum_i C_i loss(y_i w.x_i)`` over all rows,
    weights below ``threshold`` dropped. The most accurate of the linear models, and the slowest to
    train; prefer ``XRLinear`` beyond some ten thousand labels.

    Parameters
    ----------
    loss : str
        "squared_hinge", "hinge", "logistic" or "huber_hinge".
    C : float
        Cost of an error, against the regulariser.
    positive_weight, negative_weight : float or array of shape (L,)
        Multiply the cost of a label's positives and negatives; a number, or one per label.
    missing_labels : array of shape (L,), propensity model or None
        Propensities, the probability of each label to be observed where it is relevant: an array
        (L,), a model of ``longtail.propensity`` (a ``JainPropensity`` may be unfitted), or None to
        take absent labels for irrelevant.
    correction : str
        What is done about them, see ``longtail.linear.train.missing_labels``: "surrogate" (observed
        labels weigh ``2/p - 1``), "surrogate+balance", "balance+surrogate", and for the logistic
        loss "unbiased" and "normalized".
    l1, smoothing : float
        Weight of the absolute values, which are rounded off below ``smoothing``; so is the Huber
        hinge.
    solver : str
        "dual" (coordinate descent), "newton", or "auto": the dual where it can, being faster.
    tolerance, max_iter : float or None; int
        When to stop (``longtail.linear.train.solver_options``); the weights move little below the
        default tolerance.
    bias, regularize_bias : float; bool
        Value of the constant feature, 0 for none; its weight is regularised like the others unless
        ``regularize_bias`` is False.
    threshold, prune_budget : float; float or None
        Weights smaller than this are dropped; or give ``prune_budget``, by how much of itself
        dropping weights may raise the objective of a label (0.01: by one per cent).
    start : str
        Where Newton begins: "mean_separating" (as DiSMEC++), "zero", "negative_bias",
        "negative_mean"; the optimum is the same.
    normalize : bool
        Scale rows to unit length, before the bias is appended.
    memory_limit : int, float, str or None
        Bytes, or a text like "8GB", that training plans for (``linear.train.memory``).
    random_state, n_jobs : int, Generator, RandomState or None; int or None
        The same seed gives the same bits for any number of threads.

    After ``fit``: ``layers_`` with the weights (``coef_`` as a CSR matrix), ``label_of_leaf_``,
    ``propensity_`` if labels are missing.

    >>> import longtail as lt
    >>> model = lt.OneVsAll().fit([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]], [[0], [1], [0]])
    >>> model.predict_topk([[0.9, 0.0]], k=1).indices
    array([[0]], dtype=int32)
    """

    type_tag = "one-vs-all"

    def __init__(
        self,
        *,
        loss: str = "squared_hinge",
        C: float = 0.5,
        positive_weight: Any = 1.0,
        negative_weight: Any = 1.0,
        missing_labels: Any = None,
        correction: str = "surrogate",
        l1: float = 0.0,
        smoothing: float = 0.1,
        solver: str = "auto",
        tolerance: float | None = None,
        max_iter: int = 100,
        bias: float = 1.0,
        regularize_bias: bool = True,
        threshold: float = 0.01,
        prune_budget: float | None = None,
        start: str = "mean_separating",
        normalize: bool = True,
        memory_limit: int | float | str | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.C = C
        self.positive_weight = positive_weight
        self.negative_weight = negative_weight
        self.missing_labels = missing_labels
        self.correction = correction
        self.l1 = l1
        self.smoothing = smoothing
        self.solver = solver
        self.tolerance = tolerance
        self.max_iter = max_iter
        self.bias = bias
        self.regularize_bias = regularize_bias
        self.threshold = threshold
        self.prune_budget = prune_budget
        self.start = start
        self.normalize = normalize
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.n_jobs = n_jobs

    post_processor = "noop"

    def fit(
        self,
        X: Any,
        Y: Any,
        *,
        sample_weight: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        keep_rows: int | None = None,
        n_label_rows: int = 0,
    ) -> Any:
        """Learn from features ``X`` (n, d) and labels ``Y`` (n, L).

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows of features.
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        sample_weight : array of shape (n,), default=None
            Multiplies the cost of every row.
        checkpoint : str or path, default=None
            A folder for finished parts; a training that was cut short, called again with the
            same folder, data and parameters, goes on from there. Inside
            ``joblib.parallel_config`` its workers train the parts (``longtail.distributed``).
        keep_rows : int, default=None
            So many training rows stay with the model, as negatives for ``add_labels``.
        n_label_rows : int, default=0
            So many of the last rows were made of label texts (``longtail.augment``);
            propensities are not counted on them.
        """
        return self._fit_with(
            X,
            Y,
            sample_weight=sample_weight,
            keep_rows=keep_rows,
            n_label_rows=n_label_rows,
            checkpoint=checkpoint,
        )

    def _fit(
        self,
        X: Any,
        Y: Any,
        *,
        row_weight: np.ndarray | None = None,
        n_label_rows: int = 0,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        options = self._options()
        check_cost(self.C)
        threads = n_threads(self.n_jobs)
        seed = as_seed(self.random_state)
        memory = plan_memory(self.memory_limit, X, Y, dual=self._options().chosen_solver == "dual")
        X = training_rows(X)
        propensity = self._propensity(Y, n_label_rows)
        finished = self._checkpoint(checkpoint, row_weight, X, Y, propensity)
        if self.normalize:
            X = unit_rows(X, threads, checkpoint)
        # Labels of like frequency share a block of 16: they need about the same number of passes.
        counts = np.bincount(Y.indices, minlength=Y.shape[1])
        order = np.argsort(-counts, kind="stable").astype(np.int32)
        targets, weight = self._corrected(Y, propensity)
        problem = LevelProblem(
            parents=all_rows(X.shape[0]),
            child_ptr=np.array([0, Y.shape[1]], np.int64),
            positives=by_column(targets)[:, order],
            positive_cost=self.C * weight.positive[order],
            negative_cost=self.C * weight.negative[order],
            row_weight=row_weight,
        )
        level = TrainingLevel("labels", "OneVsAll", problem, options, seed)
        layers = train_levels(
            X,
            [level],
            memory,
            n_jobs=self.n_jobs,
            checkpoint=finished,
            spill=self.memory_limit is not None,
        )
        self._set_layers(layers, order)
        self._set_per_label(propensity, weight)

    def _predict_topk(self, X: Any, k: int) -> TopK:
        return self._search(X, k, [])

    def _predict_allowed(self, X: Any, k: int, labels: LabelFilter) -> TopK:
        return self._search(X, k, [], labels)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return scores of all labels, (n, L) float32: ``w_j.x + b_j``. For few labels or rows.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows of features.
        """
        self._check_fitted()
        X = self._rows(X)
        leaves = all_scores(self._searcher(n_dense(X)), X, self.normalize, n_threads(self.n_jobs))
        return np.ascontiguousarray(leaves[:, np.argsort(self.label_of_leaf_)])

    @property
    def coef_(self) -> sp.csr_matrix:
        """Weights (L, d + 1), one row per label; the last column is the bias."""
        self._check_fitted()
        return self.layers_[0].to_csr(self.n_features_in_)[np.argsort(self.label_of_leaf_)]
