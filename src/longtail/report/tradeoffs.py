"""``tradeoff``: what a little precision buys, as a curve from which to choose a point."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, cycle
from typing import Any

import numpy as np

from longtail import metrics as measures
from longtail._native import n_threads
from longtail._validation import as_k, as_labels, as_seed, check_same_rows
from longtail.answers.topk import TopK
from longtail.decide import BlockCoordinateAscent, WeightedTopK
from longtail.decide.ascent import ascend
from longtail.decide.candidates import Candidates, as_candidates
from longtail.decide.rule import by_probability, decide_linear
from longtail.decide.utilities import MACRO, Constants
from longtail.exceptions import MissingDependencyError
from longtail.report.formatting import align, per_cent
from longtail.report.plain import to_plain

__all__ = ["Tradeoff", "TradeoffPoint", "tradeoff"]


@dataclass(frozen=True)
class TradeoffPoint:
    """One answer: ``weight`` of precision in the objective (None for a rule drawn for comparison),
    the ``expected`` values of both metrics under the probabilities and, where true labels were
    given, the ``measured`` ones.
    """

    name: str
    weight: float | None
    expected: tuple[float, float]
    measured: tuple[float, float] | None
    on_front: bool = False

    @property
    def values(self) -> tuple[float, float]:
        """The measured values, or the expected ones where there is no truth."""
        return self.expected if self.measured is None else self.measured

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        plain = to_plain(self)
        plain["precision_weight"] = plain.pop("weight")
        return plain


@dataclass(frozen=True)
class Tradeoff:
    """Points between two metrics; ``front`` are those that no other beats in both.

    ``print`` shows them as a table, ``plot`` draws them, ``choose`` picks one, ``rule`` makes the
    decision rule of a point.
    """

    metrics: tuple[str, str]
    k: int
    points: list[TradeoffPoint]
    settings: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def front(self) -> list[TradeoffPoint]:
        """Points that no other beats in both metrics, by descending first metric."""
        found = [point for point in self.points if point.on_front]
        return sorted(found, key=lambda point: (-point.values[0], point.values[1]))

    def choose(self, keep: float = 0.98) -> TradeoffPoint:
        """Return the point of the mixture with the largest second metric among those that keep this
        share of the best first metric.

        Parameters
        ----------
        keep : float, default=0.98
            Share of the first metric that must be kept.
        """
        if not 0 <= keep <= 1:
            raise ValueError(f"keep must be a share in [0, 1], got {keep!r}")
        mixed = [point for point in self.points if point.weight is not None]
        least = keep * max(point.values[0] for point in mixed)
        good = [point for point in mixed if point.values[0] >= least]
        return max(good, key=lambda point: (point.values[1], point.values[0]))

    def rule(self, point: TradeoffPoint) -> BlockCoordinateAscent:
        """Return the decision rule of a point of the mixture.

        Parameters
        ----------
        point : TradeoffPoint
            One of ``points``.
        """
        if point.weight is None:
            raise ValueError(f"{point.name} is no point of the mixture")
        return BlockCoordinateAscent(precision_weight=point.weight, **self.settings)

    def plot(self, path: Any = None, *, ax: Any = None) -> Any:
        """Draw the curve with matplotlib, and write it to ``path`` (.png, .svg, …) if given.

        Returns the axes. Needs ``pip install longtail[plot]``.

        Parameters
        ----------
        path : str or path, default=None
            Where to write the picture.
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise MissingDependencyError("matplotlib", "plot", "Tradeoff.plot") from None
        figure = None
        if ax is None:
            figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
        mixed = [point for point in self.points if point.weight is not None]
        line = {"color": "#0b6e8f", "markersize": 4, "linewidth": 1.6}
        ax.plot(*_per_cent(mixed), "-o", label="mixture", **line)
        star = {"marker": "*", "markersize": 13, "linestyle": "none", "color": "#1c2127"}
        dotted = {"markersize": 5, "linestyle": ":", "linewidth": 1}
        markers = cycle("s^v<>DPX")
        for name, points in _families(self.points).items():
            style = star if name == "top k" else {"marker": next(markers), **dotted}
            ax.plot(*_per_cent(points), label=name, zorder=3, **style)
        for point in (mixed[0], mixed[-1]):
            place = [100 * value for value in point.values]
            offset = {"xytext": (6, 6), "textcoords": "offset points", "fontsize": 9}
            ax.annotate(f"w = {point.weight:g}", place, **offset)
        ax.set_xlabel(f"{self.metrics[0]}@{self.k}, per cent")
        ax.set_ylabel(f"{self.metrics[1]}@{self.k}, per cent")
        ax.margins(0.1)
        ax.grid(alpha=0.25)
        ax.legend(frameon=False, fontsize=9)
        if path is not None:
            ax.figure.savefig(path, dpi=150)
            if figure is not None:
                plt.close(figure)
        return ax

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; the two numbers of a point are in the order of ``metrics``."""
        return {
            "metrics": [f"{name}@{self.k}" for name in self.metrics],
            "points": [point.to_dict() for point in self.points],
        }

    def table(self, points: Sequence[TradeoffPoint]) -> str:
        """Return some of the points as aligned text, in per cent.

        Parameters
        ----------
        points : sequence of TradeoffPoint
            Those to show.
        """
        of = "measured" if self.points[0].measured is not None else "expected"
        of += ", over all labels"  # precision has no other reading
        rows = [["", *(f"{name}@{self.k}" for name in self.metrics), ""]]
        for point in points:
            values = (per_cent(value) for value in point.values)
            rows.append([point.name, *values, "*" if point.on_front else ""])
        return f"In per cent, {of}; * on the front\n{align(rows)}"

    def __str__(self) -> str:
        return self.table(self.points)


def tradeoff(
    eta: Any,
    metrics: tuple[str, str] = ("precision", "macro_f1"),
    k: int = 5,
    *,
    Y_true: Any = None,
    weights: Sequence[float] | None = None,
    prior: Any = None,
    budget: str = "exactly",
    compare: bool = True,
    others: Mapping[str, TopK] | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Tradeoff:
    """Sweep w in (1 - w) * metric + w * precision at k, and return the points and their front.

    Parameters
    ----------
    eta : matrix of shape (n, L) or TopK
        Probabilities (n, L): dense, sparse or a ``TopK``.
    metrics : tuple of str
        "precision" and the name of a metric of ``BlockCoordinateAscent``.
    k : int
        Labels per row.
    Y_true : matrix of shape (n, L), or list of lists of int
        True labels (n, L). With them the front is that of measured values; without, of expected
        ones, which are only as good as the probabilities.
    weights : sequence of float or None
        Values of w; by default 19 between 0 and 1, dense at both ends, since the two metrics may
        differ by orders of magnitude.
    prior : array of shape (L,) or None
        Label frequencies for the rules drawn for comparison; None takes the mean of ``eta``.
    budget : str
        "exactly" or "at_most" k.
    compare : bool
        Also the usual heuristics: power law, logarithm, macro-recall.
    others : mapping or None
        More answers to compare with, by name: a ``TopK`` of the same rows whose scores are the
        probabilities of the chosen labels, as rules give it.
    random_state, n_jobs : int, Generator, RandomState or None; int or None
        Seed; threads, which change no result.

    >>> rng = np.random.default_rng(0)
    >>> curve = tradeoff(rng.random((200, 30)) ** 6 * np.linspace(1, 0.1, 30), k=2)
    >>> best, rare = curve.front[0].expected, curve.front[-1].expected
    >>> best[0] > rare[0] and best[1] < rare[1]
    True
    >>> 0 <= curve.choose(keep=0.95).weight <= 1
    True

    Schultheis et al., NeurIPS 2023; the curve of precision against macro-F1 in Schultheis's thesis.
    """
    k = as_k(k)
    other = _other(metrics)
    found = as_candidates(eta)
    if not found.n_rows or not found.n_labels:
        raise ValueError("eta is empty: there is nothing to trade")
    truth = None if Y_true is None else as_labels(Y_true, n_labels=found.n_labels)
    if truth is not None:
        check_same_rows(found.n_rows, truth.shape[0], "eta", "Y_true")
    settings = {
        "metric": other, "k": k, "budget": budget, "random_state": random_state, "n_jobs": n_jobs
    }  # fmt: skip
    answers = chain(
        _answers(found, settings, _weights(weights), prior if compare else False),
        ((name, None, top) for name, top in _checked(others, found, k).items()),
    )
    points = []
    for name, weight, top in answers:
        expected = _expected(found, top, other, k)
        measured = None if truth is None else _measured(truth, top, other, k)
        if metrics[1] == "precision":
            expected, measured = expected[::-1], measured and measured[::-1]
        points.append(TradeoffPoint(name, weight, expected, measured))
    return Tradeoff((metrics[0], metrics[1]), k, _mark_front(points), settings)


def _other(metrics: tuple[str, str]) -> str:
    if isinstance(metrics, str) or len(metrics) != 2 or "precision" not in metrics:
        raise ValueError(f'metrics must be "precision" and one other, got {metrics!r}')
    other = metrics[1] if metrics[0] == "precision" else metrics[0]
    if other not in MACRO and other != "coverage":
        known = ", ".join([*MACRO, "coverage"])
        raise ValueError(f"unknown metric {other!r}: use one of {known}")
    return other


def _checked(others: Mapping[str, TopK] | None, found: Candidates, k: int) -> dict[str, TopK]:
    """Return answers of other rules, all k wide."""
    out = {}
    for name, top in (others or {}).items():
        if not isinstance(top, TopK) or top.n_labels not in (None, found.n_labels):
            raise TypeError(f"others[{name!r}] must be a TopK over {found.n_labels} labels")
        check_same_rows(found.n_rows, len(top), "eta", f"others[{name!r}]")
        if top.indices.max(initial=-1) >= found.n_labels:
            raise ValueError(f"others[{name!r}] names label {top.indices.max()}")
        etas = top.scores[top.indices >= 0]
        if not ((etas >= 0) & (etas <= 1)).all():
            raise ValueError(f"scores of others[{name!r}] must be probabilities, in [0, 1]")
        top = TopK._trusted(top.indices, top.scores, found.n_labels)
        out[str(name)] = top.padded(k).head(k)
    return out


def _weights(weights: Sequence[float] | None) -> list[float]:
    if weights is None:
        inner = 1 / (1 + 10 ** np.linspace(4, -3, 17))
        return [0.0, *(float(w) for w in inner), 1.0]
    out = sorted({float(w) for w in weights})
    if not out or not all(0 <= w <= 1 for w in out):
        raise ValueError(f"weights must lie in [0, 1], got {weights!r}")
    return out


def _answers(
    found: Candidates, settings: dict[str, Any], shares: list[float], prior: Any
) -> Iterator[tuple[str, float | None, TopK]]:
    """Name, weight and answer of every point; a few solved at a time, to bound memory."""
    rule = BlockCoordinateAscent(**settings)
    seed, group = as_seed(settings["random_state"]), max(2, n_threads(settings["n_jobs"]))
    for start in range(0, len(shares), group):
        part = shares[start : start + group]
        results = ascend(rule, found, [(seed, weight, rule.init) for weight in part])
        for weight, (ids, etas, _, _) in zip(part, results, strict=True):
            yield f"mixture w={weight:.4g}", weight, by_probability(ids, etas, found.n_labels)
    ones, zeros = np.ones(found.n_labels), np.zeros(found.n_labels)
    yield "top k", None, _linear(found, ones, zeros, settings)
    if prior is False:
        return
    for name, weighting, beta in _HEURISTICS:
        weighted = WeightedTopK(weighting, k=settings["k"], prior=prior, beta=beta)
        yield name, None, _linear(found, *weighted.weights(found), settings)


_HEURISTICS = [
    ("power law 1/4", "power_law", 0.25),
    ("power law 1/2", "power_law", 0.5),
    ("power law 3/4", "power_law", 0.75),
    ("logarithm", "log", 1.0),
    ("macro-recall", "macro_recall", 1.0),
]


def _linear(found: Candidates, a: np.ndarray, b: np.ndarray, settings: dict[str, Any]) -> TopK:
    ids, etas = decide_linear(
        found, a, b, settings["k"], exactly=True, by_probability=True, n_jobs=settings["n_jobs"]
    )
    return TopK._trusted(ids, etas, found.n_labels)


def _expected(found: Candidates, top: TopK, other: str, k: int) -> tuple[float, float]:
    """Return precision and the other metric, under the probabilities."""
    n, width = found.n_rows, found.n_labels
    named = top.indices >= 0
    ids, etas = top.indices[named], top.scores[named].astype(np.float64)
    precision = float(etas.sum()) / (n * k)
    if other == "coverage":
        with np.errstate(divide="ignore"):
            misses = np.bincount(ids, weights=np.log1p(-etas), minlength=width)
        return precision, float((1 - np.exp(misses)).mean())
    hits = np.bincount(ids, weights=etas, minlength=width)
    named_rows = np.bincount(ids, minlength=width)
    return precision, _macro(other, hits, named_rows, found.expected_positives(), n)


def _measured(truth: Any, top: TopK, other: str, k: int) -> tuple[float, float]:
    """Return precision and the other metric, on true labels."""
    n, counts = truth.shape[0], measures.confusion_at_k(truth, top, k)
    hits = np.asarray(counts.true_positives, np.float64)
    precision = float((hits / n).sum()) / k
    if other == "coverage":
        return precision, float((hits > 0).mean())
    return precision, _macro(other, hits, counts.predicted, counts.positives, n)


def _macro(other: str, hits: Any, predicted: Any, positives: Any, n: int) -> float:
    """Return the mean over labels of a metric of confusion counts over n rows."""
    t, q, p = (np.asarray(counts, np.float64) / n for counts in (hits, predicted, positives))
    return float(MACRO[other].value(t, q, p, Constants()).mean())


def _mark_front(points: list[TradeoffPoint]) -> list[TradeoffPoint]:
    values = np.array([point.values for point in points])
    out = []
    for point, (first, second) in zip(points, values, strict=True):
        at_least = (values[:, 0] >= first) & (values[:, 1] >= second)
        better = (values[:, 0] > first) | (values[:, 1] > second)
        out.append(replace(point, on_front=not (at_least & better).any()))
    return out


def _per_cent(points: Sequence[TradeoffPoint]) -> list[list[float]]:
    """Return both metrics of some points, for an axis each."""
    return [[100 * point.values[axis] for point in points] for axis in (0, 1)]


def _families(points: Sequence[TradeoffPoint]) -> dict[str, list[TradeoffPoint]]:
    """Return points outside the mixture by name; those that differ in a number alone belong
    together.
    """
    families: dict[str, list[TradeoffPoint]] = {}
    for point in points:
        if point.weight is None:
            families.setdefault(re.sub(r" \d\S*$", "", point.name), []).append(point)
    return {
        " to ".join([some[0].name, *(p.name.rpartition(" ")[2] for p in some[1:][-1:])]): some
        for some in families.values()
    }
