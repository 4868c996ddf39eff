"""``XRTransformer``: an encoder fine-tuned down a label tree, and a linear ranker on what it makes."""

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
from longtail.exceptions import MissingDependencyError
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
        "leaf": 16, "branching": 16, "min_codes": 16, "refined_leaf": 16, "refined_branching": 8,
        "steps": (600, 800, 1200), "learning_rate": 5e-5, "warmup_steps": 100, "most_active": 1000,
        "max_length": 128, "man_beam": 5, "positive_cost": 2.0, "negative_cost": 4.0, "beam": 100,
    },
    "wiki10-31k": {
        "leaf": 16, "branching": 16, "min_codes": 128, "refined_leaf": 16,
        "refined_branching": 16, "steps": (1000, 1000, 400), "learning_rate": 5e-5,
        "warmup_steps": 100, "most_active": 1000, "max_length": 256, "man_beam": 20,
        "positive_cost": 4.0, "negative_cost": 1.0, "beam": 100,
    },
    "amazoncat-13k": {
        "leaf": 16, "branching": 8, "min_codes": 128, "refined_leaf": 16, "refined_branching": 8,
        "steps": (5000, 10000, 30000), "learning_rate": 5e-5, "warmup_steps": 1000,
        "most_active": 10000, "max_length": 256, "man_beam": 50, "positive_cost": 0.25,
        "negative_cost": 0.5, "beam": 100, "threshold": 1e-4,
    },
    "wiki-500k": {
        "leaf": 16, "branching": 8, "min_codes": 64, "refined_leaf": 100, "refined_branching": 32,
        "steps": (10000, 10000, 20000, 20000), "learning_rate": 1e-4, "warmup_steps": 5000,
        "most_active": 500, "max_length": 128, "man_beam": 5, "positive_cost": 4.0,
        "negative_cost": 1.0, "beam": 50,
    },
    "amazon-670k": {
        "leaf": 32, "branching": 16, "min_codes": 128, "refined_leaf": 100,
        "refined_branching": 32, "steps": (4000, 4000, 12000), "learning_rate": 1e-4,
        "warmup_steps": 200, "most_active": 500, "max_length": 128, "man_beam": 5,
        "positive_cost": 1.0, "negative_cost": 1.0, "beam": 75, "cost_weights": None,
        "bootstrap_counts": False,
    },
    "amazon-3m": {
        "leaf": 100, "branching": 16, "min_codes": 128, "refined_leaf": 100,
        "refined_branching": 32, "steps": (10000, 10000, 10000), "learning_rate": 1e-4,
        "warmup_steps": 1000, "most_active": 500, "max_length": 128, "man_beam": 20,
        "positive_cost": 8.0, "negative_cost": 1.0, "beam": 50, "bootstrap_counts": False,
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
    preset : "eurlex-4k", "wiki10-31k", "amazoncat-13k", "wiki-500k", "amazon-670k", "amazon-3m": the
        reference settings of a data set, for parameters that are None
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
    positive_cost, negative_cost, cost_weights, threshold, beam : of the ranker (``XRLinear``: C times
        positive_weight, C times negative_weight, …)
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
            wide = self.ranker_.n_features_in_ if fitted else None
            own = None if wide is None else self._n_columns()
            return PairedRows(tokens, as_features(X.X, n_features=own))
        if isinstance(X, Tokens):
            raise TypeError(
                "XRTransformer reads texts, since it takes their words too: give texts, or "
                "PairedRows of tokens and features"
            )
        texts = as_texts(X)
        vectorizer = self._first_vectorizer(texts) if not fitted else self.vectorizer_
        if vectorizer is None:
            raise TypeError("this model was fitted to features: give PairedRows, not texts")
        tokens = super()._rows(texts, fitted=fitted)
        rows = PairedRows(tokens, vectorizer.transform(texts))
        if not fitted:
            self.__dict__["_new_vectorizer"] = vectorizer
        return rows
