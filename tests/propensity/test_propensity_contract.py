"""What holds for every propensity model."""

import json

import numpy as np
import pytest

import longtail.propensity as propensity
from longtail.base import NotFittedError
from longtail.propensity import (
    DirectPropensity,
    FixedPropensity,
    JainPropensity,
    JointPropensity,
    RichardsPropensity,
)

rng = np.random.default_rng(3)
X = rng.normal(size=(80, 3))
Y = (rng.random((80, 6)) < [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]).astype(np.float32)
TRUE = np.ones((5, 6))


FITTED = {
    "jain": lambda: JainPropensity(a=0.6, b=2.6).fit(Y),
    "direct": lambda: DirectPropensity().fit(Y, TRUE),
    "richards": lambda: RichardsPropensity(scale="count").fit(Y, np.linspace(0.2, 0.9, 6)),
    "joint": lambda: JointPropensity(l2=2.0).fit(X, Y),
    "fixed": lambda: FixedPropensity(source="test").fit(np.linspace(0.2, 1.0, 6)),
}


@pytest.fixture(params=FITTED)
def make(request):
    return FITTED[request.param]


@pytest.fixture
def model(make):
    return make()


def test_vector_lies_in_range_and_has_its_inverse(model):
    assert model.propensity_.shape == (6,) and model.propensity_.dtype == np.float64
    assert ((model.propensity_ > 0) & (model.propensity_ <= 1)).all()
    np.testing.assert_array_equal(model.inverse_, 1 / model.propensity_)
    assert model.n_labels_ == 6


def test_fitted_vector_cannot_be_changed_by_accident(model):
    with pytest.raises(ValueError, match="read-only"):
        model.propensity_[0] = 2.0


def test_describe_is_json_and_names_the_constants(model):
    facts = json.loads(json.dumps(model.describe()))
    assert facts["model"] == type(model).__name__
    assert facts["min"] == model.propensity_.min()
    assert facts.keys() >= model.get_params().keys()


def test_state_round_trip(model):
    state = model._get_state()
    json.dumps([state.params, state.meta])
    twin = type(model)._from_state(state)
    np.testing.assert_array_equal(twin.propensity_, model.propensity_)
    assert twin.get_params() == model.get_params()
    assert twin.describe() == model.describe()


def test_unfitted_says_so(model):
    with pytest.raises(NotFittedError, match="call fit first"):
        type(model)().inverse_  # noqa: B018


def test_same_call_same_bits(make, model):
    np.testing.assert_array_equal(make().propensity_, model.propensity_)


def test_type_tags_are_distinct():
    tags = [
        value.type_tag
        for value in vars(propensity).values()
        if isinstance(value, type) and hasattr(value, "type_tag")
    ]
    assert len(tags) == len(set(tags)) == 5


def test_fixed_refuses_what_is_no_propensity(tmp_path):
    for bad in ([0.0, 1.0], [0.5, 1.1], [np.nan], [[0.5]], [], [-0.1], [1e-320]):
        with pytest.raises(ValueError):
            FixedPropensity().fit(bad)
    for bad in ([0.5], [np.inf], [np.nan], [[2.0]]):
        with pytest.raises(ValueError, match="at least 1"):
            FixedPropensity.from_inverse(bad)


def test_inverse_file_reports_the_line(tmp_path):
    path = tmp_path / "inv_prop.txt"
    path.write_text("1.5\n\n0.3\n")
    with pytest.raises(ValueError, match=r"inv_prop.txt:3:1: expected one inverse propensity"):
        FixedPropensity.read_inverse(path)
    path.write_text("1.5\nten\n")
    with pytest.raises(ValueError, match=r":2:1: .*'ten'"):
        FixedPropensity.read_inverse(path)
    path.write_text("")
    with pytest.raises(ValueError, match="got none"):
        FixedPropensity.read_inverse(path)
    path.write_text("2\n4\n")
    assert FixedPropensity.read_inverse(path).describe()["source"] == "inv_prop.txt"
