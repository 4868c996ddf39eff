"""Every test of the contract, and the fixtures they ask for; see ``longtail.testing``."""
# ruff: noqa: F403

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

PARTS = "answers filters inputs parameters probabilities refusals saving"
pytest.register_assert_rewrite(*(f"longtail.testing.{part}" for part in PARTS.split()))

from longtail.testing.answers import *  # noqa: E402
from longtail.testing.filters import *  # noqa: E402
from longtail.testing.inputs import *  # noqa: E402
from longtail.testing.parameters import *  # noqa: E402
from longtail.testing.probabilities import *  # noqa: E402
from longtail.testing.problems import Problem, make_problem, seeded, shared  # noqa: E402
from longtail.testing.refusals import *  # noqa: E402
from longtail.testing.saving import *  # noqa: E402


@pytest.fixture
def ranker() -> Callable[..., Any]:
    """Return what makes an unfitted ranker from parameters by name: yours, in a fixture of this
    name.
    """
    pytest.fail("define a fixture ranker that returns the class of your ranker")


@pytest.fixture
def make(ranker: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same, with a fixed seed where it takes one."""
    return seeded(ranker)


@pytest.fixture
def problem() -> Problem:
    """Return rows of features with labels to be found in them."""
    return make_problem()


@pytest.fixture
def fitted(make: Callable[..., Any], problem: Problem) -> Any:
    """Return a ranker fitted on the problem, for tests that only ask it: they share it."""
    return shared(make, problem)
