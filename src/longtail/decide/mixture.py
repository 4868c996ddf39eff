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
        for i, known in enumerate(self.counts):
            if np.array_equal(known.q, counts.q) and np.array_equal(known.t, counts.t):
                self.weights[i] += share  # another name for a rule that is in the mixture
                break
        else:
            self.rules.append(rule)
            self.weights.append(share)
            self.counts.append(counts)
        self._settle()

    def set_weights(self, weights: np.ndarray) -> None:
        """Set new weights of the same rules; one that came to nothing may come back."""
        self.weights = [float(weight) if weight > 1e-15 else 0.0 for weight in weights]
        self._settle()

    def drop_unused(self) -> None:
        used = [i for i, weight in enumerate(self.weights) if weight > 0]
        self.rules = [self.rules[i] for i in used]
        self.counts = [self.counts[i] for i in used]
        self.weights = [self.weights[i] for i in used]

    def mixed(self, weights: np.ndarray) -> Counts:
        """Return the counts that other weights would make."""
        pairs = [(w, c) for w, c in zip(weights, self.counts, strict=True) if w]
        return Counts(sum(w * c.t for w, c in pairs), sum(w * c.q for w, c in pairs))  # type: ignore[arg-type]

    def _settle(self) -> None:
        """Weights that sum to 1, and the counts they make, free of drift."""
        total = sum(self.weights)
        self.weights = [weight / total for weight in self.weights]
        self.now = self.mixed(np.array(self.weights))


def frank_wolfe(
    measure: Measure,
    objective: Objective,
    start: LinearRule,
    *,
    max_iter: int,
    tol: float,
    corrections: int,
) -> Mixture:
    """Add the best linear rule for the present slopes, as long as that pays.

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
    """Move weight from the rule of least to that of largest slope, while that pays.

    Such moves zigzag where several rules share the work; after each, a move along what the last two
    made together (parallel tangents) goes straight.
    """
    passed = [np.array(mixture.weights)]
    for _ in range(most if len(mixture.rules) > 1 else 0):
        by_t, by_q = objective.slope(mixture.now)
        scores = np.array([_dot(by_t, by_q, c.t, c.q) for c in mixture.counts])
        weights = np.array(mixture.weights)
        source = int(np.argmin(np.where(weights > 0, scores, np.inf)))
        target = int(np.argmax(scores))
        if scores[target] - scores[source] <= tol / 10:
            break
        far = weights.copy()  # all of the source's weight moved: the far end of the line
        far[target] += far[source]
        far[source] = 0.0
        gain = _move(mixture, objective, far)
        if len(passed) > 1:
            weights = np.array(mixture.weights)
            direction = weights - passed[-2]
            shrinking = direction < -1e-12
            if shrinking.any():
                reach = (weights[shrinking] / -direction[shrinking]).min()
                gain += _move(mixture, objective, np.maximum(weights + reach * direction, 0.0))
        passed.append(np.array(mixture.weights))
        if gain < tol:
            break
    mixture.drop_unused()


def _move(mixture: Mixture, objective: Objective, far: np.ndarray) -> float:
    """Go toward other weights as far as pays, and tell what that gained."""
    step, gain = objective.search(mixture.now, mixture.mixed(far))
    if gain <= 0:  # at step 0
        return 0.0
    mixture.set_weights((1 - step) * np.array(mixture.weights) + step * far)
    return gain


def _dot(by_t: np.ndarray, by_q: np.ndarray, t: np.ndarray, q: np.ndarray) -> float:
    # Not by BLAS, whose sums depend on the number of threads.
    return float((by_t * t).sum() + (by_q * q).sum())
