"""What decision rules share: parameters, budgets and the form of their answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from longtail import persist
from longtail._native import core, n_threads
from longtail._validation import as_width
from longtail.answers.topk import TopK
from longtail.base import Estimator
from longtail.decide.candidates import Candidates, as_candidates

__all__ = [
    "CountingRule",
    "DecisionRule",
    "LearningRule",
    "Rule",
    "by_probability",
    "decide_linear",
    "is_exact",
]


@runtime_checkable
class Rule(Protocol):
    """What a ``Tagger`` takes as a rule: one of this room, or anything that can ``select``."""

    def select(self, eta: Any, *, include: Any = None, exclude: Any = None) -> TopK:
        """Return the labels chosen for every row."""


@runtime_checkable
class LearningRule(Rule, Protocol):
    """A rule that learns from probabilities (n, L) of held-out rows and their labels."""

    def fit(self, eta: Any, Y: Any) -> Any:
        """Learn, and return self."""


@runtime_checkable
class CountingRule(Rule, Protocol):
    """A rule that remembers the rows it has decided."""

    def reset(self, n_labels: int) -> Any:
        """Forget them, and expect so many labels from now on."""


class DecisionRule(Estimator, ABC):
    """Chooses labels from probabilities: ``select(eta)`` takes a dense or sparse matrix (n, L) or a
    ``TopK`` and answers with a ``TopK``.
    """

    type_tag: ClassVar[str] = "decision-rule"

    def select(self, eta: Any, *, include: Any = None, exclude: Any = None) -> TopK:
        """Return the labels chosen for every row.

        Parameters
        ----------
        eta : TopK or matrix of shape (n, L)
            Probabilities of labels: dense, sparse (what is not stored has probability 0) or a
            ``TopK`` with probabilities as scores.
        include : list of labels, or mask of shape (L,), default=None
            Labels to choose from.
        exclude : list of labels, or mask of shape (L,), default=None
            Labels to leave out.
        """
        n_labels = self._n_labels()
        return self._select(as_candidates(eta, include=include, exclude=exclude, n_labels=n_labels))

    @abstractmethod
    def _select(self, found: Candidates) -> TopK:
        """Return the labels chosen for every row."""

    def _n_labels(self) -> int | None:
        """Return the number of labels that probabilities must be of; None for any."""
        return None

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether the rule can answer and be saved; one without ``fit`` always can."""
        return not isinstance(self, LearningRule) or super().__sklearn_is_fitted__()

    def _set_state(self, state: persist.State) -> None:
        """Rules that learn nothing are their parameters."""


def is_exact(budget: str) -> bool:
    """Return True for "exactly", False for "at_most"."""
    if budget not in ("exactly", "at_most"):
        raise ValueError(f'budget must be "exactly" or "at_most", got {budget!r}')
    return budget == "exactly"


def decide_linear(
    found: Candidates,
    a: np.ndarray | None,
    b: np.ndarray | None,
    k: int,
    *,
    exactly: bool,
    candidates_only: bool = False,
    rule_of: np.ndarray | None = None,
    by_probability: bool = False,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return labels of largest ``a_j * eta_ij + b_j`` in each row: ids and scores (n, k).

    ``a`` and ``b`` have the shape (rules, L), or are None for ones and for zeros; ``rule_of`` (n,)
    names the rule of each row.
    """
    return core.decide_linear(  # type: ignore[no-any-return]
        found.args,
        _rules(a, found, 1.0),
        _rules(b, found, 0.0),
        rule_of,
        found.allowed,
        as_width(k, found.n_labels),
        exactly,
        candidates_only,
        by_probability,
        n_threads(n_jobs),
        None,
    )


def _rules(values: np.ndarray | None, found: Candidates, otherwise: float) -> np.ndarray:
    """Return values of linear rules as the kernel takes them, (rules, L) float64."""
    values = np.full(found.n_labels, otherwise) if values is None else values
    return np.ascontiguousarray(np.atleast_2d(values), dtype=np.float64)


def by_probability(ids: np.ndarray, etas: np.ndarray, n_labels: int) -> TopK:
    """Return a ``TopK`` of chosen sets: most probable first, ties to the smaller id, padding
    last.
    """
    scores = np.where(ids >= 0, etas, -np.inf).astype(np.float32)
    order = np.lexsort((ids, -scores), axis=1)
    return TopK._trusted(
        np.ascontiguousarray(np.take_along_axis(ids, order, axis=1)),
        np.ascontiguousarray(np.take_along_axis(scores, order, axis=1)),
        n_labels,
    )
