import numpy as np
import pytest
import scipy.sparse as sp
import tree_reference as reference
from hypothesis import given, settings
from hypothesis import strategies as st

import longtail as lt
from longtail.base import NotFittedError
from longtail.exceptions import ModelFormatError
from longtail.tree.clustering import cluster_order
from longtail.tree.shape import default_level_sizes, default_shape

KINDS = [
    {"leaf": 10, "branching": 4},
    {"level_sizes": [3, 7]},
    {"leaf": 1, "branching": 2},
    {"leaf": 1000},
    {"kind": "random", "leaf": 10},
    {"kind": "huffman", "branching": 3},
    {
        "kind": "given",
        "hierarchy": [list(range(60)), [list(range(60, 100)), list(range(100, 120))]],
    },
]


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = reference.random_rows(300, 80, 0.1, 0)
    Y = sp.random(300, 120, 0.02, format="csr", random_state=rng)
    Y.data[:] = 1
    return X, Y


@pytest.mark.parametrize("params", KINDS, ids=str)
def test_holds_every_label_once_and_repeats(problem, params):
    X, Y = problem
    tree = lt.tree.LabelTree(**params, n_jobs=1).fit(X, Y)
    assert tree.n_labels_ == tree.level_sizes_[-1] == 120
    assert sorted(tree.label_of_leaf_.tolist()) == list(range(120))
    assert (tree.label_of_leaf_[tree.leaf_of_label_] == np.arange(120)).all()
    assert tree.label_of_leaf_.dtype == tree.leaf_of_label_.dtype == np.int32
    for above, below, ptr in zip(
        [1, *tree.level_sizes_], tree.level_sizes_, tree.child_ptr_, strict=False
    ):
        assert ptr.dtype == np.int64
        assert len(ptr) == above + 1
        assert (ptr[0], ptr[-1]) == (0, below)
        assert (np.diff(ptr) >= 1).all()
    again = lt.tree.LabelTree(**params, n_jobs=3).fit(X, Y)
    assert np.array_equal(tree.label_of_leaf_, again.label_of_leaf_)


def test_the_default_tree_is_pifa_then_balanced_2_means(problem):
    X, Y = problem
    tree = lt.tree.LabelTree(leaf=10, branching=4, random_state=7).fit(X, Y)
    shape = default_shape(default_level_sizes(120, leaf=10, branching=4), 4)
    Z = sp.csr_matrix(reference.pifa(X, Y, True).astype(np.float32))
    assert tree.level_sizes_ == [4, 16, 120]
    order, counts = cluster_order(Z, shape, seed=7), Y.getnnz(axis=0)
    clusters = np.split(order, tree.child_ptr_[-1][1:-1])
    frequent_first = [
        sorted(cluster, key=lambda label: (-counts[label], label)) for cluster in clusters
    ]
    assert np.array_equal(tree.label_of_leaf_, np.concatenate(frequent_first))
    assert np.ptp(np.diff(tree.child_ptr_[-1])) <= 1
    plain = lt.tree.LabelTree(leaf=10, branching=4, random_state=7, normalize_label_rows=False).fit(
        X, Y
    )
    assert not np.array_equal(tree.label_of_leaf_, plain.label_of_leaf_)


def test_dense_and_sparse_features_give_the_same_tree(problem):
    X, Y = problem
    sparse, dense = (lt.tree.LabelTree(leaf=20).fit(features, Y) for features in (X, X.toarray()))
    assert np.array_equal(sparse.label_of_leaf_, dense.label_of_leaf_)


def test_label_text_features(problem):
    X, Y = problem
    topic = np.arange(120) % 2
    texts = sp.csr_matrix(np.eye(2)[topic] * 5.0)  # any length
    # Two seeds of one topic give equal scores, and labels part by number: another seed will do.
    tries = [
        lt.tree.LabelTree(level_sizes=[2], features="text", random_state=s).fit(None, Y, texts)
        for s in range(8)
    ]
    assert any(
        all(len(set(side)) == 1 for side in topic[t.label_of_leaf_].reshape(2, 60)) for t in tries
    )
    both = lt.tree.LabelTree(leaf=20, features="pifa+text").fit(X, Y, texts)
    only = lt.tree.LabelTree(leaf=20).fit(X, Y, texts)  # not asked for: not used
    assert not np.array_equal(both.label_of_leaf_, only.label_of_leaf_)
    assert np.array_equal(only.label_of_leaf_, lt.tree.LabelTree(leaf=20).fit(X, Y).label_of_leaf_)


def test_labels_without_positives_have_a_leaf():
    X = np.eye(4, dtype=np.float32)
    Y = sp.csr_matrix(([1.0], ([0], [1])), shape=(4, 50))
    for kind in ("kmeans", "random", "huffman"):
        tree = lt.tree.LabelTree(kind=kind, leaf=4, branching=3).fit(X, Y)
        assert sorted(tree.label_of_leaf_.tolist()) == list(range(50))
    nobody = lt.tree.LabelTree(leaf=4).fit(X, sp.csr_matrix((4, 50)))
    assert nobody.label_of_leaf_.tolist() == list(range(50))  # all alike: by number


@pytest.mark.parametrize("kind", ["kmeans", "random", "huffman"])
@pytest.mark.parametrize("n_labels", [1, 2, 3])
def test_few_labels(kind, n_labels):
    Y = np.ones((1, n_labels))
    for leaf in (1, 2, 100):
        tree = lt.tree.LabelTree(kind=kind, leaf=leaf, branching=2).fit([[1.0]], Y)
        assert sorted(tree.label_of_leaf_.tolist()) == list(range(n_labels))
        assert tree.level_sizes_[0] >= min(n_labels, 2)
    assert lt.tree.LabelTree(kind=kind).fit([[1.0]], np.ones((1, 1))).level_sizes_ == [1]


@pytest.mark.parametrize("params", KINDS, ids=str)
@pytest.mark.parametrize("value", ["one", "sum", "max"])
def test_node_labels_are_a_product(problem, params, value):
    X, Y = problem
    tree = lt.tree.LabelTree(**params).fit(X, Y)
    soft = Y.copy().astype(np.float32)
    soft.data = np.random.default_rng(1).integers(1, 5, soft.nnz).astype(np.float32) / 4
    for level, size in enumerate(tree.level_sizes_):
        got = tree.node_labels(soft, level, value=value)
        assert got.has_canonical_format
        assert got.dtype == np.float32
        assert got.shape == (300, size)
        indicator = sp.csr_matrix(
            (np.ones(120), (np.arange(120), tree.ancestors(level))), (120, size)
        )
        if value == "sum":
            expected = (soft @ indicator).toarray()
        else:
            columns = [
                soft[:, tree.ancestors(level) == node].toarray().max(axis=1) for node in range(size)
            ]
            expected = np.stack(columns, axis=1)
            expected = (expected > 0) if value == "one" else expected
        np.testing.assert_array_equal(got.toarray(), expected)


def test_node_labels_follow_the_child_ranges(problem):
    X, Y = problem
    tree = lt.tree.LabelTree(leaf=10, branching=4).fit(X, Y)
    last = tree.node_labels(Y, -1)
    assert np.array_equal(last.toarray(), Y.toarray()[:, tree.label_of_leaf_])
    for level in range(len(tree.level_sizes_) - 1):
        below = tree.node_labels(Y, level + 1, value="sum").toarray()
        ptr = tree.child_ptr_[level + 1]
        assert np.array_equal(
            np.add.reduceat(below, ptr[:-1], axis=1),
            tree.node_labels(Y, level, value="sum").toarray(),
        )


@given(st.lists(st.lists(st.integers(0, 11), max_size=12), max_size=20), st.integers(1, 4))
@settings(max_examples=40)
def test_node_labels_of_any_rows(rows, threads):
    tree = lt.tree.LabelTree(kind="random", level_sizes=[2, 5], n_jobs=threads).fit(
        None, np.ones((1, 12))
    )
    Y = sp.csr_matrix((len(rows), 12), dtype=np.float32).tolil()
    for i, labels in enumerate(rows):
        Y[i, labels] = 1
    for level in range(3):
        got = tree.node_labels(Y.tocsr(), level).toarray()
        for i, labels in enumerate(rows):
            assert set(np.flatnonzero(got[i])) == set(tree.ancestors(level)[labels])


@pytest.mark.parametrize("params", KINDS, ids=str)
def test_state_round_trip(problem, params):
    X, Y = problem
    tree = lt.tree.LabelTree(**params).fit(X, Y)
    _check_same(lt.tree.LabelTree._from_state(tree._get_state()), tree)


@pytest.mark.parametrize("params", KINDS, ids=str)
def test_saved_and_loaded(problem, params, tmp_path):
    tree = lt.tree.LabelTree(**params).fit(*problem)
    tree.save(tmp_path / "tree")
    _check_same(lt.load(tmp_path / "tree"), tree)


def _check_same(loaded, tree):
    assert loaded.level_sizes_ == tree.level_sizes_
    assert np.array_equal(loaded.label_of_leaf_, tree.label_of_leaf_)
    assert np.array_equal(loaded.leaf_of_label_, tree.leaf_of_label_)
    assert all(
        np.array_equal(a, b) for a, b in zip(loaded.child_ptr_, tree.child_ptr_, strict=True)
    )
    if tree.kind == "given":  # the hierarchy itself is found again in the tree
        again = lt.tree.LabelTree(kind="given", hierarchy=loaded.hierarchy).fit(
            None, np.ones((1, 120))
        )
        assert again.level_sizes_ == tree.level_sizes_


@pytest.mark.parametrize(
    "name, change, message",
    [
        ("label_of_leaf", lambda a: a * 0, "every label"),
        ("label_of_leaf", lambda a: a[:-1], "label ids"),
        ("label_of_leaf", lambda a: a.astype(np.int64), "int32"),
        ("child_ptr_0", lambda a: a + 1, "child_ptr_0"),
        ("child_ptr_1", lambda a: a[::-1].copy(), "child_ptr_1"),
        ("child_ptr_1", lambda a: np.where(a == a[1], a[2], a), "without children"),
        ("child_ptr_2", lambda a: a * 1000, "label ids"),
    ],
)
def test_altered_state_is_refused(problem, name, change, message):
    state = lt.tree.LabelTree(leaf=10, branching=4).fit(*problem)._get_state()
    state.arrays[name] = change(state.arrays[name])
    with pytest.raises(ModelFormatError, match=message):
        lt.tree.LabelTree._from_state(state)


def test_generators_are_not_saved(problem):
    tree = lt.tree.LabelTree(random_state=np.random.default_rng(0), leaf=10).fit(*problem)
    assert tree._get_state().params["random_state"] is None


@pytest.mark.parametrize(
    "params, error, message",
    [
        ({"kind": "oak"}, ValueError, "kind"),
        ({"features": "sound"}, ValueError, "features"),
        ({"features": "text"}, ValueError, "label_features"),
        ({"kind": "given"}, ValueError, "hierarchy"),
        ({"level_sizes": [7, 3]}, ValueError, "ascend"),
        ({"level_sizes": [121]}, ValueError, "121 clusters of 120"),
        ({"level_sizes": [0]}, ValueError, "level_sizes"),
        ({"level_sizes": [2.5]}, TypeError, "level_sizes"),
        ({"leaf": 0}, ValueError, "leaf"),
        ({"branching": 1, "leaf": 10}, ValueError, "branching"),
        ({"kind": "huffman", "branching": 1}, ValueError, "branching"),
        ({"max_iter": 0, "leaf": 10}, ValueError, "max_iter"),
        ({"n_jobs": 0, "leaf": 10}, ValueError, "n_jobs"),
        ({"random_state": -1, "leaf": 10}, ValueError, "random_state"),
    ],
)
def test_refusals(problem, params, error, message):
    tree = lt.tree.LabelTree(**params)
    with pytest.raises(error, match=message):
        tree.fit(*problem)
    with pytest.raises(NotFittedError):
        tree.ancestors(0)


def test_refusals_of_data(problem):
    X, Y = problem
    with pytest.raises(ValueError, match="needs X"):
        lt.tree.LabelTree().fit(None, Y)
    with pytest.raises(ValueError, match="rows"):
        lt.tree.LabelTree().fit(X[:5], Y)
    with pytest.raises(ValueError, match="no labels"):
        lt.tree.LabelTree().fit(X, sp.csr_matrix((300, 0)))
    with pytest.raises(ValueError, match="3 rows for 120 labels"):
        lt.tree.LabelTree(features="text").fit(X, Y, np.eye(3))
    tree = lt.tree.LabelTree().fit(X, Y)
    with pytest.raises(IndexError, match="level 3"):
        tree.node_labels(Y, 3)
    with pytest.raises(ValueError, match="value"):
        tree.node_labels(Y, 0, value="mean")
    with pytest.raises(ValueError, match="labels"):
        tree.node_labels(Y[:, :10], 0)
