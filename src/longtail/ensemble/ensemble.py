"""``Ensemble``: several rankers, one answer."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from longtail import persist
from longtail._native import n_threads
from longtail._protocols import vectorizes
from longtail._validation import as_k, as_seed, let_pass
from longtail.answers.label_filter import LabelFilter
from longtail.answers.topk import TopK
from longtail.base import Ranker, unfitted
from longtail.calibrate.ranker import ProbabilityRanker
from longtail.data.paired_rows import PairedRows
from longtail.data.text_rows import TextRows
from longtail.data.tokens import Tokens
from longtail.ensemble.compacting import compacted
from longtail.ensemble.fusion import RULES, combine
from longtail.ensemble.growing import add_labels, remove_labels
from longtail.ensemble.learned_fusion import Fusion
from longtail.ensemble.learning import Learned, Learning, as_validation
from longtail.ensemble.part import Part, as_parts
from longtail.ensemble.part_rows import Members, PartRows, Vectorizers, shared_shape
from longtail.ensemble.saving import restore, to_state
from longtail.ensemble.widened import widened
from longtail.features.tokenizer import as_texts
from longtail.text import XRTransformer

__all__ = ["Ensemble"]

_CANDIDATES = {"learned": 40}  # 20 under the other rules


class Ensemble(ProbabilityRanker):
    """Rankers of the same labels, combined by a rule.

    Trees of different seeds make different mistakes, so three of them beat one; PECOS and
    XR-Transformer report such triples. Models of different kinds make still more different ones:
    ``rule="learned"`` learns on held-out rows which of them to believe, and where
    (``longtail.ensemble.learned_fusion``), and its scores are probabilities.

    Parameters
    ----------
    models : sequence
        Rankers, pairs of a representation and a ranker, or ``longtail.ensemble.Part``; ``fit`` fits
        copies of them. A ranker alone takes the rows as they come: features, or, if it reads them,
        texts, each with its own tokenizer (``of_encoders``). The representation of a pair is a
        vectoriser such as ``Tfidf()``, or the number of an earlier model whose vectors (``embed``)
        the ranker reads. Where models of both kinds stand alone, rows are ``PairedRows`` of tokens
        and features.
    rule : str
        "mean", "rank", "softmax" or "sigmoid" (``longtail.ensemble.fusion``), or "learned".
    candidates : int or None
        Answers taken from each member, at least k; None for 40 with "learned", else 20. With
        "learned" those beyond are only added behind the others where k asks for more.
    held_out : float
        Share of the rows that "learned" is learned on where ``fit`` gets no ``validation``.
    folds : int or None
        So many trainings instead, each without a part of the rows, so that "learned" is learned on
        answers to all rows (cross-fitting); None holds rows out, but takes five folds of up to
        5,000 rows, where a tenth would be too few.
    refit : bool
        Whether models are then fitted once more on all rows; False keeps those that were fitted
        without the held-out rows.
    random_state : int, Generator, RandomState or None
        Which rows are held out.
    n_jobs : int or None
        Threads of "learned"; models have their own.

    After ``fit``: ``members_``, ``vectorizers_`` and, with "learned", ``fusion_``.

    >>> import longtail as lt
    >>> pair = lt.Ensemble(models=[lt.baselines.Popularity(), lt.baselines.NearestNeighbors()])
    >>> pair.fit([[1.0, 0.0], [0.0, 1.0]], [[0], [1]]).predict_topk([[0.9, 0.0]], k=1).indices
    array([[0]], dtype=int32)
    """

    type_tag = "ensemble"
    _not_copied = ("_learned", "_seconds")

    members_: list[Ranker]
    vectorizers_: Vectorizers
    fusion_: Fusion | None

    def __init__(
        self,
        *,
        models: Sequence[Any] = (),
        rule: str = "mean",
        candidates: int | None = None,
        held_out: float = 0.1,
        folds: int | None = None,
        refit: bool = True,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.models = models
        self.rule = rule
        self.candidates = candidates
        self.held_out = held_out
        self.folds = folds
        self.refit = refit
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_params(self) -> None:
        if self.rule not in (*RULES, "learned"):
            known = ", ".join((*RULES, "learned"))
            raise ValueError(f"rule must be one of {known}, got {self.rule!r}")
        if self.candidates is not None:
            as_k(self.candidates, "candidates")
        n_threads(self.n_jobs)

    def fit(
        self,
        X: Any,
        Y: Any,
        *,
        label_texts: Any = None,
        validation: tuple[Any, Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_label_rows: int = 0,
        fusion: Fusion | None = None,
    ) -> Any:
        """Learn from rows ``X``, features (n, d) or texts, and labels ``Y`` (n, L).

        Parameters
        ----------
        X : matrix of shape (n, d), or list of str
            Rows as the parts read them.
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        label_texts : list of str, default=None
            What each label is called, for models that read it and parts with
            ``label_texts=True``; of the kind of ``X``.
        validation : tuple, default=None
            ``(X, Y)``, rows to learn the rule "learned" on instead of some of the training
            rows; models do not learn from them.
        checkpoint : str or path, default=None
            A folder for finished parts, in which every member that can keep some has a folder
            of its own; a training that was cut short, called again with the same folder, data
            and parameters, goes on from there.
        n_label_rows : int, default=0
            So many of the last rows were made of label texts (``longtail.augment``); they are
            not held out, and members that count or validate on instances are told.
        fusion : Fusion, default=None
            The ``fusion_`` of the same parts, fitted on other rows of the kind, to be taken
            over instead of learned.
        """
        return self._learn(
            X,
            Y,
            label_texts=label_texts,
            validation=validation,
            checkpoint=checkpoint,
            n_label_rows=n_label_rows,
            fusion=fusion,
        )

    def _fit(
        self,
        X: Any,
        Y: Any,
        *,
        label_texts: Any = None,
        validation: tuple[Any, Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_label_rows: int = 0,
        fusion: Fusion | None = None,
    ) -> None:
        self._check_params()
        parts = as_parts(self.models)
        if not parts:
            raise ValueError("models is empty: give the rankers to combine")
        vectorizers = Vectorizers.unfitted(parts)
        rows = PartRows.to_learn(parts, X, vectorizers)
        labels = None
        if label_texts is not None:
            if self.reads_texts and not isinstance(label_texts, (PairedRows, Tokens)):
                label_texts = TextRows(as_texts(label_texts))
            if any(part.label_texts for part in parts):
                labels = PartRows.of_labels(parts, rows, label_texts, vectorizers)
        learning = Learning(
            parts,
            rows,
            Y,
            labels=labels,
            label_texts=label_texts,
            n_label_rows=n_label_rows,
            checkpoint=checkpoint,
        )
        learned: Learned | None = None
        if fusion is not None and (self.rule != "learned" or len(fusion.curves) != len(parts)):
            raise ValueError('fusion must be that of as many parts, with rule="learned"')
        if self.rule != "learned" or fusion is not None:
            members = learning.members()
        else:
            wanted = min(self._candidates(), Y.shape[1])
            options = {"candidates": wanted, "n_jobs": self.n_jobs}
            if validation is not None:
                valid_X, valid_Y = as_validation(validation, Y.shape[1], self._rows_to_learn)
                members, learned = learning.validated(valid_X, valid_Y, vectorizers, **options)
            else:
                members, learned = learning.held_out(
                    share=self.held_out,
                    folds=self.folds,
                    refit=self.refit,
                    seed=as_seed(self.random_state),
                    **options,
                )
        self.members_, self.vectorizers_ = members.fitted, vectorizers
        self.fusion_ = None if learned is None else learned.fusion
        if fusion is not None:
            self.fusion_ = fusion.for_labels(learning.counts())
        self._learned, self._seconds = learned, members.seconds

    def _parts(self) -> list[Part]:
        return as_parts(self.models)

    def _parts_if_valid(self) -> list[Part]:
        try:
            return self._parts()
        except (TypeError, ValueError):  # said by fit
            return []

    def _fitted(self) -> Members:
        return Members(self._parts(), self.members_)

    def _scores_are_probabilities(self) -> bool:
        return self.__dict__.get("fusion_") is not None

    @property
    def reads_texts(self) -> bool:  # type: ignore[override]
        """Whether rows are texts: some members read them, or features are made of them."""
        return any(
            part.ranker.reads_texts or vectorizes(part.representation)
            for part in self._parts_if_valid()
        )

    @property
    def reads_label_texts(self) -> bool:
        """Whether a member learns from what labels are called."""
        return any(
            part.label_texts or getattr(part.ranker, "reads_label_texts", False)
            for part in self._parts_if_valid()
        )

    @property
    def reads_blocks(self) -> bool:  # type: ignore[override]
        """Whether all members do."""
        parts = self._parts_if_valid()
        return bool(parts) and all(part.ranker.reads_blocks for part in parts)

    def _rows(self, X: Any, *, fitted: bool = True) -> Any:
        if not self.reads_texts:
            return super()._rows(X, fitted=fitted)
        return X if isinstance(X, (PairedRows, Tokens)) else TextRows(as_texts(X))

    def _rows_to_learn(self, X: Any) -> Any:
        return self._rows(X, fitted=False)

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
        """Return an ensemble of ``XRTransformer``, one for each encoder, not yet fitted.

        ``preset`` and ``params`` are theirs; ``rule`` and ``candidates`` are those of the preset,
        or "softmax" and 50. Seeds count up from ``random_state``, so that one encoder, named three
        times, makes three members.

        Parameters
        ----------
        encoders : sequence
            Folders or names of encoders.
        preset : str, default=None
            Name of a set of settings.
        rule : str, default=None
            How answers are combined; None is that of the preset, or "softmax".
        candidates : int, default=None
            Answers that every member is asked for.
        random_state : int, default=0
            Seed of the first member; they count up.
        **params : object
            Parameters of every ``XRTransformer``.

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
        """Return an ensemble of rankers that are fitted already.

        Parameters
        ----------
        members : sequence of rankers
            Fitted rankers over the same labels.
        **params : object
            Parameters of the ensemble.
        """
        if not members:
            raise ValueError("members is empty: give the rankers to combine")
        if len({shared_shape(member) for member in members}) > 1:
            raise ValueError("members must share features and labels")
        self = cls(models=[unfitted(member) for member in members], **params)
        self._check_params()
        if self.rule == "learned":
            raise ValueError(
                'rule="learned" is learned by fit: members that are fitted already '
                "have seen the rows"
            )
        self.members_, self.fusion_ = list(members), None
        self.vectorizers_ = Vectorizers.unfitted(self._parts())
        self.n_features_in_, self.n_labels_ = members[0].n_features_in_, members[0].n_labels_
        return self

    @property
    def add_labels(self) -> Callable[..., Ensemble]:
        """``add_labels`` of every member; only where all of them have it."""
        self._check_members_have("add_labels")
        return partial(add_labels, self)

    @property
    def remove_labels(self) -> Callable[..., Ensemble]:
        """``remove_labels`` of every member; only where all of them have it."""
        self._check_members_have("remove_labels")
        return partial(remove_labels, self)

    def _check_members_have(self, name: str) -> None:
        self._check_fitted()
        for model in self.members_:
            if not hasattr(model, name):
                raise AttributeError(f"a member of this ensemble has no {name}: {model!r}")

    def _candidates(self) -> int:
        """Return how many answers each member is asked for."""
        if self.candidates is not None:
            return as_k(self.candidates, "candidates")
        return _CANDIDATES.get(self.rule, 20)

    def _predict_topk(self, X: Any, k: int) -> TopK:
        return self._combined(self._rows_of_parts(X), k, None)

    def _predict_allowed(self, X: Any, k: int, labels: LabelFilter) -> TopK:
        rows = self._rows_of_parts(X)
        if self.fusion_ is None:
            return self._combined(rows, k, labels)
        # What a label is worth does not depend on which others are allowed: candidates are those
        # of all labels, and where they hold too few allowed ones, the best of these come behind.
        wanted = min(self._candidates(), self.n_labels_)
        all_of_them = min(self.n_labels_, len(self.members_) * wanted)
        tops = self._fitted().answers(rows, wanted)
        first = labels.keep(self.fusion_.top(tops, all_of_them, self.n_jobs), k)
        if ((first.indices >= 0).sum(axis=1) >= np.minimum(labels.counts(), k)).all():
            return first
        return widened(first, self._combined(rows, k, labels))

    def _combined(self, rows: PartRows, k: int, labels: LabelFilter | None) -> TopK:
        self._check_params()
        members, most = self._fitted(), self._candidates()
        if self.fusion_ is None:
            wanted = min(max(k, most), self.n_labels_)
            return combine(members.answers(rows, wanted, labels), k, self.rule)
        tops = members.answers(rows, min(most, self.n_labels_), labels)
        top = self.fusion_.top(tops, k, self.n_jobs)
        if k <= most or (top.indices[:, -1] >= 0).all():
            return top
        return widened(top, combine(members.answers(rows, k, labels), k, "rank"))

    def answers_of_parts(self, X: Any, k: int = 5) -> dict[str, TopK]:
        """Return the k best labels of rows by every part alone, by the name of the part.

        Parameters
        ----------
        X : list of str or matrix
            Rows, as for ``predict_topk``.
        k : int, default=5
            Answers per row.
        """
        self._check_fitted()
        k = min(as_k(k), self.n_labels_)
        return dict(zip(self.part_names, self._answers(X, k), strict=True))

    def answers_without_parts(self, X: Any, k: int = 5) -> dict[str, TopK]:
        """Return the k best labels of rows if each part in turn were left out, by its name.

        The rule is learned anew without it, from the answers to held-out rows that ``fit`` saw:
        what a part adds is the difference to ``predict_topk``. Only right after ``fit`` with
        ``rule="learned"`` and two parts at least; a saved model does not keep those answers.

        Parameters
        ----------
        X : list of str or matrix
            Rows, as for ``predict_topk``.
        k : int, default=5
            Answers per row.
        """
        self._check_fitted()
        learned: Any = self.__dict__.get("_learned")
        if not self.knows_parts:
            raise ValueError(
                'only an ensemble of several parts, just fitted with rule="learned", can tell what '
                "it is without one of them"
            )
        k = min(as_k(k), self.n_labels_)
        tops = self._answers(X, min(self._candidates(), self.n_labels_))
        out = {}
        for i, name in enumerate(self.part_names):
            others = [top for j, top in enumerate(tops) if j != i]
            out[name] = learned.without(i, self.n_jobs).top(others, k, self.n_jobs)
        return out

    def compacted(self, **how: Any) -> Ensemble:
        """Return a copy whose linear members take fewer bytes; the others are shared.

        Parameters
        ----------
        **how : object
            As in ``longtail.linear.compact``, for each linear member by itself, but for its
            validation rows.

        Raise TypeError if no member is linear.

        >>> import longtail as lt
        >>> data = lt.data.make_longtail(n=600, d=100, L=30, random_state=0).train
        >>> pair = lt.Ensemble(models=[lt.OneVsAll(), lt.baselines.Popularity()], rule="learned")
        >>> small = pair.fit(data.X, data.Y).compacted(precision="int8")
        >>> small.members_[0].nbytes < pair.members_[0].nbytes
        True
        """
        self._check_fitted()
        return compacted(self, **how)

    def sources_of(self, X: Any, label: int) -> list[tuple[str, float, int | None]]:
        """Return what every part says about a label of one row: its name, the probability that its
        score stands for, and the rank, counted from 1; 0 and None where it did not answer it.

        Only with ``rule="learned"``.

        Parameters
        ----------
        X : list of str or matrix
            One row, as for ``predict_topk``.
        label : int
            A label.
        """
        return self._sources_of(X, [label])[0]

    def _sources_of(
        self, X: Any, labels: Sequence[int]
    ) -> list[list[tuple[str, float, int | None]]]:
        """Return the same for several labels, from one answer of every part."""
        self._check_fitted()
        if self.fusion_ is None:
            raise ValueError('only rule="learned" knows what the scores of its parts are worth')
        tops = self._answers(X, min(self._candidates(), self.n_labels_))
        out: list[list[tuple[str, float, int | None]]] = [[] for _ in labels]
        for name, (ids, proba) in zip(self.part_names, self.fusion_.values(tops), strict=True):
            for sources, label in zip(out, labels, strict=True):
                at = np.flatnonzero(ids[0] == label)
                if len(at):
                    sources.append((name, float(proba[0, at[0]]), int(at[0]) + 1))
                else:
                    sources.append((name, 0.0, None))
        return out

    def fitted_part(self, number: int) -> tuple[Ranker, Any]:
        """Return the fitted ranker of a part, and the fitted vectoriser it reads, or None.

        Parameters
        ----------
        number : int
            Number of a part, from 0.
        """
        place = self.vectorizers_.of_part[number]
        vectorizer = None if place is None else self.vectorizers_.fitted[place]
        return self.members_[number], vectorizer

    @property
    def knows_parts(self) -> bool:
        """Whether ``answers_without_parts`` can be asked."""
        return self.__dict__.get("_learned") is not None and len(self.members_) > 1

    @property
    def part_names(self) -> list[str]:
        """Names of the parts, told apart by a number where they are the same."""
        titles = [part.title for part in self._parts()]
        return [t if titles.count(t) == 1 else f"{t} {i}" for i, t in enumerate(titles)]

    @property
    def part_seconds(self) -> dict[str, float]:
        """Seconds that the last training of every part took; empty for a loaded model."""
        return dict(zip(self.part_names, self.__dict__.get("_seconds") or (), strict=False))

    def _answers(self, X: Any, k: int) -> list[TopK]:
        """Return the k best labels of rows by every part."""
        return self._fitted().answers(self._rows_of_parts(self._rows(X)), k)

    def _read_by_parts(self, X: Any) -> list[Any]:
        """Return rows as the members read them."""
        return self._fitted().read(self._rows_of_parts(self._rows(X)))

    def _rows_of_parts(self, X: Any) -> PartRows:
        return PartRows.to_answer(self._parts(), self.members_, let_pass(X), self.vectorizers_)

    def _get_state(self) -> persist.State:
        return to_state(self, super()._get_state())

    def _set_state(self, state: persist.State) -> None:
        super()._set_state(state)
        restore(self, state)
