import numpy as np
import pytest
import scipy.sparse as sp
from data_cases import any_name, folder, with_files
from hypothesis import given
from hypothesis import strategies as st

from longtail import TopK
from longtail.answers import Vocabulary
from longtail.exceptions import DataFormatError

name_lists = st.lists(any_name, max_size=6, unique=True)


@with_files
@given(name_lists, st.data())
def test_names_become_ids_and_come_back(names, data):
    vocabulary = Vocabulary(names)
    rows = (
        st.lists(st.lists(st.sampled_from(names), unique=True), max_size=4)
        if names
        else st.just([])
    )
    lists = data.draw(rows)
    Y = vocabulary.encode(lists)
    assert Y.shape == (len(lists), len(names))
    assert Y.dtype == np.float32
    assert Y.has_sorted_indices
    assert [set(row) for row in vocabulary.decode(Y)] == [set(row) for row in lists]
    assert [vocabulary.id(name) for name in names] == list(range(len(names)))


@with_files
@given(name_lists)
def test_saved_as_json(names):
    with folder() as place:
        Vocabulary(names).save(place / "names.json")
        assert Vocabulary.load(place / "names.json") == Vocabulary(names)


@with_files
@given(st.lists(st.lists(any_name)), st.randoms())
def test_ids_do_not_depend_on_the_order_of_the_rows(lists, random):
    shuffled = random.sample(lists, len(lists))
    assert Vocabulary.from_lists(lists) == Vocabulary.from_lists(shuffled)
    assert Vocabulary.from_lists(lists).names == tuple(sorted({n for row in lists for n in row}))


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        (["a", "b", "a"], ValueError, "'a' occurs twice: ids 0 and 2"),
        (["a", ""], ValueError, "name 1"),
        (["a", 3], TypeError, "name 1 is 3"),
        ([None], TypeError, "None"),
        ("abc", TypeError, "single string"),
    ],
)
def test_bad_names_are_refused(names, error, message):
    with pytest.raises(error, match=message):
        Vocabulary(names)


def test_a_label_twice_in_a_row_counts_once():
    assert Vocabulary(["a", "b"]).encode([["b", "b"]]).toarray().tolist() == [[0.0, 1.0]]


def test_unknown_names():
    vocabulary = Vocabulary(["a", "b"])
    lists = [["a", "x"], ["x", "y", "x"], []]
    with pytest.raises(ValueError, match="row 0 has the label 'x'"):
        vocabulary.encode(lists)
    assert vocabulary.encode(lists, unknown="ignore").toarray().tolist() == [[1, 0], [0, 0], [0, 0]]
    Y, counts = vocabulary.encode(lists, unknown="count")
    assert Y.nnz == 1
    assert counts.tolist() == [1, 2, 0]
    with pytest.raises(ValueError, match="unknown must be"):
        vocabulary.encode(lists, unknown="drop")


@pytest.mark.parametrize("rows", [["ab"], [3], [["a", 3]], [[None]]])
def test_rows_must_be_lists_of_names(rows):
    with pytest.raises(TypeError, match="row 0"):
        Vocabulary(["a", "b"]).encode(rows, unknown="ignore")


def test_decode_takes_whatever_holds_ids():
    vocabulary = Vocabulary(["a", "b", "c"])
    assert vocabulary.decode([2, 0]) == ["c", "a"]
    assert vocabulary.decode([]) == []
    assert vocabulary.decode([[1], []]) == [["b"], []]
    assert vocabulary.decode(np.array([[1, -1], [0, 2]])) == [["b"], ["a", "c"]]
    assert vocabulary.decode(sp.csr_matrix([[0, 1, 1]])) == [["b", "c"]]
    top = TopK([[2, 0], [1, -1]], [[0.5, 0.25], [1.0, -np.inf]])
    assert vocabulary.decode(top) == [[("c", 0.5), ("a", 0.25)], [("b", 1.0)]]


@pytest.mark.parametrize("ids", [[3], [-2], TopK([[7]], [[1.0]]), sp.csr_matrix((1, 4))])
def test_ids_out_of_range_are_refused(ids):
    with pytest.raises(ValueError, match=r"out of range|columns"):
        Vocabulary(["a", "b", "c"]).decode(ids)


def test_ids_must_be_whole():
    with pytest.raises(TypeError, match="whole numbers"):
        Vocabulary(["a", "b"]).decode([0.5])


def test_unknown_name_has_no_id():
    with pytest.raises(KeyError, match="not one of the 1 label names"):
        Vocabulary(["a"]).id("b")


@pytest.mark.parametrize(
    "content", ["", "{}", '["a", "a"]', '["a", 3]', '["a"', '[""]', "[" * 99999]
)
def test_a_damaged_file_is_refused(tmp_path, content):
    path = tmp_path / "names.json"
    path.write_text(content)
    with pytest.raises(DataFormatError, match=r"names\.json"):
        Vocabulary.load(path)
