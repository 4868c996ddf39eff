"""``Ensemble``: several rankers, one answer."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from longtail import persist
from longtail._models import from_state
from longtail._validation import as_k, as_seed
from longtail.answers.label_filter import LabelFilter
from longtail.answers.topk import TopK
from longtail.answers.vocabulary import Vocabulary
from longtail.base import Ranker, unfitted
from longtail.calibrate.ranker import ProbabilityRanker
from longtail.data.paired_rows import PairedRows
from longtail.data.text_rows import TextRows
from longtail.data.tokens import Tokens
from longtail.ensemble.fusion import RULES, combine
from longtail.exceptions import ModelFormatError
from longtail.features.tokenizer import as_texts
from longtail.text import XRTransformer

__all__ = ["Ensemble"]


class Ensemble(ProbabilityRanker):
    """Rankers of the same labels, combined by a rule (``longtail.ensemble.combine``).

    Trees of different seeds make different mistakes, so three of them beat one; PECOS and
    XR-Transformer report such triples.

    Parameters
    ----------
    models : rankers; ``fit`` fits copies of them. All of them take features, or all read texts,
        each with its own tokenizer (``of_encoders``)
    rule : "mean", "rank", "softmax" or "sigmoid"
    candidates : answers taken from each member, at least k

    After ``fit``: ``members_``.

    >>> import longtail as lt
    >>> pair = lt.Ensemble(models=[lt.baselines.Popularity(), lt.baselines.NearestNeighbors()])
    >>> pair.fit([[1.0, 0.0], [0.0, 1.0]], [[0], [1]]).predict_topk([[0.9, 0.0]], k=1).indices
    array([[0]], dtype=int32)
    """

    type_tag = "ensemble"

    members_: list[Ranker]
    _folder: Path | None  # of the checkpoint, while ``fit`` runs

    def __init__(
        self, *, models: Sequence[Ranker] = (), rule: str = "mean", candidates: int = 20
    ) -> None:
        self.models = models
        self.rule = rule
        self.candidates = candidates

    def _check_params(self) -> None:
        if self.rule not in RULES:
            raise ValueError(f"rule must be one of {', '.join(RULES)}, got {self.rule!r}")
        as_k(self.candidates, "candidates")

    def fit(
        self,
        X: Any,
        Y: Any,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        n_label_rows: int = 0,
    ) -> Any:
        """Learns from features ``X`` (n, d) and labels ``Y`` (n, L).

        ``checkpoint``: a folder for finished parts, in which every member that can keep some has a
        folder of its own; a training that was cut short, called again with the same folder, data
        and parameters, goes on from there. ``n_label_rows``: so many of the last rows were made of
        label texts (``longtail.augment``); members that count or validate on instances are told.
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
        self._check_params()
        if not self.models:
            raise ValueError("models is empty: give the rankers to combine")
        members: list[Ranker] = []
        for i, model in enumerate(self.models):
            member = unfitted(model)
            how: dict[str, Any] = {}
            takes = signature(member.fit).parameters
            if checkpoint is not None and "checkpoint" in takes:
                how["checkpoint"] = Path(checkpoint) / f"member{i}"
            if n_label_rows and "n_label_rows" in takes:
                how["n_label_rows"] = n_label_rows
            members.append(member.fit(X, Y, **how))
        self.members_ = members

    @property
    def reads_texts(self) -> bool:  # type: ignore[override]
        """Whether the members read texts."""
        each = self.__dict__.get("members_") or self.models
        return any(getattr(model, "reads_texts", False) for model in each)

    @property
    def reads_blocks(self) -> bool:  # type: ignore[override]
        """Whether all members do."""
        each = self.__dict__.get("members_") or self.models
        return all(getattr(model, "reads_blocks", False) for model in each)

    def _rows(self, X: Any, *, fitted: bool = True) -> Any:
        if not self.reads_texts:
            return super()._rows(X, fitted=fitted)
        for model in self.members_ if fitted else self.models:
            if not getattr(model, "reads_texts", False):
                raise TypeError(
                    f"either all members read texts or none: {type(model).__name__} takes features"
                )
        return X if isinstance(X, (PairedRows, Tokens)) else TextRows(as_texts(X))

    def _set_sizes(self, X: Any, Y: Any) -> None:
        self.n_features_in_, self.n_labels_ = self.members_[0].n_features_in_, int(Y.shape[1])

    @classmethod
    def of_encoders(
        cls,
        encoders: Sequence[Any],
        *,
        preset: str | None = None,
        rule: str | None = None,
        candidates: int | None = None,
        random_state: Any = 0,
        **params: Any,
    ) -> Ensemble:
        """An ensemble of ``XRTransformer``, one for each encoder, not yet fitted.

        ``preset`` and ``params`` are theirs; ``rule`` and ``candidates`` are those of the preset,
        or "softmax" and 50. Seeds count up from ``random_state``, so that one encoder, named three
        times, makes three members.

        >>> Ensemble.of_encoders(["average"] * 3, preset="wiki10-31k").rule
        'rank'
        """
        seed = as_seed(random_state) % 2**31
        models = [
            XRTransformer(encoder=encoder, preset=preset, random_state=seed + i, **params)
            for i, encoder in enumerate(encoders)
        ]
        if not models:
            raise ValueError("encoders is empty: name the encoders to combine")
        return cls(
            models=models,
            rule=models[0]._setting("rule") if rule is None else rule,
            candidates=models[0]._setting("candidates") if candidates is None else candidates,
        )

    @classmethod
    def of(cls, members: Sequence[Ranker], **params: Any) -> Ensemble:
        """An ensemble of rankers that are fitted already."""
        if not members:
            raise ValueError("members is empty: give the rankers to combine")
        if len({_shape(member) for member in members}) > 1:
            raise ValueError("members must share features and labels")
        copies = [unfitted(member) for member in members]
        self = cls(models=copies, **params)
        self._check_params()
        self.members_ = list(members)
        self.n_features_in_, self.n_labels_ = members[0].n_features_in_, members[0].n_labels_
        return self

    @property
    def add_labels(self) -> Callable[..., Ensemble]:
        """``add_labels`` of every member; only where all of them have it."""
        on_all = self._on_members("add_labels")

        def add(*args: Any, names: Sequence[str] | None = None, **how: Any) -> Ensemble:
            known = self.label_names_
            if (names is None) != (known is None):
                raise ValueError("either all labels have names or none: names are missing")
            longer = None if known is None else Vocabulary([*known, *(names or ())])
            return on_all(longer, *args, **how)

        return add

    @property
    def remove_labels(self) -> Callable[..., Ensemble]:
        """``remove_labels`` of every member; only where all of them have it."""
        on_all = self._on_members("remove_labels")

        def remove(labels: Any) -> Ensemble:
            known, gone = self.label_names_, {int(label) for label in labels}
            left = None
            if known is not None:
                left = Vocabulary([name for i, name in enumerate(known) if i not in gone])
            return on_all(left, labels)

        return remove

    def _on_members(self, name: str) -> Callable[..., Ensemble]:
        """Calls a method of every member, and then takes over the names that labels have."""
        self._check_fitted()
        for model in self.members_:
            if not hasattr(model, name):
                raise AttributeError(f"a member of this ensemble has no {name}: {model!r}")

        def on_all(names: Vocabulary | None, *args: Any, **how: Any) -> Ensemble:
            changed = [getattr(copy.copy(model), name)(*args, **how) for model in self.members_]
            if names is not None and len(names) != changed[0].n_labels_:
                raise ValueError(
                    f"names must be one per new label ({changed[0].n_labels_ - self.n_labels_})"
                )
            self.members_ = changed  # all of them or, after an error, none
            self.n_labels_, self.label_names_ = changed[0].n_labels_, names
            return self

        return on_all

    def _predict_topk(self, X: Any, k: int) -> TopK:
        wanted = self._wanted(k)
        tops = [model._predict_topk(self._own(model, X), wanted) for model in self.members_]
        return combine(tops, k, self.rule)

    def _predict_allowed(self, X: Any, k: int, labels: LabelFilter) -> TopK:
        wanted = self._wanted(k)
        tops = [
            model._predict_allowed(self._own(model, X), wanted, labels) for model in self.members_
        ]
        return combine(tops, k, self.rule)

    def _own(self, model: Ranker, X: Any) -> Any:
        """Return rows as a member takes them: tokens are its own."""
        return model._rows(X) if model.reads_texts else X

    def _wanted(self, k: int) -> int:
        self._check_params()
        return min(max(k, self.candidates), self.n_labels_)

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        models = state.params.pop("models")
        if not isinstance(models, Sequence):
            raise TypeError(f"parameter models cannot be saved: {models!r} is no list of rankers")
        for i, model in enumerate(self.members_):
            state.parts[f"member{i}"] = model._get_state()
        return state

    def _set_state(self, state: persist.State) -> None:
        super()._set_state(state)
        names = [f"member{i}" for i in range(len(state.parts))]
        if not names or set(names) != set(state.parts):
            raise ModelFormatError("an ensemble needs its members, numbered from 0")
        self.members_ = [from_state(state.parts[name]) for name in names]
        for model in self.members_:
            if not isinstance(model, Ranker) or _shape(model) != _shape(self):
                raise ModelFormatError("a member of the ensemble has other features or labels")
        self.models = [unfitted(model) for model in self.members_]


def _shape(model: Ranker) -> tuple[int | None, int]:
    """Return what members must share: features, unless each has tokens of its own, and labels."""
    return None if model.reads_texts else model.n_features_in_, model.n_labels_
