"""Which words of a text spoke for a label.

A model that can take its own score apart is asked (``model.explain``; its shares sum to the score,
or to its logarithm where that is a product along a tree). Any other is asked twice:
the contribution of a term is the score of the label, less its score when the term is left out of
the text (occlusion). That needs nothing but answers, so it serves every model; contributions then
show what each word changes and need not sum to the score. The texts without a term, and the walk
that finds where terms stand, serve all labels of a text.

Long work is cut into steps (``explain_steps``), so that a server can do other things in between,
and stop.
"""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._protocols import explains
from longtail.answers.topk import TopK
from longtail.data.text_rows import TextRows
from longtail.ensemble import Ensemble
from longtail.tagger.abilities import can_filter, searching
from longtail.tagger.highlight import Span, Walk

__all__ = ["Explanation", "explain_steps"]

_MOST_TERMS = 500  # of one text that are left out in turn, largest values first
_CANDIDATES = 100
_WORD = re.compile(r"\w+")
_BLOCK = 32  # most rows with a term left out that are scored together, in one step
_STEP = 0.001  # seconds that such a step should take; one row may take longer
_CHARACTERS = 2000  # of texts with a word left out that are scored together, or one text


@dataclass(frozen=True)
class Explanation:
    """Why a text got a label. Prints as a list of words; in notebooks the text is highlighted.

    ``score`` of the label; ``terms``: ``(term, contribution)``, strongest first, positive ones
    speak for the label; ``spans``: ``(start, end, contribution)`` of words in ``text``; ``method``:
    "exact" (the model's own account, which sums to its score, or the logarithm of it) or
    "occlusion". For a fused model (``Ensemble`` with ``rule="learned"``), ``sources`` are ``(part,
    probability, rank)`` by every part, rank None where it did not answer the label, and the terms
    are those of the part that is surest of the label, among those to whom a word matters.
    """

    label: str
    score: float
    terms: tuple[tuple[str, float], ...]
    spans: tuple[Span, ...]
    text: str
    method: str
    sources: tuple[tuple[str, float, int | None], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        out = asdict(self)
        out["terms"] = [list(pair) for pair in self.terms]
        out["spans"] = [list(span) for span in self.spans]
        out["sources"] = [list(source) for source in self.sources]
        return out

    def __str__(self) -> str:
        lines = [f"{self.label}  {self.score:.4f}"]
        for part, proba, rank in self.sources:
            place = "not among its answers" if rank is None else f"{proba:.4f}, rank {rank}"
            lines.append(f"  by {part}: {place}")
        lines += [f"  {weight:+.4f}  {term}" for term, weight in self.terms]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        strongest = max((abs(weight) for _, _, weight in self.spans), default=1.0)
        parts, at = [], 0
        for start, end, weight in self.spans:
            hue = "46,125,50" if weight > 0 else "198,40,40"
            shade = f"background:rgba({hue},{0.15 + 0.55 * abs(weight) / strongest:.2f})"
            parts.append(html.escape(self.text[at:start]))
            parts.append(
                f'<mark style="{shade}" title="{weight:+.4f}">'
                f"{html.escape(self.text[start:end])}</mark>"
            )
            at = end
        parts.append(html.escape(self.text[at:]))
        return (
            f"<div><p><b>{html.escape(self.label)}</b> {self.score:.4f}</p>"
            f'<p style="white-space:pre-wrap">{"".join(parts)}</p></div>'
        )


def explain_steps(
    model: Any,
    vectorizer: Any,
    x: sp.csr_matrix,
    text: str,
    labels: Mapping[str, int],
    n_terms: int,
) -> Iterator[Explanation | None]:
    """Yield explanations of labels (name → id) for the row ``x`` (1, d) of ``text``, in their
    order.

    In between come Nones, one after each step of the work.
    """
    if isinstance(x, TextRows):
        fused = isinstance(model, Ensemble) and model.fusion_ is not None
        steps = _fused_steps if fused else _text_steps
        yield from steps(model, text, labels, n_terms)
        return
    x = sp.csr_matrix(x)
    ids = list(labels.values())
    method, shares = "exact", []
    for label in ids:
        exact = _shares(model, x, label)
        if exact is None:
            method = "occlusion"
            scores, columns, given = yield from _occlusion_steps(
                searching(model), x, ids, model.n_labels_
            )
            shares = [(float(s), columns, g) for s, g in zip(scores, given, strict=True)]
            break
        shares.append(exact)
        yield None
    known = _scores(model, x, ids)
    yield None
    term_of = dict(zip(x.indices.tolist(), _terms(vectorizer, x.indices), strict=True))
    yield None
    walk = Walk(vectorizer, text, set(term_of.values()))
    yield from walk.steps()
    for (name, label), (own, columns, given) in zip(labels.items(), shares, strict=True):
        terms = [term_of[column] for column in columns.tolist()]
        yield Explanation(
            label=name,
            score=known.get(label, own),
            terms=tuple(_strongest(terms, given, n_terms)),
            spans=tuple(walk.spans(dict(zip(terms, given.tolist(), strict=True)))),
            text=text,
            method=method,
        )


def _fused_steps(
    model: Ensemble, text: str, labels: Mapping[str, int], n_terms: int
) -> Iterator[Explanation | None]:
    """Explanations of a fused model: what every part says, and the words of the surest one."""
    row, ids = TextRows([text]), list(labels.values())
    told = model._sources_of(row, ids)
    yield None
    scores = _scores(model, row, ids)
    yield None
    for (name, label), sources in zip(labels.items(), told, strict=True):
        best: Explanation | None = None
        for i in sorted(range(len(sources)), key=lambda i: -sources[i][1]):
            for step in _part_steps(model, i, text, {name: label}, n_terms):
                best = step if step is not None and (best is None or step.terms) else best
                yield None
            if best is not None and best.terms:
                break  # or no word of this part changes anything: ask the next
        assert best is not None
        yield replace(best, score=scores.get(label, best.score), sources=tuple(sources))


def _part_steps(
    model: Ensemble, number: int, text: str, labels: Mapping[str, int], n_terms: int
) -> Iterator[Explanation | None]:
    """Explanations by one part of a fused model."""
    member, vectorizer = model.fitted_part(number)
    if vectorizer is not None:
        x = vectorizer.transform(TextRows([text]))
        return explain_steps(member, vectorizer, x, text, labels, n_terms)
    # A vote by vectors stands on texts through another part: ask the whole.
    return _text_steps(member if member.reads_texts else model, text, labels, n_terms)


def _text_steps(
    model: Any, text: str, labels: Mapping[str, int], n_terms: int
) -> Iterator[Explanation | None]:
    """Yield explanations of a model that reads texts: what each word changes when it is left
    out.
    """
    places: dict[str, list[tuple[int, int]]] = {}
    for match in _WORD.finditer(text):
        places.setdefault(match.group().lower(), []).append(match.span())
    words, ids = list(places)[:_MOST_TERMS], list(labels.values())
    block = max(1, _CHARACTERS // max(1, len(text)))
    search, k = searching(model), min(max(_CANDIDATES, len(ids)), model.n_labels_)
    blocks = [_scores_of(search(TextRows([text]), k), ids)]
    for start in range(0, len(words), block):
        yield None
        without = [_left_out(text, places[word]) for word in words[start : start + block]]
        blocks.append(_scores_of(search(TextRows(without), k), ids))
    scores = np.concatenate(blocks, axis=1)
    for i, name in enumerate(labels):
        given = scores[i, 0] - scores[i, 1:]
        weights = zip(words, given.tolist(), strict=True)
        found = [(*place, weight) for word, weight in weights if weight for place in places[word]]
        yield Explanation(
            label=name,
            score=float(scores[i, 0]),
            terms=tuple(_strongest(words, given, n_terms)),
            spans=tuple(sorted(found)),
            text=text,
            method="occlusion",
        )


def _left_out(text: str, places: Sequence[tuple[int, int]]) -> str:
    """Return the text without these places, in order."""
    ends = [0, *(end for _, end in places)]
    starts = [*(start for start, _ in places), len(text)]
    return "".join(text[end:start] for end, start in zip(ends, starts, strict=True))


def _scores(model: Any, x: Any, labels: list[int]) -> dict[int, float]:
    """Return what the model answers for these labels: its probabilities, where it has them."""
    if not can_filter(model):
        return {}
    wanted = np.unique(np.asarray(labels, np.int32))
    top = searching(model)(x, len(wanted), include=wanted)
    return dict(zip(top.indices[0].tolist(), top.scores[0].tolist(), strict=True))


Shares = tuple[float, np.ndarray, np.ndarray]  # score, columns of features, share of each


def _shares(model: Any, x: sp.csr_matrix, label: int) -> Shares | None:
    """Return what the model itself says; the mean over members, for an ensemble that takes
    means.
    """
    if explains(model):
        why = model.explain(x, label)
        return float(why.score), why.features, np.asarray(why.shares, np.float64)
    members = getattr(model, "members_", None)
    if not members or getattr(model, "rule", None) != "mean":
        return None
    parts = [_shares(member, x, label) for member in members]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    columns, place = np.unique(np.concatenate([c for _, c, _ in known]), return_inverse=True)
    total = np.bincount(place.ravel(), np.concatenate([g for _, _, g in known]))
    score = float(np.mean([s for s, _, _ in known]))
    return score, columns, np.resize(total, len(columns)) / len(known)


def _terms(vectorizer: Any, columns: np.ndarray) -> list[str]:
    """Return what columns are called; decoded one by one, since a vocabulary may be large."""
    hashed = getattr(vectorizer, "n_features", None) is not None
    if hashed or not hasattr(vectorizer, "term_offsets_"):
        if not hasattr(vectorizer, "get_feature_names_out"):
            raise TypeError(
                f"an explanation names terms, and {type(vectorizer).__name__} has no "
                "get_feature_names_out that tells what its columns are called"
            )
        names = vectorizer.get_feature_names_out()
        return [str(names[i]) for i in columns]
    raw, ends = vectorizer.terms_, vectorizer.term_offsets_
    return [raw[ends[i] : ends[i + 1]].tobytes().decode("utf-8", "surrogatepass") for i in columns]


def occlusion(
    search: Callable[[Any, int], TopK], x: sp.csr_matrix, labels: Sequence[int], n_labels: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ``(scores, columns, contributions)`` of labels for the one row ``x`` (1, d).

    ``scores`` (len(labels),), ``columns`` (m,) the features of x that were left out in turn,
    ``contributions`` (len(labels), m). A label that drops out of the best candidates altogether
    counts as scored like the last of them, so its contributions are at least what is shown.
    """
    steps = _occlusion_steps(search, x, labels, n_labels)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def _occlusion_steps(
    search: Callable[[Any, int], TopK], x: sp.csr_matrix, labels: Sequence[int], n_labels: int
) -> Generator[None, None, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    order = np.argsort(-np.abs(x.data), kind="stable")[:_MOST_TERMS]
    order = np.sort(order)
    k = min(max(_CANDIDATES, len(labels)), n_labels)
    blocks = [_scores_of(search(x, k), labels)]
    start, size = 0, 1
    while start < len(order):
        yield
        began = time.perf_counter()
        rows = _without_each(x, order[start : start + size])
        blocks.append(_scores_of(search(rows, k), labels))
        start += size
        size = _next_size(size, time.perf_counter() - began)
    scores = np.concatenate(blocks, axis=1)
    return scores[:, 0], x.indices[order], scores[:, :1] - scores[:, 1:]


def _next_size(size: int, seconds: float) -> int:
    """Return how many rows to score next, when so many took so long: a model may need a fraction of
    a millisecond for a row or many of them, and whoever waits for a step waits that long.

    >>> _next_size(4, 0.0001), _next_size(4, 0.0008), _next_size(4, 0.1), _next_size(1, 0.1)
    (8, 4, 2, 1)
    """
    if seconds > _STEP:
        return max(1, size // 2)
    return min(_BLOCK, 2 * size) if seconds < _STEP / 2 else size


def _without_each(x: sp.csr_matrix, places: np.ndarray) -> sp.csr_matrix:
    """Return copies of the row ``x``: row i lacks the entry at ``places[i]``."""
    m = len(places)
    keep = np.ones((m, x.nnz), bool)
    keep[np.arange(m), places] = False
    indices = np.broadcast_to(x.indices, keep.shape)[keep]
    values = np.broadcast_to(x.data, keep.shape)[keep]
    indptr = np.arange(m + 1) * (x.nnz - 1)
    return sp.csr_matrix((values, indices, indptr), shape=(m, x.shape[1]))


def _scores_of(top: TopK, labels: Sequence[int]) -> np.ndarray:
    """Return scores of labels in every row, (len(labels), n)."""
    worst = np.where(top.indices >= 0, top.scores, np.inf).min(axis=1, initial=np.inf)
    worst[~np.isfinite(worst)] = 0.0
    scores = np.empty((len(labels), len(top)))
    for i, label in enumerate(labels):
        found = top.indices == label
        slot = found.argmax(axis=1)
        scores[i] = np.where(found.any(axis=1), top.scores[np.arange(len(top)), slot], worst)
    return scores


def _strongest(terms: Sequence[str], weights: np.ndarray, n: int) -> list[tuple[str, float]]:
    """Return the n terms of largest absolute weight, positive ones first; those of weight 0 left
    out.
    """
    order = np.argsort(-np.abs(weights), kind="stable")[:n]
    chosen = [(terms[i], float(weights[i])) for i in order if weights[i] != 0]
    return sorted(chosen, key=lambda pair: -pair[1])
