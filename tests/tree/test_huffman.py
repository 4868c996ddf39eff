import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.tree.hierarchy import levels_of_parents
from longtail.tree.huffman import huffman_parents


def depths(parents, n_labels):
    out = []
    for node in range(n_labels):
        depth = 0
        while parents[node] != -1:
            node, depth = parents[node], depth + 1
        out.append(depth)
    return np.array(out)


def test_the_textbook_code():
    weights = [45, 13, 12, 16, 9, 5]
    assert depths(huffman_parents(weights), 6).tolist() == [1, 3, 3, 3, 4, 4]


def best_cost(weights, branching):
    """The least cost over all code lengths that a tree of this branching can have (Kraft)."""
    n = len(weights)
    return min(
        float(np.dot(lengths, weights))
        for lengths in itertools.product(range(1, n), repeat=n)
        if sum(branching**-length for length in map(float, lengths)) <= 1 + 1e-12
    )


@pytest.mark.parametrize("branching", [2, 3])
@given(st.lists(st.integers(0, 20), min_size=3, max_size=5))
@settings(max_examples=25, deadline=None)
def test_no_tree_costs_less(branching, weights):
    cost = float(np.dot(depths(huffman_parents(weights, branching), len(weights)), weights))
    assert cost == best_cost(weights, branching)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60), st.integers(2, 7))
def test_is_a_full_tree_over_all_labels(weights, branching):
    n = len(weights)
    parents = huffman_parents(weights, branching)
    children = np.bincount(parents[parents >= 0], minlength=len(parents))
    assert (children[:n] == 0).all()
    inner = children[n:]
    assert (inner <= branching).all()
    assert (inner >= 2).all()
    assert (inner != branching).sum() <= 1  # one join makes the numbers come out
    child_ptr, labels = levels_of_parents(parents, n)
    assert sorted(labels.tolist()) == list(range(n))
    assert child_ptr[-1][-1] == n


def test_equal_weights_give_a_flat_tree():
    assert set(depths(huffman_parents(np.zeros(64)), 64)) == {6}
    assert set(depths(huffman_parents(np.ones(81), 3), 81)) == {4}
