"""What holds for every propensity model."""

import inspect
import json
import warnings

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
    "direct": lambda: DirectPropensity().fit(Y, Y_queried=TRUE),
    "richards": lambda: RichardsPropensity(scale="count").fit(
        Y, propensity=np.linspace(0.2, 0.9, 6)
    ),
    "joint": lambda: JointPropensity(l2=2.0).fit(Y, X=X),
    "fixed": lambda: FixedPropensity(source="test").fit(propensity=np.linspace(0.2, 1.0, 6)),
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
            FixedPropensity().fit(propensity=bad)
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
    path.write_text("1\n4\n")
    model = FixedPropensity.read_inverse(path)
    assert model.describe()["source"] == "inv_prop.txt"
    assert model.propensity_.tolist() == [1, 0.25]


@pytest.mark.parametrize(
    ("model", "old", "new"),
    [
        (DirectPropensity(), (Y, TRUE), {"Y": Y, "Y_queried": TRUE}),
        (DirectPropensity(), (Y, TRUE, None), {"Y": Y, "Y_queried": TRUE}),
        (
            RichardsPropensity(scale="count"),
            (Y, np.linspace(0.2, 0.9, 6)),
            {"Y": Y, "propensity": np.linspace(0.2, 0.9, 6)},
        ),
        (JointPropensity(l2=2.0), (X, Y), {"Y": Y, "X": X}),
        (FixedPropensity(), ([0.5] * 6,), {"propensity": [0.5] * 6}),
    ],
)
def test_old_orders_of_arguments_warn(model, old, new) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        before = model.fit(*old).propensity_
    told = [w for w in said if issubclass(w.category, DeprecationWarning)]
    assert len(told) == 1 and told[0].filename == __file__
    assert "by name now" in str(told[0].message) and "goes in 0.2" in str(told[0].message)
    np.testing.assert_array_equal(before, model.fit(**new).propensity_)


@pytest.mark.parametrize(
    "make",
    [DirectPropensity, FixedPropensity, JainPropensity, JointPropensity, RichardsPropensity],
)
def test_every_fit_takes_labels_first_and_the_rest_by_name(make) -> None:
    _, first, *others = inspect.signature(make.fit).parameters.values()
    assert first.name == "Y"
    assert all(other.kind is inspect.Parameter.KEYWORD_ONLY for other in others)


def test_a_fixed_vector_has_to_fit_the_labels() -> None:
    assert FixedPropensity().fit(Y, propensity=[0.5] * 6).n_labels_ == 6
    with pytest.raises(ValueError, match=r"shape \(2,\), for 6 labels"):
        FixedPropensity().fit(Y, propensity=[0.5] * 2)
    with pytest.raises(TypeError, match="give propensity="):
        FixedPropensity().fit()


def test_inverse_propensities_are_at_least_1() -> None:
    assert FixedPropensity.from_inverse([1.0, 4.0]).propensity_.tolist() == [1.0, 0.25]
    for wrong in ([0.99, 4.0], [np.inf, 1.0], [np.nan], [[1.0]]):
        with pytest.raises(ValueError, match="of at least 1 per label"):
            FixedPropensity.from_inverse(wrong)


def test_the_smallest_propensity_has_a_finite_inverse() -> None:
    assert np.isfinite(FixedPropensity().fit(propensity=[1e-300]).inverse_).all()
    with pytest.raises(ValueError, match="no finite inverse"):
        FixedPropensity().fit(propensity=[9e-301])
