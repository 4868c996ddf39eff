"""``PartResult``: what one part of a fused model does alone, and what the whole is without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from longtail import metrics
from longtail.answers.topk import TopK

__all__ = ["PartResult", "measure_parts"]


@dataclass(frozen=True)
class PartResult:
    """Fractions by name, such as ``P@1``: of the whole, of one part alone, or of the whole without
    it. ``name``: "whole", or that of the part; ``seconds``: of its training.
    """

    name: str
    alone: dict[str, float]
    without: dict[str, float]
    seconds: float | None = None


def measure_parts(
    Y: Any,
    whole: TopK,
    alone: Mapping[str, TopK],
    without: Mapping[str, TopK],
    propensity: Any,
    *,
    seconds: Mapping[str, float] | None = None,
) -> tuple[PartResult, ...]:
    """Measure the answers of a fused model and of its parts, by their names; the whole is first."""
    k = whole.k

    def measured(top: TopK) -> dict[str, float]:
        out = {f"P@{j}": float(metrics.precision_at_k(Y, top, k=j)) for j in sorted({1, k})}
        out[f"PSP@{k}"] = float(metrics.ps_precision_at_k(Y, top, propensity, k=k))
        return out

    parts = [
        PartResult(name, measured(top), measured(without[name]), (seconds or {}).get(name))
        for name, top in alone.items()
    ]
    return PartResult("whole", measured(whole), {}), *parts
