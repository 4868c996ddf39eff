"""Every contract test runs once for every estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from contract_cases import CASES, Case, Problem, as_texts, make_problem


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    if found.texts and request.node.get_closest_marker("features"):
        pytest.skip("about features: this model takes texts")
    return found


@pytest.fixture
def make(case: Case) -> Callable[..., Any]:
    """Builds an unfitted estimator, with a fixed seed where it takes one."""
    seeded = {"random_state": 0} if "random_state" in case.make().get_params() else {}
    return lambda **params: case.make(**{**seeded, **params})


@pytest.fixture
def problem(case: Case) -> Problem:
    found = make_problem()
    return Problem(as_texts(found.X), found.Y) if case.texts else found
