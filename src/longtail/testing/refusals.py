"""What cannot be right is refused at once, by an error that names what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.testing.problems import Problem, features

Make = Callable[..., Any]


def with_value(matrix: sp.csr_matrix, value: float) -> sp.csr_matrix:
    out = matrix.copy()
    out.data[3] = value
    return out


def broken(matrix: sp.csr_matrix, column: int) -> sp.csr_matrix:
    """Return a matrix whose arrays were tampered with after SciPy had checked them."""
    out = matrix.copy()
    out.indices[3] = column
    return out


@features
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_features_that_are_not_finite(
    make: Make, fitted: Any, problem: Problem, value: float, dense: bool
) -> None:
    X = with_value(problem.X.astype(np.float64), value)
    X = X.toarray() if dense else X
    for use in (lambda: make().fit(X, problem.Y), lambda: fitted.predict_topk(X)):
        with pytest.raises(ValueError, match=r"X .*(NaN|infinite)"):
            use()


@features
def test_different_numbers_of_rows(make: Make, problem: Problem) -> None:
    for X, Y in [
        (problem.X[:-1], problem.Y),
        (problem.X, problem.Y[:-1]),
        (problem.X[:-1].toarray(), problem.lists),
    ]:
        with pytest.raises(ValueError, match=r"X .*\d+.* Y .*\d+"):
            make().fit(X, Y)


@features
@pytest.mark.parametrize("change", [-1, 1])
def test_wrong_width_at_predict(fitted: Any, problem: Problem, change: int) -> None:
    width = problem.X.shape[1] + change
    for X in (sp.csr_matrix((2, width)), np.zeros((2, width))):
        with pytest.raises(ValueError, match=rf"{width}.*\b40\b"):
            fitted.predict_topk(X)


@features
def test_negative_and_outlandish_labels(make: Make, problem: Problem) -> None:
    for wrong in (-1, 2**32):
        with pytest.raises(ValueError, match=f"{wrong}"):
            make().fit(problem.X, [*problem.lists[:-1], [wrong]])
    for X, Y in [
        (problem.X, broken(problem.Y, 12)),
        (problem.X, broken(problem.Y, -1)),
        (broken(problem.X, 10**6), problem.Y),
    ]:
        with pytest.raises(ValueError, match="CSR"):
            make().fit(X, Y)


@pytest.mark.parametrize("value", [-1, -0.5, 2, 1.5, np.nan, np.inf])
def test_label_values_outside_0_1(make: Make, problem: Problem, value: float) -> None:
    for Y in (with_value(problem.Y, value), with_value(problem.Y, value).toarray()):
        with pytest.raises(ValueError, match="Y "):
            make().fit(problem.X, Y)


def test_labels_that_are_not_ids(make: Make, problem: Problem) -> None:
    X = problem.X[:2]
    for Y in (
        [["cat"], ["dog"]],
        ["cat", "dog"],
        [[0.5, 1], [1]],
        [[None], [1]],
        np.array(["a", "b"]),
    ):
        with pytest.raises((TypeError, ValueError), match="Y"):
            make().fit(X, Y)
    with pytest.raises(TypeError, match="Y"):
        make().fit(X, [3, 4])


def test_an_indicator_matrix_as_nested_lists(make: Make, problem: Problem) -> None:
    """Read as ids it would quietly say something else."""
    with pytest.raises(ValueError, match=r"Y.*np\.asarray"):
        make().fit(problem.X, problem.Y.toarray().astype(int).tolist())


@features
def test_features_that_are_not_a_table(make: Make, problem: Problem) -> None:
    masked = np.ma.masked_less(np.ones((2, 2)), 2)
    for X in (
        ["a text", "another"],
        [["a"], ["b"]],
        [[1j], [2]],
        np.zeros((2, 1), "M8[s]"),
        np.zeros(3),
        np.zeros((2, 2, 2)),
        [[1, 2], [3]],
        masked,
    ):
        with pytest.raises((TypeError, ValueError), match=r"\bX\b"):
            make().fit(X, [[0], [1]])


@features
def test_nothing_to_learn_from(make: Make) -> None:
    with pytest.raises(ValueError, match="X "):
        make().fit(sp.csr_matrix((0, 3)), sp.csr_matrix((0, 2)))
    with pytest.raises(ValueError, match="Y "):
        make().fit(sp.csr_matrix((2, 3)), [[], []])


@pytest.mark.parametrize("k", [0, -1, 2.5, "5", None, True])
def test_k_that_is_no_positive_number(fitted: Any, problem: Problem, k: object) -> None:
    error = ValueError if type(k) is int else TypeError
    with pytest.raises(error, match=rf"\bk\b.*{k!r}"):
        fitted.predict_topk(problem.X, k=k)


def test_unknown_parameters(make: Make) -> None:
    with pytest.raises(TypeError, match="'n_trees_'"):
        make(n_trees_=3)
    with pytest.raises(ValueError, match="'n_trees_'"):
        make().set_params(n_trees_=3)
    with pytest.raises(TypeError):
        type(make())(3)


def test_unknown_arguments(make: Make, fitted: Any, problem: Problem) -> None:
    with pytest.raises(TypeError, match="sample_wait"):
        make().fit(problem.X, problem.Y, sample_wait=1)
    with pytest.raises(TypeError, match="topk"):
        fitted.predict_topk(problem.X, topk=1)


def test_use_before_fit(make: Make, problem: Problem, tmp_path: Any) -> None:
    model = make()
    for use in (
        lambda: model.predict_topk(problem.X),
        lambda: model.predict(problem.X),
        lambda: model.score(problem.X, problem.Y),
        lambda: model.save(tmp_path / "m"),
    ):
        with pytest.raises(ValueError, match=type(model).__name__):
            use()
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("n_jobs", [0, 1.5, "2", True])
def test_bad_n_jobs(make: Make, problem: Problem, n_jobs: object) -> None:
    if "n_jobs" not in make().get_params():
        pytest.skip("takes no n_jobs")
    with pytest.raises((TypeError, ValueError), match="n_jobs"):
        make(n_jobs=n_jobs).fit(problem.X, problem.Y)


@features
def test_a_failed_fit_leaves_the_model_as_it_was(make: Make, problem: Problem) -> None:
    model = make().fit(problem.X, problem.Y)
    expected = model.predict_topk(problem.X)
    with pytest.raises(ValueError):
        model.fit(with_value(problem.X, np.nan), problem.Y)
    assert model.predict_topk(problem.X) == expected


@features
def test_not_even_scipy_is_trusted(make: Make, problem: Problem) -> None:
    """Index arrays out of order or too short crash other systems; here they are an error."""
    for alter in ("decreasing", "short", "negative"):
        X = problem.X.copy()
        if alter == "decreasing":
            X.indptr[5] = X.indptr[6] + 1
        elif alter == "short":
            X.indices = X.indices[:-5]
        else:
            X.indptr[-1] = -1
        with pytest.raises(ValueError, match="CSR"):
            make().fit(X, problem.Y)
    coo = problem.X.tocoo()
    coo.row = coo.row.copy()
    coo.row[0] = 10**6
    with pytest.raises(ValueError, match="COO"):
        make().fit(coo, problem.Y)
    csc = problem.X.tocsc()
    csc.indices[0] = -3
    with pytest.raises(ValueError, match="CSC"):
        make().fit(csc, problem.Y)
