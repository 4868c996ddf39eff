"""``BoostedTrees``: against a slow reference, and against damage."""

from __future__ import annotations

import numpy as np
import pytest

from longtail import persist
from longtail.ensemble.boosted_trees import BoostedTrees
from longtail.exceptions import ModelFormatError


def rows_and_targets(n: int = 400, d: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 30, (n, d)).astype(np.float32) / 7
    odds = rows[:, 0] - 1.5 * (rows[:, 1] > 2) - 0.3 * rows[:, 2]
    return rows, (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(np.float32)


def reference(
    rows: np.ndarray, y: np.ndarray, w: np.ndarray, n_trees: int, n_leaves: int, min_rows: int
) -> np.ndarray:
    """Scores of the rows themselves: every threshold of every feature is tried in every leaf."""
    share = ((w * y).sum() + 0.5) / (w.sum() + 1)
    score = np.full(len(y), np.log(share / (1 - share)))
    for _ in range(n_trees):
        p = 1 / (1 + np.exp(-score))
        g, h = w * (p - y), w * p * (1 - p)

        def worth(at: np.ndarray, g: np.ndarray = g, h: np.ndarray = h) -> float:
            return float(g[at].sum() ** 2 / (h[at].sum() + 1.0))

        def best(leaf: np.ndarray) -> tuple[float, np.ndarray | None]:
            found, left = 0.0, None
            for f in range(rows.shape[1]):
                for t in np.unique(rows[:, f])[:-1]:
                    a = leaf & (rows[:, f] <= t)
                    b = leaf & ~a
                    if min(a.sum(), b.sum()) < min_rows:
                        continue
                    gain = worth(a) + worth(b) - worth(leaf)
                    if gain > found + 1e-6:
                        found, left = gain, a
            return found, left

        leaves = [np.ones(len(y), bool)]
        splits = [best(leaves[0])]
        while len(leaves) < n_leaves:
            i = int(np.argmax([gain for gain, _ in splits]))
            left = splits[i][1]
            if left is None:
                break
            right = leaves[i] & ~left
            leaves[i], splits[i] = left, best(left)
            leaves.append(right)
            splits.append(best(right))
        for leaf in leaves:
            score[leaf] -= 0.05 * g[leaf].sum() / (h[leaf].sum() + 1.0)
    return score


@pytest.mark.parametrize("weighted", [False, True])
def test_as_a_slow_reference(weighted: bool) -> None:
    rows, y = rows_and_targets()
    w = np.random.default_rng(3).integers(1, 4, len(y)).astype(np.float32)
    w = w if weighted else np.ones_like(w)
    trees = BoostedTrees.fit(rows, y, w, n_trees=5, n_leaves=6, min_rows=15)
    expected = reference(rows, y, w.astype(np.float64), 5, 6, 15)
    np.testing.assert_allclose(trees.scores(rows), expected, atol=1e-4)


def test_same_bits_for_any_number_of_threads() -> None:
    rows, y = rows_and_targets(30_000, 6)
    first = BoostedTrees.fit(rows, y, n_trees=5, n_jobs=1)
    for n_jobs in (2, 5):
        other = BoostedTrees.fit(rows, y, n_trees=5, n_jobs=n_jobs)
        for a, b in zip(first.native(), other.native(), strict=True):
            assert np.array_equal(a, b)
        assert np.array_equal(first.scores(rows, 1), other.scores(rows, n_jobs))


def test_probabilities_are_those_of_new_rows() -> None:
    rows, y = rows_and_targets(20_000, 4)
    trees = BoostedTrees.fit(rows, y)
    new, truth = rows_and_targets(20_000, 4, seed=1)
    p = 1 / (1 + np.exp(-trees.scores(new)))
    for low in np.arange(0, 1, 0.2):
        at = (p >= low) & (p < low + 0.2)
        assert at.sum() < 200 or abs(p[at].mean() - truth[at].mean()) < 0.03


def test_values_of_many_kinds_are_binned() -> None:
    rng = np.random.default_rng(0)
    rows = rng.random((5000, 1), np.float32)
    trees = BoostedTrees.fit(rows, rows[:, 0] > 0.5, n_trees=60)
    scores = trees.scores(np.array([[-1e30], [0.4], [0.6], [1e30]], np.float32))
    assert (scores[:2] < -1).all() and (scores[2:] > 1).all()


def test_a_value_never_seen_goes_with_the_nearer_one() -> None:
    rows = np.array([[0.0], [1.0]] * 50, np.float32)
    trees = BoostedTrees.fit(rows, rows[:, 0] > 0.5)
    low, high, below, above = trees.scores(np.array([[0], [1], [0.2], [0.8]], np.float32))
    assert low == below < 0 < high == above
    close = np.float32([1.0, np.nextafter(np.float32(1), np.float32(2))])
    trees = BoostedTrees.fit(np.repeat(close, 50)[:, None], np.repeat([0, 1], 50))
    assert (np.sign(trees.scores(close[:, None])) == [-1, 1]).all()


def test_damage_is_refused() -> None:
    rows, y = rows_and_targets()
    trees = BoostedTrees.fit(rows, y, n_trees=2, n_leaves=4)
    for name, place, value in (
        ("child", 0, 0),  # a circle
        ("child", 0, 10**6),
        ("feature", 0, 4),
        ("feature", 0, -2),
        ("roots", 0, -1),
        ("roots", 1, 10**6),
        ("value", 1, np.nan),
        ("threshold", 0, np.nan),
    ):
        state = persist.State("demo")
        trees.put(state)
        assert len(BoostedTrees.take(state, 4).roots) == 2
        state.arrays[f"trees_{name}"] = state.arrays[f"trees_{name}"].copy()
        state.arrays[f"trees_{name}"][place] = value
        with pytest.raises(ModelFormatError):
            BoostedTrees.take(state, 4)
