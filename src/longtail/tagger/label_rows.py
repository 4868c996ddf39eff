"""What a tagger learns from the texts of labels: ``learn_label_texts``."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import scipy.sparse as sp

from longtail.augment import gandalf
from longtail.augment.appending import filled
from longtail.augment.co_occurrence_graph import as_share
from longtail.augment.gandalf_rows import GRAPHS
from longtail.tagger.fields import rows_of
from longtail.tagger.given import GivenFeatures

__all__ = ["LabelRows", "Targets", "as_targets", "label_rows"]

DELTA = 0.1  # as in ``augment.gandalf``


class Targets(NamedTuple):
    """Where the targets of label rows come from, and the share from which on they count."""

    delta: float
    graph: str


@dataclass(frozen=True)
class LabelRows:
    """One row per label (L of them), and where its targets come from (``augment.gandalf``)."""

    X: Any
    targets: Targets
    random_state: Any

    def made(self, Y: sp.csr_matrix) -> tuple[Any, sp.csr_matrix]:
        """Return further rows for the training labels ``Y``, from which alone targets come."""
        delta, graph = self.targets
        return gandalf(Y, self.X, delta, graph=graph, random_state=self.random_state)


def as_targets(learn_label_texts: Any) -> Targets | None:
    """Return what a value of the parameter stands for; None where nothing is learned."""
    if learn_label_texts is None or learn_label_texts is False:
        return None
    if learn_label_texts is True:
        return Targets(DELTA, "self")
    if isinstance(learn_label_texts, numbers.Real):
        return Targets(as_share(float(learn_label_texts), "learn_label_texts"), "co-occurrence")
    if learn_label_texts not in GRAPHS:
        raise ValueError(
            f"learn_label_texts must be True, False, a number from 0 to 1 or one of "
            f"{', '.join(GRAPHS)}, got {learn_label_texts!r}"
        )
    return Targets(DELTA, str(learn_label_texts))


def label_rows(
    vectorizer: Any,
    X: Any,
    texts: Sequence[str] | None,
    targets: Targets | None,
    random_state: Any,
) -> LabelRows | None:
    """Return rows of label texts of the kind of ``X``; None where there is nothing to learn.

    A text in which the vectoriser knows no word is no row.
    """
    if targets is None or texts is None or isinstance(vectorizer, GivenFeatures):
        return None
    rows: Any = rows_of(list(texts), vectorizer, None)
    if sp.issparse(rows) and not sp.issparse(X):
        rows = rows.toarray()
    return LabelRows(rows, targets, random_state) if filled(rows).any() else None
