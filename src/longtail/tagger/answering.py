"""``Answering``: what a fitted tagger does with texts."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.answers import AnswerOptions, TopK, Vocabulary
from longtail.base import Estimator
from longtail.tagger.abilities import allowed, searching, without
from longtail.tagger.fields import Columns, as_columns, check_weights, rows_of
from longtail.tagger.held_out import CANDIDATES
from longtail.tagger.names import label_ids
from longtail.tagger.tail import inverse_propensity, lean, scored

__all__ = ["Answering"]


class Answering(Estimator):
    """From texts to label names, by the parts that ``Tagger.fit`` made."""

    vectorizer_: Any
    model_: Any
    rule_: Any
    vocabulary_: Vocabulary
    label_counts_: np.ndarray
    n_rows_: int
    fields_: list[str] | None

    field_weights: Mapping[str, float] | None

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names in label-id order."""
        self._check_fitted()
        return self.vocabulary_.names

    @property
    def has_probabilities(self) -> bool:
        """Whether the scores of this tagger are probabilities."""
        self._check_fitted()
        return hasattr(self.model_, "predict_proba_topk")

    def transform(self, texts: Any) -> sp.csr_matrix:
        """Return features (n, d) of texts, as the model sees them."""
        self._check_fitted()
        return rows_of(self._columns(texts), self.vectorizer_, check_weights(self.field_weights))

    def _columns(self, texts: Any) -> Columns:
        columns = as_columns(texts, self.fields_)
        if self.fields_ is None and isinstance(columns, dict):
            raise ValueError("this tagger was fitted on texts without fields: give strings")
        return columns

    def predict_topk(
        self,
        texts: Any,
        k: int = 5,
        *,
        threshold: float | None = None,
        include: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        tail: float = 0.0,
    ) -> TopK:
        """Return the label ids and scores, best first: ``predict`` without the names, for
        programs.
        """
        options = AnswerOptions(k, threshold, include, exclude, tail)
        return self.rank(self.transform(texts), options)

    def rank(self, X: sp.csr_matrix, options: AnswerOptions | int = 5, **old: Any) -> TopK:
        """Return ``predict_topk`` of rows that ``transform`` made.

        Parameters
        ----------
        X : csr_matrix of shape (n, d)
            What ``transform`` has returned.
        options : AnswerOptions or int
            A number k stands for ``AnswerOptions(k=k)``.
        **old : object
            The options by name, as 0.1 had them; with a warning, until 0.2.
        """
        self._check_fitted()
        if not isinstance(options, AnswerOptions):
            options = AnswerOptions(k=options)
        if old:
            warnings.warn(
                f"Tagger.rank takes AnswerOptions({', '.join(f'{name}=…' for name in old)}) of "
                "longtail.answers now; options by name goes in 0.2",
                DeprecationWarning,
                stacklevel=2,
            )
            options = dataclasses.replace(options, **old)
        k = min(options.k, len(self.vocabulary_))
        search = searching(self.model_)
        filters = {}
        for name, names in (("include", options.include), ("exclude", options.exclude)):
            if names is not None:
                filters[name] = label_ids(self.vocabulary_, names, name)
        allowed(self.model_, filters)
        if self.rule_ is None and not options.tail:
            top = search(X, k, **filters)
        else:
            candidates = search(X, max(k, CANDIDATES), **filters)
            top = self._decide(candidates, k, options.tail, filters)
        return top if options.threshold is None else without(top, options.threshold)

    def _decide(
        self, candidates: TopK, k: int, tail: float, filters: Mapping[str, Any] | None = None
    ) -> TopK:
        """Return the rule's choice among the candidates, then the lean."""
        top = candidates
        if self.rule_ is not None:
            # Some rules fill up with labels that are no candidates, so they are told too.
            top = scored(self.rule_.select(candidates, **(filters or {})), candidates)
        if tail:
            top = lean(top, self._inverse(), tail, k)
        return top.head(k).padded(min(k, len(self.vocabulary_)))

    def predict(
        self,
        texts: Any,
        k: int = 5,
        *,
        threshold: float | None = None,
        include: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        tail: float = 0.0,
        as_frame: bool = False,
    ) -> Any:
        """``[(name, score), …]`` of each text, best first.

        ``threshold``: answers with a lower score are left out. ``include``, ``exclude``: names of
        the only labels to answer with, or of those never to. ``tail``: from 0 (best score first) to
        1 (rare labels come forward, see ``longtail.tagger.tail``); scores stay as they are. With a
        ``rule``, its labels are answered, at most k of them, in its order. ``as_frame``: a pandas
        DataFrame instead, with one line per answer and the columns ``row``, ``rank``, ``label`` and
        ``score``; ``row`` is the index of a Series that is asked about, so that the answers join
        back (``TopK.to_frame``).

        >>> import longtail as lt, pandas
        >>> tagger = lt.Tagger().fit(["paper jam", "log in"] * 5, [["printer"], ["login"]] * 5)
        >>> tickets = pandas.DataFrame({"text": ["a paper jam", "log"]}, index=["T7", "T9"])
        >>> best = tagger.predict(tickets["text"], k=1, as_frame=True).set_index("row")
        >>> print(tickets.join(best[["label"]]))
                   text    label
        T7  a paper jam  printer
        T9          log    login
        """
        top = self.predict_topk(
            texts, k, threshold=threshold, include=include, exclude=exclude, tail=tail
        )
        if not as_frame:
            return self.named(top)
        index = getattr(texts, "index", None)  # of a Series or a DataFrame; a list has a method
        return top.to_frame(self.label_names, rows=None if callable(index) else index)

    def named(self, top: TopK) -> list[list[tuple[str, float]]]:
        """Return answers with label names, in the order given."""
        names = self.label_names
        return [
            [(names[i], s) for i, s in zip(ids, scores, strict=True) if i >= 0]
            for ids, scores in zip(top.indices.tolist(), top.scores.tolist(), strict=True)
        ]

    def _inverse(self) -> np.ndarray:
        inverse: np.ndarray | None = self.__dict__.get("_inverse_propensity")
        if inverse is None:
            inverse = inverse_propensity(self.label_counts_, self.n_rows_)
            self.__dict__["_inverse_propensity"] = inverse
        return inverse
