"""``PairedRows``: the same texts as tokens and as features."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from longtail.data.tokens import Tokens

__all__ = ["PairedRows"]


@dataclass(frozen=True)
class PairedRows:
    """``tokens`` for an encoder and ``X`` (n, d) for a linear model, row by row of the same text.

    Parameters
    ----------
    tokens : Tokens
        The tokens of every text.
    X : csr_matrix of shape (n, d)
        Their features.
    vectorizer : Tfidf, default=None
        What made the features, where it is known.

    Rows are taken with a slice, an array of row numbers, or a mask, as from a matrix.
    """

    tokens: Tokens
    X: Any
    vectorizer: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.tokens) != self.X.shape[0]:
            raise ValueError(
                f"there are tokens of {len(self.tokens)} texts, but features of {self.X.shape[0]}"
            )

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def shape(self) -> tuple[int, int]:
        """``(n, d)``, as for other rows."""
        return self.X.shape  # type: ignore[no-any-return]

    def __getitem__(self, rows: Any) -> PairedRows:
        return PairedRows(self.tokens[rows], self.X[rows], self.vectorizer)
