"""``UniDEC``: a dual encoder and a classifier in one, trained together."""

from __future__ import annotations

import os
from typing import Any, ClassVar

import numpy as np

from longtail import persist
from longtail._native import n_threads
from longtail._products import PackedRows
from longtail._validation import as_labels, as_seed
from longtail.answers.topk import TopK
from longtail.data.tokens import Tokens
from longtail.exceptions import ModelFormatError
from longtail.features.unit_length import unit_rows
from longtail.text.dual_encoder import DualEncoder
from longtail.text.dual_settings import DEFAULTS, MARGINS

__all__ = ["ANSWERS", "UniDEC"]

ANSWERS = ("both", "classifier", "dual")
# What is tried, simple answers first: a head or both, and the classifier's part where both answer.
TRIED = (("both", 0.5), ("classifier", 0.5), ("dual", 0.5), ("both", 0.25), ("both", 0.75))


class UniDEC(DualEncoder):
    """A ``DualEncoder`` whose labels have a row of weights each as well (Kharbanda et al. 2024).

    Both are trained in the same pass on the same pool of labels. The score of a label is the sum of
    two cosines: of the text with the label's text, and of the text with the label's row.

    Parameters
    ----------
    table_learning_rate : float or None
        Of the rows of labels.
    balance : float
        Weight of the dual encoder's loss; the rest is the classifier's.
    cosine : bool
        Whether the classifier learns with cosines, as it answers, or with plain products, as the
        paper has it.
    classifier_temperature : float or None
        Of the classifier's scores.
    auxiliary : float
        Weight of a binary cross-entropy of the classifier over the pool, with ``cosine=False``; in
        the paper it raises precision and lowers what rare labels gain.
    mine_by : str
        Whose scores find the hard negatives: "dual" or "both".
    answer : str
        "both", "classifier", "dual", or "auto": the best of them on validation rows, "both" without
        any; ``choose_answer`` chooses on other rows.

    All other parameters are those of ``DualEncoder``.

    After ``fit``, besides: ``answer_``, and ``share_``, the classifier's part where both answer.

    >>> import longtail as lt
    >>> lt.UniDEC(encoder="average").get_params()["answer"]
    'auto'
    """

    type_tag = "unidec"
    has_table: ClassVar[bool] = True

    answer_: str
    share_: float

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
        table_learning_rate: float | None = None,
        balance: float = 0.5,
        cosine: bool = True,
        classifier_temperature: float | None = None,
        auxiliary: float = 0.0,
        mine_by: str = "dual",
        answer: str = "auto",
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
        super().__init__(
            encoder=encoder,
            preset=preset,
            loss=loss,
            temperature=temperature,
            margin=margin,
            to_labels=to_labels,
            width=width,
            positives=positives,
            pick=pick,
            negatives=negatives,
            period=period,
            mine_from=mine_from,
            clusters=clusters,
            pool_size=pool_size,
            pooling=pooling,
            max_length=max_length,
            label_max_length=label_max_length,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            head_learning_rate=head_learning_rate,
            weight_decay=weight_decay,
            dropout=dropout,
            warmup_steps=warmup_steps,
            decay=decay,
            clip=clip,
            validation=validation,
            patience=patience,
            metric=metric,
            frozen_layers=frozen_layers,
            gradient_checkpointing=gradient_checkpointing,
            micro_batch=micro_batch,
            device=device,
            precision=precision,
            runtime=runtime,
            onnx=onnx,
            new_label_margin=new_label_margin,
            index=index,
            random_state=random_state,
            n_jobs=n_jobs,
        )
        self.table_learning_rate = table_learning_rate
        self.balance = balance
        self.cosine = cosine
        self.classifier_temperature = classifier_temperature
        self.auxiliary = auxiliary
        self.mine_by = mine_by
        self.answer = answer

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.answer not in ("auto", *ANSWERS):
            raise ValueError(
                f"answer must be auto or one of {', '.join(ANSWERS)}, got {self.answer!r}"
            )
        if self.mine_by not in ("dual", "both"):
            raise ValueError(f"mine_by must be dual or both, got {self.mine_by!r}")
        if self._setting("loss") == "triplet":
            raise ValueError("UniDEC has no triplets: loss must be 'decoupled' or 'supcon'")
        if self.auxiliary and self.cosine:
            raise ValueError("auxiliary needs cosine=False: cosines are no logits")
        if not 0 <= self.balance <= 1:
            raise ValueError(f"balance must lie between 0 and 1, got {self.balance!r}")

    def _defaults_of(self) -> dict[str, Any]:
        temperature = DEFAULTS["temperature"] if self.cosine else 1.0
        return {**DEFAULTS, "table_learning_rate": 1e-3, "classifier_temperature": temperature}

    def _head_plan(self) -> Any:
        from longtail.text.dual_training import classifier_plan

        return classifier_plan(
            self,
            dropout=self.dropout,
            to_labels=float(self._setting("to_labels")),
            table_rate=self._setting("table_learning_rate") / self._setting("head_learning_rate"),
            dual=float(self.balance),
            auxiliary=float(self.auxiliary),
            cosine=bool(self.cosine),
        )

    def _train(self, tokens: Tokens, described: Tokens, Y: Any, *args: Any, **options: Any) -> None:
        super()._train(tokens, described, Y, *args, **options)
        start = options.get("start")
        self.answer_, self.share_ = "both" if self.answer == "auto" else self.answer, 0.5
        if start is not None:
            self.answer_, self.share_ = start.answer_, start.share_
        elif self.answer == "auto" and self.validation:
            order = self._held_out(len(tokens))
            self.n_labels_ = Y.shape[1]
            self._choose(tokens[order], Y[order])

    def _held_out(self, n: int) -> np.ndarray:
        """Return the rows that training left for validation."""
        order = np.random.default_rng([as_seed(self.random_state), 0]).permutation(n)
        return np.sort(order[: int(n * self.validation)])

    def choose_answer(self, X: Any, Y: Any) -> UniDEC:
        """Answer from now on with the head, or a mean of both, that is best for these rows: by the
        mean of the precision at 1, 3 and 5.

        Parameters
        ----------
        X : list of str, or Tokens
            Texts.
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        """
        self._check_fitted()
        tokens = self._rows(X)
        self._choose(tokens, as_labels(Y, n_rows=len(tokens), n_labels=self.n_labels_))
        return self

    def _choose(self, tokens: Tokens, Y: Any) -> None:
        from longtail.metrics import precision_at_k

        k = min(5, self.n_labels_)
        best, chosen = -1.0, (self.answer_, self.share_)
        h = self._vectors(tokens)
        for answer, share in TRIED:
            found = PackedRows(self._label_rows(answer, share)).top(
                self._query_rows(h, answer), k, n_threads(self.n_jobs)
            )
            top = TopK._trusted(*found, self.n_labels_)
            value = float(np.mean([precision_at_k(Y, top, k=j) for j in (1, 3, 5) if j <= k]))
            if value > best:
                best, chosen = value, (answer, share)
        self.answer_, self.share_ = chosen
        self.__dict__.pop("_searched", None)

    def _queries(self, tokens: Tokens) -> np.ndarray:
        return self._query_rows(self._vectors(tokens), self.answer_)

    def _query_rows(self, h: np.ndarray, answer: str) -> np.ndarray:
        parts = [self._met(h)] if answer != "classifier" else []
        if answer != "dual":
            parts.append(unit_rows(self._through("classifier", h)))
        return np.ascontiguousarray(np.concatenate(parts, axis=1))

    def _found_by(self) -> np.ndarray:
        return self._label_rows(self.answer_, self.share_)

    def _label_rows(self, answer: str, share: float) -> np.ndarray:
        if answer == "dual":
            return self.label_vectors_
        table: np.ndarray = unit_rows(self.heads_["table"])
        if answer == "classifier":
            return table
        parts = [self.label_vectors_ * np.float32(2 - 2 * share), table * np.float32(2 * share)]
        return np.ascontiguousarray(np.concatenate(parts, axis=1))

    def _search_key(self) -> Any:
        return *super()._search_key(), self.answer_, self.share_

    def _usual_margin(self) -> float:
        return MARGINS[self.answer_]

    def _grow(self, described: Tokens, tokens: Tokens | None, labels: Any) -> None:
        """Add the rows of new labels, which point from all texts given to their own ones; without
        any, they are the classifier's vectors of what the labels are called.
        """
        rows = unit_rows(self._through("classifier", self._vectors(described)))
        if tokens is not None:
            vectors = unit_rows(self._through("classifier", self._vectors(tokens)))
            counts = np.bincount(labels.indices, minlength=labels.shape[1])
            has = counts > 0
            means = np.asarray(labels.T @ vectors)[has] / counts[has, None]
            apart = means - vectors.mean(axis=0)
            alone = (
                np.abs(apart).max(axis=1) < 1e-4
            )  # all texts have the label: nothing to part from
            rows[has] = unit_rows(np.asarray(np.where(alone[:, None], means, apart), np.float32))
        super()._grow(described, tokens, labels)
        self.heads_ = {**self.heads_, "table": np.concatenate([self.heads_["table"], rows])}
        self.__dict__.pop("_searched", None)

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        state.meta.update(answer=self.answer_, share=self.share_)
        return state

    def _set_state(self, state: persist.State) -> None:
        super()._set_state(state)
        self.answer_ = str(state.meta.get("answer"))
        if self.answer_ not in ANSWERS:
            raise ModelFormatError(f"there is no answer {self.answer_!r}")
        share = state.meta.get("share", 0.5)
        if not isinstance(share, (int, float)) or not 0 <= share <= 1:
            raise ModelFormatError(f"the classifier's share must lie in 0..1, got {share!r}")
        self.share_ = float(share)
