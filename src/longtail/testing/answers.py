"""Answers are well formed in every corner, and depend on nothing but the data and the seed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from longtail import TopK
from longtail._native import core
from longtail.testing.problems import (
    Problem,
    assert_close,
    features,
    make_problem,
    params_of,
    shared,
)

Make = Callable[..., Any]


def checked(top: TopK, n: int, k: int, n_labels: int) -> TopK:
    """Return the answer through the constructor, which refuses whatever is not a proper one."""
    TopK(top.indices, top.scores, n_labels)
    assert (len(top), top.k, top.n_labels) == (n, k, n_labels)
    assert top.indices.dtype == np.int32 and top.scores.dtype == np.float32
    ties = (top.scores[:, 1:] == top.scores[:, :-1]) & (top.indices[:, 1:] >= 0)
    assert (top.indices[:, 1:] > top.indices[:, :-1])[ties].all(), "ties go to the smaller id"
    return top


@pytest.mark.parametrize("k", [1, 3, 12, 40])
def test_shape_order_and_padding(fitted: Any, problem: Problem, k: int) -> None:
    top = checked(fitted.predict_topk(problem.X, k=k), problem.X.shape[0], k, 12)
    assert (top.indices[:, 12:] == -1).all()
    head = fitted.predict_topk(problem.X, k=1)
    assert top.head(1) == head, "the best answer does not depend on k"


def test_a_huge_k_is_refused(fitted: Any, problem: Problem) -> None:
    for call in (fitted.predict_topk, fitted.predict):
        with pytest.raises(ValueError, match=r"12 labels.*1000"):
            call(problem.X, k=10**9)
    with pytest.raises(ValueError, match="1000"):
        fitted.score(problem.X, problem.Y, k=10**9)


@features
def test_a_row_does_not_depend_on_its_batch(make: Make, problem: Problem) -> None:
    for X in (problem.X, problem.X.toarray()):
        model = shared(make, Problem(X, problem.Y))
        whole = model.predict_topk(X, k=4)
        for rows in (slice(0, 1), slice(7, 8), slice(80, 90), np.arange(89, -1, -3)):
            assert model.predict_topk(X[rows], k=4) == whole[rows]


def test_no_rows(fitted: Any, problem: Problem) -> None:
    for X in (sp.csr_matrix((0, 40)), np.zeros((0, 40)), problem.X[:0]):
        checked(fitted.predict_topk(X, k=3), 0, 3, 12)
    assert fitted.predict(sp.csr_matrix((0, 40))).shape == (0, 12)
    assert fitted.score(sp.csr_matrix((0, 40)), sp.csr_matrix((0, 12))) == 0


@features
@pytest.mark.parametrize("dense", [True, False])
def test_one_row_one_label(make: Make, dense: bool) -> None:
    X = np.array([[0.5, 0, 2]], np.float32)
    X = X if dense else sp.csr_matrix(X)
    top = checked(make().fit(X, [[0]]).predict_topk(X, k=2), 1, 2, 1)
    assert top.indices.tolist() == [[0, -1]]


@features
@pytest.mark.parametrize("dense", [True, False])
def test_empty_rows_and_columns(make: Make, problem: Problem, dense: bool) -> None:
    """Try rows without labels or features, and labels and features without rows."""
    X, Y = problem.X.toarray(), problem.Y.toarray()
    Y[::4] = 0
    Y[:, [2, 11]] = 0
    X[::5] = 0
    X[:, ::3] = 0
    X = X if dense else sp.csr_matrix(X)
    model = make().fit(X, Y)
    checked(model.predict_topk(X, k=6), 90, 6, 12)
    checked(model.predict_topk(np.zeros((2, 40)), k=6), 2, 6, 12)
    checked(model.predict_topk(np.ones((2, 40)), k=6), 2, 6, 12)


def test_no_positives_at_all(make: Make, problem: Problem) -> None:
    model = make().fit(problem.X, sp.csr_matrix(problem.Y.shape))
    checked(model.predict_topk(problem.X, k=3), 90, 3, 12)


@features
@pytest.mark.parametrize("dense", [True, False])
def test_no_features_at_all(make: Make, problem: Problem, dense: bool) -> None:
    X = np.zeros((90, 0)) if dense else sp.csr_matrix((90, 0))
    checked(make().fit(X, problem.Y).predict_topk(X, k=3), 90, 3, 12)


def test_soft_labels(make: Make, problem: Problem) -> None:
    checked(make().fit(problem.X, problem.Y * 0.25).predict_topk(problem.X, k=3), 90, 3, 12)


@features
@pytest.mark.parametrize("scale", [1e-42, 1e-30, 1e30, 3e38])
def test_features_of_any_size(make: Make, problem: Problem, scale: float) -> None:
    """Try features from the smallest float32 to the largest: no overflow, no NaN."""
    unit = problem.X / problem.X.max()
    for X in (unit * scale, (unit * scale).toarray()):
        checked(make().fit(X, problem.Y).predict_topk(X, k=3), 90, 3, 12)


def test_predict_score_and_proba_agree_with_topk(fitted: Any, problem: Problem) -> None:
    top = fitted.predict_topk(problem.X, k=3)
    chosen = fitted.predict(problem.X, k=3)
    assert isinstance(chosen, sp.csr_matrix) and chosen.shape == problem.Y.shape
    assert (chosen != top.to_csr(binary=True)).nnz == 0
    hits = chosen.multiply(problem.Y).sum() / (3 * 90)
    assert fitted.score(problem.X, problem.Y, k=3) == pytest.approx(hits)
    wider = sp.hstack([problem.Y, sp.csr_matrix((90, 3))]).tocsr()  # labels unseen in training
    assert fitted.score(problem.X, wider, k=3) == pytest.approx(hits)
    if hasattr(fitted, "predict_proba_topk"):
        proba = checked(fitted.predict_proba_topk(problem.X, k=3), 90, 3, 12)
        assert ((proba.scores >= 0) & (proba.scores <= 1))[proba.indices >= 0].all()


def test_same_seed_same_bits(make: Make, fitted: Any, problem: Problem) -> None:
    first = fitted.predict_topk(problem.X, k=5)
    assert make().fit(problem.X, problem.Y).predict_topk(problem.X, k=5) == first


@features
def test_fit_again_forgets(make: Make, problem: Problem) -> None:
    model = make().fit(problem.X, problem.Y)
    other = make_problem(n=50, d=20, n_labels=7, seed=1)
    expected = make().fit(other.X, other.Y).predict_topk(other.X, k=9)
    assert model.fit(other.X, other.Y) is model
    assert model.predict_topk(other.X, k=9) == expected
    dense = other.X.toarray()
    expected = make().fit(dense, other.Y).predict_topk(dense, k=9)
    assert model.fit(dense, other.Y).predict_topk(dense, k=9) == expected


@features
@pytest.mark.parametrize("dense", [True, False])
def test_any_number_of_threads_gives_the_same_bits(make: Make, dense: bool) -> None:
    if "n_jobs" not in params_of(make):
        pytest.skip("takes no n_jobs")
    problem = make_problem(n=700, seed=2)  # enough rows for several tasks
    X = problem.X.toarray() if dense else problem.X
    expected = make(n_jobs=1).fit(X, problem.Y).predict_topk(X, k=5)
    for n_jobs in (2, 4, None, -1, 1000):
        assert make(n_jobs=n_jobs).fit(X, problem.Y).predict_topk(X, k=5) == expected


@features
@pytest.mark.parametrize("dense", [True, False])
def test_instruction_sets_agree_to_rounding(make: Make, problem: Problem, dense: bool) -> None:
    X = problem.X.toarray() if dense else problem.X
    answers = []
    before = core.active_isa()
    try:
        for isa in ("portable", "avx2", "avx512"):
            try:
                core.set_isa(isa)
            except ValueError:  # not on this machine
                continue
            answers.append(make().fit(X, problem.Y).predict_topk(X, k=5))
    finally:
        core.set_isa(before)
    for answer in answers[1:]:
        assert_close(answers[0], answer)


def test_many_python_threads_may_ask_at_once(fitted: Any, problem: Problem) -> None:
    expected = fitted.predict_topk(problem.X, k=5)

    def ask(_: int) -> bool:
        return all(fitted.predict_topk(problem.X, k=5) == expected for _ in range(5))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(8)))
