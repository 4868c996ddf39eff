"""Parameters of nested estimators; what the contract tests cannot see in models without any."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import longtail as lt
from longtail.base import Estimator, NotFittedError, unfitted


class Inner(Estimator):
    type_tag = "inner"

    def __init__(self, *, alpha: float = 1.0) -> None:
        self.alpha = alpha


class Outer(Estimator):
    type_tag = "outer"

    def __init__(self, *, model: Any = None, depth: int = 3) -> None:
        self.model = model
        self.depth = depth


def test_nested_parameters() -> None:
    outer = Outer(model=Inner(alpha=2.0))
    assert outer.get_params() == {"model": outer.model, "model__alpha": 2.0, "depth": 3}
    outer.set_params(model__alpha=5.0, depth=4)
    assert (outer.model.alpha, outer.depth) == (5.0, 4)
    outer.set_params(model__alpha=7.0, model=Inner())  # the new model gets the new value
    assert outer.model.alpha == 7.0
    assert repr(outer) == "Outer(model=Inner(alpha=7.0), depth=4)"


def test_nothing_is_set_if_a_name_is_unknown() -> None:
    outer = Outer()
    with pytest.raises(ValueError, match=r"no parameter 'deep': it has model, depth; did you mean"):
        outer.set_params(depth=9, deep=1)
    assert outer.depth == 3
    with pytest.raises(ValueError, match="cannot set model__alpha: model of Outer is None"):
        outer.set_params(model__alpha=1)
    with pytest.raises(ValueError, match="Inner has no parameter 'beta': it has alpha"):
        Outer(model=Inner()).set_params(model__beta=1)


def test_unknown_parameters_suggest_the_known() -> None:
    with pytest.raises(TypeError, match=r"'n_neighbours': .*did you mean 'n_neighbors'\?"):
        lt.baselines.NearestNeighbors(n_neighbours=3)
    with pytest.raises(TypeError, match="'n_neighbors': it has none"):
        lt.baselines.Popularity(n_neighbors=3)


class Rule(Estimator):
    def __init__(self, metric: str, *, k: int = 5) -> None:
        self.metric = metric
        self.k = k


def test_a_parameter_may_be_positional_where_it_says_so() -> None:
    assert Rule("macro_f1", k=3).get_params() == {"metric": "macro_f1", "k": 3}
    assert repr(Rule("macro_f1")) == "Rule(metric='macro_f1')"
    with pytest.raises(TypeError, match="by name"):
        Rule("macro_f1", 3)  # type: ignore[misc]


def test_nested_estimators_are_cloned() -> None:
    from sklearn.base import clone

    outer = Outer(model=Inner(alpha=2.0))
    twin = clone(outer)
    assert twin.model is not outer.model and twin.model.alpha == 2.0


def test_signature_is_that_of_init() -> None:
    assert list(inspect.signature(Inner).parameters) == ["alpha"]


def test_a_parameter_that_is_an_array() -> None:
    assert "array" in repr(Inner(alpha=np.zeros(2)))  # type: ignore[arg-type]


def test_not_every_estimator_can_be_loaded() -> None:
    state = Inner(alpha=2.0)._get_state()
    assert (state.type, state.params) == ("inner", {"alpha": 2.0})
    with pytest.raises(NotImplementedError):
        Inner._from_state(state)


def test_the_error_before_fit_is_ours_and_scikit_learns() -> None:
    import pickle

    from sklearn.exceptions import NotFittedError as Theirs

    for model, ask in (
        (lt.OneVsAll(), lambda m: m.predict_topk([[1.0]])),
        (lt.Tfidf(), lambda m: m.transform(["a text"])),
        (lt.Tagger(), lambda m: m.predict(["a text"])),
        (lt.baselines.Popularity(), lambda m: m.save("nowhere")),
    ):
        with pytest.raises(Theirs, match="call fit first") as raised:
            ask(model)
        error = raised.value
        assert isinstance(error, (NotFittedError, ValueError)) and isinstance(error, AttributeError)
        again = pickle.loads(pickle.dumps(error))  # as from a worker process
        assert isinstance(again, Theirs) and isinstance(again, NotFittedError)
        assert str(again) == str(error)


def test_scikit_learn_is_imported_when_the_error_is_raised_and_not_before() -> None:
    code = """
import sys
import longtail as lt
from longtail.base import NotFittedError
tagger, loaded = lt.Tagger(), lt.Tagger().fit(["a b", "c d"], [["x"], ["y"]])
assert "sklearn" not in sys.modules
try:
    tagger.predict(["a"])
except NotFittedError:
    assert "sklearn" in sys.modules
else:
    raise AssertionError("nothing was raised")
sys.modules["sklearn.exceptions"] = None  # as if it were not installed
from longtail import base
base._not_fitted_type.cache_clear()
try:
    tagger.predict(["a"])
except NotFittedError as error:
    assert type(error) is NotFittedError
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_an_unfitted_copy_has_the_parameters_and_nothing_learned() -> None:
    tree = lt.tree.LabelTree(leaf=3)
    model = lt.XRLinear(tree=tree, C=2.0).fit(np.eye(4), [[0], [1], [2], [3]])
    copy = unfitted(model, beam=7)
    assert copy.get_params() == {**model.get_params(), "beam": 7} and copy.tree is tree
    assert model.beam != 7 and not copy.__sklearn_is_fitted__()
    with pytest.raises(TypeError, match="has no parameter 'bean'"):
        unfitted(model, bean=7)
