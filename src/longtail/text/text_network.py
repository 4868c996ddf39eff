"""``TextNetwork``: an encoder of texts and one output per label."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from longtail import persist
from longtail._native import n_threads
from longtail._validation import as_k, as_labels, as_seed, n_instances
from longtail.answers.label_filter import LabelFilter
from longtail.answers.topk import TopK
from longtail.base import unfitted
from longtail.data.tokens import Tokens
from longtail.deep.answers import OutputArrays
from longtail.deep.network import ERRORS, LOSSES, Network, one_label_each
from longtail.deep.output_plan import OutputPlan, preset_of
from longtail.deep.training.plan import Plan
from longtail.exceptions import MissingDependencyError, ModelFormatError
from longtail.linear.train.missing_labels import fitted_propensity, put_parameter, take_parameter
from longtail.text.new_outputs import new_outputs
from longtail.text.ranker import FRUGAL, TextRanker

__all__ = ["TextNetwork"]

# What a parameter of None stands for. Of a transformer: chosen on dev rows of TIB-SID-en and on a
# held-out tenth of DebDeps-src (benchmarks/text/compare.py --held-out).
DEFAULTS: dict[str, dict[str, Any]] = {
    "transformer": {
        "epochs": 10,
        "batch_size": 128,
        "learning_rate": 2e-4,
        "output_learning_rate": 1e-3,
        "weight_decay": 0.01,
        "dropout": 0.1,
        "max_length": 192,
    },
    "average": {
        "epochs": 20,
        "batch_size": 256,
        "learning_rate": 3e-3,
        "output_learning_rate": 3e-3,
        "weight_decay": 0.01,
        "dropout": 0.2,
        "max_length": 64,
    },
    "convolution": {
        "epochs": 20,
        "batch_size": 128,
        "learning_rate": 2e-3,
        "output_learning_rate": 2e-3,
        "weight_decay": 0.01,
        "dropout": 0.4,
        "max_length": 32,
    },
}


class TextNetwork(TextRanker):
    """An encoder that is trained on the texts themselves, and a row of weights for every label.

    ``z = W h(text) + b``, where h is a transformer, pretrained, or one of two small encoders that
    are not. All labels are scored in every step, in chunks, under any objective of
    ``longtail.deep.objectives``.

    Parameters
    ----------
    encoder : str or path
        A folder with a pretrained encoder (``config.json``, ``tokenizer.json``, safetensors), its
        name on the Hugging Face hub, or "average" or "convolution" for encoders of short texts that
        begin from nothing.
    loss, missing_labels, correction : str; propensity model, array of shape (L,) or None
        As in ``Network``.
    pooling : str
        "mean" of the tokens of a text, or its "first" token; for transformers.
    max_length : int or None
        The most tokens of a text; the rest is cut off and counted in ``n_truncated_``.
    epochs, batch_size, learning_rate, output_learning_rate, weight_decay : number or None
        None for values that fit the encoder (``DEFAULTS``).
    dropout : float or None
        Of the vectors; None as above.
    warmup_steps, decay : float; str
        Rates rise over a share of all steps, or a number of them, and fall as ``decay`` says:
        "linear", "cosine", "constant", or "plateau", halved when the metric stalls.
    clip : float or None
        The most that the norm of the encoder's gradient may be; None for no limit.
    validation, patience, metric : float; int; str
        Share of the rows for early stopping; 0 trains all epochs on all rows. ``patience`` epochs
        without improvement of ``metric`` ("precision", "recall", "ndcg", "psp", the mean at 1, 3
        and 5) end the training, and the best epoch remains.
    frozen_layers : int
        So many of the lowest layers of a transformer are not trained; -1 for none of it.
    gradient_checkpointing : bool
        Less memory, more time.
    micro_batch : int or None
        Rows that pass through the encoder at a time; None for the whole batch, or as many as the
        memory of a GPU holds.
    device : str
        "auto" (cuda, then mps, then cpu), "cpu", "cuda", "cuda:1", …
    precision : str
        "auto" (bfloat16 on a GPU), "float32", "bfloat16": of the encoder's products; on a GPU
        "bfloat16-weights" also keeps its weights in bfloat16 while they are trained, with what
        rounding loses of them.
    output_precision, fan_in, preset, output_options : str or None; int or None; mapping or None
        What the output layer is, as in ``Network``: weights of 32, 16 or 8 bits without another
        copy, or ``fan_in`` of them per label. A preset also says what epochs, rates and dropout of
        None stand for.
    runtime : str
        What encodes texts of a fitted model: "torch", "onnx" (ONNX Runtime, no torch), or "auto".
    onnx : bool, str or None
        Whether a saved model has its encoder as an ONNX file too, so that it answers without torch:
        True, False, "int8" for weights of eight bits (smaller and faster, answers differ a little),
        or None: where the extra ``onnx`` is installed.
    random_state, n_jobs : int, Generator, RandomState or None; int or None
        On a CPU, the same seed and number of threads give the same bits.

    After ``fit``: ``output_weights_`` (L, e), ``output_bias_`` (L,), ``output_index_`` (or None) of
    ``fan_in``, ``hidden_`` (weights and bias of the layer that ``output_options`` may put in front
    of it, or None), ``encoder_``, ``tokenizer_``, ``n_truncated_``, ``loss_``, ``history_``,
    ``best_epoch_``.

    >>> import longtail as lt
    >>> model = lt.TextNetwork(encoder="average", epochs=3)
    >>> model.get_params()["encoder"]
    'average'
    """

    type_tag = "text-network"

    output_weights_: np.ndarray
    output_bias_: np.ndarray
    output_index_: np.ndarray | None
    hidden_: tuple[np.ndarray, np.ndarray] | None
    loss_: str
    history_: list[dict[str, Any]]
    best_epoch_: int

    def __init__(
        self,
        *,
        encoder: str | os.PathLike[str] = "average",
        loss: str = "auto",
        missing_labels: Any = None,
        correction: str = "auto",
        pooling: str = "mean",
        max_length: int | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        output_learning_rate: float | None = None,
        weight_decay: float | None = None,
        dropout: float | None = None,
        warmup_steps: float = 0.1,
        decay: str = "linear",
        clip: float | None = 1.0,
        validation: float = 0.0,
        patience: int = 3,
        metric: str = "precision",
        frozen_layers: int = 0,
        gradient_checkpointing: bool = False,
        micro_batch: int | None = None,
        device: str = "auto",
        precision: str = "auto",
        output_precision: str | None = None,
        fan_in: int | None = None,
        preset: str | None = None,
        output_options: dict[str, Any] | None = None,
        runtime: str = "auto",
        onnx: bool | str | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.encoder = encoder
        self.loss = loss
        self.missing_labels = missing_labels
        self.correction = correction
        self.pooling = pooling
        self.max_length = max_length
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.output_learning_rate = output_learning_rate
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
        self.output_precision = output_precision
        self.fan_in = fan_in
        self.preset = preset
        self.output_options = output_options
        self.runtime = runtime
        self.onnx = onnx
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        Y: Any,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        n_label_rows: int = 0,
    ) -> Any:
        """Learn from texts (or ``Tokens``) ``X`` and labels ``Y`` (n, L).

        In a process group (``torch.distributed.init_process_group``, as under ``torchrun``), all
        processes call ``fit`` with the same arguments and train one model together
        (``longtail.deep.group``): each encodes a share of every batch and learns a range of the
        labels, and all of them end with the whole model. Checkpoints go on with any number of
        processes.

        Parameters
        ----------
        X : list of str, or Tokens
            Texts.
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        checkpoint : str or path, default=None
            A folder; training saves itself there after every epoch, and goes on from there when
            it is started again with the same data and parameters.
        n_label_rows : int, default=0
            So many of the last rows are texts of labels (``longtail.augment``); they are
            neither validated on nor counted in propensities.
        """
        return self._learn(X, Y, checkpoint=checkpoint, n_label_rows=n_label_rows)

    def _fit(
        self,
        X: Any,
        Y: Any,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        n_label_rows: int = 0,
    ) -> None:
        if self.loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(LOSSES)}, got {self.loss!r}")
        loss = self.loss
        if loss == "auto":
            loss = "softmax" if one_label_each(Y) else "sigmoid"
        self._train(X, Y, loss, checkpoint=checkpoint, n_label_rows=n_label_rows)

    def fit_targets(
        self, X: Any, T: Any, *, checkpoint: str | os.PathLike[str] | None = None
    ) -> TextNetwork:
        """Learn targets ``T`` (n, c); ``decision_function`` predicts them. As in ``Network``.

        Parameters
        ----------
        X : list of str, or Tokens
            Texts.
        T : array of shape (n, c)
            Targets.
        checkpoint : str or path, default=None
            Folder for what is finished: a call that was cut short goes on from there.
        """
        if self.loss not in ERRORS:
            raise ValueError(
                f"loss must be one of {', '.join(ERRORS)} for a regression, got {self.loss!r}"
            )
        tokens = self._rows(X, fitted=False)
        T = np.ascontiguousarray(T, dtype=np.float32)
        if T.ndim != 2 or len(T) != len(tokens) or not T.size or not np.isfinite(T).all():
            raise ValueError(f"targets must be finite and of the shape ({len(tokens)}, c)")
        loss = "squared" if self.loss == "auto" else self.loss
        self._train(tokens, T, loss, checkpoint=checkpoint)
        self._forget()
        self._set_sizes(tokens, T)
        return self

    def plan(self, X: Any, Y: Any, *, memory_limit: int | None = None) -> Any:
        """Return what training on texts ``X`` and labels ``Y`` would take on this machine: memory
        by part, the time of an epoch from a few batches, and which output layers fit
        ``memory_limit`` bytes. Nothing is learned. Print it.

        Parameters
        ----------
        X : list of str, or Tokens
            Texts.
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        memory_limit : int, default=None
            Bytes that training may take.
        """
        tokens = self._rows(X, fitted=False)
        Y = as_labels(Y, n_rows=len(tokens))
        tokenizer = tokens.source or self._first_tokenizer([])
        try:
            from longtail.text.training import plan_text_network
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise MissingDependencyError("torch", "text", "training a text model") from error
        return plan_text_network(
            self,
            tokens,
            Y,
            self._training_plan(),
            OutputPlan.of(self),
            tokenizer.size,
            memory_limit,
        )

    def _training_plan(self, **settings: Any) -> Plan:
        params = {name: self._setting(name) for name in DEFAULTS["transformer"]}
        return Plan.of(self, **params, **settings, seed=as_seed(self.random_state))

    def fine_tuned(self, X: Any, Y: Any, *, epochs: int = 1) -> TextNetwork:
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
        if self.loss_ not in LOSSES:
            raise TypeError("a network that was fitted to targets cannot be tuned on labels")
        tokens = self._rows(X)
        Y = as_labels(Y, n_rows=len(tokens), n_labels=self.n_labels_)
        out = unfitted(self)
        out._train(tokens, Y, self.loss_, start=self, epochs=as_k(epochs, "epochs"))
        out.n_features_in_, out.n_labels_ = self.n_features_in_, self.n_labels_
        out.label_names_ = self.label_names_
        return out

    def _setting(self, name: str) -> Any:
        """Return a parameter, or what None stands for."""
        value = getattr(self, name)
        kind = str(self.encoder) if self.encoder in FRUGAL else "transformer"
        defaults = {**DEFAULTS[kind], **preset_of(self).defaults}
        return defaults[name] if value is None else value

    def _train(
        self,
        tokens: Tokens,
        targets: Any,
        loss: str,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        n_label_rows: int = 0,
        start: TextNetwork | None = None,
        epochs: int = 1,
    ) -> None:
        """Learn from canonical rows; from a fitted model ``start`` on, where given."""
        try:
            from longtail.text.training import train_text_network
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise MissingDependencyError("torch", "text", "training a text model") from error
        n = n_instances(len(tokens), n_label_rows)
        plan = self._training_plan(checkpoint=checkpoint, n_label_rows=n_label_rows)
        outputs = OutputPlan.of(self)
        if start is not None:
            plan, outputs = plan.gentler(epochs), outputs.gentler()
        propensity = None
        if self.missing_labels is not None:
            propensity = fitted_propensity(self.missing_labels, targets[:n])
        tokenizer = tokens.source if start is None else start.tokenizer_
        if tokenizer is None:
            tokenizer = self._first_tokenizer([])
        trained = train_text_network(
            self,
            tokens,
            targets,
            plan,
            loss=loss,
            propensity=propensity,
            outputs=outputs,
            n_tokens=tokenizer.size,
            start=start,
        )
        self._take_encoder(trained.encoder, tokenizer, tokens)
        self._take_outputs(trained.outputs)
        self.history_, self.best_epoch_ = trained.outcome.history, trained.outcome.best_epoch
        self.loss_ = loss

    def _take(self, weights: np.ndarray, bias: np.ndarray) -> None:
        self._take_outputs(OutputArrays(weights, bias))

    def _take_outputs(self, outputs: OutputArrays) -> None:
        self.__dict__.pop("_packed", None)
        self.output_weights_, self.output_bias_ = outputs.weights, outputs.bias
        self.output_index_, self.hidden_ = outputs.index, outputs.hidden

    def _output_arrays(self) -> OutputArrays:
        width = self.encoder_.width
        arrays = self.output_weights_, self.output_bias_, self.output_index_, self.hidden_
        return OutputArrays(*arrays, width)

    def _outputs(self) -> Any:
        """Return what answers from the output weights, made on first use and not part of the
        state.
        """
        packed = self.__dict__.get("_packed")
        if packed is None:
            packed = self.__dict__["_packed"] = self._output_arrays().rows()
        return packed

    def _read(self, vectors: np.ndarray) -> np.ndarray:
        """Return the vectors as the output weights read them."""
        return self._output_arrays().active(vectors, n_threads(self.n_jobs))

    def _predict_topk(self, X: Any, k: int) -> TopK:
        return self._top(self._vectors(X), k)

    def _top(self, vectors: np.ndarray, k: int) -> TopK:
        bias = np.ascontiguousarray(self.output_bias_)
        found = self._outputs().top(self._read(vectors), k, n_threads(self.n_jobs), bias)
        return TopK._trusted(found[0], found[1], self.n_labels_)

    def _predict_allowed(self, X: Any, k: int, labels: LabelFilter) -> TopK:
        """Look at the output weights of the allowed labels alone; texts are encoded once."""
        threads, vectors = n_threads(self.n_jobs), self._read(self._vectors(X))

        def search(rows: slice, ids: np.ndarray, wanted: int) -> TopK:
            whole = len(ids) == self.n_labels_
            outputs = self._outputs() if whole else self._output_arrays().rows(ids)
            bias = np.ascontiguousarray(self.output_bias_[ids])
            found = outputs.top(np.ascontiguousarray(vectors[rows]), wanted, threads, bias)
            return TopK._trusted(found[0], found[1], None)

        return labels.best(k, search)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return all outputs, (n, L) float32. For few outputs or few rows.

        Parameters
        ----------
        X : list of str, or Tokens
            Texts.
        """
        self._check_fitted()
        bias = np.ascontiguousarray(self.output_bias_)
        return self._outputs().products(  # type: ignore[no-any-return]
            self._read(self.embed(X)), n_threads(self.n_jobs), bias
        )

    @property
    def link_(self) -> str:
        """How a score becomes the value of an output, as in ``Network``."""
        return Network.link_.fget(self)  # type: ignore[attr-defined, no-any-return]

    def add_labels(
        self,
        X: Any,
        Y: Any,
        *,
        Y_old: Any = None,
        negatives: tuple[Any, Any] | None = None,
        names: Any = None,
    ) -> TextNetwork:
        """Add labels to a fitted model; their ids follow those it has.

        The encoder and the outputs of the old labels stay as they are; an output for each new label
        is fitted to the vectors of the texts (``longtail.text.new_outputs``), and rounded or cut to
        the largest weights where those of the others are. ``fine_tuned`` then trains everything
        further.

        Parameters
        ----------
        X : list of str, or Tokens
            Texts.
        Y : matrix of shape (n, m)
            What the m new labels are for them.
        Y_old : matrix of shape (n, L) or None
            (n, L) the old labels of the same texts: they are checked, and nothing else.
        negatives : tuple or None
            ``(X, Y)``, further texts without the new labels, and their old labels.
        names : sequence of str or None
            Of the new labels, for a model whose labels have names.
        """
        self._check_fitted()
        weights, bias, vocabulary = new_outputs(self, X, Y, Y_old, negatives, names)
        if len(bias):
            self._take_outputs(self._output_arrays().joined(weights, bias))
            self.n_labels_ += len(bias)
            self.label_names_ = vocabulary
        return self

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        put_parameter(state)
        self._output_arrays().put(state)
        state.meta.update(history=self.history_, best_epoch=self.best_epoch_, loss=self.loss_)
        return state

    def _set_state(self, state: persist.State) -> None:
        super()._set_state(state)
        self.missing_labels = take_parameter(state)
        self._take_outputs(OutputArrays.take(state, self.n_labels_, self.encoder_.width))
        self.history_ = list(state.meta.get("history", []))
        self.best_epoch_ = state.count("best_epoch")
        self.loss_ = str(state.meta.get("loss"))
        if self.loss_ not in LOSSES[1:] + ERRORS[1:]:
            raise ModelFormatError(f"a network has no loss {self.loss_!r}")
