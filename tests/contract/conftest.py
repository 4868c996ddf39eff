"""Every contract test runs once for every estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from contract_cases import CASES, Case, Problem, as_texts, make_problem

import longtail.testing.contract  # noqa: F401  registers the tests for readable failures
from longtail.testing.problems import seeded, shared


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    if found.texts and getattr(request.function, "about_features", False):
        pytest.skip("about features: this model takes texts")
    return found


@pytest.fixture
def make(case: Case) -> Callable[..., Any]:
    """Builds an unfitted estimator, with a fixed seed where it takes one."""
    return seeded(case.make)


@pytest.fixture
def problem(case: Case) -> Problem:
    found = make_problem()
    return Problem(as_texts(found.X), found.Y) if case.texts else found


@pytest.fixture
def fitted(make: Callable[..., Any], problem: Problem) -> Any:
    """An estimator fitted on the problem, shared by the tests that only ask it."""
    return shared(make, problem)
