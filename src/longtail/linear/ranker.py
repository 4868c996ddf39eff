"""``LinearRanker``: what linear models over a tree share once they are trained.

A trained model is a list of layers, root first, and the label of every leaf. One-vs-all is the
tree without inner nodes: a single layer below the root.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from longtail import persist
from longtail._blocks import BlockRows
from longtail._native import core, n_threads, native_info
from longtail._validation import as_k, n_instances
from longtail.answers.label_filter import LabelFilter
from longtail.answers.topk import TopK
from longtail.calibrate.ranker import ProbabilityRanker
from longtail.exceptions import ModelFormatError
from longtail.linear.explain import explaining
from longtail.linear.explain.explanation import Explanation
from longtail.linear.explain.profile import LabelProfile
from longtail.linear.grow import growing
from longtail.linear.grow.kept_rows import KeptRows, draw_rows
from longtail.linear.search.layer import Layer
from longtail.linear.search.post_processing import post_processors
from longtail.linear.search.searching import n_dense, search
from longtail.linear.shards import ShardMark
from longtail.linear.train.checkpoint import Checkpoint, fingerprint
from longtail.linear.train.label_weights import LabelWeights, per_label
from longtail.linear.train.level import as_weight
from longtail.linear.train.missing_labels import (
    check_correction,
    corrected,
    fitted_propensity,
    put_parameter,
    take_parameter,
)
from longtail.linear.train.solver_options import SolverOptions
from longtail.tree import LabelTree

__all__ = ["LinearRanker", "beam_widths"]

Self = TypeVar("Self", bound="LinearRanker")


def beam_widths(beam: int | Sequence[int] | None, level_sizes: Sequence[int]) -> list[int]:
    """Return nodes kept after each level but the last; never more than the level has.

    ``beam``: one width for all levels, one per level, or None for all nodes.

    >>> beam_widths(10, [4, 64, 1000])
    [4, 10]
    """
    inner = [int(size) for size in level_sizes[:-1]]
    if beam is None:
        return inner
    if isinstance(beam, int) or np.ndim(beam) == 0:  # most calls, and quick
        width = as_k(beam, "beam")
        return [min(width, most) for most in inner]
    widths = [as_k(width, "beam") for width in beam]  # type: ignore[union-attr]
    if len(widths) != len(inner):
        raise ValueError(
            f"beam names {len(widths)} levels, but there are {len(inner)} to cut: "
            "every level but the last"
        )
    return [min(width, most) for width, most in zip(widths, inner, strict=True)]


class LinearRanker(ProbabilityRanker):
    """Search over trained layers, saving and loading; subclasses train.

    After ``fit``: ``layers_`` (one ``Layer`` per level, root first), ``label_of_leaf_`` (L,) int32.
    """

    reads_blocks = True
    _not_copied = ("_native_searcher",)

    layers_: list[Layer]
    label_of_leaf_: np.ndarray
    tree_: LabelTree | None = None  # of a model over one
    compaction_: dict[str, Any] | None = None  # what ``compact`` did, if it made this model
    shard_: ShardMark | None = None  # which one, if this is a shard of a model
    kept_rows_: KeptRows | None = None  # for ``add_labels``, if ``fit`` was told to keep some
    # One number per label, which come and go with labels; None where all have the same.
    propensity_: np.ndarray | None = None
    positive_weight_: np.ndarray | None = None
    negative_weight_: np.ndarray | None = None

    # Parameters every subclass stores.
    C: float | Sequence[float]
    normalize: bool
    random_state: Any
    n_jobs: int | None
    post_processor: str | Sequence[str]
    loss: str
    missing_labels: Any
    correction: str

    def _fit_with(
        self: Self,
        X: Any,
        Y: Any,
        *,
        sample_weight: Any,
        keep_rows: int | None,
        n_label_rows: int,
        **options: Any,
    ) -> Self:
        """``Ranker.fit`` with what linear models take beside the data."""
        if keep_rows is not None:
            keep_rows = as_k(keep_rows, "keep_rows")
        row_weight = None
        if sample_weight is not None:
            row_weight = as_weight(sample_weight, "sample_weight")
            if row_weight.ndim != 1:
                raise ValueError(
                    f"sample_weight must be one number per row, got shape {row_weight.shape}"
                )
        self._learn(X, Y, row_weight=row_weight, n_label_rows=n_label_rows, **options)
        self.kept_rows_ = (
            None
            if keep_rows is None
            else draw_rows(X, Y, keep_rows, self.random_state, n_label_rows)
        )
        return self

    def _checkpoint(
        self,
        folder: str | os.PathLike[str] | None,
        row_weight: np.ndarray | None,
        X: Any,
        Y: sp.csr_matrix,
        *others: Any,
    ) -> Checkpoint | None:
        """Where finished parts go, if ``fit`` was given a folder; checks that it is for this data
        and these parameters.
        """
        if folder is None:
            return None
        arrays: list[np.ndarray | None] = [row_weight]
        if isinstance(X, BlockRows):
            X, others = X.sparse, (X.dense, *others)
        for matrix in (X, Y, *others):
            if sp.issparse(matrix):
                arrays += [matrix.indptr, matrix.indices, matrix.data]
            else:
                arrays.append(None if matrix is None else np.asarray(matrix))
        settings = self.get_params(deep=True)
        for name in ("n_jobs", "tree__n_jobs", "beam", "post_processor"):
            if name in ("n_jobs", "tree__n_jobs") or "man" not in str(settings.get("negatives")):
                settings.pop(name, None)  # the weights do not depend on it
        # Propensities are among the arrays; a model of them need not have a text of its own.
        settings = {
            name: v for name, v in settings.items() if not name.startswith("missing_labels")
        }
        shapes = [list(X.shape), list(Y.shape)]
        from longtail import __version__

        about = {"version": __version__, "isa": native_info()["isa"], "params": settings}
        problem = fingerprint(arrays, {**about, "shapes": shapes})
        return Checkpoint(folder, problem)

    def _propensity(self, Y: sp.csr_matrix, n_label_rows: int) -> np.ndarray | None:
        """Return propensities of the labels, if the parameters say that some are missing.

        The last ``n_label_rows`` rows are no instances, and are not counted.
        """
        check_correction(self.correction, self.loss if self.missing_labels is not None else None)
        if self.missing_labels is None:
            return None
        return fitted_propensity(self.missing_labels, Y[: n_instances(Y.shape[0], n_label_rows)])

    def _corrected(
        self, Y: sp.csr_matrix, propensity: np.ndarray | None
    ) -> tuple[sp.csr_matrix, LabelWeights]:
        """Return targets of the observed labels, and weights of all, under the model's
        correction.
        """
        observed = corrected(Y, propensity, self.correction)
        positive, negative = (
            per_label(vars(self)[name], Y.shape[1], name)
            for name in ("positive_weight", "negative_weight")
        )
        return observed.targets, LabelWeights(positive * observed.weight, negative)

    def _options(self) -> SolverOptions:
        """Return the solver's options, which are parameters of the same names; refuses what is not
        one.
        """
        names = (field.name for field in fields(SolverOptions))
        return SolverOptions(**{name: vars(self)[name] for name in names if name in vars(self)})

    def _search(self, X: Any, k: int, beams: list[int], labels: LabelFilter | None = None) -> TopK:
        threads = n_threads(self.n_jobs)
        searcher = self._searcher(n_dense(X))
        lists = None if labels is None else labels.native()
        ids, scores = search(searcher, X, k, beams, self.normalize, threads, lists)
        return TopK._trusted(ids, scores, self.n_labels_)

    def _searcher(self, n_dense: int = 0) -> Any:
        """Return the native searcher over ``layers_``, made on first use and not part of the state.

        It holds the post-processor, so it is made anew when that parameter has changed; and for
        queries with a dense block the weights of those columns once more, ``4 e`` bytes per label.
        """
        names = self.post_processor
        names = names if isinstance(names, str) else tuple(names)
        made_for, searcher = self.__dict__.get("_native_searcher", (None, None))
        if searcher is None or made_for != names or n_dense not in (0, searcher.n_dense()):
            codes, powers = post_processors(names, len(self.layers_))
            searcher = core.BeamSearcher(
                [layer.native() for layer in self.layers_],
                codes,
                powers,
                self.label_of_leaf_,
                self.n_features_in_,
                n_threads(self.n_jobs),
                n_dense,
            )
            self.__dict__["_native_searcher"] = names, searcher
        return searcher

    def _set_layers(self, layers: list[Layer], label_of_leaf: np.ndarray) -> None:
        self.__dict__.pop("_native_searcher", None)
        self.__dict__.pop("compaction_", None)
        self.__dict__.pop("shard_", None)
        self.layers_, self.label_of_leaf_ = layers, label_of_leaf

    def _set_per_label(
        self, propensity: np.ndarray | None = None, weights: LabelWeights | None = None
    ) -> None:
        """Keep what labels weigh in training: the parameters times the correction."""
        self.propensity_ = propensity
        for name in ("positive_weight", "negative_weight"):
            value: Any = vars(self)[name]
            if weights is not None and (np.ndim(value) or propensity is not None):
                value = weights.positive if name == "positive_weight" else weights.negative
            setattr(self, f"{name}_", np.array(value, np.float64) if np.ndim(value) else None)

    def _label_weights(self, n_new: int = 0) -> LabelWeights:
        """Return what the labels of a fitted model weigh, and ``n_new`` after them."""
        each = []
        for name in ("positive_weight", "negative_weight"):
            known = getattr(self, f"{name}_")
            if known is None:
                each.append(np.full(self.n_labels_ + n_new, vars(self)[name], np.float64))
            else:
                each.append(np.append(known, np.full(n_new, self._weight_of_new(name))))
        return LabelWeights(*each)

    def _weight_of_new(self, name: str) -> float:
        """Return what a label that comes later weighs: the parameter, or 1 if that is one per
        label.
        """
        return 1.0 if np.ndim(vars(self)[name]) else float(vars(self)[name])

    def add_labels(
        self: Self,
        X: Any,
        Y: Any,
        *,
        Y_old: Any = None,
        negatives: tuple[Any, Any] | None = None,
        names: Sequence[str] | None = None,
        split_above: int | None = None,
    ) -> Self:
        """Add labels to a fitted model; their ids follow those it has.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows that show the new labels.
        Y : matrix of shape (n, m) or None
            What the m new labels are for these rows: column j becomes label ``n_labels_ +
            j``.
        Y_old : matrix of shape (n, L) or None
            The old labels of the same rows, if known.
        negatives : tuple or None
            ``(X, Y)``, further rows with their old labels and none of the new ones. Old rows are
            what keeps new labels from being answered everywhere: one of ``Y_old`` and ``negatives``
            is needed, and the more of them the better; a model that was fitted with ``keep_rows``
            takes its own where neither is given.
        names : sequence of str or None
            Of the new labels, for a model whose labels have names.
        split_above : int or None
            A tree node with more labels than this is halved (default: twice as many as the largest
            had before).

        Where labels have weights or propensities of their own, those of the new ones are 1; a
        weight that is one number is theirs too.

        >>> import longtail as lt
        >>> X, Y = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [[0], [1], []]
        >>> model = lt.OneVsAll().fit(X, Y)
        >>> model.add_labels(X, [[], [], [0]], Y_old=Y).predict_topk([[0.0, 0.0, 2.0]], k=1).indices
        array([[2]], dtype=int32)
        """
        growing.add_labels(self, X, Y, Y_old, negatives, names, split_above)
        return self

    def remove_labels(self: Self, labels: Sequence[int] | np.ndarray) -> Self:
        """Take labels out; the others keep their order and close the gaps, as ``numpy.delete``.

        Parameters
        ----------
        labels : sequence of int
            Ids of the labels to take out.

        >>> import longtail as lt
        >>> model = lt.OneVsAll().fit([[1.0, 0.0], [0.0, 1.0]], [[0], [1]])
        >>> model.remove_labels([0]).n_labels_
        1
        """
        growing.remove_labels(self, labels)
        return self

    def partial_fit(self: Self, X: Any, Y: Any, labels: Any = None) -> Self:
        """Train some labels anew, where they are in the tree, and leave all others as they are.

        With all rows and all labels the last level becomes that of ``fit``.

        Parameters
        ----------
        X : matrix of shape (n, d)
            The rows that count now, old and new.
        Y : matrix of shape (n, L), or list of lists of int
            Their labels.
        labels : sequence of int, default=None
            Those whose data has changed; None takes every label that occurs in ``Y``.

        >>> import longtail as lt
        >>> X, Y = [[1.0, 0.0], [0.0, 1.0]], [[0], [1]]
        >>> lt.OneVsAll().fit(X, Y).partial_fit(X, Y, labels=[1]).n_labels_
        2
        """
        growing.partial_fit(self, X, Y, labels)
        return self

    def explain(
        self, x: Any, label: int | str, *, feature_names: Sequence[str] | None = None
    ) -> Explanation:
        """Return which features of one row speak for a label and which against, along its path.

        The parts sum to the score (``linear.explain.explanation`` has the formula). The label need
        not be among the answers.

        Parameters
        ----------
        x : array of shape (d,), or matrix of shape (1, d)
            One row of features.
        label : int or str
            Its id, or its name after ``name_labels``.
        feature_names : sequence of str, default=None
            What the columns are called.

        >>> import longtail as lt
        >>> model = lt.OneVsAll().fit([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]], [[0], [1], [0]])
        >>> why = model.explain([1.0, 0.0], 0)
        >>> bool(abs(why.baseline + why.shares.sum() - why.score) < 1e-6)
        True
        """
        return explaining.explain(self, x, label, feature_names=feature_names)

    def label_profile(
        self, label: int | str, *, n_nearest: int = 10, feature_names: Sequence[str] | None = None
    ) -> LabelProfile:
        """Return a label's strongest features, those of its groups, and its nearest labels.

        Labels are near by the cosine of their weights, among the labels of the same group (all of
        them, in ``OneVsAll``).

        Parameters
        ----------
        label : int or str
            Its id, or its name after ``name_labels``.
        n_nearest : int, default=10
            Most labels to name.
        feature_names : sequence of str, default=None
            What the columns are called.
        """
        return explaining.label_profile(
            self, label, n_nearest=n_nearest, feature_names=feature_names
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the trained arrays."""
        return sum(layer.nbytes for layer in self.layers_) + self.label_of_leaf_.nbytes

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        state.meta["n_layers"] = len(self.layers_)
        for t, layer in enumerate(self.layers_):
            layer.put_state(state, f"layer{t}")
        state.arrays["label_of_leaf"] = self.label_of_leaf_
        if self.compaction_ is not None:
            state.meta["compaction"] = self.compaction_
        if self.shard_ is not None:
            state.meta["shard"] = self.shard_.as_json()
        for name in ("positive_weight", "negative_weight"):  # arrays, if there is one per label
            if isinstance(state.params[name], np.ndarray):
                state.params[name] = state.params[name].tolist()
        put_parameter(state)
        for name in growing.PER_LABEL:
            if getattr(self, name) is not None:
                state.arrays[name] = getattr(self, name)
        if self.kept_rows_ is not None:
            self.kept_rows_.put_state(state)
        return state

    def _set_state(self, state: persist.State) -> None:
        super()._set_state(state)
        layers = [Layer.from_state(state, f"layer{t}") for t in range(state.count("n_layers"))]
        if not layers:
            raise ModelFormatError("a linear model must have at least one layer")
        made = state.meta.get("shard")
        shard = None if made is None else ShardMark.from_json(made)
        n_leaves = self.n_labels_ if shard is None else layers[-1].n_children
        labels = state.array("label_of_leaf", np.int32, (n_leaves,))
        ids = np.sort(labels)
        within = not len(ids) or (ids[0] >= 0 and ids[-1] < self.n_labels_)
        if not within or (ids[1:] == ids[:-1]).any():
            raise ModelFormatError("array 'label_of_leaf' is not an arrangement of the labels")
        self._set_layers(layers, labels)
        self.shard_ = shard
        if isinstance(state.meta.get("compaction"), dict):
            self.compaction_ = state.meta["compaction"]
        self.missing_labels = take_parameter(state)
        self._set_per_label()
        for name in growing.PER_LABEL:
            if name in state.arrays:
                setattr(self, name, state.array(name, np.float64, (self.n_labels_,)))
        self.kept_rows_ = KeptRows.from_state(state, self.n_features_in_)
        self._searcher()  # checks the layers
