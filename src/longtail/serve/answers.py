"""Answers of a tagger in the shape of the contract."""

from __future__ import annotations

import math
import os
from typing import Any

from longtail.serve.batching import Answer
from longtail.serve.settings import Settings
from longtail.tagger import Tagger
from longtail.tagger.abilities import can_filter

__all__ = ["explained", "model_facts", "shown"]

_SHOWN = ("P@1", "P@5", "R@5", "nDCG@5", "PSP@5", "macro-F1 present@5", "coverage present@5")


def explained(tagger: Tagger, texts: list[Any], answers: list[Answer]) -> list[list[Any]]:
    """An explanation of every label of every text."""
    return [
        tagger.explain(text, [name for name, _ in answer.labels]) if answer.labels else []
        for text, answer in zip(texts, answers, strict=True)
    ]


def shown(tagger: Tagger, answers: list[Answer], reasons: list[list[Any]] | None) -> dict[str, Any]:
    """The body of an answer to /predict."""
    results = []
    for i, answer in enumerate(answers):
        labels = []
        for j, (name, score) in enumerate(answer.labels):
            item: dict[str, Any] = {"label": name, "score": _finite(score)}
            if tagger.label_texts_ is not None:
                item["text"] = tagger.label_texts_[tagger.vocabulary_.id(name)]
            if reasons is not None:
                item["explanation"] = _reason(reasons[i][j])
            labels.append(item)
        results.append({"labels": labels, "known_terms": answer.known_terms})
    return {"results": results, "scores": _kind(tagger)}


def _reason(reason: Any) -> dict[str, Any]:
    return {
        "method": reason.method,
        "terms": [{"term": term, "weight": _finite(weight)} for term, weight in reason.terms],
        "spans": [[start, end, _finite(weight)] for start, end, weight in reason.spans],
    }


def _finite(number: float) -> float:
    """JSON has no infinities; a score of -inf, the logarithm of nothing, is a very low one."""
    return round(number, 6) if math.isfinite(number) else math.copysign(1e30, number)


def _kind(tagger: Tagger) -> str:
    return "probability" if tagger.has_probabilities else "score"


def model_facts(tagger: Tagger, settings: Settings) -> dict[str, Any]:
    """What the page says about the model."""
    metrics, curve, measured_on = None, None, None
    if tagger.report_ is not None:
        measured = tagger.report_["summary"]["metrics"]
        curve = tagger.report_["summary"].get("lean_curve")
        measured_on = tagger.report_["summary"].get("measured_on") or None
        metrics = {name: measured[name]["value"] for name in _SHOWN if name in measured}
    return {
        "name": os.path.basename(os.path.normpath(settings.model)),
        "choice": tagger.choice_,
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
