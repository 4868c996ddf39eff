"""``PartRows``: the same rows as every part of an ensemble reads them."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from longtail.answers.label_filter import LabelFilter
from longtail.answers.topk import TopK
from longtail.augment import append_rows, gandalf
from longtail.base import Ranker, unfitted
from longtail.data.paired_rows import PairedRows
from longtail.data.text_rows import TextRows
from longtail.data.tokens import Tokens
from longtail.ensemble.part import Part
from longtail.text import XRTransformer
from longtail.text.encoded import EncodedTokens

__all__ = ["Members", "PartRows", "Vectorizers", "shared_shape"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Vectorizers:
    """The fitted vectorisers of an ensemble, and which of them each part reads (or None)."""

    fitted: list[Any]
    of_part: list[int | None]

    @classmethod
    def unfitted(cls, parts: Sequence[Part]) -> Vectorizers:
        """Return copies of the vectorisers of parts, one for each setting."""
        known: dict[str, int] = {}
        fitted: list[Any] = []
        of_part: list[int | None] = []
        for part in parts:
            read = part.representation
            if read is None or isinstance(read, int):
                of_part.append(None)
                continue
            key = f"{type(read).__qualname__} {read!r}"
            if key not in known:
                known[key] = len(fitted)
                fitted.append(unfitted(read))
            of_part.append(known[key])
        return cls(fitted, of_part)


@dataclass(frozen=True)
class PartRows:
    """``rows[i]``: n rows as part i reads them; None where it reads the vectors of another part.

    Rows are taken with an array of numbers or a mask, as from a matrix.
    """

    rows: list[Any]
    n: int

    @classmethod
    def to_learn(cls, parts: Sequence[Part], X: Any, vectorizers: Vectorizers) -> PartRows:
        """Return training rows: fits the vectorisers, and makes the tokens of texts, once for all
        parts with the same encoder.
        """
        made = [v.fit_transform(_texts(X)) for v in vectorizers.fitted]
        tokens: dict[str, Any] = {}
        readers = [part.ranker for part in parts if _takes_tokens(part)]
        for ranker in sorted(readers, key=lambda r: -r._longest()):  # others cut theirs
            if str(ranker.encoder) not in tokens:
                tokens[str(ranker.encoder)] = ranker._rows(X, fitted=False)
        rows = []
        for part, v in zip(parts, vectorizers.of_part, strict=True):
            if v is not None:
                rows.append(made[v])
            elif _takes_tokens(part):
                rows.append(tokens[str(part.ranker.encoder)])
            else:
                rows.append(_as_it_is(part.ranker, part, X, fitted=False))
        return cls(rows, _length(X))

    @classmethod
    def of_labels(
        cls, parts: Sequence[Part], rows: PartRows, texts: Any, vectorizers: Vectorizers
    ) -> PartRows:
        """Return what labels are called, as parts read it that learn from it; ``rows``: those of
        the training, which tell the tokenizer.
        """
        read = {i for i, part in enumerate(parts) if part.label_texts}
        read |= {parts[i].representation for i in read if isinstance(parts[i].representation, int)}
        out: list[Any] = [None] * len(parts)
        for i in read:
            part, v = parts[i], vectorizers.of_part[i]
            if v is not None:
                out[i] = vectorizers.fitted[v].transform(_texts(texts))
            elif _takes_tokens(part):
                tokenizer = rows.rows[i].source
                if isinstance(texts, TextRows) and tokenizer is not None:
                    out[i] = tokenizer.encode(texts, part.ranker._longest())
                else:
                    out[i] = getattr(texts, "tokens", texts)
            else:
                out[i] = _as_it_is(part.ranker, part, texts, fitted=False)
        return cls(out, _length(texts))

    @classmethod
    def to_answer(
        cls, parts: Sequence[Part], members: Sequence[Ranker], X: Any, vectorizers: Vectorizers
    ) -> PartRows:
        """Return rows to ask the fitted members about."""
        made = [v.transform(_texts(X)) for v in vectorizers.fitted]
        rows = []
        for part, member, v in zip(parts, members, vectorizers.of_part, strict=True):
            if v is not None:
                rows.append(member._rows(made[v]))
            else:
                rows.append(_encoded_once(_as_it_is(member, part, X, fitted=True)))
        return cls(rows, _length(X))

    def __getitem__(self, rows: np.ndarray) -> PartRows:
        taken = [None if part is None else part[rows] for part in self.rows]
        return PartRows(taken, len(np.arange(self.n)[rows]))


@dataclass(frozen=True)
class Members:
    """The fitted rankers of parts."""

    parts: Sequence[Part]
    fitted: list[Ranker]
    seconds: list[float] = field(default_factory=list)  # of the training of each

    @classmethod
    def fit(
        cls,
        parts: Sequence[Part],
        rows: PartRows,
        Y: Any,
        *,
        labels: PartRows | None = None,
        label_texts: Any = None,
        n_label_rows: int = 0,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Members:
        """Fit a copy of every ranker.

        ``labels``: what the labels are called, as parts read it (one row per label), and
        ``label_texts`` as it was given; ``n_label_rows``: so many of the last rows are no
        instances; ``checkpoint``: a folder, in which every part that can keep some has its own.
        """
        fitted: list[Ranker] = []
        seconds: list[float] = []
        for i, part in enumerate(parts):
            began = time.perf_counter()
            member = unfitted(part.ranker)
            takes = signature(member.fit).parameters
            X, own_Y, extra = rows.rows[i], Y, n_label_rows
            if isinstance(part.representation, int):
                X = fitted[part.representation].embed(rows.rows[part.representation])  # type: ignore[attr-defined]
            if part.label_texts:
                if labels is None:
                    raise ValueError(f"part {i} learns from label texts: give label_texts")
                described = labels.rows[i]
                if isinstance(part.representation, int):
                    base = part.representation
                    described = fitted[base].embed(labels.rows[base])  # type: ignore[attr-defined]
                X, own_Y = append_rows(X, Y, *gandalf(Y, described, graph="self"))
                extra += own_Y.shape[0] - Y.shape[0]
            how: dict[str, Any] = {}
            if checkpoint is not None and "checkpoint" in takes:
                how["checkpoint"] = Path(checkpoint) / f"member{i}"
            if extra and "n_label_rows" in takes:
                how["n_label_rows"] = extra
            if label_texts is not None and getattr(member, "reads_label_texts", False):
                how["label_texts"] = getattr(label_texts, "tokens", label_texts)
            fitted.append(member.fit(X, own_Y, **how))
            seconds.append(time.perf_counter() - began)
            log.info("%s: fitted in %.1f s", part.title, seconds[-1])
        return cls(parts, fitted, seconds)

    def answers(self, rows: PartRows, k: int, labels: LabelFilter | None = None) -> list[TopK]:
        """Return the k best labels of rows by every part; a part and those that read its vectors
        share one pass of its encoder.
        """
        tops = []
        for member, X in zip(self.fitted, self.read(rows), strict=True):
            if labels is None:
                tops.append(member._predict_topk(X, k))
            else:
                tops.append(member._predict_allowed(X, k, labels))
        return tops

    def read(self, rows: PartRows) -> list[Any]:
        """Return rows as the members take them, those that are vectors of another part included."""
        out = [_encoded_once(X) for X in rows.rows]
        for i, (part, member) in enumerate(zip(self.parts, self.fitted, strict=True)):
            base = part.representation
            if isinstance(base, int):
                out[i] = member._rows(self.fitted[base].embed(out[base]))  # type: ignore[attr-defined]
        return out


def _takes_tokens(part: Part) -> bool:
    """Whether a part reads tokens of an encoder and nothing else."""
    reads = part.representation is None and part.ranker.reads_texts
    return reads and hasattr(part.ranker, "encoder") and not isinstance(part.ranker, XRTransformer)


def _as_it_is(ranker: Ranker, part: Part, X: Any, *, fitted: bool) -> Any:
    """Return rows as a ranker reads them without a representation of its own."""
    if isinstance(part.representation, int):
        return None
    if ranker.reads_texts:
        return ranker._rows(X, fitted=fitted)
    if isinstance(X, (TextRows, Tokens)):
        raise TypeError(
            f"{type(ranker).__name__} takes features, and these are texts: put it into a pair "
            "with what makes them, as in (Tfidf(), XRLinear())"
        )
    return ranker._rows(X.X if isinstance(X, PairedRows) else X, fitted=fitted)


def _encoded_once(X: Any) -> Any:
    """Return tokens as ones that keep their vectors; other rows as they are."""
    return EncodedTokens(X) if type(X) is Tokens else X


def _texts(X: Any) -> Any:
    if not isinstance(X, TextRows):
        raise TypeError("a part of this ensemble makes features of texts: give texts, not features")
    return X


def _length(X: Any) -> int:
    return int(X.shape[0])


def shared_shape(model: Ranker) -> tuple[int | None, int]:
    """Return what members must share: features, unless each has tokens of its own, and labels."""
    return None if model.reads_texts else model.n_features_in_, model.n_labels_
