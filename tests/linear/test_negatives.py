"""Which rows a node trains on, and what its positives weigh."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from linear_cases import make_rows

import longtail as lt
from longtail.linear import xr_linear
from longtail.linear.train.level import LevelProblem
from longtail.linear.train.negatives import parent_rows
from longtail.linear.train.parts import TrainingLevel


class Spy:
    """Records the problems that ``fit`` hands to the solver."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.problems: list[LevelProblem] = []
        train = xr_linear.train_levels

        def record(X: Any, levels: list[TrainingLevel], *args: Any, **kwargs: Any) -> Any:
            self.problems += [level.problem for level in levels]
            return train(X, levels, *args, **kwargs)

        monkeypatch.setattr(xr_linear, "train_levels", record)


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    return Spy(monkeypatch)


def fitted(X: Any, Y: Any, *, extra_rows: Any = None, **params: Any) -> lt.XRLinear:
    model = lt.XRLinear(tree=lt.tree.LabelTree(level_sizes=[3, 8]), beam=2, **params)
    return model.fit(X, Y, extra_rows=extra_rows)


def support(matrix: sp.spmatrix) -> np.ndarray:
    return matrix.toarray() != 0


def test_teacher_forcing_sees_the_rows_of_the_parent(spy: Spy) -> None:
    X, Y = make_rows(n_labels=40, unlabelled=10)
    model = fitted(X, Y)
    assert support(spy.problems[0].parents).all(), "the root sees every row"
    for t in (1, 2):
        expected = support(model.tree_.node_labels(Y, t - 1))
        np.testing.assert_array_equal(support(spy.problems[t].parents), expected)


def beams(model: lt.XRLinear, X: Any, level: int) -> np.ndarray:
    """Which nodes of a level each row's beam keeps, by searching the layers down to it."""
    upper = lt.XRLinear(beam=2)
    upper.tree_ = model.tree_
    upper.n_features_in_, upper.n_labels_ = X.shape[1], model.tree_.level_sizes_[level]
    upper._set_layers(model.layers_[: level + 1], np.arange(upper.n_labels_, dtype=np.int32))
    return support(upper.predict_topk(X, k=2).to_csr(binary=True))


@pytest.mark.parametrize("scheme", ["man", "tfn+man"])
def test_matcher_aware_negatives_are_the_beam(spy: Spy, scheme: str) -> None:
    X, Y = make_rows(n_labels=40, unlabelled=10)
    model = fitted(X, Y, negatives=scheme)
    for t in (1, 2):
        problem = spy.problems[t]
        rows = support(problem.parents)
        positives = support(model.tree_.node_labels(Y, t - 1))
        assert rows[positives].all(), "positives are never dropped"
        reached = beams(model, X, t - 1)
        assert reached.sum(axis=1).max() == 2
        np.testing.assert_array_equal(rows, positives | reached)
        assert (rows & ~positives).any(), "the beam adds rows"
        assert (rows & ~reached).any(), "the beam misses rows"
        if scheme == "tfn+man":
            assert problem.parent_weight is None, "every row is a negative of what it does not have"
        else:
            columns = np.repeat(np.arange(rows.shape[1]), np.diff(problem.parents.indptr))
            expected = reached[problem.parents.indices, columns]
            np.testing.assert_array_equal(problem.parent_weight, expected)


@pytest.mark.parametrize("solver", ["dual", "newton"])
@pytest.mark.parametrize("scheme", ["tfn", "man", "tfn+man"])
def test_every_node_is_the_optimum_of_its_instances(scheme: str, solver: str) -> None:
    """The instances of a node l below c: the beam's rows of c, the positives of c, or both, and the
    positives of l. At the optimum w = 2 C sum_i y_i max(0, 1 - y_i w.x_i) x_i over those rows.
    """
    X, Y = make_rows(n_labels=40, unlabelled=10)
    tight: Any = {"tolerance": 1e-5, "max_iter": 10_000, "threshold": 0.0, "solver": solver}
    model = fitted(X, Y, negatives=scheme, **tight)
    rows = np.hstack([X.toarray(), np.ones((X.shape[0], 1))]).astype(np.float64)
    errors = dict.fromkeys(("tfn", "man", "tfn+man"), 0.0)
    for t in (1, 2):
        weights = model.layers_[t].to_csr(X.shape[1]).toarray().astype(np.float64)
        of_node = support(model.tree_.node_labels(Y, t))
        of_parent, reached = support(model.tree_.node_labels(Y, t - 1)), beams(model, X, t - 1)
        child_ptr = model.tree_.child_ptr_[t]
        parent_of = np.repeat(np.arange(len(child_ptr) - 1), np.diff(child_ptr))
        for node, parent in enumerate(parent_of):
            matched = {"tfn": of_parent[:, parent], "man": reached[:, parent]}
            matched["tfn+man"] = matched["tfn"] | matched["man"]
            y, w = np.where(of_node[:, node], 1.0, -1.0), weights[node]
            slack = y * np.maximum(0, 1 - y * (rows @ w))
            for name, instances in matched.items():
                used = instances | of_node[:, node]
                gradient = w - 2 * model.C * rows[used].T @ slack[used]
                errors[name] = max(errors[name], float(np.abs(gradient).max()))
    assert errors.pop(scheme) < 0.01
    assert min(errors.values()) > 0.05, "the other schemes have other optima"


def test_man_and_both_differ() -> None:
    X, Y = make_rows(n_labels=40, unlabelled=10)
    man, both = (fitted(X, Y, negatives=scheme) for scheme in ("man", "tfn+man"))
    unlike = [
        (a.to_csr(30) != b.to_csr(30)).nnz for a, b in zip(man.layers_, both.layers_, strict=True)
    ]
    assert unlike[0] == 0 and unlike[1] > 0


@pytest.mark.parametrize("threads", [1, 3])
def test_parts_and_weights_train_the_same_model(threads: int, tmp_path: Any) -> None:
    X, Y = make_rows(n_labels=40, unlabelled=10)
    expected = fitted(X, Y, negatives="man", n_jobs=1)
    model = lt.XRLinear(
        tree=lt.tree.LabelTree(level_sizes=[3, 8]), beam=2, negatives="man", n_jobs=threads
    )
    weight = np.ones(X.shape[0])
    model.fit(X, Y, checkpoint=tmp_path / "parts", sample_weight=weight)
    for a, b in zip(expected.layers_, model.layers_, strict=True):
        assert (a.to_csr(30) != b.to_csr(30)).nnz == 0


def test_extra_rows_are_negatives_under_man() -> None:
    """A row that the user supplies is one of every child, whether or not the beam has it."""
    positives = sp.csc_matrix(np.array([[1, 0], [1, 0], [0, 1]], np.float32))
    extra = sp.csc_matrix(np.array([[0, 0], [-2, 0], [0.5, 0]], np.float32))
    reached = lt.TopK.from_ranking([[1], [1], [1]], n_labels=2)
    rows, weight = parent_rows("man", positives, reached, extra)
    assert rows.indices.tolist() == [0, 1, 2, 0, 1, 2] and rows.indptr.tolist() == [0, 3, 6]
    assert weight is not None and weight.tolist() == [0, 1, 1, 1, 1, 1]
    _, weight = parent_rows("tfn+man", positives, reached, extra)
    assert weight is None


def test_extra_rows_come_on_top(spy: Spy) -> None:
    X, Y = make_rows(n_labels=40)
    plain = fitted(X, Y)
    outside = ~support(plain.tree_.node_labels(Y, 0))[:, plain.tree_.ancestors(0)[7]]
    assert outside.sum() > 10
    extra = np.zeros(Y.shape, np.float32)
    extra[outside, 7] = -3.0  # any value that is not zero
    model = fitted(X, Y, extra_rows=sp.csc_matrix(extra))
    for t in (1, 2):
        node = model.tree_.ancestors(t - 1)[7]
        before, after = (support(spy.problems[i].parents) for i in (t, 3 + t))
        assert not before[outside, node].any() and after[outside, node].all()
        before[outside, node] = True
        np.testing.assert_array_equal(after, before)
    unlike = [
        (a.to_csr(30) != b.to_csr(30)).nnz
        for a, b in zip(plain.layers_, model.layers_, strict=True)
    ]
    assert unlike[0] == 0 and sum(unlike[1:]) > 0, "the problems below the root have changed"


@pytest.mark.parametrize("leaf", [5, 1000])
def test_extra_rows_of_another_shape_are_refused(leaf: int) -> None:
    X, Y = make_rows()
    model = lt.XRLinear(tree=lt.tree.LabelTree(leaf=leaf))
    for rows in (Y[:-1], Y[:, :-1], sp.csr_matrix((1, 1))):
        with pytest.raises(ValueError, match=r"extra_rows must have the shape of Y, \(120, 24\)"):
            model.fit(X, Y, extra_rows=rows)
    with pytest.raises(ValueError, match="extra_rows holds NaN"):
        model.fit(X, Y, extra_rows=np.full(Y.shape, np.nan))


def test_a_scheme_and_a_cost_for_every_level(tmp_path: Any) -> None:
    """Each level is as in a model that has its scheme, or its cost, everywhere."""
    X, Y = make_rows(n_labels=40, unlabelled=10)
    each = fitted(X, Y, negatives=["tfn", "tfn+man"], C=[0.25, 0.25, 2.0])
    low, high = (fitted(X, Y, C=C) for C in (0.25, 2.0))
    for t in (0, 1):
        assert (each.layers_[t].to_csr(30) != low.layers_[t].to_csr(30)).nnz == 0
    assert (each.layers_[2].to_csr(30) != high.layers_[2].to_csr(30)).nnz > 0  # other negatives
    plain = fitted(X, Y, C=np.array([0.25, 0.25, 2.0]))
    assert (plain.layers_[2].to_csr(30) != high.layers_[2].to_csr(30)).nnz == 0
    each.save(tmp_path / "m")
    plain.save(tmp_path / "p")
    loaded = lt.load(tmp_path / "m")
    assert loaded.negatives == ["tfn", "tfn+man"] and loaded.C == [0.25, 0.25, 2.0]
    new = Y[:, :1]
    grown = loaded.add_labels(X, new, Y_old=Y)
    assert grown.n_labels_ == 41 and len(grown.predict_topk(X[:2], k=3)) == 2


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"negatives": ["tfn"]}, "negatives names 1 levels, but the tree has 2 below"),
        ({"negatives": ["tfn", "all"]}, "must be one of tfn, man, tfn.man, got 'all'"),
        ({"C": [1.0, 1.0]}, "C names 2 levels, but the tree has 3"),
        ({"C": [1.0, 0.0, 1.0]}, "C must be positive"),
    ],
    ids=repr,
)
def test_other_numbers_of_levels(params: dict[str, Any], message: str) -> None:
    X, Y = make_rows(n_labels=40)
    with pytest.raises(ValueError, match=message):
        fitted(X, Y, **params)


def test_unknown_scheme() -> None:
    with pytest.raises(ValueError, match="negatives must be one of tfn, man"):
        parent_rows("all", sp.csc_matrix((1, 1)), None, None)


def test_relevance_of_the_exact_case(spy: Spy) -> None:
    """Labels {0, 1, 5} under the pairs (0,1), (2,3), (4,5): R = (2, 0, 1), Rhat = (2/3, ., 1/3)."""
    tree = lt.tree.LabelTree(kind="given", hierarchy=[[0, 1], [2, 3], [4, 5]])
    Y = sp.csr_matrix([[1, 1, 0, 0, 0, 1], [0, 0, 1, 0, 0, 0]], dtype=np.float32)
    for weights, first in [("counts", [2.0, 1.0]), ("normalized", [2 / 3, 1 / 3])]:
        spy.problems.clear()
        lt.XRLinear(tree=tree, cost_weights=weights).fit(np.eye(2), Y)
        problem = spy.problems[0]
        relevance = sp.csc_matrix(
            (problem.relevance, problem.positives.indices, problem.positives.indptr), shape=(2, 3)
        ).toarray()
        np.testing.assert_allclose(relevance, [[first[0], 0, first[1]], [0, 1, 0]], rtol=1e-6)
        assert (problem.negative_cost == 0.5).all()
        assert (problem.positives.data == 1).all(), "an inner node is positive or not"
    last = spy.problems[1]
    np.testing.assert_allclose(np.sort(last.relevance), [1 / 3, 1 / 3, 1 / 3, 1], rtol=1e-6)


def test_cost_weights_multiply_the_cost_of_positives() -> None:
    """One level, every row with two labels: normalised weights are 1/2, as positive_weight=1/2."""
    X, _ = make_rows()
    Y = sp.csr_matrix(np.eye(24)[np.arange(120) % 24] + np.eye(24)[(np.arange(120) + 1) % 24])
    tree = lt.tree.LabelTree(leaf=1000)
    tight: Any = {"tree": tree, "tolerance": 1e-4, "max_iter": 10_000, "threshold": 0.0}
    half = lt.XRLinear(positive_weight=0.5, **tight).fit(X, Y)
    weighted = lt.XRLinear(cost_weights="normalized", **tight).fit(X, Y)
    for a, b in zip(half.layers_, weighted.layers_, strict=True):
        assert abs(a.to_csr(30) - b.to_csr(30)).max() < 1e-3
    counted = lt.XRLinear(cost_weights="counts", **tight).fit(X, Y)
    plain = lt.XRLinear(**tight).fit(X, Y)
    assert abs(counted.layers_[0].to_csr(30) - plain.layers_[0].to_csr(30)).max() < 1e-3


def test_soft_labels_are_weighed_once() -> None:
    """For hinges a label value of 1/2 is a positive that costs half, with counts as without."""
    X, Y = make_rows()
    tight: Any = {"tolerance": 1e-4, "max_iter": 10_000, "threshold": 0.0}
    tree = lt.tree.LabelTree(leaf=1000)
    half = lt.XRLinear(tree=tree, positive_weight=0.5, **tight).fit(X, Y).layers_[0].to_csr(30)
    for weights in (None, "counts"):
        soft = lt.XRLinear(tree=tree, cost_weights=weights, **tight).fit(X, Y * 0.5)
        assert abs(soft.layers_[0].to_csr(30) - half).max() < 1e-3
