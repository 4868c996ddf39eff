"""The text format: exact cases, round trips, gzip, and files as a user meets them."""

from __future__ import annotations

import gzip
import itertools
import os
from decimal import Decimal, localcontext

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from xc_reference import nearest_float32

import longtail as lt
from longtail.data import (
    read_feature_matrix,
    read_label_matrix,
    write_feature_matrix,
    write_label_matrix,
    xc_format,
)


@pytest.fixture
def file(tmp_path):
    """Writes bytes to a file and returns its path."""

    def write(content: bytes, name: str = "file.txt"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


def dense(pair):
    return [matrix.toarray().tolist() for matrix in pair]


def test_one_file_by_hand(file):
    X, Y = lt.read_xc(file(b"3 4 5\n0,4 1:0.5 3:2\n 0:-1e-2\n2\n"))
    assert X.dtype == Y.dtype == np.float32
    assert isinstance(X, sp.csr_matrix) and isinstance(Y, sp.csr_matrix)
    assert X.has_canonical_format and Y.has_canonical_format
    expected = np.array([[0, 0.5, 0, 2], [-0.01, 0, 0, 0], [0, 0, 0, 0]], np.float32)
    np.testing.assert_array_equal(X.toarray(), expected)
    np.testing.assert_array_equal(Y.toarray(), [[1, 0, 0, 0, 1], [0] * 5, [0, 0, 1, 0, 0]])


@pytest.mark.parametrize(
    ("rows", "x", "y"),
    [
        (b"0 1:1", [[0, 1]], [[1, 0]]),  # no line end
        (b"0 1:1\r\n", [[0, 1]], [[1, 0]]),
        (b"0 1:1 \t\n", [[0, 1]], [[1, 0]]),
        (b"0\t1:1\n\n \n\r\n", [[0, 1]], [[1, 0]]),  # blank lines at the end
        (b"\n", [[0, 0]], [[0, 0]]),
        (b"0:3\n", [[3, 0]], [[0, 0]]),  # features without labels, with and without a space
        (b" 0:3\n", [[3, 0]], [[0, 0]]),
        (b"0,1\n", [[0, 0]], [[1, 1]]),
        (b"1,0,1 1:1 0:2\n", [[2, 1]], [[1, 1]]),  # unsorted, a label twice
        (b"0 1:1 0:2 1:.5\n", [[2, 1.5]], [[1, 0]]),  # a feature twice
        (b"0 1:1" + 2 * b" 1:5.9604645e-8" + b"\n", [[0, 1 + 2**-23]], [[1, 0]]),  # in double
        (b"000 001:1.\n", [[0, 1]], [[1, 0]]),
        (b"0 1:+1E+1 0:-.5e0\n", [[-0.5, 10]], [[1, 0]]),
        (b"0 1:1e-60\n", [[0, 0]], [[1, 0]]),  # too small for float32
        (b"0 1:0." + b"0" * 400 + b"1e401\n", [[0, 1]], [[1, 0]]),
    ],
)
def test_right_answers(file, rows, x, y):
    assert dense(lt.read_xc(file(b"1 2 2\n" + rows))) == [x, y]


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        (b"", 1, 1, "expected the header 'N D L' .* got an empty file"),
        (b"0,1 0:1\n", 1, 1, "expected the header .* got '0,1 0:1': .* header='infer'"),
        (b"5 3\n0:1\n", 1, 1, "read_label_matrix"),
        (b"1 9999999999 2\n", 1, 1, "expected D to be at most 2147483647"),
        (b"1" + b"0" * 5000 + b" 1 1\n", 1, 1, "expected the header"),
        (b"9" * 30 + b" 1 1\n", 1, 1, "expected N to be at most"),
        (b"2 2 2\n0 0:1\n", 3, 1, "expected 2 rows, as the header announces, got 1"),
        (b"1 2 2\n0 0:1\n\n1 0:1\n", 4, 1, "expected the end of the file, got another row"),
        (b"1 2 2\n0 2:1\n", 2, 3, "feature 2 is out of range: there are 2, numbered 0 to 1"),
        (b"1 2 2\n0,2 0:1\n", 2, 3, "label 2 is out of range"),
        (b"1 0 2\n0 0:1\n", 2, 3, "there are no features"),
        (b"1 2 2\n0 4294967296:1\n", 2, 3, "feature 4294967296 is out of range"),
        (b"1 2 2\n0 99999999999999999999999:1\n", 2, 3, "out of range"),
        (b"1 2 2\n-1 0:1\n", 2, 1, "expected a label .* got '-'"),
        (b"1 2 2\n0 -1:1\n", 2, 3, "expected a feature 'index:value', got '-'"),
        (b"1 2 2\n0, 0:1\n", 2, 3, "expected a label .* got a space"),
        (b"1 2 2\n0;1 0:1\n", 2, 2, "expected ',' and a label, .* got ';'"),
        (b"1 2 2\n0 1\n", 2, 4, "expected ':' .* got the end of the line"),
        (b"1 2 2\n 0,1 1:1\n", 2, 3, "expected ':' .* got ','"),
        (b"1 2 2\n0 1: \n", 2, 5, "expected a number after ':', got a space"),
        (b"1 2 2\n0 1:1e\n", 2, 5, "expected a number after ':', got '1e'"),
        (b"1 2 2\n0 1:1.2.3\n", 2, 8, "expected a space .* got '.'"),
        (b"1 2 2\n0 1:0x1\n", 2, 6, "expected a space .* got 'x'"),
        (b"1 2 2\n0 1:nan\n", 2, 5, "expected a finite number .* got 'nan'"),
        (b"1 2 2\n0 1:-Infinity\n", 2, 5, "expected a finite number .* got '-Infinity'"),
        (b"1 2 2\n0 1:1e39\n", 2, 5, "fits float32"),
        (b"1 2 2\n0 1:-3.4028235678e38\n", 2, 5, "fits float32"),
        (b"1 2 2\n0 1:3e38 1:3e38\n", 2, 1, "expected a sum that fits float32"),
        (b"1 2 2\n0 1:1\r0:1\n", 2, 6, "got the byte 0x0D"),
        (b"1 2 2\n0 1:\xd9\xa1\n", 2, 5, "got the byte 0xD9"),
        (b"1 2 2\n0 1:1\x00\n", 2, 6, "got the byte 0x00"),
        (b"2 2 2\n0 1:1\n\x000 1:1\n", 3, 1, "got the byte 0x00"),
    ],
)
def test_refused_with_place_and_expectation(file, text, line, column, message):
    path = file(text)
    with pytest.raises(lt.exceptions.DataFormatError, match=message) as caught:
        lt.read_xc(path)
    assert (caught.value.path, caught.value.line, caught.value.column) == (str(path), line, column)
    assert str(caught.value).startswith(f"{path}:{line}:{column}: ")


def test_header_is_inferred_only_when_asked(file):
    path = file(b"3 7:1\n\n0,1 2:5\n\n\n")
    X, Y = lt.read_xc(path, header="infer")
    assert X.shape == (3, 8) and Y.shape == (3, 4)
    with pytest.raises(lt.exceptions.DataFormatError, match="header"):
        lt.read_xc(path)
    with pytest.raises(ValueError, match="True or 'infer'"):
        lt.read_xc(path, header=False)


def test_header_with_leading_zeros(file):
    X, Y = lt.read_xc(file(b"0" * 30 + b"1 02 003\n0 1:1\n"))
    assert X.shape == (1, 2) and Y.shape == (1, 3)


def test_infer_uses_a_header_that_is_there(file):
    X, Y = lt.read_xc(file(b"2 9 9\n0 1:1\n\n"), header="infer")
    assert X.shape == (2, 9) and Y.shape == (2, 9)


def test_infer_of_an_empty_file(file):
    assert [m.shape for m in lt.read_xc(file(b""), header="infer")] == [(0, 0), (0, 0)]
    shapes = [m.shape for m in lt.read_xc(file(b"\n"), header="infer", n_features=3, n_labels=2)]
    assert shapes == [(0, 3), (0, 2)]


def test_widths(file):
    path = file(b"1 2 2\n0 1:1\n")
    assert [m.shape for m in lt.read_xc(path, n_features=5, n_labels=7)] == [(1, 5), (1, 7)]
    with pytest.raises(lt.exceptions.DataFormatError, match=r"D = 2, .* n_features=1"):
        lt.read_xc(path, n_features=1)
    with pytest.raises(lt.exceptions.DataFormatError, match="feature 5 is out of range"):
        lt.read_xc(file(b"0 5:1\n"), header="infer", n_features=5)
    for width, error in [
        (-1, ValueError),
        (2**31, ValueError),
        (1.5, TypeError),
        (True, TypeError),
    ]:
        with pytest.raises(error, match="n_labels"):
            lt.read_xc(path, n_labels=width)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        lt.read_xc(tmp_path / "none.txt")
    with pytest.raises(IsADirectoryError):
        lt.read_xc(tmp_path)


def test_gzip_is_told_from_the_bytes(file):
    text = b"1 2 2\n0 1:1\n"
    for name in ("file.txt.gz", "file.txt"):
        assert dense(lt.read_xc(file(gzip.compress(text), name))) == [[[0, 1]], [[1, 0]]]
    two_members = gzip.compress(text[:7]) + gzip.compress(text[7:])
    assert dense(lt.read_xc(file(two_members))) == [[[0, 1]], [[1, 0]]]
    assert dense(lt.read_xc(file(b"\xef\xbb\xbf" + text))) == [[[0, 1]], [[1, 0]]]


def test_damaged_gzip(file):
    rows = b"".join(b"%d 1:0.%d\n" % (i % 2, i) for i in range(1, 3001))
    packed = gzip.compress(b"3000 2 2\n" + rows)
    flipped = bytearray(packed)
    flipped[len(packed) // 2] ^= 0x10
    for damaged in (packed[:-1], packed[: len(packed) // 2], packed[:8], packed + b"x", flipped):
        with pytest.raises(lt.exceptions.DataFormatError) as caught:
            lt.read_xc(file(bytes(damaged)))
        assert caught.value.line is not None


def test_label_matrix(file):
    Y = read_label_matrix(file(b"3 4\n3:1 0:0.25\n\n1:1.00000 2:0\n"))
    assert Y.toarray().tolist() == [[0.25, 0, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]]
    assert Y.nnz == 3  # zeros are dropped
    assert read_label_matrix(file(b"2:1 2:0\n"), header="infer").shape == (1, 3)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        (b"1 2\n0:1.5\n", 2, 3, "between 0 and 1"),
        (b"1 2\n0:-1\n", 2, 3, "between 0 and 1"),
        (b"1 2\n0:0.75 0:0.5\n", 2, 1, "label 0, listed more than once"),
        (b"1 2\n0,1\n", 2, 2, "expected ':' after a label index, got ','"),
        (b"1 2\n2:1\n", 2, 1, "label 2 is out of range"),
        (b"1 2 3\n0:1\n", 1, 1, "read_xc"),
    ],
)
def test_label_matrix_refuses(file, text, line, column, message):
    with pytest.raises(lt.exceptions.DataFormatError, match=message) as caught:
        read_label_matrix(file(text))
    assert (caught.value.line, caught.value.column) == (line, column)


def test_feature_matrix(file, tmp_path):
    X = read_feature_matrix(file(b"2 3\n0:-4 2:1e3\n1:0\n"))
    assert X.toarray().tolist() == [[-4, 0, 1000], [0, 0, 0]] and X.nnz == 3
    write_feature_matrix(tmp_path / "copy.txt", X)
    assert (tmp_path / "copy.txt").read_bytes() == b"2 3\n0:-4 2:1000\n1:0\n"


def test_written_text(tmp_path):
    path = tmp_path / "out.txt"
    X = sp.csr_matrix(([0.1, 0, -1, 1e-45, 16777216], [1, 2, 0, 2, 0], [0, 2, 2, 4, 5]), (4, 3))
    lt.write_xc(path, X, [[1, 0], [], [], [1]])
    assert path.read_bytes() == b"4 3 2\n0,1 1:0.1 2:0\n\n 0:-1 2:1e-45\n1 0:16777216\n"
    write_label_matrix(path, sp.csr_matrix([[0.5, 0, 1], [0, 0, 0]]))
    assert path.read_bytes() == b"2 3\n0:0.5 2:1\n\n"


def test_write_refuses(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(ValueError, match="write_label_matrix"):
        lt.write_xc(path, np.ones((1, 1)), sp.csr_matrix([[0.5]]))
    with pytest.raises(ValueError, match="2 rows but Y has 1"):
        lt.write_xc(path, np.ones((2, 1)), [[0]])
    with pytest.raises(ValueError, match="NaN"):
        lt.write_xc(path, np.array([[np.nan]]), [[0]])
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["out.txt"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "out.txt"
    path.write_text("old")
    monkeypatch.setattr(xc_format, "_portions", lambda *_: iter([(0, 1), (5, 9)]))
    with pytest.raises(ValueError, match="out of range"):
        lt.write_xc(path, np.ones((2, 2)), [[0], [1]])
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["out.txt"]


def test_portions_cover_all_rows(monkeypatch):
    monkeypatch.setattr(xc_format, "_ENTRIES", 5)
    portions = list(xc_format._portions(np.array([0, 2, 2, 20, 21]), np.array([0, 0, 1, 1, 1])))
    assert portions[0][0] == 0 and portions[-1][1] == 4
    assert all(a[1] == b[0] for a, b in itertools.pairwise(portions))
    assert list(xc_format._portions(np.array([0]))) == []


finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
rows = st.lists(st.tuples(st.sets(st.integers(0, 6)), st.dictionaries(st.integers(0, 11), finite)))


@given(rows, st.sampled_from(["file.txt", "file.txt.gz"]))
@settings(max_examples=60, deadline=None)
def test_round_trip_is_bit_identical(tmp_path_factory, content, name):
    path = tmp_path_factory.mktemp("trip") / name
    sizes = [len(entries) for _, entries in content]
    X = sp.csr_matrix((len(content), 12), dtype=np.float32)
    X.indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    X.indices = np.array([i for _, row in content for i in sorted(row)], np.int32)
    X.data = np.array([row[i] for _, row in content for i in sorted(row)], np.float32)
    Y = [sorted(labels) for labels, _ in content]
    lt.write_xc(path, X, [labels for labels, _ in content])  # sets are ids, even of 0 and 1 alone
    X2, Y2 = lt.read_xc(path)
    assert X2.shape == X.shape
    assert np.array_equal(X2.indptr, X.indptr) and np.array_equal(X2.indices, X.indices)
    assert X2.data.tobytes() == X.data.tobytes()
    assert [Y2[i].indices.tolist() for i in range(len(Y))] == Y


@given(st.lists(st.dictionaries(st.integers(0, 5), st.floats(2**-149, 1, width=32)), min_size=1))
@settings(max_examples=30, deadline=None)
def test_soft_labels_round_trip(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("soft") / "labels.txt"
    Y = sp.lil_matrix((len(content), 6), dtype=np.float32)
    for i, row in enumerate(content):
        for label, value in row.items():
            Y[i, label] = value
    write_label_matrix(path, Y)
    assert read_label_matrix(path).toarray().tobytes() == Y.toarray().tobytes()


def midpoint(bits: int) -> str:
    """The number half way between two neighbouring floats, in full."""
    low, high = np.array([bits, bits + 1], np.uint32).view(np.float32).tolist()
    with localcontext() as context:
        context.prec = 300
        return format((Decimal(low) + Decimal(high)) / 2, "f")


digits = st.text("0123456789", min_size=1, max_size=25)
numbers = st.one_of(
    finite.map(lambda x: repr(np.float32(x).item())),
    st.floats(-1e38, 1e38).map(repr),
    st.builds("{}.{}".format, digits, digits),
    st.builds("{}.{}e{}".format, digits, digits, st.integers(-70, 20)),
    st.integers(2**24, 2**26).map(lambda n: str(2 * n + 1)),
)


@given(st.lists(numbers, min_size=1, max_size=20))
@settings(max_examples=200, deadline=None)
def test_numbers_are_rounded_to_the_nearest_float32(tmp_path_factory, texts):
    expected = [nearest_float32(text) for text in texts]
    texts = [t for t, e in zip(texts, expected, strict=True) if np.isfinite(e)]
    expected = np.array([e for e in expected if np.isfinite(e)], np.float32)
    path = tmp_path_factory.mktemp("numbers") / "x.txt"
    row = " ".join(f"{i}:{text}" for i, text in enumerate(texts))
    path.write_text(f"1 {len(texts)}\n{row}\n")
    assert read_feature_matrix(path).data.tobytes() == expected.tobytes()


def test_ties_and_their_neighbours(tmp_path):
    rng = np.random.default_rng(0)
    everywhere = rng.integers(0, 0x7F7FFFFF, 300)
    bits = np.concatenate([everywhere, rng.integers(0x3A000000, 0x4B000000, 700)])  # 5e-4 to 8e6
    ties = [midpoint(int(b)) for b in bits]
    above = [t + ("" if "." in t else ".") + "0" * 30 + "1" for t in ties]
    below = [t[:-1] + "4" + ("" if "." in t else ".") + "9" * 30 for t in ties]
    keep = [t.endswith("5") for t in ties]  # the last digit of a large whole number may be another
    expected = np.concatenate([bits + bits % 2, bits + 1, bits]).astype(np.uint32).view(np.float32)
    path = tmp_path / "x.txt"
    path.write_text("".join(f"{i}:{text} " for i, text in enumerate(ties + above + below)))
    got = read_feature_matrix(path, header="infer").data
    np.testing.assert_array_equal(got[:2000], expected[:2000])
    np.testing.assert_array_equal(got[2000:][keep], expected[2000:][keep])
    assert sum(keep) > 600
