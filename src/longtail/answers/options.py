"""``AnswerOptions``: how texts are to be answered, as one object that is passed along."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from longtail._validation import as_k

__all__ = ["AnswerOptions"]


@dataclass(frozen=True)
class AnswerOptions:
    """What ``Tagger.predict`` takes beside the texts. Equal options with tuples of names are equal.

    Parameters
    ----------
    k : int
        Answers per text, at most.
    threshold : float or None
        Answers with a lower score are left out.
    include, exclude : iterable of str or None
        Names of the only labels to answer with, or of those never to.
    tail : float
        From 0 (best score first) to 1 (rare labels come forward, ``longtail.tagger.tail``).

    Raises TypeError for what is no number, and ValueError for a ``k`` below 1, a ``threshold`` that
    is NaN and a ``tail`` outside [0, 1].

    >>> AnswerOptions(k=3, tail=0.5)
    AnswerOptions(k=3, threshold=None, include=None, exclude=None, tail=0.5)
    """

    k: int = 5
    threshold: float | None = None
    include: Iterable[str] | None = None
    exclude: Iterable[str] | None = None
    tail: float = 0.0

    def __post_init__(self) -> None:
        as_k(self.k)
        if self.threshold is not None:
            if not _is_number(self.threshold):
                raise TypeError(f"threshold must be a number, got {self.threshold!r}")
            if math.isnan(self.threshold):
                raise ValueError("threshold is NaN: give a number, or None for no threshold")
        if not _is_number(self.tail):
            raise TypeError(f"tail must be a number from 0 to 1, got {self.tail!r}")
        if not 0 <= self.tail <= 1:
            raise ValueError(f"tail must lie between 0 and 1, got {self.tail!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
