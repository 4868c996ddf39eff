"""``Network``: one hidden layer between sparse features and all labels."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import persist
from longtail._native import n_threads
from longtail._products import times_dense
from longtail._validation import as_features, as_k, as_labels, as_seed, n_instances
from longtail.answers.label_filter import LabelFilter
from longtail.answers.topk import TopK
from longtail.base import unfitted
from longtail.calibrate.ranker import ProbabilityRanker
from longtail.deep.answers import OutputArrays
from longtail.deep.output_plan import OutputPlan
from longtail.exceptions import MissingDependencyError, ModelFormatError
from longtail.features.unit_length import unit_rows
from longtail.linear.train.missing_labels import fitted_propensity, put_parameter, take_parameter

__all__ = ["Network", "one_label_each"]

LOSSES = ("auto", "sigmoid", "softmax", "squared_hinge", "hinge", "squared_error")
ERRORS = ("auto", "squared", "length")  # of fit_targets
Hook = Callable[[int, float, "Network"], None]


def one_label_each(Y: sp.csr_matrix) -> bool:
    """Return whether every row has exactly one label, with the value 1."""
    return bool((np.diff(Y.indptr) == 1).all() and (Y.data == 1).all())


class Network(ProbabilityRanker):
    """A multilayer perceptron with one hidden layer, ``z = W2 relu(W1^T x + b1) + b2``.

    The "uncompressed network" that MACH and DECLARE are compared with, and the estimator behind
    them. The first layer is a sum of embeddings, so a row costs as much as it has features;
    training needs torch, answering does not.

    Losses are summed over outputs and averaged over the rows of a batch
    (``longtail.deep.objectives`` has the formulas); the optimiser is Adam, lazy in the first layer.
    A share of the rows, ``validation``, is kept from training, and the epoch with the best mean of
    precision at 1, 3 and 5 on them is what remains (of the smallest error, for regression).

    Parameters
    ----------
    hidden : int
        Width of the hidden layer.
    loss : str
        "sigmoid" (binary cross-entropy of every label), "squared_hinge", "hinge" or "squared_error"
        of every label, "softmax" (cross-entropy with the labels of a row as a distribution),
        "auto": softmax where every row has exactly one label, else sigmoid; for ``fit_targets`` see
        there.
    epochs, patience : int
        The most epochs; stop earlier after so many without improvement.
    batch_size, learning_rate, weight_decay : int; float
        Of Adam; the rate falls linearly to zero over the epochs, and the decay is decoupled from
        the gradient.
    dropout : float
        Share of hidden values that are dropped in training.
    validation : float
        Share of the rows for early stopping; 0 trains all epochs on all rows.
    keep, schedule, warmup : int or None; str; int
        Prune to this many weights of the two layers (biases not counted) by magnitude; None for
        all. ``schedule`` "gradual" or "one_shot", after ``warmup`` epochs. Storage stays dense.
    missing_labels : propensity model, array of shape (L,) or None
        A propensity model or propensities (L,), where some labels were never recorded.
    correction : str
        What is done about it: a name of ``longtail.deep.objectives.weighting``; "auto" is the
        convex surrogate, or "pal-n" for a softmax.
    device : str
        "cpu", "cuda", "cuda:1", …, "mps", or "auto" for the best there is.
    precision : str
        "float32", "bfloat16" (products only, and not on a CPU), "auto": bfloat16 on a GPU.
    output_precision, fan_in, preset, output_options : str or None; int or None; mapping or None
        What the output layer is; None for float32 weights of all labels, trained by Adam.
        ``output_precision`` "float32", "bfloat16" or "float8" keeps weights of so many bits and no
        copy of them, trained by SGD; ``fan_in`` keeps so many weights per label. ``preset``
        ("renee", "elmo-bf16", "elmo-fp8", "dst") and ``output_options`` set more:
        ``longtail.deep.output_plan.OutputPlan`` has the names.
    checkpoint : str or None
        The old place of an argument of ``fit``, until 0.2.
    normalize : bool
        Scale rows to unit length.
    random_state, n_jobs : int, Generator, RandomState or None; int or None
        On a CPU the same seed gives the same bits for any number of threads.

    After ``fit``: ``input_weights_`` (d, h), ``input_bias_`` (h,), ``output_weights_`` (L, h),
    ``output_bias_`` (L,), ``loss_`` (what "auto" stood for), ``history_`` (one record per epoch),
    ``best_epoch_``. ``output_weights_`` are uint16 (bfloat16) or uint8 (E4M3) where they have fewer
    bits; with ``fan_in`` they are (f, L), and ``output_index_`` (f, L) says what they read.

    >>> import longtail as lt
    >>> model = lt.Network(hidden=8, epochs=3)
    >>> model.get_params()["hidden"]
    8
    """

    type_tag = "network"
    _not_copied = ("_packed_outputs",)

    input_weights_: np.ndarray
    input_bias_: np.ndarray
    output_weights_: np.ndarray
    output_bias_: np.ndarray
    output_index_: np.ndarray | None
    loss_: str
    history_: list[dict[str, Any]]
    best_epoch_: int

    def __init__(
        self,
        *,
        hidden: int = 256,
        loss: str = "auto",
        epochs: int = 20,
        patience: int = 3,
        batch_size: int = 256,
        learning_rate: float = 1e-2,
        weight_decay: float = 0.1,
        dropout: float = 0.2,
        validation: float = 0.1,
        keep: int | None = None,
        schedule: str = "gradual",
        warmup: int = 1,
        missing_labels: Any = None,
        correction: str = "auto",
        device: str = "cpu",
        precision: str = "auto",
        output_precision: str | None = None,
        fan_in: int | None = None,
        preset: str | None = None,
        output_options: dict[str, Any] | None = None,
        checkpoint: str | None = None,
        normalize: bool = True,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.hidden = hidden
        self.loss = loss
        self.epochs = epochs
        self.patience = patience
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.dropout = dropout
        self.validation = validation
        self.keep = keep
        self.schedule = schedule
        self.warmup = warmup
        self.missing_labels = missing_labels
        self.correction = correction
        self.device = device
        self.precision = precision
        self.output_precision = output_precision
        self.fan_in = fan_in
        self.preset = preset
        self.output_options = output_options
        self.checkpoint = checkpoint
        self.normalize = normalize
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        Y: Any,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        after_epoch: Hook | None = None,
        n_label_rows: int = 0,
    ) -> Any:
        """Learn from features ``X`` (n, d) and labels ``Y`` (n, L).

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows of features.
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        checkpoint : str or path, default=None
            A directory; training saves itself there after every epoch, and goes on from there
            when it is started again with the same data and parameters.
        after_epoch : callable, default=None
            Is called with the network as it is after every epoch, for curves; the time it takes
            is not counted.
        n_label_rows : int, default=0
            So many of the last rows were made of label texts (``longtail.augment``); they are
            neither validated on nor counted in propensities.
        """
        return self._learn(
            X,
            Y,
            checkpoint=self._folder(checkpoint),
            after_epoch=after_epoch,
            n_label_rows=n_label_rows,
        )

    def _folder(self, checkpoint: str | os.PathLike[str] | None) -> str | os.PathLike[str] | None:
        if self.checkpoint is None:
            return checkpoint
        warnings.warn(
            "Network(checkpoint=…) is fit(…, checkpoint=…) now; the old place goes in 0.2",
            DeprecationWarning,
            stacklevel=3,
        )
        return self.checkpoint if checkpoint is None else checkpoint

    def _fit(
        self,
        X: Any,
        Y: Any,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        after_epoch: Hook | None = None,
        n_label_rows: int = 0,
    ) -> None:
        loss = self.loss
        if loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(LOSSES)}, got {loss!r}")
        if loss == "auto":
            loss = "softmax" if one_label_each(Y) else "sigmoid"
        self._train(
            X, Y, loss, checkpoint=checkpoint, after_epoch=after_epoch, n_label_rows=n_label_rows
        )

    def fit_targets(
        self,
        X: Any,
        T: Any,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        after_epoch: Hook | None = None,
    ) -> Network:
        """Learn targets ``T`` (n, c); ``decision_function`` predicts them.

        The loss of a row is ``1/2 |z - t|^2`` ("auto" and "squared") or ``|z - t|`` ("length"):
        then rows that are far off pull no harder than others.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows of features.
        T : array of shape (n, c)
            Targets.
        checkpoint : str or path, default=None
            Folder for what is finished: a call that was cut short goes on from there.
        after_epoch : callable, default=None
            Called after every epoch.
        """
        if self.loss not in ERRORS:
            raise ValueError(
                f"loss must be one of {', '.join(ERRORS)} for a regression, got {self.loss!r}"
            )
        if self.missing_labels is not None:
            raise ValueError("missing_labels is for labels, not for the targets of a regression")
        X = as_features(X)
        T = np.ascontiguousarray(T, dtype=np.float32)
        if T.ndim != 2 or len(T) != X.shape[0] or not T.size:
            raise ValueError(f"targets must have the shape ({X.shape[0]}, c), got {T.shape}")
        if not np.isfinite(T).all():
            raise ValueError("targets must be finite")
        loss = "squared" if self.loss == "auto" else self.loss
        self._train(X, T, loss, checkpoint=self._folder(checkpoint), after_epoch=after_epoch)
        self._forget()
        self.n_features_in_, self.n_labels_ = int(X.shape[1]), int(T.shape[1])
        return self

    def plan(self, X: Any, Y: Any, *, memory_limit: int | None = None) -> Any:
        """Return what training on ``X`` and ``Y`` would take on this machine: memory by part, the
        time of an epoch from a few batches, and which output layers fit ``memory_limit`` bytes.
        Nothing is learned. Print it.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows of features.
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        memory_limit : int, default=None
            Bytes that training may take.
        """
        X = as_features(X)
        Y = as_labels(Y, n_rows=X.shape[0])
        hidden = as_k(self.hidden, "hidden")
        try:
            from longtail.deep.perceptron import plan_perceptron
            from longtail.deep.training.plan import Plan
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise MissingDependencyError("torch", "deep", "training a network") from error
        plan = Plan.of(self, seed=as_seed(self.random_state))
        return plan_perceptron(
            X if sp.issparse(X) else sp.csr_matrix(X),
            Y,
            plan,
            OutputPlan.of(self),
            hidden=hidden,
            memory_limit=memory_limit,
        )

    def fine_tuned(self, X: Any, Y: Any, *, epochs: int = 1) -> Network:
        """Return a copy trained for some more epochs on ``X`` and ``Y``, at a tenth of the learning
        rate and without a validation split.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows of features.
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        epochs : int, default=1
            Passes over the rows.
        """
        self._check_fitted()
        if self.loss_ not in LOSSES:
            raise TypeError("a network that was fitted to targets cannot be tuned on labels")
        X = as_features(X, n_features=self.n_features_in_)
        Y = as_labels(Y, n_rows=X.shape[0], n_labels=self.n_labels_)
        out = unfitted(self)
        start = (self.input_weights_, self.input_bias_, self._output_arrays())
        out._train(X, Y, self.loss_, start=start, epochs=as_k(epochs, "epochs"))
        out.n_features_in_, out.n_labels_ = self.n_features_in_, self.n_labels_
        return out

    def _train(
        self,
        X: Any,
        targets: Any,
        loss: str,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        after_epoch: Hook | None = None,
        n_label_rows: int = 0,
        start: tuple[np.ndarray, np.ndarray, OutputArrays] | None = None,
        epochs: int = 1,
    ) -> None:
        """Learn from canonical rows; from the arrays ``start`` on, where given."""
        as_k(self.hidden, "hidden")
        try:
            from longtail.deep.perceptron import train_perceptron
            from longtail.deep.training.plan import Plan
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise MissingDependencyError("torch", "deep", "training a network") from error
        if self.precision == "bfloat16-weights":
            raise ValueError("precision 'bfloat16-weights' is for encoders of texts")
        outputs = OutputPlan.of(self)
        if outputs.hidden is not None or outputs.auxiliary:
            raise ValueError(
                "hidden and auxiliary are for TextNetwork: a Network has its own hidden layer"
            )
        n = n_instances(X.shape[0], n_label_rows)
        plan = Plan.of(
            self,
            seed=as_seed(self.random_state),
            checkpoint=checkpoint,
            n_label_rows=n_label_rows,
        )
        if start is not None:
            rate = plan.learning_rate / 10
            plan = replace(plan, epochs=epochs, validation=0.0, learning_rate=rate)
            outputs = outputs.gentler()
        propensity = None
        if self.missing_labels is not None:
            propensity = fitted_propensity(self.missing_labels, targets[:n])
        X = X if sp.issparse(X) else sp.csr_matrix(X)
        if self.normalize:
            X = unit_rows(X, plan.threads)
        look: Any = None
        if after_epoch is not None:

            def look(epoch: int, seconds: float, arrays: tuple[Any, ...]) -> None:
                now = unfitted(self)
                now._take_trained(arrays, [], epoch, loss)
                now.n_features_in_, now.n_labels_ = X.shape[1], targets.shape[1]
                after_epoch(epoch, seconds, now)

        arrays, outcome = train_perceptron(
            X,
            targets,
            plan,
            hidden=int(self.hidden),
            loss=loss,
            correction=self.correction,
            propensity=propensity,
            outputs=outputs,
            start=start,
            after_epoch=look,
        )
        self._take_trained(arrays, outcome.history, outcome.best_epoch, loss)

    def _take_trained(
        self,
        arrays: tuple[Any, ...],
        history: list[dict[str, Any]],
        best_epoch: int,
        loss: str,
    ) -> None:
        w1, b1, last = arrays
        self._take((w1, b1, last.weights, last.bias), history, best_epoch, loss, last.index)

    def _take(
        self,
        arrays: tuple[np.ndarray, ...],
        history: list[dict[str, Any]],
        best_epoch: int,
        loss: str,
        index: np.ndarray | None = None,
    ) -> None:
        self.__dict__.pop("_packed_outputs", None)
        self.output_index_ = index
        self.input_weights_, self.input_bias_, self.output_weights_, self.output_bias_ = arrays
        self.history_, self.best_epoch_, self.loss_ = history, best_epoch, loss

    @property
    def n_parameters_(self) -> int:
        """Weights and biases that are not zero."""
        arrays = (self.input_weights_, self.input_bias_, self.output_weights_, self.output_bias_)
        return int(sum(np.count_nonzero(array) for array in arrays))

    @property
    def link_(self) -> str:
        """How a score becomes the value of an output: "sigmoid", "softmax", "hinge" or
        "identity".
        """
        links = {"sigmoid": "sigmoid", "softmax": "softmax", "squared_hinge": "hinge"}
        return "hinge" if self.loss_ == "hinge" else links.get(self.loss_, "identity")

    def _hidden(self, X: Any, threads: int) -> np.ndarray:
        X = unit_rows(X, threads) if self.normalize else X
        return times_dense(X, self.input_weights_, threads, bias=self.input_bias_, relu=True)

    def _output_arrays(self) -> OutputArrays:
        return OutputArrays(
            self.output_weights_,
            self.output_bias_,
            self.output_index_,
            width=self.input_weights_.shape[1],
        )

    def _outputs(self) -> Any:
        """Return what answers from the output weights, made on first use and not part of the
        state.
        """
        packed = self.__dict__.get("_packed_outputs")
        if packed is None:
            packed = self.__dict__["_packed_outputs"] = self._output_arrays().rows()
        return packed

    def _predict_topk(self, X: Any, k: int) -> TopK:
        threads = n_threads(self.n_jobs)
        ids, scores = self._outputs().top(
            self._hidden(X, threads), k, threads, np.ascontiguousarray(self.output_bias_)
        )
        return TopK._trusted(ids, scores, self.n_labels_)

    def _predict_allowed(self, X: Any, k: int, labels: LabelFilter) -> TopK:
        """Look at the output weights of the allowed labels alone."""
        threads = n_threads(self.n_jobs)

        def search(rows: slice, ids: np.ndarray, wanted: int) -> TopK:
            whole = len(ids) == self.n_labels_
            outputs = self._outputs() if whole else self._output_arrays().rows(ids)
            bias = np.ascontiguousarray(self.output_bias_[ids])
            found = outputs.top(self._hidden(X[rows], threads), wanted, threads, bias)
            return TopK._trusted(found[0], found[1], None)

        return labels.best(k, search)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return all outputs, (n, L) float32. For few outputs or few rows.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows of features.
        """
        self._check_fitted()
        X = as_features(X, n_features=self.n_features_in_)
        threads = n_threads(self.n_jobs)
        bias = np.ascontiguousarray(self.output_bias_)
        out: np.ndarray = self._outputs().products(self._hidden(X, threads), threads, bias)
        return out

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        put_parameter(state)
        state.arrays.update(
            input_weights=self.input_weights_,
            input_bias=self.input_bias_,
        )
        self._output_arrays().put(state)
        state.meta.update(history=self.history_, best_epoch=self.best_epoch_)
        if self.loss_ != self._usual_loss():
            state.meta["loss"] = self.loss_
        return state

    def _usual_loss(self) -> str:
        """Return what the loss is, as far as the parameter tells."""
        return "sigmoid" if self.loss == "auto" else self.loss

    def _set_state(self, state: persist.State) -> None:
        super()._set_state(state)
        self.missing_labels = take_parameter(state)
        d, L = self.n_features_in_, self.n_labels_
        w1 = state.array("input_weights", np.float32, (d, None))
        h = w1.shape[1]
        last = OutputArrays.take(state, L, h)
        arrays = (w1, state.array("input_bias", np.float32, (h,)), last.weights, last.bias)
        loss = str(state.meta.get("loss", self._usual_loss()))
        if loss not in LOSSES[1:] + ERRORS[1:]:
            raise ModelFormatError(f"a network has no loss {loss!r}")
        history, best = list(state.meta.get("history", [])), state.count("best_epoch")
        self._take(arrays, history, best, loss, last.index)
