"""Frank-Wolfe over mixtures of linear rules."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from longtail.decide.objective import Counts, Objective

__all__ = ["Mixture", "frank_wolfe"]

LinearRule = tuple[np.ndarray, np.ndarray]  # a, b (L,): names the labels of largest a * eta + b
Measure = Callable[[np.ndarray, np.ndarray], Counts]


class Mixture:
    """Rules, their weights and counts; ``now`` are the counts of the mixture."""

    def __init__(self, rule: LinearRule, counts: Counts) -> None:
        self.rules, self.weights, self.counts, self.now = [rule], [1.0], [counts], counts
        self.utilities: list[float] = []
        self.gap = float("inf")

    def add(self, rule: LinearRule, counts: Counts, share: float) -> None:
        if share == 1:
            self.rules, self.weights, self.counts = [], [], []
        self.weights = [weight * (1 - share) for weight in self.weights]
        self.rules.append(rule)
        self.weights.append(share)
        self.counts.append(counts)
        self._settle()

    def move(self, source: int, target: int, share: float) -> None:
        self.weights[source] -= share
        self.weights[target] += share
        if self.weights[source] <= 1e-15:
            self.weights[target] += self.weights[source]
            for each in (self.rules, self.weights, self.counts):
                del each[source]  # type: ignore[attr-defined]
        self._settle()

    def _settle(self) -> None:
        """Weights that sum to 1, and the counts they make, free of drift."""
        total = sum(self.weights)
        self.weights = [weight / total for weight in self.weights]
        pairs = list(zip(self.weights, self.counts, strict=True))
        self.now = Counts(sum(w * c.t for w, c in pairs), sum(w * c.q for w, c in pairs))  # type: ignore[arg-type]


def frank_wolfe(
    measure: Measure,
    objective: Objective,
    start: LinearRule,
    *,
    max_iter: int,
    tol: float,
    corrections: int,
) -> Mixture:
    """Adds the best linear rule for the present slopes, as long as that pays.

    ``measure(a, b)`` gives the counts of a rule. Weights are exchanged between the rules found so
    far at most ``corrections`` times after each step: plain Frank-Wolfe steps shrink all old
    weights alike and zigzag near the optimum.
    """
    mixture = Mixture(start, measure(*start))
    mixture.utilities.append(objective.value(mixture.now))
    for _ in range(max_iter):
        by_t, by_q = objective.slope(mixture.now)
        counts = measure(by_t, by_q)
        now = mixture.now
        mixture.gap = max(0.0, _dot(by_t, by_q, counts.t - now.t, counts.q - now.q))
        share, gain = objective.search(mixture.now, counts)
        if share <= 0 or gain <= 0:
            break  # the rule just found is not used
        mixture.add((by_t, by_q), counts, share)
        _exchange(mixture, objective, tol, corrections)
        mixture.utilities.append(objective.value(mixture.now))
        if mixture.utilities[-1] - mixture.utilities[-2] < tol:
            break
    return mixture


def _exchange(mixture: Mixture, objective: Objective, tol: float, most: int) -> None:
    """Moves weight from the rule of least to that of largest slope, while that pays."""
    for _ in range(most):
        if len(mixture.rules) < 2:
            return
        by_t, by_q = objective.slope(mixture.now)
        scores = np.array([_dot(by_t, by_q, c.t, c.q) for c in mixture.counts])
        source, target = int(np.argmin(scores)), int(np.argmax(scores))
        weight = mixture.weights[source]
        if scores[target] - scores[source] <= tol / 10 or weight <= 0:
            return
        # All of the source's weight moved: the far end of the line.
        away, toward = mixture.counts[source], mixture.counts[target]
        far = Counts(
            mixture.now.t + weight * (toward.t - away.t),
            mixture.now.q + weight * (toward.q - away.q),
        )
        step, gain = objective.search(mixture.now, far)
        if step <= 0 or gain <= 0:
            return
        mixture.move(source, target, step * weight)
        if gain < tol / 10:
            return


def _dot(by_t: np.ndarray, by_q: np.ndarray, t: np.ndarray, q: np.ndarray) -> float:
    # Not by BLAS, whose sums depend on the number of threads.
    return float((by_t * t).sum() + (by_q * q).sum())
