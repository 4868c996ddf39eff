"""``XRTransformer``: an encoder fine-tuned down a label tree, and a linear ranker on top."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import persist
from longtail._native import n_threads
from longtail._validation import as_features, as_k, as_seed
from longtail.answers.label_filter import LabelFilter
from longtail.answers.topk import TopK
from longtail.base import unfitted
from longtail.data.paired_rows import PairedRows
from longtail.data.tokens import Tokens
from longtail.exceptions import MissingDependencyError, ModelFormatError
from longtail.features import Tfidf
from longtail.features.block_rows import beside
from longtail.features.tokenizer import as_texts
from longtail.features.unit_length import unit_rows
from longtail.linear import XRLinear
from longtail.text.ranker import TextRanker
from longtail.text.xr_settings import (
    LARGEST_LEVEL,
    LONGEST,
    automatic_leaf,
    automatic_length,
    check_settings,
    setting,
    steps_of,
)
from longtail.tree import LabelTree
from longtail.tree.shape import default_level_sizes

__all__ = ["XRTransformer"]

_OF_THE_PLAN = ("learning_rate", "output_learning_rate", "warmup_steps", "batch_size")
# Parameters that the levels do not depend on, so that a checkpoint serves for other rankers.
_OF_THE_REST = (
    "preset",
    "vectorizer",
    "features",
    "refine",
    "refined_leaf",
    "refined_branching",
    "refined_min_codes",
    "upper_cost",
    "beam",
    "runtime",
    "onnx",
    "device",
    "n_jobs",
)


class XRTransformer(TextRanker):
    """One encoder, fine-tuned level by level down a label tree, and ``XRLinear`` on TF-IDF features
    and vectors side by side (Zhang et al. 2021).

    The first level has few clusters of labels, the next ones more, and a row looks at those below
    the clusters that it has or that a linear model takes for likely. The encoder learns the coarse
    distinctions first; each level begins with weights that the linear solver finds for the vectors
    of the level above. Last, a tree is made of both kinds of features, and a linear ranker trained.

    Parameters
    ----------
    encoder : str or path
        As in ``TextNetwork``.
    preset : str or None
        "eurlex-4k", "wiki10-31k", "amazoncat-13k", "wiki-500k", "amazon-670k", "amazon-3m": the
        reference settings of a data set, for parameters that are None; without it they are chosen
        by the number of rows, labels and tokens (``longtail.text.xr_settings``).
    vectorizer : Tfidf or None
        A ``Tfidf``, or None for one with its defaults.
    leaf, branching, min_codes : int or None
        Of the tree that the encoder is trained on (``LabelTree``).
    refined_leaf, refined_branching, refined_min_codes, refine : int or None; bool
        Of the tree of the ranker, made of features and vectors; ``refine=False`` keeps the first
        tree.
    steps : int, sequence of int or None
        Training steps of every level, or of all together, half of them on the last level; None for
        ten times through the rows, more often where these are few; 0 leaves the encoder as it is.
    most_active : int or None
        The most nodes that a row looks at.
    man_beam : int or None
        How many clusters are likely, by the linear model, besides those that a row has.
    bootstrap : bool
        Whether a level's weights begin where the linear solver ends; else small and random.
    bootstrap_cost : float or None
        Cost of an error there; 100 in the presets, otherwise one over the mean squared length of
        the vectors, which is better on held-out rows.
    count_weights : bool
        Whether a cluster weighs as many labels as a row has in it, in fine-tuning and in the linear
        solver before it.
    resolutions : str
        "all" levels, or "last": the encoder is trained on the last alone, all steps.
    features : str
        What the ranker sees: "both", "vectors" or "tfidf".
    positive_cost, negative_cost, upper_cost : float or None
        Of errors of the ranker; on levels above the last, times ``upper_cost``.
    cost_weights, threshold : str or None; float or None
        Of the ranker (``XRLinear``); "auto" for cost weights is "normalized" or what the preset
        says.
    beam : int, sequence of int or None
        Nodes that the ranker keeps per level, a number or one for each level but the last.
    output_learning_rate : float or None
        Of the weights of nodes; in the presets that of the encoder.
    learning_rate, warmup_steps, batch_size, dropout, clip : float or None; int or None; float
        As in ``TextNetwork``; rates fall to zero on every level.
    pooling, max_length, micro_batch : str; int or None; int or None
        As in ``TextNetwork``.
    frozen_layers, gradient_checkpointing : int; bool
        As in ``TextNetwork``; an encoder that is frozen as a whole (-1) takes no steps.
    device, precision, runtime, onnx : str; str; str; bool, str or None
        As in ``TextNetwork``.
    random_state, n_jobs : int, Generator, RandomState or None; int or None
        As in ``TextNetwork``.

    After ``fit``: ``vectorizer_``, ``ranker_`` (an ``XRLinear``), ``encoder_``, ``tokenizer_``,
    ``history_`` (one record per level that was trained).

    >>> import longtail as lt
    >>> lt.XRTransformer(encoder="average", preset="eurlex-4k")
    XRTransformer(preset='eurlex-4k')
    """

    type_tag = "xr-transformer"

    vectorizer_: Tfidf | None
    n_columns_: int
    max_length_: int
    ranker_: XRLinear
    history_: list[dict[str, Any]]

    def __init__(
        self,
        *,
        encoder: str | os.PathLike[str] = "average",
        preset: str | None = None,
        vectorizer: Tfidf | None = None,
        leaf: int | None = None,
        branching: int | None = None,
        min_codes: int | None = None,
        refined_leaf: int | None = None,
        refined_branching: int | None = None,
        refined_min_codes: int | None = None,
        refine: bool = True,
        steps: int | Sequence[int] | None = None,
        most_active: int | None = None,
        man_beam: int | None = None,
        bootstrap: bool = True,
        bootstrap_cost: float | None = None,
        count_weights: bool = True,
        resolutions: str = "all",
        features: str = "both",
        positive_cost: float | None = None,
        negative_cost: float | None = None,
        upper_cost: float | None = None,
        cost_weights: str | None = "auto",
        threshold: float | None = None,
        beam: int | Sequence[int] | None = None,
        learning_rate: float | None = None,
        output_learning_rate: float | None = None,
        warmup_steps: float | None = None,
        batch_size: int | None = None,
        dropout: float = 0.1,
        clip: float | None = 1.0,
        pooling: str = "mean",
        max_length: int | None = None,
        frozen_layers: int = 0,
        gradient_checkpointing: bool = False,
        micro_batch: int | None = None,
        device: str = "auto",
        precision: str = "auto",
        runtime: str = "auto",
        onnx: bool | str | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.encoder = encoder
        self.preset = preset
        self.vectorizer = vectorizer
        self.leaf = leaf
        self.branching = branching
        self.min_codes = min_codes
        self.refined_leaf = refined_leaf
        self.refined_branching = refined_branching
        self.refined_min_codes = refined_min_codes
        self.refine = refine
        self.steps = steps
        self.most_active = most_active
        self.man_beam = man_beam
        self.bootstrap = bootstrap
        self.bootstrap_cost = bootstrap_cost
        self.count_weights = count_weights
        self.resolutions = resolutions
        self.features = features
        self.positive_cost = positive_cost
        self.negative_cost = negative_cost
        self.upper_cost = upper_cost
        self.cost_weights = cost_weights
        self.threshold = threshold
        self.beam = beam
        self.learning_rate = learning_rate
        self.output_learning_rate = output_learning_rate
        self.warmup_steps = warmup_steps
        self.batch_size = batch_size
        self.dropout = dropout
        self.clip = clip
        self.pooling = pooling
        self.max_length = max_length
        self.frozen_layers = frozen_layers
        self.gradient_checkpointing = gradient_checkpointing
        self.micro_batch = micro_batch
        self.device = device
        self.precision = precision
        self.runtime = runtime
        self.onnx = onnx
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, Y: Any, *, checkpoint: str | os.PathLike[str] | None = None) -> Any:
        """Learn from texts ``X`` and labels ``Y`` (n, L).

        ``X`` may be ``PairedRows`` of tokens and features that were made before. In a process
        group, processes train one model together, as in ``TextNetwork``: each encodes a share of
        the texts and has a range of a level's nodes, and the first one trains what is linear.

        Parameters
        ----------
        X : list of str, or Tokens
            Texts.
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        checkpoint : str or path, default=None
            A folder; training saves itself there after every level, and goes on from there when
            it is started again with the same data and parameters.
        """
        return self._learn(X, Y, checkpoint=checkpoint)

    def _rows(self, X: Any, *, fitted: bool = True) -> Any:
        if isinstance(X, PairedRows):
            tokens = super()._rows(X.tokens, fitted=fitted)
            features = as_features(X.X, n_features=self.n_columns_ if fitted else None)
            return PairedRows(tokens, sp.csr_matrix(features), X.vectorizer)
        if isinstance(X, Tokens):
            raise TypeError(
                "XRTransformer reads the words of texts too: give texts, or PairedRows of tokens "
                "and features"
            )
        texts = as_texts(X)
        tokens = super()._rows(texts, fitted=fitted)
        if not fitted:
            made = Tfidf() if self.vectorizer is None else self.vectorizer
            vectorizer = unfitted(made)
            return PairedRows(tokens, vectorizer.fit_transform(texts), vectorizer)
        if self.vectorizer_ is None:
            raise TypeError("this model was fitted to features: give PairedRows, not texts")
        return PairedRows(tokens, self.vectorizer_.transform(texts))

    def _learn(self, X: Any, Y: Any, **options: Any) -> Any:
        check_settings(self)  # before texts are read, and not after an encoder is trained
        for which in ("", "refined_"):
            default_level_sizes(2, **self._tree_settings(which, 2))
        self._ranker(2)._check_params()
        return super()._learn(X, Y, **options)

    def _longest(self) -> int:
        """Return the most tokens of a text; before ``fit``, what may be chosen at most."""
        given = self._setting("max_length")
        if given is None:
            given = self.__dict__.get("max_length_", LONGEST)
        return as_k(given, "max_length")

    def _setting(self, name: str) -> Any:
        return setting(self, name)

    def _fit(self, X: Any, Y: Any, *, checkpoint: str | os.PathLike[str] | None = None) -> None:
        try:
            from longtail.deep.group import Group, made_once
            from longtail.deep.training.checkpoint import digest_of
            from longtail.deep.training.plan import Plan
            from longtail.text.level_training import train_levels
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise MissingDependencyError("torch", "text", "training a text model") from error
        from longtail.text.levels import levels_of

        longest = self._setting("max_length") or automatic_length(X.tokens.lengths)
        threads, seed = n_threads(self.n_jobs), as_seed(self.random_state)
        X = PairedRows(X.tokens.cut(longest), unit_rows(X.X, threads), X.vectorizer)
        plan = Plan.of(
            self,
            epochs=1,
            seed=seed,
            **{name: self._setting(name) for name in _OF_THE_PLAN},
        )
        fingerprint, group = self._fingerprint(X, Y), Group.current()
        if group is not None:
            # Another kind of processor may weigh words differently in the last bit.
            same = {k: v for k, v in fingerprint.items() if k not in ("data", "random_state")}
            group.check_same((str(plan), same, digest_of([X.tokens, Y])))
        shape = self._tree_settings("", Y.shape[1])
        start = LabelTree(**shape, random_state=seed % 2**31, n_jobs=self.n_jobs)
        tree = made_once(group, lambda: start.fit(X.X, Y))
        levels = levels_of(tree, Y, LARGEST_LEVEL)
        tokenizer = X.tokens.source or self._first_tokenizer([])
        trained = train_levels(
            self,
            X,
            levels,
            steps_of(self, len(levels), len(X)),
            plan,
            n_tokens=tokenizer.size,
            linear=self._linear_settings(),
            checkpoint=None if checkpoint is None else Path(checkpoint) / "levels",
            fingerprint=fingerprint,
            group=group,
        )
        ranker = self._ranker(Y.shape[1], None if self.refine else tree)
        folder = None
        if checkpoint is not None:  # one for each ranker that is tried on the same vectors
            own = f"{self.features} {self.refine} {ranker!r}".encode()
            folder = Path(checkpoint) / f"ranker-{hashlib.blake2b(own, digest_size=8).hexdigest()}"

        def fitted() -> XRLinear:
            return ranker.fit(self._features(X, trained.vectors), Y, checkpoint=folder)  # type: ignore[no-any-return]

        self.ranker_ = made_once(group, fitted)
        self._take_encoder(trained.encoder, tokenizer, X.tokens)
        self.vectorizer_, self.history_ = X.vectorizer, trained.history
        self.n_columns_, self.max_length_ = int(X.X.shape[1]), longest

    def _tree_settings(self, which: str, n_labels: int) -> dict[str, Any]:
        """Return the shape of the tree to train on, or ("refined_") of that of the ranker."""
        names = ("leaf", "branching", "min_codes")
        out = {name: self._setting(which + name) for name in names}
        return {**out, "leaf": automatic_leaf(n_labels)} if out["leaf"] is None else out

    def _linear_settings(self) -> dict[str, Any]:
        """Return the parameters that linear models on both kinds of features share."""
        return {
            "C": 1.0,
            "positive_weight": float(self._setting("positive_cost")),
            "negative_weight": float(self._setting("negative_cost")),
            "cost_weights": self._setting("cost_weights"),
            "threshold": float(self._setting("threshold")),
            "normalize": False,  # each kind is of unit length
            "random_state": as_seed(self.random_state) % 2**31,
            "n_jobs": self.n_jobs,
        }

    def _ranker(self, n_labels: int, tree: LabelTree | None = None) -> XRLinear:
        """Return the ranker, not yet fitted, over a refined tree or the one that is given.

        It trains by teacher forcing, and at the last level also on rows whose beam comes by; above
        the last level scores are products of l3-hinge transforms, there it is the plain score.
        """
        from longtail.text.levels import whole

        if tree is not None:
            depth, refined = len(tree.level_sizes_), LabelTree(kind="given", hierarchy=whole(tree))
        else:
            shape = self._tree_settings("refined_", n_labels)
            depth, refined = len(default_level_sizes(n_labels, **shape)), LabelTree(**shape)
        above, beam = depth - 1, self._setting("beam")
        if not isinstance(beam, Integral):  # a preset's is for the levels of its own data set
            beam = [*list(beam)[:1] * above, *beam][-above:] if above else []
        return XRLinear(
            tree=refined,
            **{
                **self._linear_settings(),
                "C": [float(self._setting("upper_cost"))] * above + [1.0],
                "negatives": ["tfn"] * (above - 1) + ["tfn+man"] * min(1, above),
                "post_processor": ["l3-hinge"] * above + ["noop"],
                "beam": beam,
            },
        )

    def _fingerprint(self, X: Any, Y: Any) -> dict[str, Any]:
        """Return what the levels depend on: the data, and all settings but those of the ranker."""
        digest = hashlib.blake2b()
        arrays = [X.tokens.offsets, X.tokens.ids, X.X.indptr, X.X.indices, X.X.data]
        for array in [*arrays, Y.indptr, Y.indices, Y.data]:
            digest.update(np.ascontiguousarray(array).data)
        names = [*self.get_params(deep=False), "bootstrap_counts"]
        known = {name: repr(self._setting(name)) for name in names if name not in _OF_THE_REST}
        return {**known, "data": digest.hexdigest()}

    def _features(self, rows: PairedRows, vectors: np.ndarray) -> Any:
        """Return what the ranker sees."""
        threads = n_threads(self.n_jobs)
        if self.features == "tfidf":
            return unit_rows(rows.X, threads)
        if self.features == "vectors":
            return unit_rows(vectors, threads)
        return beside(rows.X, vectors, n_threads=threads)

    def _seen(self, X: PairedRows) -> Any:
        """Return what the ranker sees of rows that are asked about."""
        if self.features == "tfidf":
            return self._features(X, np.zeros((len(X), 0), np.float32))
        return self._features(X, self._vectors(X.tokens))

    def embed(self, X: Any) -> np.ndarray:
        """Return the vectors of texts, (n, e) float32: an ordinary dense X for other models.

        Parameters
        ----------
        X : list of str, or Tokens
            Texts.
        """
        self._check_fitted()
        return self._vectors(self._rows(X).tokens)

    def _predict_topk(self, X: Any, k: int) -> TopK:
        return self.ranker_._predict_topk(self._seen(X), k)

    def _predict_allowed(self, X: Any, k: int, labels: LabelFilter) -> TopK:
        return self.ranker_._predict_allowed(self._seen(X), k, labels)

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        if not (self.vectorizer is None or isinstance(self.vectorizer, Tfidf)):
            raise TypeError(f"parameter vectorizer cannot be saved: {self.vectorizer!r}")
        given = state.params.pop("vectorizer")
        state.meta["vectorizer"] = None if given is None else given.get_params(deep=False)
        for name in ("steps", "beam"):
            if isinstance(state.params[name], np.ndarray):
                state.params[name] = state.params[name].tolist()
        state.parts["ranker"] = self.ranker_._get_state()
        if self.vectorizer_ is not None:
            state.parts["vectorizer"] = self.vectorizer_._get_state()
        state.meta.update(history=self.history_, n_columns=self.n_columns_)
        state.meta["max_length"] = self.max_length_
        return state

    def _set_state(self, state: persist.State) -> None:
        super()._set_state(state)
        given = state.meta.get("vectorizer")
        self.vectorizer = None if given is None else Tfidf(**given)
        self.ranker_ = XRLinear._from_state(state.parts["ranker"])
        made = state.parts.get("vectorizer")
        self.vectorizer_ = None if made is None else Tfidf._from_state(made)
        self.n_columns_ = state.count("n_columns")
        self.max_length_ = state.count("max_length")
        self.history_ = list(state.meta.get("history", []))
        dense = 0 if self.features == "tfidf" else self.encoder_.width
        sparse = 0 if self.features == "vectors" else self.n_columns_
        if (
            self.ranker_.n_features_in_ != dense + sparse
            or self.ranker_.n_labels_ != self.n_labels_
        ):
            raise ModelFormatError("the ranker does not fit the encoder and its labels")
