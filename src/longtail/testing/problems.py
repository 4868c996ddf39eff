"""A small problem whose answer is known, and how answers are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from longtail.answers.topk import TopK
from longtail.data.text_rows import TextRows

__all__ = [
    "Problem",
    "as_texts",
    "assert_close",
    "features",
    "make_problem",
    "params_of",
    "seeded",
    "shared",
    "shown",
]

Test = TypeVar("Test", bound=Callable[..., None])


def features(test: Test) -> Test:
    """Mark a test that is about rows of features, and not for a ranker that reads texts."""
    test.about_features = True  # type: ignore[attr-defined]
    return test


def as_texts(X: Any) -> TextRows:
    """Return rows of features as texts: a word for every feature, as often as its value has
    sixteenths.
    """
    return TextRows(
        " ".join(
            word
            for j, v in zip(row.indices.tolist(), row.data.tolist(), strict=True)
            for word in [f"feature{j}"] * max(1, int(16 * v))
        )
        for row in sp.csr_matrix(X)
    )


@dataclass
class Problem:
    """``X`` (n, d), ``Y`` (n, L), canonical CSR; every label occurs, every row has features."""

    X: sp.csr_matrix
    Y: sp.csr_matrix

    @property
    def lists(self) -> list[list[int]]:
        """The labels as lists of ids."""
        return [row.tolist() for row in np.split(self.Y.indices, self.Y.indptr[1:-1])]


def make_problem(n: int = 90, d: int = 40, n_labels: int = 12, seed: int = 0) -> Problem:
    """Make a problem in which rows of a label share its features, plus noise: the answer is there
    to be found.

    Values are multiples of 1/16, so that float64, float32 and lists hold the same numbers.
    """
    rng = np.random.default_rng(seed)
    Y = np.zeros((n, n_labels), np.float32)
    Y[np.arange(n), np.arange(n) % n_labels] = 1
    Y[rng.random(Y.shape) < 0.08] = 1
    signal = (rng.random((n_labels, d)) < 0.15) * rng.integers(8, 48, (n_labels, d))
    noise = (rng.random((n, d)) < 0.2) * rng.integers(1, 16, (n, d))
    X = (Y @ signal + noise) / 16
    X[:, 0] += 0.0625  # no row is empty
    return Problem(sp.csr_matrix(X.astype(np.float32)), sp.csr_matrix(Y))


def shown(model: Any) -> dict[str, str]:
    """Return parameters as text, so that nested estimators compare by what they are."""
    return {name: repr(value) for name, value in model.get_params().items()}


def params_of(make: Callable[..., Any]) -> set[str]:
    """Return the names of the parameters of an estimator."""
    return set(make().get_params())


def assert_close(a: TopK, b: TopK, tolerance: float = 1e-5) -> None:
    """Check that answers agree to rounding: scores agree, ids differ only where scores tie."""
    assert a.indices.shape == b.indices.shape
    np.testing.assert_allclose(a.scores, b.scores, rtol=tolerance, atol=tolerance)
    for row in np.flatnonzero((a.indices != b.indices).any(axis=1)):
        scores = dict(zip(a.indices[row].tolist(), a.scores[row].tolist(), strict=True))
        for slot, label in enumerate(b.indices[row].tolist()):
            worst = a.scores[row, -1]  # a label of b that a lacks can only have tied for last place
            assert abs(scores.get(label, worst) - b.scores[row, slot]) <= tolerance


def seeded(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``make`` with a fixed seed, where it takes one."""
    fixed = {"random_state": 0} if "random_state" in make().get_params() else {}
    return lambda **params: make(**{**fixed, **params})


_FITTED: dict[tuple[type, str, type], Any] = {}


def shared(make: Callable[..., Any], problem: Problem) -> Any:
    """Return a ranker fitted on the rows of ``problem``, the same for all tests that only ask it.

    Rankers are told apart by what they are, and by the container of their rows.
    """
    model = make()
    key = (type(model), repr(model), type(problem.X))
    if key not in _FITTED:
        _FITTED[key] = model.fit(problem.X, problem.Y)
    return _FITTED[key]
