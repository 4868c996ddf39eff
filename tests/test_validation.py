"""The door: one canonical form for whatever comes in, without a copy where none is needed."""

from __future__ import annotations

import pickle
import weakref

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import longtail as lt
from longtail import _csr, _validation
from longtail._blocks import BlockRows
from longtail._csr import csr
from longtail._native import n_threads
from longtail._validation import as_features, as_k, as_labels, as_seed, as_width, let_pass

small = hnp.arrays(
    np.float32,
    hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=6),
    elements=st.sampled_from([0, 0, 0, 1, -2.5, 7, 0.125]),
)


@given(dense=small)
@settings(max_examples=100, deadline=None)
def test_sparse_features_become_canonical(dense: np.ndarray) -> None:
    for make in (sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.coo_matrix, sp.lil_matrix):
        for dtype in (np.float32, np.float64, np.longdouble):
            X = as_features(make(dense.astype(dtype)))
            assert type(X) is sp.csr_matrix and X.dtype == np.float32
            assert X.has_canonical_format
            np.testing.assert_array_equal(X.toarray(), dense)


def test_canonical_input_is_not_copied() -> None:
    X = sp.random(5, 4, 0.5, "csr", np.float32, np.random.default_rng(0))
    assert as_features(X) is X
    array = sp.csr_array(X)
    assert np.shares_memory(as_features(array).data, array.data)
    dense = np.ones((3, 2), np.float32)
    assert as_features(dense) is dense


@pytest.mark.parametrize("types", [(np.int64, np.int64), (np.int64, np.int32)])
def test_columns_and_offsets_are_narrow(types: tuple[type, type]) -> None:
    X = sp.random(5, 4, 0.5, "csr", np.float32, np.random.default_rng(0))
    wide = X.copy()
    wide.indptr, wide.indices = X.indptr.astype(types[0]), X.indices.astype(types[1])
    for matrix in (as_features(wide), as_labels(abs(wide) / 10), as_labels([[0, 2], [1]])):
        assert matrix.indptr.dtype == matrix.indices.dtype == np.int32
    assert (as_features(wide) != X).nnz == 0
    assert np.shares_memory(as_features(wide).data, wide.data)
    assert wide.indptr.dtype == types[0] and wide.indices.dtype == types[1]


def test_offsets_that_int32_cannot_count_stay_wide() -> None:
    empty = np.zeros(0, np.int32)
    rows = csr(np.array([0, 2**31]), empty, empty.astype(np.float32), 1)  # claims, holds nothing
    assert rows.indptr.dtype == np.int64 and rows.indptr[-1] == 2**31


@pytest.mark.parametrize("known", [True, False])
def test_matrices_around_arrays_are_like_those_of_scipy(
    monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """Also where a SciPy keeps a matrix in another way than those of today."""
    if known and not _csr._KNOWN:
        pytest.skip("this SciPy does")
    monkeypatch.setattr(_csr, "_KNOWN", known)
    X = sp.random(5, 4, 0.5, "csr", np.float32, np.random.default_rng(0))
    assert X.has_canonical_format
    rows = csr(X.indptr, X.indices, X.data, 4)
    assert vars(rows).keys() == vars(X).keys() and rows.shape == X.shape and rows.nnz == X.nnz
    assert rows.indices is X.indices and rows.data is X.data
    for made in (
        rows,
        pickle.loads(pickle.dumps(rows)),
        rows.copy(),
        sp.vstack([rows[:2], rows[2:]]),
    ):
        assert (made != X).nnz == 0 and made.dtype == np.float32
    assert ((rows.T @ rows) != (X.T @ X)).nnz == 0 and (rows + rows != 2 * X).nnz == 0
    assert csr(X.indptr, X.indices, X.data, 9).shape == (5, 9)


def looking_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_validation, "_is_ready", lambda X: False)
    monkeypatch.setattr(_validation, "_matrix", None)


@pytest.mark.parametrize("kind", ["sparse", "dense", "blocks"])
def test_what_has_come_through_is_not_looked_at_again(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    X = sp.random(5, 4, 0.5, "csr", np.float32, np.random.default_rng(0))
    given = {"sparse": X, "dense": X.toarray(), "blocks": BlockRows(X, X.toarray())}[kind]
    passed = let_pass(as_features(given, blocks=True))
    assert let_pass(passed) is passed and passed is not given
    with pytest.raises(ValueError, match="features, but the model was fitted with 7"):
        as_features(passed, blocks=True, n_features=7)
    looking_is_an_error(monkeypatch)
    assert as_features(passed, blocks=True) is passed
    with pytest.raises(TypeError, match="NoneType"):
        as_features(given, blocks=True)
    with pytest.raises(TypeError, match="NoneType"):
        as_labels(passed)  # only labels are labels


def test_what_a_kernel_has_just_made_is_marked_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    X = sp.random(5, 4, 0.5, "csr", np.float32, np.random.default_rng(0))
    assert let_pass(X, own=True) is X and let_pass(X) is X
    looking_is_an_error(monkeypatch)
    assert as_features(X) is X


def test_labels_that_have_come_through_are_not_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Y = let_pass(as_labels([[0, 2], [1]]), labels=True)
    looking_is_an_error(monkeypatch)
    assert as_labels(Y, n_rows=2, n_labels=3) is Y and as_features(Y) is Y
    with pytest.raises(ValueError, match="Y has 2"):
        as_labels(Y, n_rows=3)
    with pytest.raises(ValueError, match="Y has 3 labels, expected 4"):
        as_labels(Y, n_labels=4)


def test_rows_of_another_kind_pass_as_they_are() -> None:
    texts = ["a", "b"]
    assert let_pass(texts) is texts and let_pass(None) is None
    with pytest.raises(ValueError, match="X must have two dimensions, got 0"):
        as_features(None)


def test_one_look_at_the_rows_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    look, glance = _validation._matrix, _validation._is_ready

    def glanced(values: object) -> bool:
        looks.append("X")
        return glance(values)

    def counted(values: object, name: str, hint: str) -> object:
        looks.append(name)
        return look(values, name, hint)

    monkeypatch.setattr(_validation, "_matrix", counted)
    monkeypatch.setattr(_validation, "_is_ready", glanced)
    data = lt.data.make_longtail(n=200, d=50, L=20, n_test=20, random_state=0)
    trees = lt.Ensemble(models=[lt.XRLinear(random_state=seed) for seed in range(3)])
    for model in (trees, lt.DECLARE(n_components=4)):
        looks.clear()
        model.fit(data.train.X, data.train.Y)
        assert sorted(looks) == ["X", "Y"]
        looks.clear()
        model.predict_topk(data.test.X, k=3)
        assert looks == ["X"]


def test_rows_that_the_caller_changes_are_looked_at_again() -> None:
    data = lt.data.make_longtail(n=200, d=50, L=20, n_test=20, random_state=0)
    X = data.train.X.copy()
    model = lt.OneVsAll().fit(X, data.train.Y)
    X.data[0] = np.nan
    for use in (lambda: model.predict_topk(X), lambda: model.fit(X, data.train.Y)):
        with pytest.raises(ValueError, match="X holds NaN"):
            use()
    Y = sp.csr_matrix(np.eye(3, dtype=np.float32))
    assert as_labels(Y) is Y


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array, sp.csc_matrix])
def test_a_matrix_that_lies_about_its_format(make: type) -> None:
    """Unsorted columns and duplicates, under flags that say there are none."""
    rows, columns = np.array([0, 0, 0, 1, 1]), np.array([2, 0, 2, 1, 1])
    X = make((3, 3), dtype=np.float32)
    counts = np.bincount(columns if make is sp.csc_matrix else rows, minlength=3)
    order = np.argsort(columns, kind="stable") if make is sp.csc_matrix else slice(None)
    X.indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    X.indices = (rows if make is sp.csc_matrix else columns)[order].astype(np.int32)
    X.data = np.ones(5, np.float32)
    X.has_canonical_format = X.has_sorted_indices = True
    found = as_features(X)
    assert found.indices.tolist() == [0, 2, 1] and found.data.tolist() == [1, 2, 2]
    assert X.nnz == 5, "the caller's object stays as it is"
    with pytest.raises(ValueError, match="pass each label once"):
        as_labels(X)


def test_order_is_looked_at_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longtail._validation._CHUNK", 3)
    rng = np.random.default_rng(0)
    for _ in range(50):
        X = sp.random(5, 7, rng.random(), "csr", np.float32, rng)
        X.sort_indices()
        assert as_features(X) is X
        if X.nnz > 1:
            X.indices[:] = X.indices[::-1]
            X.indptr[:] = X.nnz - X.indptr[::-1]
            honest = X.copy()
            honest.has_sorted_indices = False
            X.has_canonical_format = True
            np.testing.assert_array_equal(as_features(X).toarray(), honest.toarray())


def test_a_width_is_bounded_by_the_labels() -> None:
    assert as_width(40, 12) == 40 and as_width(5000, 5000) == 5000
    for k, n_labels in [(10**9, 12), (1001, 12), (5001, 5000)]:
        with pytest.raises(ValueError, match=f"k is {k}, but there are {n_labels} labels"):
            as_width(k, n_labels)


def test_small_integers_do_not_wrap_around() -> None:
    rows, cols = np.zeros(300, int), np.zeros(300, int)
    for dtype in (np.uint8, np.int8):
        X = sp.coo_matrix((np.ones(300, dtype), (rows, cols)), shape=(1, 1))
        assert as_features(X).toarray().tolist() == [[300]]
    twice = sp.coo_matrix((np.ones(2, bool), ([0, 0], [0, 0])), shape=(1, 1))
    with pytest.raises(ValueError, match=r"holds the value 2.*pass each label once"):
        as_labels(twice)


def test_sparse_frames_stay_sparse() -> None:
    X = sp.eye(4, format="csr", dtype=np.float32)
    found = as_features(pd.DataFrame.sparse.from_spmatrix(X))
    assert sp.issparse(found) and (found != X).nnz == 0


def test_missing_values_of_a_frame() -> None:
    with pytest.raises((TypeError, ValueError), match="X"):
        as_features(pd.DataFrame({"a": pd.array([1, None], "Int64")}))
    with pytest.raises(ValueError, match="NaN"):
        as_features(pd.DataFrame({"a": [1.0, None]}))


@given(rows=st.lists(st.lists(st.integers(0, 20), max_size=5), max_size=8))
@settings(max_examples=100, deadline=None)
def test_label_lists(rows: list[list[int]]) -> None:
    lengths = {len(row) for row in rows}
    if len(lengths) == 1 and min(lengths) > 1 and max(max(row) for row in rows) <= 1:
        with pytest.raises(ValueError, match="indicator"):
            as_labels(rows)
        return
    Y = as_labels(rows)
    assert Y.shape == (len(rows), max((i + 1 for row in rows for i in row), default=0))
    assert Y.dtype == np.float32 and Y.has_canonical_format
    found = [row.tolist() for row in np.split(Y.indices, Y.indptr[1:-1])] if rows else []
    assert found == [sorted(set(row)) for row in rows]
    assert as_labels(rows, n_labels=30).shape == (len(rows), 30)


def test_label_lists_within_a_known_width() -> None:
    with pytest.raises(ValueError, match=r"label id 3, but there are 3 labels \(0 to 2\)"):
        as_labels([[0], [3]], n_labels=3)
    with pytest.raises(ValueError, match="has 2 labels, expected 3"):
        as_labels(np.eye(2), n_labels=3)
    assert as_labels([[0, np.int64(2)], (np.uint8(1),)]).indices.tolist() == [0, 2, 1]


def test_zeros_are_dropped_from_a_copy() -> None:
    Y = sp.csr_matrix((np.array([1, 0, 0.5], np.float32), [0, 1, 2], [0, 2, 3]), shape=(2, 3))
    assert as_labels(Y).nnz == 2
    assert Y.nnz == 3


@pytest.mark.parametrize("k", [1, np.int32(7), np.uint8(3)])
def test_k(k: int) -> None:
    assert as_k(k) == int(k) and type(as_k(k)) is int


def test_seeds() -> None:
    assert as_seed(5) == 5 and as_seed(np.uint64(2**64 - 1)) == 2**64 - 1
    assert as_seed(None) != as_seed(None)
    rng = np.random.default_rng(0)
    assert as_seed(rng) != as_seed(rng)
    assert as_seed(np.random.default_rng(0)) == as_seed(np.random.default_rng(0))
    assert as_seed(np.random.RandomState(0)) == as_seed(np.random.RandomState(0))
    for bad in (-1, 2**64):
        with pytest.raises(ValueError, match="random_state must lie in"):
            as_seed(bad)
    for bad in ("1", 1.0, True):
        with pytest.raises(TypeError, match="random_state must be"):
            as_seed(bad)


def test_threads() -> None:
    assert n_threads(3) == 3 and n_threads(10**12) == 1024
    assert n_threads(None) == n_threads(-1) >= n_threads(-(10**12)) == 1
    for bad in (0, 1.0, True, "1"):
        with pytest.raises((TypeError, ValueError), match="n_jobs"):
            n_threads(bad)


def test_marks_are_forgotten_without_a_callback() -> None:
    """One would swallow a Ctrl-C that arrives while it runs."""
    held = let_pass(sp.csr_matrix(np.eye(2, dtype=np.float32)))
    (reference,) = weakref.getweakrefs(held)
    assert reference.__callback__ is None
    for _ in range(1000):
        let_pass(np.zeros((1, 1), np.float32))
    assert len(_validation._PASSED._references) < 200
    assert let_pass(held) is held


@given(dense=small)
def test_canonical_rows_are_known_at_a_glance(dense: np.ndarray) -> None:
    X = sp.csr_matrix(dense)
    assert _validation._is_ready(X) and as_features(X) is X


@pytest.mark.parametrize(
    "damage",
    [
        {"indices": [1, 0, 2]},  # not in order
        {"indices": [0, 0, 2]},  # twice
        {"indices": [-1, 0, 2]},
        {"indices": [0, 1, 3]},  # beyond the last column
        {"indptr": [0, 3, 2, 3]},
        {"indptr": [1, 2, 2, 3]},
        {"indptr": [0, 2, 2, 2]},  # room for more entries
        {"indptr": [0, 2, 3]},
        {"data": [1, np.nan, 1]},
        {"data": [1, 1, -np.inf]},
        {"data": [1, 1]},
    ],
)
def test_rows_that_are_not_canonical_are_looked_at_closely(damage: dict[str, list[float]]) -> None:
    X = sp.csr_matrix((3, 3), dtype=np.float32)
    X.indptr, X.indices = np.array([0, 2, 2, 3], np.int32), np.array([0, 1, 2], np.int32)
    X.data = np.ones(3, np.float32)
    assert _validation._is_ready(X)
    for name, values in damage.items():
        setattr(X, name, np.array(values, getattr(X, name).dtype))
    assert not _validation._is_ready(X)
