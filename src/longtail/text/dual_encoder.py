"""``DualEncoder``: texts find labels by the labels' own texts."""

from __future__ import annotations

import os
from typing import Any, ClassVar

import numpy as np

from longtail import persist
from longtail._native import n_threads
from longtail._products import PackedRows, times_dense
from longtail._validation import as_k, as_labels, as_seed
from longtail.answers.label_filter import LabelFilter
from longtail.answers.topk import TopK
from longtail.answers.vocabulary import grown_names
from longtail.base import unfitted
from longtail.data.tokens import Tokens
from longtail.exceptions import MissingDependencyError, ModelFormatError
from longtail.features.tokenizer import Tokenizer
from longtail.features.unit_length import unit_rows
from longtail.text.dual_settings import DEFAULTS, MARGINS, check_settings, setting
from longtail.text.index import LabelIndex
from longtail.text.label_texts import described_by_rows, label_tokens
from longtail.text.ranker import TextRanker

__all__ = ["DualEncoder"]


class DualEncoder(TextRanker):
    """One encoder for texts and for label texts; the score of a label is the cosine of the two.

    Labels with few training rows, or none, are found by what they are called. A batch holds some
    rows and a pool of labels: some of their own, and wrong ones that the model of some epochs ago
    scored best.

    Parameters
    ----------
    encoder : str or path
        As in ``TextNetwork``.
    preset : str or None
        "depsl" (pick-some-labels, decoupled softmax, mined negatives), "ngame" (one positive,
        triplets, hard negatives from clustered batches alone, 300 epochs), or None for values that
        did well on held-out rows; it fills in the parameters that are None.
    loss : str or None
        "decoupled" (softmax in which the labels of a row do not compete), "supcon", "triplet".
    temperature, margin : float or None; float
        Of the cosines, in a softmax; ``margin`` is that of triplets.
    to_labels : float or None
        Weight of texts looking for labels; the rest is for labels looking for texts.
    width : int or None
        Numbers of a vector; None for those of the encoder.
    positives, pick : int or None; str or None
        How many labels of a row are put into the pool; with "some" every label of a row that is in
        the pool counts as right, with "one" a single one, and the others for nothing.
    negatives, period, mine_from : int or None
        Mined labels of a row in each epoch; epochs from one mining to the next; the epoch of the
        first (None: in the middle of the training).
    clusters : str or sequence of int
        "batch" (a batch is a cluster of similar texts), "none", or the epochs at which clusters of
        one text double in size.
    pool_size : int or None
        The most labels of a pool; None for no limit.
    max_length, label_max_length : int or None; int
        The most tokens of a text and of a label text.
    head_learning_rate, dropout : float or None; float
        Of the heads.
    new_label_margin : float or None
        What is taken off the scores of labels that have had no training row, so that they are
        answered where they are clearly meant and take nearly nothing from the others. None for
        values with which, on dev rows of TIB-SID-en, 1,747 new labels beside 22,625 cost 0.2 points
        of precision at 1, or a little more; 0 finds most of them, and costs 1 to 4 points.
    index : str
        How labels are searched: "exact", or "hnsw", a graph that finds nearly all of the best in
        less time (the extra ``index``), for millions of labels.
    pooling, frozen_layers, gradient_checkpointing, micro_batch : str; int; bool; int or None
        As in ``TextNetwork``.
    epochs, batch_size, learning_rate, weight_decay, clip : number or None
        As in ``TextNetwork``.
    warmup_steps, decay, validation, patience, metric : float; str; float; int; str
        As in ``TextNetwork``.
    device, precision, runtime, onnx : str
        As in ``TextNetwork``.
    random_state, n_jobs : int, Generator, RandomState or None; int or None
        As in ``TextNetwork``.

    After ``fit``: ``heads_`` (weights of the layers between encoder and cosine), ``label_vectors_``
    (L, d), ``label_tokens_``, ``has_rows_`` (L,), ``encoder_``, ``tokenizer_``, ``history_``,
    ``best_epoch_``.

    >>> import longtail as lt
    >>> lt.DualEncoder(encoder="average", preset="depsl").get_params()["preset"]
    'depsl'
    """

    type_tag = "dual-encoder"
    _not_copied = (*TextRanker._not_copied, "_searched")
    reads_label_texts: ClassVar[bool] = True
    has_table: ClassVar[bool] = False
    mine_by: str = "dual"  # a parameter of models with a table

    heads_: dict[str, np.ndarray]
    label_vectors_: np.ndarray
    label_tokens_: Tokens
    has_rows_: np.ndarray
    history_: list[dict[str, Any]]
    best_epoch_: int

    def __init__(
        self,
        *,
        encoder: str | os.PathLike[str] = "average",
        preset: str | None = None,
        loss: str | None = None,
        temperature: float | None = None,
        margin: float = 0.3,
        to_labels: float | None = None,
        width: int | None = None,
        positives: int | None = None,
        pick: str | None = None,
        negatives: int | None = None,
        period: int | None = None,
        mine_from: int | None = None,
        clusters: Any = None,
        pool_size: int | None = None,
        pooling: str = "mean",
        max_length: int | None = None,
        label_max_length: int = 64,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        head_learning_rate: float | None = None,
        weight_decay: float | None = None,
        dropout: float = 0.1,
        warmup_steps: float = 0.1,
        decay: str = "cosine",
        clip: float | None = 1.0,
        validation: float = 0.0,
        patience: int = 3,
        metric: str = "precision",
        frozen_layers: int = 0,
        gradient_checkpointing: bool = False,
        micro_batch: int | None = None,
        device: str = "auto",
        precision: str = "auto",
        runtime: str = "auto",
        onnx: bool | str | None = None,
        new_label_margin: float | None = None,
        index: str = "exact",
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.encoder = encoder
        self.preset = preset
        self.loss = loss
        self.temperature = temperature
        self.margin = margin
        self.to_labels = to_labels
        self.width = width
        self.positives = positives
        self.pick = pick
        self.negatives = negatives
        self.period = period
        self.mine_from = mine_from
        self.clusters = clusters
        self.pool_size = pool_size
        self.pooling = pooling
        self.max_length = max_length
        self.label_max_length = label_max_length
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.head_learning_rate = head_learning_rate
        self.weight_decay = weight_decay
        self.dropout = dropout
        self.warmup_steps = warmup_steps
        self.decay = decay
        self.clip = clip
        self.validation = validation
        self.patience = patience
        self.metric = metric
        self.frozen_layers = frozen_layers
        self.gradient_checkpointing = gradient_checkpointing
        self.micro_batch = micro_batch
        self.device = device
        self.precision = precision
        self.runtime = runtime
        self.onnx = onnx
        self.new_label_margin = new_label_margin
        self.index = index
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        Y: Any,
        *,
        label_texts: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Any:
        """Learn from texts (or ``Tokens``) ``X``, labels ``Y`` (n, L) and what labels are called.

        Processes of a group train together, as in ``TextNetwork``: each has a range of the labels,
        with their rows of weights.

        Parameters
        ----------
        X : list of str, or Tokens
            Texts.
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        label_texts : list of str, or Tokens, default=None
            One text per label; without them a label is described by its shortest training text.
        checkpoint : str or path, default=None
            As in ``TextNetwork``.
        """
        return self._learn(X, Y, label_texts=label_texts, checkpoint=checkpoint)

    def _fit(
        self,
        X: Any,
        Y: Any,
        *,
        label_texts: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        self._check_settings()
        tokenizer, described = self._described_by(X, Y, label_texts)
        self._train(X, described, Y, tokenizer, checkpoint=checkpoint)

    def _described_by(self, X: Any, Y: Any, label_texts: Any) -> tuple[Tokenizer, Tokens]:
        """Return the tokenizer of texts that are to be learned from, and what labels are called."""
        tokenizer = X.source if X.source is not None else self._first_tokenizer([])
        longest = as_k(self.label_max_length, "label_max_length")
        if label_texts is None:
            return tokenizer, described_by_rows(X, Y).cut(longest)
        return tokenizer, label_tokens(label_texts, tokenizer, Y.shape[1], longest)

    def _check_settings(self) -> None:
        check_settings(self)

    def fine_tuned(self, X: Any, Y: Any, *, epochs: int = 1) -> Any:
        """Return a copy trained for some more epochs on ``X`` and ``Y``, at a tenth of the learning
        rates and without a validation split.

        Parameters
        ----------
        X : list of str, or Tokens
            Texts.
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        epochs : int, default=1
            Passes over the rows.
        """
        self._check_fitted()
        tokens = self._rows(X)
        Y = as_labels(Y, n_rows=len(tokens), n_labels=self.n_labels_)
        out = unfitted(self)
        out._train(
            tokens,
            self.label_tokens_,
            Y,
            self.tokenizer_,
            start=self,
            epochs=as_k(epochs, "epochs"),
        )
        out.n_features_in_, out.n_labels_ = self.n_features_in_, self.n_labels_
        out.label_names_ = self.label_names_
        return out

    def _setting(self, name: str) -> Any:
        value = getattr(self, name)
        return setting(self, name, self._defaults_of()) if value is None else value

    def _defaults_of(self) -> dict[str, Any]:
        return DEFAULTS

    def _mining(self) -> Any:
        from longtail.text.dual_training import mining_of

        return mining_of(self)

    def _head_plan(self) -> Any:
        from longtail.deep.outputs.heads import HeadPlan

        return HeadPlan(dropout=self.dropout, to_labels=float(self._setting("to_labels")))

    def _train(
        self,
        tokens: Tokens,
        described: Tokens,
        Y: Any,
        tokenizer: Tokenizer,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        start: DualEncoder | None = None,
        epochs: int = 1,
    ) -> None:
        """Learn from canonical rows; from a fitted model ``start`` on, where given."""
        plan = self._training_plan(checkpoint)
        if start is not None:
            plan = plan.gentler(epochs)
        from longtail.text.dual_training import described_together, train_dual_encoder

        trained = train_dual_encoder(
            self, tokens, described, Y, plan, n_tokens=tokenizer.size, start=start
        )
        self._take_encoder(trained.encoder, tokenizer, tokens)
        self.heads_, self.label_tokens_ = trained.heads, described
        self.has_rows_ = np.bincount(Y.indices, minlength=Y.shape[1]) > 0
        if start is not None:
            self.has_rows_ |= start.has_rows_
        self._take(described_together(self._described, described, plan))
        self.history_, self.best_epoch_ = trained.outcome.history, trained.outcome.best_epoch

    def _training_plan(self, checkpoint: str | os.PathLike[str] | None = None) -> Any:
        try:
            import torch  # noqa: F401

            from longtail.deep.training.plan import Plan
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise MissingDependencyError("torch", "text", "training a text model") from error
        names = ("epochs", "batch_size", "learning_rate", "weight_decay")
        return Plan.of(
            self,
            **{name: self._setting(name) for name in names},
            output_learning_rate=self._setting("head_learning_rate"),
            dropout=0.0,  # is in the heads
            seed=as_seed(self.random_state),
            checkpoint=checkpoint,
        )

    def plan(self, X: Any, Y: Any, *, label_texts: Any = None) -> Any:
        """Return what training on these texts would take on this machine: memory by part, and the
        time of an epoch, from a few batches; nothing is learned. Print it. From 100,000 labels on
        ``fit`` tells it by itself, on a terminal and in the log.

        Parameters
        ----------
        X : list of str, or Tokens
            Texts.
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        label_texts : list of str, default=None
            What labels are called.
        """
        self._check_settings()
        texts = self._rows(X, fitted=False)
        Y = as_labels(Y, n_rows=len(texts))
        tokenizer, described = self._described_by(texts, Y, label_texts)
        plan = self._training_plan()
        from longtail.text.dual_training import plan_dual_encoder

        return plan_dual_encoder(self, texts, described, Y, plan, n_tokens=tokenizer.size)

    def _take(self, label_vectors: np.ndarray) -> None:
        self.__dict__.pop("_searched", None)
        self.label_vectors_ = label_vectors

    def _described(self, tokens: Tokens) -> np.ndarray:
        """Return the vectors of label texts, (m, d)."""
        return self._met(self._vectors(tokens))

    def _met(self, h: np.ndarray) -> np.ndarray:
        return unit_rows(np.tanh(self._through("dual", h)), n_threads(self.n_jobs))  # type: ignore[no-any-return]

    def _through(self, head: str, h: np.ndarray) -> np.ndarray:
        weights, bias = self.heads_[f"{head}.weight"], self.heads_[f"{head}.bias"]
        return times_dense(h, weights.T, n_threads(self.n_jobs), bias=bias)

    def embed(self, X: Any) -> np.ndarray:
        """Return the vectors of texts, (n, d) float32 of unit length: an ordinary dense X for other
        models.

        Parameters
        ----------
        X : list of str, or Tokens
            Texts.
        """
        self._check_fitted()
        return self._met(self._vectors(self._rows(X)))

    def _queries(self, tokens: Tokens) -> np.ndarray:
        """Return what texts are searched with, (n, s) float32."""
        return self._met(self._vectors(tokens))

    def _found_by(self) -> np.ndarray:
        """Return what labels are found by, (L, s) float32."""
        return self.label_vectors_

    def _labels(self) -> LabelIndex:
        """Return the labels, ready to be searched; made on first use and not part of the state."""
        made_for, searched = self.__dict__.get("_searched", (None, None))
        key = self._search_key()
        if searched is None or made_for != key:
            searched = LabelIndex(self._found_by(), self._handicap(), self.index)
            self.__dict__["_searched"] = key, searched
        return searched  # type: ignore[no-any-return]

    def index_recall(self, X: Any, k: int = 10) -> float:
        """Return the share of the k best labels of texts that a search with ``index`` finds.

        Parameters
        ----------
        X : list of str, or Tokens
            Texts.
        k : int, default=10
            Answers per row.
        """
        self._check_fitted()
        queries = self._queries(self._rows(X))
        return self._labels().recall(queries, min(as_k(k), self.n_labels_), n_threads(self.n_jobs))

    def _search_key(self) -> Any:
        return self.index, self.new_label_margin

    def _handicap(self) -> np.ndarray:
        """Return what is added to the score of every label, (L,) float32."""
        margin = self.new_label_margin
        margin = self._usual_margin() if margin is None else margin
        return np.where(self.has_rows_, 0, -margin).astype(np.float32)

    def _usual_margin(self) -> float:
        return MARGINS["dual"]

    def _predict_topk(self, X: Any, k: int) -> TopK:
        found = self._labels().top(self._queries(X), k, n_threads(self.n_jobs))
        return TopK._trusted(*found, self.n_labels_)

    def _predict_allowed(self, X: Any, k: int, labels: LabelFilter) -> TopK:
        """Look at the vectors of the allowed labels alone; texts are encoded once."""
        threads, queries = n_threads(self.n_jobs), self._queries(X)

        def search(rows: slice, ids: np.ndarray, wanted: int) -> TopK:
            some, bias = PackedRows(self._found_by()[ids]), self._handicap()[ids]
            found = some.top(np.ascontiguousarray(queries[rows]), wanted, threads, bias)
            return TopK._trusted(*found, None)

        return labels.best(k, search)

    def add_labels(
        self,
        X: Any = None,
        Y: Any = None,
        *,
        label_texts: Any = None,
        names: Any = None,
        Y_old: Any = None,
        negatives: Any = None,
    ) -> Any:
        """Add labels to a fitted model; their ids follow those it has, and they are found at once.

        ``add_labels(names, label_texts=texts)`` needs no training row. ``add_labels(X, Y, …)``
        takes texts and what the m new labels are for them, (n, m); labels that have no
        ``label_texts`` are then described by the shortest of their texts. ``fine_tuned`` trains
        everything further. ``Y_old`` and ``negatives`` are for models that need them.

        Parameters
        ----------
        X : list of str, or Tokens, default=None
            Texts that have the new labels.
        Y : matrix of shape (n, m), default=None
            What the new labels are for these texts.
        label_texts : list of str, default=None
            What the new labels are called.
        names : sequence of str, default=None
            Names of the new labels.
        Y_old : matrix of shape (n, L), default=None
            Old labels of the same texts.
        negatives : tuple, default=None
            ``(X, Y)``, further texts without the new labels.
        """
        self._check_fitted()
        tokens = labels = None
        if Y is None:
            names = X if names is None else names
            if label_texts is None:
                raise ValueError("labels without training rows need label_texts")
            count = len(label_texts)
        else:
            tokens = self._rows(X)
            labels = as_labels(Y, n_rows=len(tokens))
            count = labels.shape[1]
            if Y_old is not None:
                as_labels(Y_old, n_rows=len(tokens), n_labels=self.n_labels_)
        vocabulary = grown_names(self.label_names_, names, count)
        longest = as_k(self.label_max_length, "label_max_length")
        if label_texts is None:
            assert tokens is not None
            described = described_by_rows(tokens, labels).cut(longest)
        else:
            described = label_tokens(label_texts, self.tokenizer_, count, longest)
        if count:
            self._grow(described, tokens, labels)
            self.n_labels_ += count
            self.label_names_ = vocabulary
        return self

    def _grow(self, described: Tokens, tokens: Tokens | None, labels: Any) -> None:
        vectors = self._described(described)
        self.label_tokens_ = self.label_tokens_ + described
        has = np.zeros(len(described), bool)
        if labels is not None:
            has = np.bincount(labels.indices, minlength=len(described)) > 0
        self.has_rows_ = np.concatenate([self.has_rows_, has])
        self._take(np.concatenate([self.label_vectors_, vectors]))

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        state.arrays.update({f"head_{n.replace('.', '_')}": a for n, a in self.heads_.items()})
        state.arrays["label_vectors"] = self.label_vectors_
        state.arrays["has_rows"] = self.has_rows_.astype(np.uint8)
        state.arrays["label_offsets"] = self.label_tokens_.offsets
        state.arrays["label_ids"] = self.label_tokens_.ids
        state.meta.update(history=self.history_, best_epoch=self.best_epoch_)
        return state

    def _set_state(self, state: persist.State) -> None:
        super()._set_state(state)
        vectors = state.array("label_vectors", np.float32, (self.n_labels_, None))
        width, size = self.encoder_.width, vectors.shape[1]
        heads = {}
        for name in ("dual", *(["classifier"] if self.has_table else [])):
            heads[f"{name}.weight"] = state.array(f"head_{name}_weight", np.float32, (size, width))
            heads[f"{name}.bias"] = state.array(f"head_{name}_bias", np.float32, (size,))
        if self.has_table:
            heads["table"] = state.array("head_table", np.float32, (self.n_labels_, size))
        offsets = state.array("label_offsets", np.int64, (self.n_labels_ + 1,))
        ids = state.array("label_ids", np.int32, (None,))
        try:
            self.label_tokens_ = Tokens(offsets, ids)
        except (TypeError, ValueError) as error:
            raise ModelFormatError(f"the label texts cannot be read: {error}") from None
        if len(ids) and (ids.min() < 0 or ids.max() >= self.tokenizer_.size):
            raise ModelFormatError("the label texts hold tokens that the tokenizer does not have")
        self.heads_ = heads
        self.has_rows_ = state.array("has_rows", np.uint8, (self.n_labels_,)) > 0
        self._take(vectors)
        self.history_ = list(state.meta.get("history", []))
        self.best_epoch_ = state.count("best_epoch")
