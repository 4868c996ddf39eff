"""``XRTransformer``: an encoder fine-tuned down a label tree, and a linear ranker on top."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longtail import persist
from longtail._native import n_threads
from longtail._validation import as_features, as_k, as_seed
from longtail.data.label_filter import LabelFilter
from longtail.data.paired_rows import PairedRows
from longtail.data.tokens import Tokens
from longtail.data.topk import TopK
from longtail.exceptions import MissingDependencyError, ModelFormatError
from longtail.features import Tfidf
from longtail.features.beside import beside
from longtail.features.tokenizer import Tokenizer, as_texts
from longtail.features.unit_rows import unit_rows
from longtail.linear import XRLinear
from longtail.text.ranker import TextRanker
from longtail.tree import LabelTree

__all__ = ["FEATURES", "PRESETS", "XRTransformer"]

FEATURES = ("both", "vectors", "tfidf")
FRUGAL = ("average", "convolution")
# The reference settings (Zhang et al. 2021, and its published code), by data set.
PRESETS: dict[str, dict[str, Any]] = {
    "eurlex-4k": {
        "leaf": 16,
        "branching": 16,
        "min_codes": 16,
        "refined_leaf": 16,
        "refined_branching": 8,
        "steps": (600, 800, 1200),
        "learning_rate": 5e-5,
        "warmup_steps": 100,
        "most_active": 1000,
        "max_length": 128,
        "man_beam": 5,
        "positive_cost": 2.0,
        "negative_cost": 4.0,
        "beam": 100,
    },
    "wiki10-31k": {
        "leaf": 16,
        "branching": 16,
        "min_codes": 128,
        "refined_leaf": 16,
        "refined_branching": 16,
        "steps": (1000, 1000, 400),
        "learning_rate": 5e-5,
        "warmup_steps": 100,
        "most_active": 1000,
        "max_length": 256,
        "man_beam": 20,
        "positive_cost": 4.0,
        "negative_cost": 1.0,
        "beam": 100,
    },
    "amazoncat-13k": {
        "leaf": 16,
        "branching": 8,
        "min_codes": 128,
        "refined_leaf": 16,
        "refined_branching": 8,
        "steps": (5000, 10000, 30000),
        "learning_rate": 5e-5,
        "warmup_steps": 1000,
        "most_active": 10000,
        "max_length": 256,
        "man_beam": 50,
        "positive_cost": 0.25,
        "negative_cost": 0.5,
        "beam": 100,
        "threshold": 1e-4,
    },
    "wiki-500k": {
        "leaf": 16,
        "branching": 8,
        "min_codes": 64,
        "refined_leaf": 100,
        "refined_branching": 32,
        "steps": (10000, 10000, 20000, 20000),
        "learning_rate": 1e-4,
        "warmup_steps": 5000,
        "most_active": 500,
        "max_length": 128,
        "man_beam": 5,
        "positive_cost": 4.0,
        "negative_cost": 1.0,
        "beam": 50,
    },
    "amazon-670k": {
        "leaf": 32,
        "branching": 16,
        "min_codes": 128,
        "refined_leaf": 100,
        "refined_branching": 32,
        "steps": (4000, 4000, 12000),
        "learning_rate": 1e-4,
        "warmup_steps": 200,
        "most_active": 500,
        "max_length": 128,
        "man_beam": 5,
        "positive_cost": 1.0,
        "negative_cost": 1.0,
        "beam": 75,
        "cost_weights": None,
        "bootstrap_counts": False,
    },
    "amazon-3m": {
        "leaf": 100,
        "branching": 16,
        "min_codes": 128,
        "refined_leaf": 100,
        "refined_branching": 32,
        "steps": (10000, 10000, 10000),
        "learning_rate": 1e-4,
        "warmup_steps": 1000,
        "most_active": 500,
        "max_length": 128,
        "man_beam": 20,
        "positive_cost": 8.0,
        "negative_cost": 1.0,
        "beam": 50,
        "bootstrap_counts": False,
    },
}
DEFAULTS: dict[str, Any] = {
    "leaf": 16,
    "branching": 16,
    "min_codes": 128,
    "refined_leaf": 100,
    "refined_branching": 32,
    "learning_rate": 1e-4,
    "warmup_steps": 0.1,
    "most_active": 1000,
    "max_length": 192,
    "man_beam": 20,
    "positive_cost": 1.0,
    "negative_cost": 1.0,
    "beam": 50,
    "threshold": 1e-3,
    "cost_weights": "normalized",
    "bootstrap_counts": True,
}
_EPOCHS = 10  # over all levels, where nothing is said
_LARGEST = 32_768  # nodes of a level that an encoder is fine-tuned on


class XRTransformer(TextRanker):
    """One encoder, fine-tuned level by level down a label tree, and ``XRLinear`` on TF-IDF features
    and vectors side by side (Zhang et al. 2021).

    The first level has few clusters of labels, the next ones more, and a row looks at those below
    the clusters that it has or that a linear model takes for likely. The encoder learns the coarse
    distinctions first; each level begins with weights that the linear solver finds for the vectors
    of the level above. Last, a tree is made of both kinds of features, and a linear ranker trained.

    Parameters
    ----------
    encoder : as in ``TextNetwork``
    preset : "eurlex-4k", "wiki10-31k", "amazoncat-13k", "wiki-500k", "amazon-670k", "amazon-3m":
        the reference settings of a data set, for parameters that are None
    vectorizer : a ``Tfidf``, or None for one with its defaults
    leaf, branching, min_codes : of the tree that the encoder is trained on (``LabelTree``)
    refined_leaf, refined_branching : of the tree of the ranker; ``refine=False`` keeps the first
    steps : training steps of every level, or of all together; None for ten times through the rows,
        half of them on the last level; 0 leaves the encoder as it is
    most_active : the most nodes that a row looks at, man_beam : clusters that are likely, by the
        linear model, besides those that a row has
    bootstrap : whether a level's weights begin where the linear solver ends; else small and random
    count_weights : whether a cluster weighs as many labels as a row has in it, in fine-tuning and,
        with ``bootstrap_counts``, in the linear solver before it
    resolutions : "all" levels, or "last": the encoder is trained on the last alone
    features : what the ranker sees: "both", "vectors" or "tfidf"
    positive_cost, negative_cost, cost_weights, threshold, beam : of the ranker (``XRLinear``: C
        times positive_weight, C times negative_weight, …)
    learning_rate, warmup_steps, batch_size, clip, pooling, max_length, frozen_layers,
        gradient_checkpointing, micro_batch, device, precision, runtime, onnx, random_state,
        n_jobs : as in ``TextNetwork``

    After ``fit``: ``vectorizer_``, ``ranker_`` (an ``XRLinear``), ``encoder_``, ``tokenizer_``,
    ``history_`` (one record per level).

    >>> import longtail as lt
    >>> lt.XRTransformer(encoder="average", preset="eurlex-4k")._setting("man_beam")
    5
    """

    type_tag = "xr-transformer"

    vectorizer_: Tfidf | None
    n_columns_: int
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
        refine: bool = True,
        steps: int | Sequence[int] | None = None,
        most_active: int | None = None,
        man_beam: int | None = None,
        bootstrap: bool = True,
        count_weights: bool = True,
        resolutions: str = "all",
        features: str = "both",
        positive_cost: float | None = None,
        negative_cost: float | None = None,
        cost_weights: str | None = "auto",
        threshold: float | None = None,
        beam: int | None = None,
        learning_rate: float | None = None,
        warmup_steps: float | None = None,
        batch_size: int = 128,
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
        self.refine = refine
        self.steps = steps
        self.most_active = most_active
        self.man_beam = man_beam
        self.bootstrap = bootstrap
        self.count_weights = count_weights
        self.resolutions = resolutions
        self.features = features
        self.positive_cost = positive_cost
        self.negative_cost = negative_cost
        self.cost_weights = cost_weights
        self.threshold = threshold
        self.beam = beam
        self.learning_rate = learning_rate
        self.warmup_steps = warmup_steps
        self.batch_size = batch_size
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

        ``X`` may be ``PairedRows`` of tokens and features that were made before. ``checkpoint``: a
        folder; training saves itself there after every level, and goes on from there when it is
        started again with the same data and parameters.
        """
        return self._learn(X, Y, checkpoint=checkpoint)

    def _rows(self, X: Any, *, fitted: bool = True) -> Any:
        if isinstance(X, PairedRows):
            tokens = super()._rows(X.tokens, fitted=fitted)
            features = as_features(X.X, n_features=self._n_columns() if fitted else None)
            return PairedRows(tokens, features, X.vectorizer)
        if isinstance(X, Tokens):
            raise TypeError(
                "XRTransformer reads the words of texts too: give texts, or PairedRows of tokens "
                "and features"
            )
        texts = as_texts(X)
        tokens = super()._rows(texts, fitted=fitted)
        if not fitted:
            made = Tfidf() if self.vectorizer is None else self.vectorizer
            vectorizer = type(made)(**made.get_params(deep=False))
            return PairedRows(tokens, vectorizer.fit_transform(texts), vectorizer)
        if self.vectorizer_ is None:
            raise TypeError("this model was fitted to features: give PairedRows, not texts")
        return PairedRows(tokens, self.vectorizer_.transform(texts))

    def _n_columns(self) -> int:
        """Features of the rows that the ranker sees besides vectors."""
        return self.n_columns_

    def _fit(self, X: Any, Y: Any, *, checkpoint: str | os.PathLike[str] | None = None) -> None:
        self._check_settings()
        try:
            from longtail.deep.training.plan import Plan
            from longtail.text.level_training import train_levels
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise MissingDependencyError("torch", "text", "training a text model") from error
        from longtail.text.levels import levels_of

        seed = as_seed(self.random_state)
        tree = LabelTree(
            leaf=self._setting("leaf"),
            branching=self._setting("branching"),
            min_codes=self._setting("min_codes"),
            random_state=seed % 2**31,
            n_jobs=self.n_jobs,
        ).fit(X.X, Y)
        levels = levels_of(tree, Y, _LARGEST)
        steps = self._steps_of(len(levels), len(X))
        plan = Plan.of(
            self,
            epochs=1,
            seed=seed,
            learning_rate=self._setting("learning_rate"),
            warmup_steps=self._setting("warmup_steps"),
        )
        tokenizer = X.tokens.source or self._first_tokenizer([])
        trained = train_levels(
            self,
            X,
            levels,
            steps,
            plan,
            n_tokens=tokenizer.size,
            linear=self._ranker_settings(),
            checkpoint=None if checkpoint is None else Path(checkpoint) / "levels",
            fingerprint=self._fingerprint(X, Y),
        )
        features = self._features(X, trained.vectors)
        ranker = XRLinear(
            tree=self._refined() if self.refine else _given(tree), **self._ranker_settings()
        )
        folder = None if checkpoint is None else Path(checkpoint) / "ranker"
        ranker.fit(features, Y, checkpoint=folder)
        self._take_encoder(trained.encoder, tokenizer, X.tokens)
        self.ranker_, self.vectorizer_, self.history_ = ranker, X.vectorizer, trained.history
        self.n_columns_ = int(X.X.shape[1])

    def _check_settings(self) -> None:
        if self.preset is not None and self.preset not in PRESETS:
            raise ValueError(f"preset must be one of {', '.join(PRESETS)}, got {self.preset!r}")
        if self.features not in FEATURES:
            raise ValueError(
                f"features must be one of {', '.join(FEATURES)}, got {self.features!r}"
            )
        if self.resolutions not in ("all", "last"):
            raise ValueError(f"resolutions must be 'all' or 'last', got {self.resolutions!r}")
        if not (self.vectorizer is None or isinstance(self.vectorizer, Tfidf)):
            raise TypeError(f"vectorizer must be a Tfidf or None, got {self.vectorizer!r}")
        for name in ("most_active", "man_beam", "beam"):
            as_k(self._setting(name), name)

    def _steps_of(self, n_levels: int, n_rows: int) -> list[int]:
        """Return the steps of every level."""
        steps = self._setting("steps")
        if steps is None:
            steps = -(-_EPOCHS * n_rows // as_k(self.batch_size, "batch_size"))
        if isinstance(steps, (int, np.integer)):
            if steps < 0:
                raise ValueError(f"steps must not be negative, got {steps}")
            share = [1] * (n_levels - 1) + [max(1, n_levels - 1)]
            steps = [int(steps * part / sum(share)) for part in share]
        steps = [int(count) for count in steps]
        if len(steps) < n_levels:
            steps += [steps[-1]] * (n_levels - len(steps))
        steps = steps[:n_levels]
        if self.resolutions == "last":
            steps = [0] * (n_levels - 1) + [sum(steps)]
        return steps

    def _setting(self, name: str) -> Any:
        """A parameter, or what None stands for."""
        preset = PRESETS.get(self.preset or "", {})
        value = getattr(self, name, None)
        if name == "cost_weights":
            return {**DEFAULTS, **preset}[name] if value == "auto" else value
        if value is not None:
            return value
        return {"steps": None, **DEFAULTS, **preset}[name]

    def _most_active(self) -> int:
        return as_k(self._setting("most_active"), "most_active")

    def _man_beam(self) -> int:
        return as_k(self._setting("man_beam"), "man_beam")

    def _longest(self) -> int:
        return as_k(self._setting("max_length"), "max_length")

    def _first_tokenizer(self, texts: list[str]) -> Tokenizer:
        if self.encoder in FRUGAL:
            return Tokenizer.trained(texts)
        from longtail.text.pretrained import fetched

        return Tokenizer.from_folder(fetched(self.encoder))

    def _ranker_settings(self) -> dict[str, Any]:
        """Parameters of linear models on both kinds of features."""
        return {
            "C": 1.0,
            "positive_weight": float(self._setting("positive_cost")),
            "negative_weight": float(self._setting("negative_cost")),
            "cost_weights": self._setting("cost_weights"),
            "threshold": float(self._setting("threshold")),
            "beam": as_k(self._setting("beam"), "beam"),
            "normalize": False,  # each kind is of unit length
            "random_state": as_seed(self.random_state) % 2**31,
            "n_jobs": self.n_jobs,
        }

    def _refined(self) -> LabelTree:
        return LabelTree(
            leaf=self._setting("refined_leaf"), branching=self._setting("refined_branching")
        )

    def _fingerprint(self, X: Any, Y: Any) -> dict[str, Any]:
        digest = hashlib.blake2b()
        arrays = [X.tokens.offsets, X.tokens.ids, X.X.indptr, X.X.indices, X.X.data]
        for array in [*arrays, Y.indptr, Y.indices, Y.data]:
            digest.update(np.ascontiguousarray(array).data)
        left_out = ("n_jobs", "device", "runtime", "onnx", "vectorizer")
        params = {n: repr(v) for n, v in self.get_params(deep=False).items() if n not in left_out}
        return {**params, "data": digest.hexdigest()}

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
        """Return the vectors of texts, (n, e) float32: an ordinary dense X for other models."""
        self._check_fitted()
        return self._vectors(self._rows(X).tokens)

    def _predict_topk(self, X: Any, k: int) -> TopK:
        return self.ranker_._predict_topk(self._seen(X), k)

    def _predict_allowed(self, X: Any, k: int, labels: LabelFilter) -> TopK:
        return self.ranker_._predict_allowed(self._seen(X), k, labels)

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        if not isinstance(self.encoder, (str, os.PathLike)):
            raise TypeError(f"parameter encoder cannot be saved: {self.encoder!r}")
        state.params["encoder"] = os.fspath(self.encoder)
        if not (self.vectorizer is None or isinstance(self.vectorizer, Tfidf)):
            raise TypeError(f"parameter vectorizer cannot be saved: {self.vectorizer!r}")
        given = state.params.pop("vectorizer")
        state.meta["vectorizer"] = None if given is None else given.get_params(deep=False)
        if isinstance(state.params["steps"], (tuple, np.ndarray)):
            state.params["steps"] = [int(count) for count in state.params["steps"]]
        state.parts["ranker"] = self.ranker_._get_state()
        if self.vectorizer_ is not None:
            state.parts["vectorizer"] = self.vectorizer_._get_state()
        state.meta.update(history=self.history_, n_columns=self.n_columns_)
        return state

    def _set_state(self, state: persist.State) -> None:
        super()._set_state(state)
        given = state.meta.get("vectorizer")
        self.vectorizer = None if given is None else Tfidf(**given)
        self.ranker_ = XRLinear._from_state(state.parts["ranker"])
        made = state.parts.get("vectorizer")
        self.vectorizer_ = None if made is None else Tfidf._from_state(made)
        self.n_columns_ = state.count("n_columns")
        self.history_ = list(state.meta.get("history", []))
        dense = 0 if self.features == "tfidf" else self.encoder_.width
        sparse = 0 if self.features == "vectors" else self.n_columns_
        if (
            self.ranker_.n_features_in_ != dense + sparse
            or self.ranker_.n_labels_ != self.n_labels_
        ):
            raise ModelFormatError("the ranker does not fit the encoder and its labels")


def _given(tree: LabelTree) -> LabelTree:
    """Return the parameters with which a tree is made again as it is."""
    from longtail.text.levels import whole

    return LabelTree(kind="given", hierarchy=whole(tree))
