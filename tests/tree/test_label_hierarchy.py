from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from longtail.tree.hierarchy import (
    MAX_DEPTH,
    levels_of_parents,
    parents_of_hierarchy,
    parents_of_levels,
)


def levels(hierarchy, n_labels):
    child_ptr, labels = levels_of_parents(parents_of_hierarchy(hierarchy, n_labels), n_labels)
    return [ptr.tolist() for ptr in child_ptr], labels.tolist()


def groups(child_ptr, labels, level):
    """The sets of labels below the nodes of a level."""
    offsets = np.arange(child_ptr[level][-1] + 1)
    for ptr in child_ptr[level + 1 :]:
        offsets = np.asarray(ptr)[offsets]
    return {frozenset(labels[a:b]) for a, b in pairwise(offsets)}


def test_the_three_forms_agree():
    nested = [[0, 3], [1, 2]]
    parents = np.array([4, 5, 5, 4, -1, -1])
    chain = [
        sp.csr_matrix(np.ones((2, 1))),
        sp.csr_matrix([[1, 0], [0, 1], [0, 1], [1, 0]]),
    ]
    expected = ([[0, 2], [0, 2, 4]], [0, 3, 1, 2])
    assert levels(nested, 4) == expected
    assert levels(parents, 4) == expected
    assert levels(parents.tolist(), 4) == expected
    assert levels(chain, 4) == expected
    assert levels(chain[1:], 4) == expected


def test_labels_that_end_early_are_carried_down_as_only_children():
    child_ptr, labels = levels([[0, 1], [2, [3, 4]], 5], 6)
    assert child_ptr[0] == [0, 3]
    assert [len(ptr) - 1 for ptr in child_ptr] == [1, 3, 5]
    assert sorted(labels) == list(range(6))
    assert groups(child_ptr, labels, 0) == {frozenset(s) for s in ({0, 1}, {2, 3, 4}, {5})}
    assert groups(child_ptr, labels, 1) == {frozenset(s) for s in ({0}, {1}, {2}, {3, 4}, {5})}


def test_a_label_may_be_a_category_of_others():
    child_ptr, labels = levels([-1, 0, 0, 1], 4)  # 3 under 1, 1 and 2 under 0
    assert groups(child_ptr, labels, 0) == {frozenset(s) for s in ({0}, {2}, {1, 3})}
    assert sorted(labels) == [0, 1, 2, 3]


def test_nodes_without_labels_vanish_and_a_single_root_is_the_root():
    # 3 is the root; 4 below it has no labels, nor has 5 below 4; 6 is an only child of the root
    child_ptr, labels = levels([6, 6, 6, -1, 3, 4, 3], 3)
    assert child_ptr == [[0, 3]]
    assert labels == [0, 1, 2]


def test_one_label():
    assert levels([-1], 1) == ([[0, 1]], [0])
    assert levels([[[0]]], 1) == ([[0, 1]], [0])
    assert levels([[[0]], []], 1) == ([[0, 1]], [0])


@given(st.data())
def test_any_forest_keeps_its_groups_and_survives_the_way_back(data):
    n_labels = data.draw(st.integers(1, 12))
    n_nodes = n_labels + data.draw(st.integers(0, 8))
    # A parent of higher number, or the root: no cycles. Labels may be parents of labels.
    parents = [
        data.draw(
            st.one_of(st.just(-1), st.integers(i + 1, n_nodes - 1))
            if i + 1 < n_nodes
            else st.just(-1)
        )
        for i in range(n_nodes)
    ]
    child_ptr, labels = levels(parents, n_labels)
    assert sorted(labels) == list(range(n_labels))
    sizes = [1, *(ptr[-1] for ptr in child_ptr)]
    assert [len(ptr) - 1 for ptr in child_ptr] == sizes[:-1]
    assert all((np.diff(ptr) >= 1).all() for ptr in child_ptr)

    below = {node: set() for node in range(n_nodes)}
    for label in range(n_labels):
        node = label
        while node != -1:
            below[node].add(label)
            node = parents[node]
    found = set().union(*(groups(child_ptr, labels, t) for t in range(len(child_ptr))))
    wanted = {frozenset(members) for members in below.values() if members}
    # What the user drew is there (but for what holds all labels: the root), and nothing else but
    # single labels carried down.
    assert {g for g in wanted if len(g) < n_labels} <= found
    assert all(g in wanted or len(g) == 1 for g in found)

    again = levels_of_parents(
        parents_of_levels([np.array(p) for p in child_ptr], np.array(labels)), n_labels
    )
    assert [ptr.tolist() for ptr in again[0]] == child_ptr
    for level in range(len(child_ptr)):
        assert groups(again[0], again[1].tolist(), level) == groups(child_ptr, labels, level)


@pytest.mark.parametrize(
    "hierarchy, n_labels, error, message",
    [
        ([1, 0], 2, ValueError, "circle"),
        ([2, 2, 3, 2], 2, ValueError, "circle"),
        ([-1], 2, ValueError, "1 nodes"),
        ([-1, 7], 2, ValueError, "node 1 has parent 7"),
        ([-1, -5], 2, ValueError, "parent -5"),
        ([[0], [0, 1]], 2, ValueError, "label 0 twice"),
        ([[0], [2]], 2, ValueError, "label 2"),
        ([[0], []], 2, ValueError, "leaves out 1"),
        ([["a"], [0]], 1, TypeError, "'a'"),
        (np.eye(2), 2, TypeError, "parent array"),
        ("tree", 2, TypeError, "str"),
        ([sp.csr_matrix([[1, 1], [0, 1]])], 2, ValueError, "exactly one entry"),
        ([sp.eye(3, format="csr")], 2, ValueError, "3 rows"),
        ([sp.eye(3, format="csr"), sp.eye(2, format="csr")], 2, ValueError, "2 columns"),
        ([*range(1, MAX_DEPTH + 5), -1], 1, ValueError, "deeper"),
    ],
)
def test_refusals(hierarchy, n_labels, error, message):
    with pytest.raises(error, match=message):
        levels(hierarchy, n_labels)
