"""Parameters follow scikit-learn: stored as given, cloned, set, shown; and its tools work."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import pytest

import longtail as lt
from longtail.testing.problems import Problem, features, shown

Make = Callable[..., Any]


def test_init_only_stores(make: Make) -> None:
    """Check that whatever is passed comes back, unchecked and uncopied, until fit."""
    names = list(make().get_params(deep=False))
    odd = {name: object() for name in names}
    model = type(make())(**odd)
    assert all(getattr(model, name) is odd[name] for name in names)
    assert model.get_params(deep=False) == odd
    assert set(vars(model)) == set(names)


def test_parameters_are_keyword_only_with_defaults(make: Make) -> None:
    cls = type(make())
    parameters = list(inspect.signature(cls).parameters.values())
    assert all(p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in parameters)
    assert [p.name for p in parameters] == list(cls().get_params(deep=False))
    for p in parameters:
        assert getattr(cls(), p.name) == p.default


def test_set_params(make: Make) -> None:
    model = make()
    assert model.set_params(**make().get_params()) is model
    for name in model.get_params(deep=False):
        marker = object()
        model.set_params(**{name: marker})
        assert getattr(model, name) is marker


def test_repr_makes_the_same_estimator(make: Make) -> None:
    model = make()
    names = {name: getattr(lt, name) for name in lt.__all__ if name != "testing"}
    for room in (lt.baselines, lt.features, lt.tree):  # whose estimators may be parameters
        names |= {name: getattr(room, name) for name in room.__all__}
    twin = eval(repr(model), {**names, type(model).__name__: type(model)})
    assert type(twin) is type(model) and shown(twin) == shown(model)
    assert repr(type(model)()) == f"{type(model).__name__}()"


def test_fit_leaves_parameters_alone(make: Make, problem: Problem) -> None:
    model = make()
    before = model.get_params()
    model.fit(problem.X, problem.Y).predict_topk(problem.X)
    assert model.get_params() == before


def test_learned_names_end_in_an_underscore(make: Make, problem: Problem) -> None:
    model = make()
    names = set(vars(model))
    model.fit(problem.X, problem.Y)
    learned = set(vars(model)) - names
    assert {"n_features_in_", "n_labels_"} <= learned
    assert all(name.endswith("_") for name in learned if not name.startswith("_"))
    sizes = (model.n_features_in_, model.n_labels_)
    assert sizes[2 - len(problem.X.shape) :] == problem.X.shape[1:] + problem.Y.shape[1:]


def test_it_says_what_it_is(make: Make) -> None:
    assert (type(make()).__doc__ or "").strip()


def test_scikit_learn_clone(fitted: Any, problem: Problem) -> None:
    from sklearn.base import clone
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(fitted)
    twin = clone(fitted)
    assert type(twin) is type(fitted) and shown(twin) == shown(fitted)
    with pytest.raises(NotFittedError):
        check_is_fitted(twin)
    assert twin.fit(problem.X, problem.Y).predict_topk(problem.X) == fitted.predict_topk(problem.X)


@features
def test_scikit_learn_pipeline_and_search(make: Make, problem: Problem) -> None:
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    pipeline = make_pipeline(MaxAbsScaler(), make())
    chosen = pipeline.fit(problem.X, problem.Y).predict(problem.X)
    scaled = MaxAbsScaler().fit_transform(problem.X)
    expected = make().fit(scaled, problem.Y)
    assert (chosen != expected.predict(scaled)).nnz == 0
    assert pipeline.score(problem.X, problem.Y) == expected.score(scaled, problem.Y)
    for Y in (problem.Y.toarray(), problem.lists):
        scores = cross_val_score(make(), problem.X, Y, cv=3, error_score="raise")
        assert scores.shape == (3,) and (scores > 0).all()
    grid = {name: [value] for name, value in make().get_params().items()}
    search = GridSearchCV(make(), grid, cv=2, error_score="raise").fit(problem.X, problem.Y)
    assert search.best_estimator_.predict_topk(problem.X) == make().fit(
        problem.X, problem.Y
    ).predict_topk(problem.X)


def test_copies_are_independent(make: Make, problem: Problem) -> None:
    model = make().fit(problem.X, problem.Y)
    expected = model.predict_topk(problem.X)
    for twin in (copy.copy(model), copy.deepcopy(model)):
        assert twin.predict_topk(problem.X) == expected
        twin.fit(problem.X[:20], problem.Y[:20])
        assert model.predict_topk(problem.X) == expected
