import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.tree.shape import balanced_shape, default_level_sizes, default_shape, leaf_offsets

PUBLISHED = {  # labels: clusters per level with branching 16 and 32, leaf 100
    3_956: ([4, 64], [2, 64]),
    30_938: ([2, 32, 512], [16, 512]),
    13_330: ([16, 256], [8, 256]),
    501_070: ([2, 32, 512, 8192], [8, 256, 8192]),
    670_091: ([2, 32, 512, 8192], [8, 256, 8192]),
    2_812_281: ([8, 128, 2048, 32768], [32, 1024, 32768]),
}


@pytest.mark.parametrize("n_labels", PUBLISHED)
def test_sizes_of_the_published_trees(n_labels):
    for branching, clusters in zip((16, 32), PUBLISHED[n_labels], strict=True):
        sizes = default_level_sizes(n_labels, leaf=100, branching=branching)
        assert sizes == [*clusters, n_labels]
        shape = default_shape(sizes, branching)
        assert [ptr[-1] for ptr in shape.child_ptr] == sizes
        assert set(np.diff(shape.child_ptr[-1])) <= {n_labels // clusters[-1] + i for i in (0, 1)}


@pytest.mark.parametrize(
    "n_labels, options, sizes",
    [
        (1, {}, [1]),
        (100, {}, [100]),  # leaf >= labels: only the root above them
        (101, {}, [2, 101]),
        (2, {"leaf": 1}, [2]),
        (3, {"leaf": 1, "branching": 2}, [2, 3]),
        (64, {"leaf": 4, "branching": 2}, [2, 4, 8, 16, 64]),
        (64, {"leaf": 4, "branching": 2, "min_codes": 8}, [8, 16, 64]),
        (64, {"leaf": 4, "branching": 4, "min_codes": 1}, [4, 16, 64]),  # no level of one node
        (1000, {"leaf": 10, "branching": 3}, [2, 5, 15, 43, 128, 1000]),
    ],
)
def test_sizes(n_labels, options, sizes):
    assert default_level_sizes(n_labels, **options) == sizes


@given(st.integers(1, 3000), st.integers(1, 200), st.integers(2, 20))
def test_default_shape_is_a_tree(n_labels, leaf, branching):
    sizes = default_level_sizes(n_labels, leaf=leaf, branching=branching)
    shape = default_shape(sizes, branching)
    _check_tree(shape.child_ptr, sizes)
    last = np.diff(shape.child_ptr[-1])
    if len(sizes) > 1:
        assert last.max() - last.min() <= 1
        assert last.max() <= max(leaf, branching)
    for ptr in shape.child_ptr[:-1]:
        assert np.diff(ptr).max() <= branching
    _check_splits(shape, n_labels)


@given(st.data())
def test_balanced_shape_is_a_tree_of_any_sizes(data):
    n_labels = data.draw(st.integers(1, 500))
    clusters = data.draw(st.sets(st.integers(1, n_labels), max_size=4).map(sorted))
    shape = balanced_shape([*clusters, n_labels])
    _check_tree(shape.child_ptr, [*clusters, n_labels])
    for ptr in shape.child_ptr[1:]:
        assert np.ptp(np.diff(ptr)) <= 1
    _check_splits(shape, n_labels)


def test_halving_leaves_the_smaller_half_on_the_left():
    shape = balanced_shape([8, 11])
    assert shape.child_ptr[-1].tolist() == [0, 1, 2, 3, 5, 6, 8, 9, 11]
    assert shape.round_ptr.tolist() == [0, 1, 3, 7]
    assert shape.splits[0].tolist() == [0, 5, 11]


def test_leaf_offsets_compose_the_levels():
    shape = default_shape(default_level_sizes(1000, leaf=10, branching=4), 4)
    for level, size in enumerate([2, 8, 32, 128, 1000]):
        offsets = leaf_offsets(shape.child_ptr, level)
        assert len(offsets) == size + 1
        assert offsets[0] == 0
        assert offsets[-1] == 1000
        assert (np.diff(offsets) > 0).all()


@pytest.mark.parametrize("name, value", [("leaf", 0), ("branching", 1), ("min_codes", 0)])
def test_nonsense_is_refused(name, value):
    with pytest.raises(ValueError, match=name):
        default_level_sizes(100, **{name: value})


def _check_tree(child_ptr, sizes):
    for above, below, ptr in zip([1, *sizes], sizes, child_ptr, strict=False):
        assert len(ptr) == above + 1
        assert ptr[0] == 0
        assert ptr[-1] == below
        assert (np.diff(ptr) > 0).all()


def _check_splits(shape, n_labels):
    """Carried out, the splits end with exactly the boundaries of the last clusters."""
    cuts = {0, n_labels}
    for first, last in zip(shape.round_ptr, shape.round_ptr[1:], strict=False):
        for begin, cut, end in shape.splits[first:last].tolist():
            assert begin in cuts
            assert end in cuts
            assert begin < cut < end
        cuts |= set(shape.splits[first:last, 1].tolist())
    if len(shape.child_ptr) > 1:
        assert sorted(cuts) == shape.child_ptr[-1].tolist()
