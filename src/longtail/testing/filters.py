"""Label filters act inside the model: if k labels are allowed, the k best of them come back."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail import TopK
from longtail.answers.label_filter import LabelFilter
from longtail.testing.problems import Problem, features, make_problem

Make = Callable[..., Any]


def all_answers(model: Any, X: Any) -> np.ndarray:
    """Score of every label (n, L) by exact search; labels without an answer score 0."""
    exact = {"beam": None} if isinstance(model, lt.XRLinear) else {}
    top = model.predict_topk(X, k=model.n_labels_, **exact)
    scores = np.zeros((len(top), model.n_labels_), np.float32)
    row, slot = np.nonzero(top.indices >= 0)
    scores[row, top.indices[row, slot]] = top.scores[row, slot]
    return scores


def masked(scores: np.ndarray, allowed: np.ndarray, k: int) -> TopK:
    """Return the k best allowed labels, written out."""
    n, width = scores.shape
    top = TopK.nothing(n, k)
    for i in range(n):
        order = np.lexsort((np.arange(width), -scores[i].astype(np.float64)))
        best = [j for j in order if allowed[i, j]][:k]
        top.indices[i, : len(best)], top.scores[i, : len(best)] = best, scores[i, best]
    return TopK(top.indices, top.scores, width)


def random_lists(n: int, rng: Any, n_labels: int = 12) -> list[list[int]]:
    return [
        rng.choice(n_labels, rng.integers(0, n_labels + 1), replace=False).tolist()
        for _ in range(n)
    ]


@features
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("k", [1, 3, 12])
def test_filters_are_exact_search_and_a_mask(
    fitted: Any, problem: Problem, k: int, dense: bool
) -> None:
    model = fitted
    n, rng = problem.X.shape[0], np.random.default_rng(k)
    exact = {"beam": None} if isinstance(model, lt.XRLinear) else {}
    scores = all_answers(model, problem.X)
    some, other = [1, 4, 5, 11], [4, 0, 4]
    rows, others = random_lists(n, rng), random_lists(n, rng)
    X = problem.X.toarray() if dense else problem.X
    for include, exclude in [
        (some, None),
        (None, other),
        (some, other),
        (rows, None),
        (None, rows),
        (rows, others),
        (some, rows),
        (rows, other),
        ([], None),
        (None, []),
        (None, range(12)),
    ]:
        labels = LabelFilter.of(include, exclude, n_rows=n, n_labels=12)
        assert labels is not None
        expected = masked(scores, labels.allowed(0, n), k)
        found = model.predict_topk(X, k=k, include=include, exclude=exclude, **exact)
        TopK(found.indices, found.scores, 12)
        if dense:  # sums in another order than the sparse ones
            np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-5, atol=1e-6)
        else:
            assert found == expected, (include, exclude)


@features
def test_k_allowed_labels_come_back(make: Make, problem: Problem) -> None:
    """Try also through a beam of one, and for rows that resemble nothing."""
    narrow = {"beam": 1} if "beam" in make().get_params() else {}
    model = make(**narrow).fit(problem.X, problem.Y)
    X = sp.vstack([problem.X, sp.csr_matrix((2, 40))]).tocsr()
    rng = np.random.default_rng(3)
    for lists in (random_lists(92, rng), random_lists(92, rng)):
        for k in (1, 2, 7, 12):
            found = model.predict_topk(X, k=k, include=lists)
            answered = (found.indices >= 0).sum(axis=1)
            assert answered.tolist() == [min(k, len(row)) for row in lists]
            assert all(
                set(ids[ids >= 0].tolist()) <= set(row)
                for ids, row in zip(found.indices, lists, strict=True)
            )
            left = model.predict_topk(X, k=k, exclude=lists)
            answered = (left.indices >= 0).sum(axis=1)
            assert answered.tolist() == [min(k, 12 - len(row)) for row in lists]


def test_every_form_of_a_list_is_the_same_list(make: Make, problem: Problem) -> None:
    model = make().fit(problem.X, problem.Y).name_labels([f"label {i}" for i in range(12)])
    X = problem.X[:4]
    mask = np.zeros(12, bool)
    mask[[2, 7, 9]] = True
    expected = model.predict_topk(X, k=5, include=[2, 7, 9])
    for include in (
        (9, 2, 7, 7),
        {2, 7, 9},
        np.array([2, 7, 9]),
        np.array([2, 7, 9], np.uint8),
        ["label 2", "label 9", 7],
        mask,
        np.tile(mask, (4, 1)),
        sp.csr_matrix(np.tile(mask, (4, 1))),
        sp.coo_matrix(np.tile(mask, (4, 1)).astype(float)),
        [[2, 7, 9]] * 4,
        np.tile([2, 7, 9], (4, 1)),
        [["label 9", 2, "label 7"]] * 4,
    ):
        assert model.predict_topk(X, k=5, include=include) == expected
    assert model.predict_topk(X, k=5, exclude=~mask) == expected
    some = model.predict_topk(X, k=5, include=[None, [2, 7, 9], None, [2, 7, 9]])
    assert some[[1, 3]] == expected[[1, 3]]
    assert ((some.indices[[0, 2]] >= 0).sum(axis=1) == 5).all()


@pytest.mark.parametrize(
    ("include", "error", "facts"),
    [
        ([12], ValueError, r"\b12\b.*\b12\b"),
        ([-1], ValueError, "-1"),
        ([[0], [1]], ValueError, r"\b2\b.*\b3\b"),
        (["cat"], ValueError, "cat"),
        ("cat", TypeError, r"\['cat'\]"),
        (3, TypeError, r"\[3\]"),
        ([0, None, 1.5], TypeError, "include"),
        ([[0], [1], [0.5]], TypeError, r"include\[2\].*0.5"),
        (np.ones(11, bool), ValueError, "11"),
        (sp.csr_matrix((3, 11)), ValueError, r"\(3, 11\)"),
    ],
)
def test_lists_that_make_no_sense(
    fitted: Any, problem: Problem, include: Any, error: type[Exception], facts: str
) -> None:
    with pytest.raises(error, match=facts):
        fitted.predict_topk(problem.X[:3], include=include)


def test_names_are_saved_and_forgotten(make: Make, problem: Problem, tmp_path: Path) -> None:
    names = [f"名 {i}" for i in range(12)]
    model = make().fit(problem.X, problem.Y).name_labels(names)
    model.save(tmp_path / "m")
    found = lt.load(tmp_path / "m", verify=True)
    assert list(found.label_names_) == names
    with pytest.raises(ValueError, match="名 12"):
        found.predict_topk(problem.X, include=["名 12"])
    with pytest.raises(ValueError, match=r"\b2\b"):
        found.name_labels(["a", "b"])
    assert found.fit(problem.X, problem.Y).label_names_ is None


@features
def test_rows_keep_their_lists_whatever_the_threads(make: Make) -> None:
    """Ask with enough rows for several tasks, in several Python threads at once."""
    problem = make_problem(n=600, seed=4)
    model = make().fit(problem.X, problem.Y)
    lists = random_lists(600, np.random.default_rng(5))
    expected = model.predict_topk(problem.X, k=4, include=lists)
    for i in (0, 131, 599):
        assert model.predict_topk(problem.X[i], k=4, include=[lists[i]]) == expected[i]

    def ask(start: int) -> bool:
        rows = slice(start, start + 200)
        asked = (model.predict_topk(problem.X[rows], k=4, include=lists[rows]) for _ in range(3))
        return all(answer == expected[rows] for answer in asked)

    with ThreadPoolExecutor(5) as pool:
        assert all(pool.map(ask, range(0, 500, 100)))
