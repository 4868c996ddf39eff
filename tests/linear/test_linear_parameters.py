"""``fit`` checks parameters before it starts to work, with messages that say what to do."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from linear_cases import make_rows

import longtail as lt
from longtail.linear.xr_linear import default_tree

BOTH = [
    lt.OneVsAll,
    lambda **p: lt.XRLinear(**{"tree": lt.tree.LabelTree(level_sizes=[3, 8]), **p}),
]


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": 0}, "C must be positive and finite, got 0"),
        ({"C": -1.0}, "C must be positive"),
        ({"C": np.inf}, "C must be positive and finite"),
        ({"C": np.nan}, "C must be positive"),
        ({"loss": "log"}, "loss must be one of squared_hinge, hinge, logistic"),
        ({"solver": "sgd"}, "solver must be one of auto, dual, newton, got 'sgd'"),
        ({"tolerance": 0.0}, "tolerance must be positive"),
        ({"max_iter": 0}, "max_iter must be at least 1"),
        ({"bias": -1.0}, "bias must be finite and not negative"),
        ({"threshold": np.nan}, "threshold must be finite"),
        ({"positive_weight": -1.0}, "positive_weight must be finite and not negative"),
        ({"negative_weight": np.inf}, "negative_weight must be finite and not negative"),
        ({"positive_weight": [1.0, 2.0]}, "positive_weight must be"),
        ({"random_state": -1}, "random_state must lie in"),
    ],
)
def test_bad_values(make: Any, params: dict[str, Any], message: str) -> None:
    X, Y = make_rows(n_labels=40)
    with pytest.raises(ValueError, match=message):
        make(**params).fit(X, Y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"negatives": "random"}, "negatives must be one of tfn, man, tfn"),
        ({"cost_weights": "l1"}, "cost_weights must be one of"),
        ({"beam": 0}, "beam must be at least 1"),
        ({"beam": [5]}, "beam names 1 levels, but there are 2 to cut"),
        ({"beam": [5, 5, 5], "negatives": "man"}, "beam names 3 levels, but there are 2 to cut"),
        ({"beam": [0, 5], "negatives": "man"}, "beam must be at least 1"),
        ({"post_processor": "l3"}, "unknown post_processor 'l3'"),
        ({"post_processor": ["l3-hinge", "sigmoid", "noop"]}, "mixes families"),
        ({"post_processor": ["noop"]}, "names 1 levels, but the tree has 3"),
    ],
)
def test_bad_values_of_trees(params: dict[str, Any], message: str) -> None:
    X, Y = make_rows(n_labels=40)
    with pytest.raises(ValueError, match=message):
        BOTH[1](**params).fit(X, Y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_iter": 2.5}, "max_iter must be a whole number"),
        ({"beam": 2.5}, "beam must be a whole number"),
        ({"beam": "wide"}, "beam must be a whole number"),
        ({"tree": "kmeans"}, "tree must be a LabelTree or None, got 'kmeans'"),
    ],
)
def test_bad_types(params: dict[str, Any], message: str) -> None:
    X, Y = make_rows(n_labels=40)
    with pytest.raises(TypeError, match=message):
        BOTH[1](**params).fit(X, Y)


def test_beam_of_a_call_is_checked() -> None:
    X, Y = make_rows(n_labels=40)
    model = BOTH[1]().fit(X, Y)
    with pytest.raises(ValueError, match="beam names 3 levels"):
        model.predict_topk(X, beam=[1, 2, 3])
    with pytest.raises(ValueError, match="beam must be at least 1"):
        model.predict_topk(X, beam=0)


def test_every_seed_can_be_used(tmp_path: Any) -> None:
    X, Y = make_rows(n_labels=40)
    seeds = (0, 1, 2**63, 2**64 - 1)
    models = [BOTH[1](random_state=seed).fit(X, Y) for seed in seeds]
    trees = {tuple(model.tree_.label_of_leaf_) for model in models}
    assert len(trees) == len(seeds), "another seed, another tree"
    again = BOTH[1](random_state=np.uint64(2**64 - 1)).fit(X, Y)
    assert again.predict_topk(X) == models[-1].predict_topk(X)
    models[-1].save(tmp_path / "m")
    assert lt.load(tmp_path / "m").random_state == 2**64 - 1


def test_parameters_survive_saving(tmp_path: Any) -> None:
    X, Y = make_rows(n_labels=40)
    tree = lt.tree.LabelTree(level_sizes=[3, 8], random_state=5, n_jobs=1)
    model = lt.XRLinear(
        tree=tree, random_state=7, beam=np.array([2, 3]), post_processor=("l2-hinge",) * 3
    ).fit(X, Y)
    model.save(tmp_path / "m")
    again = lt.load(tmp_path / "m")
    assert again.get_params()["tree__random_state"] == 5
    assert again.get_params()["tree__n_jobs"] == 1
    assert (again.random_state, again.beam) == (7, [2, 3])
    assert again.predict_topk(X) == model.predict_topk(X)
    assert again.fit(X, Y).predict_topk(X) == model.predict_topk(X)


def test_deep_trees_are_saved_and_loaded(tmp_path: Any) -> None:
    """A caterpillar: every level splits off one label, as only a given hierarchy does."""
    X, Y = make_rows(n_labels=80)
    hierarchy: Any = [79]
    for label in reversed(range(79)):
        hierarchy = [label, hierarchy]
    model = lt.XRLinear(tree=lt.tree.LabelTree(kind="given", hierarchy=hierarchy)).fit(X, Y)
    assert len(model.layers_) > 64
    model.save(tmp_path / "m")
    assert lt.load(tmp_path / "m").predict_topk(X) == model.predict_topk(X)


def test_default_trees_grow_with_the_number_of_labels() -> None:
    before: list[int] = []
    for n in np.unique(np.geomspace(1, 3e7, 4000).astype(int)):
        tree = default_tree(int(n))
        sizes = list(tree.level_sizes or [])
        assert all(a < b for a, b in itertools.pairwise(sizes)), "levels ascend"
        fan_out = [b / a for a, b in zip([1, *sizes], sizes, strict=False)]
        assert all(children <= 64 for children in fan_out), (n, sizes)
        last, before_last = (sizes or [1])[-1], (before or [1])[-1]
        assert last >= before_last, "more labels, no fewer clusters"
        assert len(sizes) >= len(before), "more labels, no fewer levels"
        if sizes:
            assert 350 < n / last < 1400, "clusters of several hundred labels"
        before = sizes


def test_the_default_tree_of_a_small_problem_is_flat() -> None:
    X, Y = make_rows()
    assert len(lt.XRLinear().fit(X, Y).layers_) == 1
    X, Y = make_rows(n=1500, n_labels=1300)
    assert [layer.n_children for layer in lt.XRLinear().fit(X, Y).layers_] == [2, 1300]
