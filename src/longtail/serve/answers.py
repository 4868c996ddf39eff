"""Answers of a tagger in the shape of the contract, a piece of JSON at a time."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from typing import Any

from longtail.serve.batching import Answer
from longtail.serve.settings import Settings
from longtail.tagger import Tagger
from longtail.tagger.abilities import can_filter
from longtail.tagger.in_words import in_words

__all__ = ["explaining", "explaining_one", "model_facts", "rendered"]

_SHOWN = ("P@1", "P@5", "R@5", "nDCG@5", "PSP@5", "macro-F1 present@5", "coverage present@5")
_SPANS = 500  # that are made into JSON at a time
_CHUNK = 1 << 16  # bytes of JSON that are made at a time: a few milliseconds
_dumps = json.JSONEncoder(separators=(",", ":")).encode  # json.dumps would make one at every call


def explaining(tagger: Tagger, texts: list[Any], answers: list[Answer]) -> Iterator[str | None]:
    """Yield explanations of every label of every text as JSON, with Nones between steps of the
    work.
    """
    names = tagger.label_names
    for text, answer in zip(texts, answers, strict=True):
        labels = [names[i] for i in answer.ids.tolist() if i >= 0]
        if labels:
            yield from _as_json(tagger.explain_steps(text, labels))


def explaining_one(tagger: Tagger, text: Any, label: str) -> Iterator[str | None]:
    """Yield the explanation of one label, in the same way."""
    yield None
    yield from _as_json(tagger.explain_steps(text, [label]))


def _as_json(steps: Iterator[Any]) -> Iterator[str | None]:
    for why in steps:
        yield None
        if why is not None:
            terms = [{"term": term, "weight": _finite(weight)} for term, weight in why.terms]
            parts = []
            for start in range(0, len(why.spans), _SPANS):
                spans = why.spans[start : start + _SPANS]
                parts.append(_dumps([[a, b, _finite(w)] for a, b, w in spans])[1:-1])
                yield None
            told: dict[str, Any] = {"method": why.method, "terms": terms}
            if why.sources:
                told["sources"] = [
                    {"part": part, "probability": _finite(proba), "rank": rank}
                    for part, proba, rank in why.sources
                ]
            head = _dumps(told)
            yield f'{head[:-1]},"spans":[{",".join(parts)}]}}'


def rendered(tagger: Tagger, answers: list[Answer], reasons: list[str] | None) -> Iterator[bytes]:
    """Yield the body of an answer to /predict, in chunks."""
    parts, size = ['{"results":['], 0
    reason = iter(reasons or ())
    for i, answer in enumerate(answers):
        part = _result(tagger, answer, None if reasons is None else reason)
        parts.append(part if i == 0 else f",{part}")
        size += len(part)
        if size > _CHUNK:
            yield "".join(parts).encode("ascii")
            parts, size = [], 0
    parts.append(f'],"scores":"{_kind(tagger)}"}}')
    yield "".join(parts).encode("ascii")


def _result(tagger: Tagger, answer: Answer, reasons: Iterator[str] | None) -> str:
    names, texts = tagger.label_names, tagger.label_texts_
    labels = []
    for i, score in zip(answer.ids.tolist(), answer.scores.tolist(), strict=True):
        if i < 0:
            continue
        item: dict[str, Any] = {"label": names[i], "score": _finite(score)}
        if texts is not None:
            item["text"] = texts[i]
        label = _dumps(item)
        labels.append(label if reasons is None else f'{label[:-1]},"explanation":{next(reasons)}}}')
    return f'{{"labels":[{",".join(labels)}],"known_terms":{_dumps(answer.known_terms)}}}'


def _finite(number: float) -> float:
    """JSON has no infinities; a score of -inf, the logarithm of nothing, is a very low one."""
    return round(number, 6) if math.isfinite(number) else math.copysign(1e30, number)


def _kind(tagger: Tagger) -> str:
    return "probability" if tagger.has_probabilities else "score"


def model_facts(tagger: Tagger, settings: Settings) -> dict[str, Any]:
    """Return what the page says about the model."""
    metrics, curve, measured_on = None, None, None
    created = (tagger.provenance_ or {}).get("created")
    if tagger.report_ is not None:
        curve = list(tagger.report_.lean_curve) or None
        measured_on = tagger.report_.measured_on or None
        metrics = {name: tagger.report_[name] for name in _SHOWN if name in tagger.report_.metrics}
    return {
        "name": settings.title or os.path.basename(os.path.normpath(settings.model)),
        "choice": tagger.choice_,
        "about": in_words(tagger),
        "created": created if isinstance(created, str) else None,
        "examples": tagger.examples_,
        "n_labels": len(tagger.label_names),
        "n_rows": tagger.n_rows_,
        "scores": _kind(tagger),
        "fields": tagger.fields_,
        "tail": settings.tail,
        "can_filter": can_filter(tagger.model_),
        "metrics": metrics,
        "lean_curve": curve,
        "measured_on": measured_on,
        "has_report": tagger.report_ is not None,
    }
