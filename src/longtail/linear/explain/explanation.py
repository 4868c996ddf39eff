"""What speaks for a label and what against it: contributions of features that sum to its score.

On the path from the root to a label, level t has the raw score

    z_t = b_t + sum_f c_tf,        c_tf = w_tf x_f

and the post-processor turns the levels into the path score, s = sum_t g_t(z_t), of which the
label's score is s itself or exp(s). A row without features would reach sum_t g_t(b_t), the
baseline; what lies between is shared out among the features,

    s = sum_t g_t(b_t) + sum_f sum_t c_tf (g_t(z_t) - g_t(b_t)) / (z_t - b_t)

which is what integrated gradients give for a function of one linear score (Sundararajan, Taly and
Yan 2017, with the empty row as baseline). Where g is the identity ("noop") the share of a feature
is its contribution c itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Explanation", "PathLevel", "path_transforms"]

Transform = Callable[[float], float]


@dataclass(frozen=True)
class PathLevel:
    """One level of the path: ``raw`` is ``bias`` plus the sum of ``contributions``.

    ``features`` (m,) int32, ascending, are those the row and the node share; ``contributions`` and
    ``shares`` (m,) float64; ``value`` is g(raw), ``baseline`` is g(bias), and what lies between is
    the sum of ``shares``.
    """

    node: int
    raw: float
    bias: float
    value: float
    baseline: float
    features: np.ndarray
    contributions: np.ndarray
    shares: np.ndarray

    @classmethod
    def of(
        cls, node: int, bias: float, features: np.ndarray, contributions: np.ndarray, g: Transform
    ) -> PathLevel:
        """Return a level from the contributions of its features."""
        total = float(contributions.sum())
        raw = bias + total
        value, baseline = g(raw), g(bias)
        if abs(total) > 1e-9:
            slope = (value - baseline) / total
        else:  # contributions cancel: the limit, which is the derivative
            slope = (g(bias + 1e-6) - g(bias - 1e-6)) / 2e-6
        shares = contributions * slope
        return cls(node, raw, bias, value, baseline, features, contributions, shares)


@dataclass(frozen=True)
class Explanation:
    """Why a label has its score.

    ``score``: what ``predict_topk`` gives the label; ``path_score``: the sum that it comes from
    (``score`` is its exponential where ``product`` is set); ``baseline``: the path score of a row
    without features; ``features`` (m,) int32 and ``shares`` (m,) float64, largest first: what each
    feature adds, so that ``baseline + shares.sum() == path_score``; ``levels``: the path, root
    first.
    """

    label: int
    label_name: str | None
    score: float
    path_score: float
    product: bool
    baseline: float
    features: np.ndarray
    shares: np.ndarray
    levels: tuple[PathLevel, ...]
    feature_names: Sequence[str] | None = None

    @classmethod
    def of(
        cls,
        label: int,
        levels: Sequence[PathLevel],
        *,
        product: bool,
        label_name: str | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> Explanation:
        """Add up the levels of a path."""
        all_features = np.concatenate([level.features for level in levels])
        all_shares = np.concatenate([level.shares for level in levels])
        features, place = np.unique(all_features, return_inverse=True)
        shares = np.bincount(place.reshape(-1), all_shares, minlength=len(features))
        order = np.argsort(-shares, kind="stable")
        path_score = math.fsum(level.value for level in levels)
        return cls(
            label=label,
            label_name=label_name,
            score=math.exp(path_score) if product else path_score,
            path_score=path_score,
            product=product,
            baseline=math.fsum(level.baseline for level in levels),
            features=features[order].astype(np.int32),
            shares=shares[order],
            levels=tuple(levels),
            feature_names=feature_names,
        )

    def speaks_for(self, n: int = 10) -> list[tuple[Any, float]]:
        """Return the n features that add most, as (feature, share); names where they are known."""
        most = np.flatnonzero(self.shares > 0)[:n]
        return [(self._name(self.features[i]), float(self.shares[i])) for i in most]

    def speaks_against(self, n: int = 10) -> list[tuple[Any, float]]:
        """Return the n features that take most away."""
        most = np.flatnonzero(self.shares < 0)[::-1][:n]
        return [(self._name(self.features[i]), float(self.shares[i])) for i in most]

    def _name(self, feature: int) -> Any:
        return int(feature) if self.feature_names is None else self.feature_names[int(feature)]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain Python, for JSON."""
        return {
            "label": self.label,
            "label_name": self.label_name,
            "score": self.score,
            "path_score": self.path_score,
            "product": self.product,
            "baseline": self.baseline,
            "shares": [
                {"feature": self._name(f), "share": s}
                for f, s in zip(self.features.tolist(), self.shares.tolist(), strict=True)
            ],
            "levels": [
                {
                    "node": level.node,
                    "raw": level.raw,
                    "bias": level.bias,
                    "value": level.value,
                    "contributions": [
                        {"feature": self._name(f), "contribution": c}
                        for f, c in zip(
                            level.features.tolist(), level.contributions.tolist(), strict=True
                        )
                    ],
                }
                for level in self.levels
            ],
        }

    def __str__(self) -> str:
        """Return a table: the baseline, the ten strongest features each way, the rest, the sum."""
        name = f"label {self.label}" + (f" ({self.label_name})" if self.label_name else "")
        chosen = [*self.speaks_for(), *reversed(self.speaks_against())]
        rest = self.path_score - self.baseline - math.fsum(share for _, share in chosen)
        n_rest = len(self.shares) - len(chosen)
        rows = [("a row without features", self.baseline)]
        rows += [(str(feature), share) for feature, share in chosen]
        if n_rest:
            rows.append((f"{n_rest} other features", rest))
        width = min(60, max(len(text) for text, _ in [*rows, ("path score", 0.0)]))
        lines = [f"  {text[:width]:<{width}} {value:+10.4f}" for text, value in rows]
        lines.append(f"  {'path score':<{width}} {self.path_score:+10.4f}")
        steps = ", ".join(f"node {level.node}: {level.raw:+.3f}" for level in self.levels)
        how = " = exp(path score)" if self.product else ""
        return "\n".join([f"{name}: score {self.score:.4g}{how}", *lines, f"  path: {steps}"])


def path_transforms(codes: np.ndarray, powers: np.ndarray) -> tuple[list[Transform], bool]:
    """Return g of every level for native post-processor codes, and whether the score is exp of the
    sum.

    With "noop" at the last level the path score is that level's alone: the others count 0.
    """
    noop, hinge, sigmoid, log_hinge = range(4)

    def of(code: int, power: int) -> Transform:
        if code == noop:
            return lambda z: z
        if code in (hinge, log_hinge):
            return lambda z: -(max(0.0, 1.0 - z) ** power)
        return lambda z: -math.log1p(math.exp(-z)) if z > 0 else z - math.log1p(math.exp(z))

    each = [of(int(code), int(power)) for code, power in zip(codes, powers, strict=True)]
    if codes[-1] == noop:
        each[:-1] = [lambda z: 0.0] * (len(each) - 1)
    return each, int(codes[-1]) in (hinge, sigmoid)
