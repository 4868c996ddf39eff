"""Filter-pair files."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import longtail as lt
from longtail.data import read_filter_pairs, write_filter_pairs


@pytest.fixture
def path(tmp_path):
    return tmp_path / "filter.txt"


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        (b"", []),
        (b"\n \r\n", []),
        (b"0 7\n3 1", [[0, 7], [3, 1]]),
        (b" 3\t1 \r\n\n3 1\n", [[3, 1], [3, 1]]),
        (b"2147483646 0\n", [[2147483646, 0]]),
    ],
)
def test_right_answers(path, text, pairs):
    path.write_bytes(text)
    got = read_filter_pairs(path)
    assert got.dtype == np.int64 and got.shape == (len(pairs), 2)
    assert got.tolist() == pairs


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        (b"0 1\n5\n", 2, 2, "expected a space and a label after the row, got the end"),
        (b"0 1\n5 \n", 2, 3, "expected a label .* got the end"),
        (b"0 1 2\n", 1, 5, "expected the end of the line after 'row label', got '2'"),
        (b"0,1\n", 1, 2, "got ','"),
        (b"-1 0\n", 1, 1, "expected a row .* got '-'"),
        (b"0 1.5\n", 1, 4, "got '.'"),
        (b"0 2147483647\n", 1, 3, "expected a label below 2147483647"),
        (b"99999999999999999999999 0\n", 1, 1, "expected a row below"),
        (b"0 \xff\n", 1, 3, "got the byte 0xFF"),
    ],
)
def test_refused(path, text, line, column, message):
    path.write_bytes(text)
    with pytest.raises(lt.exceptions.DataFormatError, match=message) as caught:
        read_filter_pairs(path)
    assert (caught.value.path, caught.value.line, caught.value.column) == (str(path), line, column)


def test_limits(path):
    path.write_bytes(b"0 7\n3 1\n")
    assert len(read_filter_pairs(path, n_rows=4, n_labels=8)) == 2
    assert len(read_filter_pairs(path, n_rows=10**12)) == 2
    with pytest.raises(lt.exceptions.DataFormatError, match="2:1: expected a row below 3, got 3"):
        read_filter_pairs(path, n_rows=3)
    with pytest.raises(lt.exceptions.DataFormatError, match="1:3: expected a label below 7, got 7"):
        read_filter_pairs(path, n_labels=7)


@given(st.lists(st.tuples(st.integers(0, 2**31 - 2), st.integers(0, 2**31 - 2))))
@settings(max_examples=30, deadline=None)
def test_round_trip(tmp_path_factory, pairs):
    path = tmp_path_factory.mktemp("pairs") / "filter.txt.gz"
    write_filter_pairs(path, pairs)
    assert read_filter_pairs(path).tolist() == [list(pair) for pair in pairs]


@pytest.mark.parametrize(
    ("pairs", "error"),
    [
        ([[0.5, 1]], TypeError),
        ([1, 2], ValueError),
        ([[-1, 0]], ValueError),
        ([[0, 2**31]], ValueError),
    ],
)
def test_write_refuses(path, pairs, error):
    with pytest.raises(error, match="pairs"):
        write_filter_pairs(path, pairs)
    assert not path.exists()
