"""What a tagger learns from the texts of labels: ``learn_label_texts``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import scipy.sparse as sp

from longtail.augment import gandalf
from longtail.augment.appending import filled
from longtail.augment.gandalf import GRAPHS
from longtail.tagger.fields import rows_of
from longtail.tagger.given import GivenFeatures

__all__ = ["LabelRows", "as_graph", "label_rows"]


@dataclass(frozen=True)
class LabelRows:
    """One row per label (L of them), and where its targets come from (``augment.gandalf``)."""

    X: Any
    graph: str
    random_state: Any

    def made(self, Y: sp.csr_matrix) -> tuple[Any, sp.csr_matrix]:
        """Return further rows for the training labels ``Y``, from which alone targets come."""
        return gandalf(Y, self.X, graph=self.graph, random_state=self.random_state)


def as_graph(learn_label_texts: Any) -> str | None:
    """Return the graph that a value of the parameter stands for; None where nothing is learned."""
    if learn_label_texts is None or learn_label_texts is False:
        return None
    if learn_label_texts is True:
        return "self"
    if learn_label_texts not in GRAPHS:
        raise ValueError(
            f"learn_label_texts must be True, False or one of {', '.join(GRAPHS)}, "
            f"got {learn_label_texts!r}"
        )
    return str(learn_label_texts)


def label_rows(
    vectorizer: Any, X: Any, texts: Sequence[str] | None, graph: str | None, random_state: Any
) -> LabelRows | None:
    """Return rows of label texts of the kind of ``X``; None where there is nothing to learn.

    A text in which the vectoriser knows no word is no row.
    """
    if graph is None or texts is None or isinstance(vectorizer, GivenFeatures):
        return None
    rows: Any = rows_of(list(texts), vectorizer, None)
    if sp.issparse(rows) and not sp.issparse(X):
        rows = rows.toarray()
    return LabelRows(rows, graph, random_state) if filled(rows).any() else None
