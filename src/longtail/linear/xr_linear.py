"""``XRLinear``: linear classifiers over a label tree, searched with a beam."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import persist
from longtail._native import core, n_threads
from longtail._validation import as_features, as_seed, let_pass
from longtail.answers.label_filter import LabelFilter
from longtail.answers.topk import TopK
from longtail.base import unfitted
from longtail.exceptions import ModelFormatError
from longtail.features.unit_length import unit_rows
from longtail.linear.ranker import LinearRanker, beam_widths
from longtail.linear.search.layer import Layer
from longtail.linear.search.post_processing import post_processors
from longtail.linear.search.searching import n_dense, search
from longtail.linear.train.checkpoint import Checkpoint
from longtail.linear.train.label_weights import LabelWeights
from longtail.linear.train.level import (
    LevelProblem,
    all_rows,
    by_column,
    check_cost,
    level_cost,
    ones_of,
    training_rows,
)
from longtail.linear.train.memory import MemoryPlan, plan_memory
from longtail.linear.train.negatives import check_schemes, parent_rows, schemes_of
from longtail.linear.train.parts import TrainingLevel
from longtail.linear.train.together import train_levels
from longtail.tree import LabelTree

__all__ = ["XRLinear"]

COST_WEIGHTS = (None, "counts", "normalized")


class XRLinear(LinearRanker):
    """Recursive linear ranking over a label tree (PECOS XR-Linear, Yu et al. 2022).

    Labels are clustered into a tree; every node has a linear classifier that tells which of the
    rows that reach its parent belong to it, ``min_w 1/2 |w|^2 + sum_i C_i loss(y_i w.x_i)``.
    A query walks down the tree keeping the ``beam`` best nodes of each level; the score of a label
    combines the scores along its path (``longtail.linear.search.post_processing``).

    The default tree is wide and shallow (``default_tree``): clusters of several hundred labels cost
    little in the lane layout, and fewer clusters lose fewer labels on the way.

    Parameters
    ----------
    tree : LabelTree or None
        A ``LabelTree`` (fitted anew on the training data), or None for the default.
    loss : str
        "squared_hinge", "hinge", "logistic" or "huber_hinge".
    C : float or sequence of float
        Cost of an error, against the regulariser; a number, or one per level.
    positive_weight, negative_weight : float or array of shape (L,)
        Multiply the cost of positives and negatives; a number, or one per label
        (``linear.train.label_weights`` says what an inner node makes of them).
    missing_labels, correction : array of shape (L,), propensity model or None; str
        As in ``OneVsAll``; in a tree with inner nodes, corrections by weights only (the "surrogate"
        ones).
    cost_weights : str or None
        Weight of a positive by its relevance, the number of positive labels below the node: None,
        "counts", or "normalized" (XR-Transformer eq. 6: divided by the row's sum).
    negatives : str or sequence of str
        Rows that the children of a node train on: "tfn" those positive for it, "man" those whose
        beam reaches it, with each child's own positives, "tfn+man" both; one name for all levels,
        or one for each but the first (``longtail.linear.train.negatives``).
    l1, smoothing, bias, threshold : float
        As in ``OneVsAll``.
    tolerance, prune_budget : float or None
        As in ``OneVsAll``.
    solver, start : str
        As in ``OneVsAll``.
    max_iter, regularize_bias : int; bool
        As in ``OneVsAll``.
    beam : int, sequence of int or None
        Nodes kept per level, a number or one per level; None searches exactly.
    post_processor : str or sequence of str
        "l3-hinge" and its kin, for all levels or one name per level.
    normalize : bool
        Scale rows to unit length, before the bias is appended.
    memory_limit : int, float, str or None
        Bytes, or a text like "8GB", that training plans for (``linear.train.memory``).
    random_state, n_jobs : int, Generator, RandomState or None; int or None
        The same seed gives the same bits for any number of threads.

    A probabilistic label tree is ``XRLinear(loss="logistic", post_processor="sigmoid")``; Parabel's
    setting is ``tree=LabelTree(branching=2)``, Bonsai's a wide tree, both with "l2-hinge".

    After ``fit``: ``tree_``, ``layers_``, ``label_of_leaf_``, and ``propensity_`` if labels are
    missing.

    >>> import longtail as lt
    >>> model = lt.XRLinear().fit([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]], [[0], [1], [0]])
    >>> model.predict_topk([[0.9, 0.0]], k=1).indices
    array([[0]], dtype=int32)
    """

    type_tag = "xr-linear"

    tree_: LabelTree

    def __init__(
        self,
        *,
        tree: LabelTree | None = None,
        loss: str = "squared_hinge",
        C: float | Sequence[float] = 0.5,
        positive_weight: Any = 1.0,
        negative_weight: Any = 1.0,
        missing_labels: Any = None,
        correction: str = "surrogate",
        cost_weights: str | None = None,
        negatives: str | Sequence[str] = "tfn",
        l1: float = 0.0,
        smoothing: float = 0.1,
        solver: str = "auto",
        tolerance: float | None = None,
        max_iter: int = 100,
        bias: float = 1.0,
        regularize_bias: bool = True,
        threshold: float = 0.07,
        prune_budget: float | None = None,
        start: str = "mean_separating",
        beam: int | Sequence[int] | None = 10,
        post_processor: str | Sequence[str] = "l3-hinge",
        normalize: bool = True,
        memory_limit: int | float | str | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.tree = tree
        self.loss = loss
        self.C = C
        self.positive_weight = positive_weight
        self.negative_weight = negative_weight
        self.missing_labels = missing_labels
        self.correction = correction
        self.cost_weights = cost_weights
        self.negatives = negatives
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
        self.beam = beam
        self.post_processor = post_processor
        self.normalize = normalize
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        Y: Any,
        *,
        sample_weight: Any = None,
        extra_rows: Any = None,
        label_features: Any = None,
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
        extra_rows : sparse matrix of shape (n, L), default=None
            Sparse (n, L); an entry that is not zero makes the row one that the parents of the
            label also train on, as negatives mined elsewhere.
        label_features : matrix of shape (L, d), default=None
            Sparse (L, d'), for trees that use label texts.
        checkpoint : str or path, default=None
            A folder for finished parts; a training that was cut short, called again with the
            same folder, data and parameters, goes on from there; inside
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
            extra_rows=extra_rows,
            label_features=label_features,
        )

    def _fit(
        self,
        X: Any,
        Y: Any,
        *,
        row_weight: np.ndarray | None = None,
        n_label_rows: int = 0,
        checkpoint: str | os.PathLike[str] | None = None,
        extra_rows: Any = None,
        label_features: Any = None,
    ) -> None:
        self._check_params()
        threads = n_threads(self.n_jobs)
        seed = as_seed(self.random_state)
        memory = plan_memory(self.memory_limit, X, Y, dual=self._options().chosen_solver == "dual")
        X = training_rows(X)
        extra = None if extra_rows is None else _extra_rows(extra_rows, Y.shape)
        propensity = self._propensity(Y, n_label_rows)
        targets, weights = self._corrected(Y, propensity)
        finished = self._checkpoint(checkpoint, row_weight, X, Y, extra, label_features, propensity)
        if self.normalize:
            X = let_pass(unit_rows(X, threads, checkpoint))
        tree = self._fit_tree(X, Y, seed, memory, finished, label_features)
        depth = len(tree.level_sizes_)
        post_processors(self.post_processor, depth)
        beam_widths(self.beam, tree.level_sizes_)
        schemes = schemes_of(self.negatives, depth)
        if targets is not Y and depth > 1:
            raise ValueError(
                f"correction={self.correction!r} needs a tree of one level (this one has {depth}): "
                "under inner nodes it is not convex. Use OneVsAll, or correction='surrogate'"
            )
        layers: list[Layer] = []
        waiting: list[TrainingLevel] = []
        parents, parent_weight = all_rows(X.shape[0]), None
        for t in range(depth):
            relevance = by_column(tree.node_labels(Y, t, value="sum"))
            problem = self._problem(parents, tree, t, relevance, Y, weights)
            problem.row_weight = row_weight
            problem.parent_weight = parent_weight
            if targets is not Y:
                problem.positives = by_column(targets)[:, tree.label_of_leaf_]
            waiting.append(
                TrainingLevel(
                    f"level{t}",
                    f"XRLinear, level {t + 1} of {depth}",
                    problem,
                    self._options(),
                    (seed + t) % 2**64,
                )
            )
            if t + 1 == depth or "man" in schemes[t]:  # the next level waits for this one
                layers += train_levels(
                    X,
                    waiting,
                    memory,
                    n_jobs=self.n_jobs,
                    checkpoint=finished,
                    spill=self.memory_limit is not None,
                )
                waiting = []
            if t + 1 < depth:
                asked = "man" in schemes[t]
                reached = self._reached(X, layers, tree, threads) if asked else None
                wanted = None if extra is None else tree.node_labels(extra, t).tocsc()
                parents, parent_weight = parent_rows(schemes[t], relevance, reached, wanted)
        self.tree_ = tree
        self._set_layers(layers, tree.label_of_leaf_)
        self._set_per_label(propensity, weights)

    def _fit_tree(
        self,
        X: Any,
        Y: Any,
        seed: int,
        memory: MemoryPlan,
        checkpoint: Checkpoint | None,
        label_features: Any,
    ) -> LabelTree:
        kept = None if checkpoint is None else checkpoint.load("tree", LabelTree._from_state)
        if kept is not None:
            return kept
        if self.tree is None:
            tree = default_tree(Y.shape[1], memory.features_per_label)
        else:
            tree = unfitted(self.tree)
            if self.memory_limit is not None and tree.max_features_per_label is None:
                tree.set_params(max_features_per_label=memory.features_per_label)
        tree.set_params(random_state=seed, n_jobs=self.n_jobs)
        tree.fit(X, Y, label_features=label_features)
        if checkpoint is not None:
            checkpoint.save("tree", tree._get_state())
        return tree

    def _check_params(self) -> None:
        if self.cost_weights not in COST_WEIGHTS:
            raise ValueError(
                f"cost_weights must be one of {COST_WEIGHTS}, got {self.cost_weights!r}"
            )
        if not (self.tree is None or isinstance(self.tree, LabelTree)):
            raise TypeError(f"tree must be a LabelTree or None, got {self.tree!r}")
        check_cost(self.C)
        check_schemes(self.negatives)
        self._options()

    def _problem(
        self,
        parents: sp.csc_matrix,
        tree: LabelTree,
        level: int,
        relevance: sp.csc_matrix,
        Y: sp.csr_matrix,
        weights: LabelWeights,
    ) -> LevelProblem:
        positives = relevance
        cost, C = None, level_cost(self.C, level, len(tree.level_sizes_))
        if level + 1 < len(tree.level_sizes_):  # an inner node is positive or not ...
            positives = ones_of(relevance)
            if (relevance.data < 1).any():  # ... and costs less where its labels are soft
                cost = np.minimum(relevance.data, np.float32(1))
        if self.cost_weights == "counts":
            cost = relevance.data
        elif self.cost_weights == "normalized":
            sums = np.bincount(relevance.indices, relevance.data, minlength=relevance.shape[0])
            cost = (relevance.data / sums[relevance.indices]).astype(np.float32)
        positive, negative, of_rows = weights.of_level(tree, level, Y)
        if of_rows is not None:
            cost = of_rows if cost is None else cost * of_rows
        return LevelProblem(
            parents=parents,
            child_ptr=tree.child_ptr_[level],
            positives=positives,
            relevance=cost,
            positive_cost=C * positive,
            negative_cost=C * negative,
        )

    def _reached(self, X: Any, layers: list[Layer], tree: LabelTree, threads: int) -> TopK:
        """Nodes of the last trained level in each row's beam."""
        depth = len(layers)
        codes, powers = post_processors(self.post_processor, len(tree.level_sizes_))
        searcher = core.BeamSearcher(
            [layer.native() for layer in layers],
            codes[:depth],
            powers[:depth],
            None,
            X.shape[1],
            threads,
            n_dense(X),
        )
        *above, width = beam_widths(self.beam, tree.level_sizes_)[:depth]
        ids, scores = search(searcher, X, width, above, False, threads)
        return TopK._trusted(ids, scores, tree.level_sizes_[depth - 1])

    def predict_topk(
        self,
        X: Any,
        k: int = 5,
        *,
        beam: int | Sequence[int] | str | None = "default",
        include: Any = None,
        exclude: Any = None,
    ) -> TopK:
        """Return the k best labels of each row, best first; equal scores go to the smaller label
        id.

        ``beam`` overrides the model's for this call; None searches every node, exactly.
        ``include`` and ``exclude`` choose labels, as for every ranker. They act inside
        the search: nodes with no allowed label below them are not kept, and the beam widens where
        it must, so that k labels come back if k are allowed.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Features, as wide as those of ``fit``.
        k : int, default=5
            Answers per row.
        beam : int, sequence of int or None, default="default"
            Nodes kept on each level, instead of the parameter.
        include : list of labels, mask or matrix, default=None
            Labels to choose from.
        exclude : list of labels, mask or matrix, default=None
            Labels to leave out.
        """
        self._check_fitted()
        wanted: Any = self.beam if isinstance(beam, str) and beam == "default" else beam
        beams = self._beams(wanted)
        return self._rank(
            X,
            k,
            lambda queries, k: self._search(queries, k, beams),
            lambda queries, k, labels: self._search(queries, k, beams, labels),
            include,
            exclude,
        )

    def _predict_topk(self, X: Any, k: int) -> TopK:
        return self._search(X, k, self._beams(self.beam))

    def _predict_allowed(self, X: Any, k: int, labels: LabelFilter) -> TopK:
        return self._search(X, k, self._beams(self.beam), labels)

    def _beams(self, beam: Any) -> list[int]:
        return beam_widths(beam, [layer.n_children for layer in self.layers_])

    def _scores_are_probabilities(self) -> bool:
        """In a probabilistic label tree: the product of the conditional ones on the path.

        Not where positives and negatives weigh differently: that moves every probability.
        """
        logistic = self.loss == "logistic" and self.post_processor == "sigmoid"
        weights = self.positive_weight, self.negative_weight
        alike = not any(map(np.ndim, weights)) and weights[0] == weights[1]
        plain = alike and self.cost_weights is None
        return logistic and plain and (self.propensity_ is None or self.correction == "unbiased")

    def _why_no_probabilities(self) -> str:
        return (
            "scores of this model are not probabilities: predict_proba_topk needs calibrate, or "
            "loss='logistic' and post_processor='sigmoid', with positives and negatives of equal "
            "weight (and of corrections for missing labels, if any, the unbiased one)"
        )

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        if not (self.tree is None or isinstance(self.tree, LabelTree)):
            raise TypeError(f"parameter tree cannot be saved: {self.tree!r} is no LabelTree")
        state.params.pop("tree")
        state.meta["default_tree"] = self.tree is None
        for name in ("beam", "post_processor", "C", "negatives"):
            if isinstance(state.params[name], np.ndarray):
                state.params[name] = state.params[name].tolist()
        part = self.tree_._get_state()
        if self.tree is not None:  # tree_ has the model's seed and threads
            part.params.update(random_state=self.tree.random_state, n_jobs=self.tree.n_jobs)
        state.parts["tree"] = part
        return state

    def _set_state(self, state: persist.State) -> None:
        super()._set_state(state)
        self.tree_ = LabelTree._from_state(state.parts["tree"])
        sizes = [layer.n_children for layer in self.layers_]
        if self.shard_ is not None:  # of the last level, it has a part
            sizes[-1] = self.n_labels_
        if self.tree_.level_sizes_ != sizes:
            raise ModelFormatError(
                f"the tree has levels of {self.tree_.level_sizes_} nodes, the layers of {sizes}"
            )
        self.tree = None if state.meta.get("default_tree") else unfitted(self.tree_)


def default_tree(n_labels: int, features_per_label: int = 256) -> LabelTree:
    """Return a wide and shallow tree: clusters of about 600 labels, at most 64 children per inner
    node.

    Labels are clustered by their strongest features: as good a tree, in half the time.
    """
    sizes: list[int] = []
    wanted = n_labels / 600
    while wanted > 2:
        size = 2 ** max(1, round(np.log2(wanted)))
        sizes.insert(0, size)
        wanted = size / 48 if size > 64 else 0
    if not sizes:
        return LabelTree(leaf=n_labels)
    return LabelTree(level_sizes=sizes, max_features_per_label=features_per_label)


def _extra_rows(rows: Any, shape: tuple[int, int]) -> sp.csr_matrix:
    """``extra_rows`` as ones in CSR."""
    matrix = sp.csr_matrix(as_features(rows, name="extra_rows"))
    if matrix.shape != shape:
        raise ValueError(f"extra_rows must have the shape of Y, {shape}, got {matrix.shape}")
    return (matrix != 0).astype(np.float32)
