"""``Part``: a ranker of an ensemble, and what it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from longtail._protocols import embeds, vectorizes
from longtail.base import Ranker

__all__ = ["Part", "as_parts"]


@dataclass(frozen=True)
class Part:
    """A source of answers.

    Parameters
    ----------
    representation : vectorizer, int or None
        What the ranker reads. None: the rows as they come (texts for a ranker that reads them,
        features for others); a vectoriser such as ``Tfidf()``: what it makes of the texts, parts
        with the same settings share one; a number: the vectors (``embed``) that the part of that
        number, an earlier one, makes of the texts.
    ranker : ranker
        Not yet fitted.
    label_texts : bool
        Whether the text of every label is one more training row, with that label alone.
    name : str or None
        What tables call it; None for the name of the ranker.

    >>> import longtail as lt
    >>> Part(lt.Tfidf(), lt.XRLinear(), label_texts=True).ranker
    XRLinear()
    """

    representation: Any
    ranker: Any
    label_texts: bool = False
    name: str | None = None

    @property
    def title(self) -> str:
        """Return what tables call this part."""
        return type(self.ranker).__name__ if self.name is None else self.name

    def plain(self) -> Any:
        """Return the part in the shortest form that ``as_parts`` reads."""
        if self.label_texts or self.name is not None:
            return self
        return self.ranker if self.representation is None else (self.representation, self.ranker)


def as_parts(models: Any) -> list[Part]:
    """Return rankers, pairs of representation and ranker, and parts as parts; raise TypeError or
    ValueError for what is none.
    """
    if isinstance(models, (str, bytes)) or not isinstance(models, Sequence):
        raise TypeError(f"models must be a list of rankers, got {models!r}")
    parts: list[Part] = []
    for i, model in enumerate(models):
        part = model
        if isinstance(model, tuple) and len(model) == 2:
            part = Part(*model)
        elif not isinstance(model, Part):
            part = Part(None, model)
        if not isinstance(part.ranker, Ranker):
            raise TypeError(
                f"models must be rankers, or pairs of a representation and a ranker, got {model!r}"
            )
        _check(part, i, parts)
        parts.append(part)
    return parts


def _check(part: Part, number: int, before: list[Part]) -> None:
    read = part.representation
    if read is None:
        return
    if part.ranker.reads_texts:
        raise TypeError(
            f"{type(part.ranker).__name__} reads texts itself: its representation must be None, "
            f"got {read!r}"
        )
    if isinstance(read, int) and not isinstance(read, bool):
        if not 0 <= read < number:
            raise ValueError(
                f"part {number} reads the vectors of part {read}: name an earlier one, from 0 on"
            )
        if not embeds(before[read].ranker):
            name = type(before[read].ranker).__name__
            raise TypeError(f"part {number} reads the vectors of part {read}, but {name} has none")
    elif not vectorizes(read):
        raise TypeError(
            f"a representation must be None, a vectoriser or the number of a part, got {read!r}"
        )
