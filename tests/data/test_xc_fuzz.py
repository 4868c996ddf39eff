"""Whatever the bytes: the native reader agrees with one written straight from the grammar."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from xc_reference import Refused, assert_same, entries_of, parse

import longtail as lt
from longtail.data import read_label_matrix

RARELY = st.integers(0, 19).map(lambda n: n == 0)
INDEX = st.integers(0, 4)
ODD_INDEX = st.sampled_from([5, 9, 10**7, 10**8, 2**31 - 2, 2**31 - 1, 2**32, 10**30])
NUMBER = st.one_of(
    st.sampled_from(["1", "0", "0.5", "1e-3", ".25", "1.", "00.10", "0.000000000000000001"]),
    st.floats(0, 1, width=32).map(repr),
)
ODD_NUMBER = st.one_of(
    st.sampled_from(["nan", "-inf", "1e39", ".", "", "3.4028236e38", "-0.75", "+1", "12345678901"]),
    st.floats(-1e39, 1e39).map(repr),
)
SPACE = st.sampled_from([" ", " ", "  ", "\t"])
END = st.sampled_from(["\n", "\n", "\r\n", " \n"])


@st.composite
def texts(draw: st.DrawFn, labelled: bool = True) -> bytes:
    """A file that is often right, and else has something odd in it or some bytes changed."""

    def index() -> int:
        return draw(ODD_INDEX if draw(RARELY) else INDEX)

    def entry() -> str:
        return f"{index()}:{draw(ODD_NUMBER if draw(RARELY) else NUMBER)}"

    rows = []
    for _ in range(draw(st.integers(0, 5))):
        labels = ",".join(str(index()) for _ in range(draw(st.integers(0, 3))))
        entries = [entry() for _ in range(draw(st.integers(0, 4)))]
        rows.append(draw(SPACE).join([labels, *entries] if labelled else entries) + draw(END))
    counts = [len(rows) + draw(st.sampled_from([0] * 8 + [-1, 1])), 5, 5][: 3 if labelled else 2]
    header = "" if draw(RARELY) else " ".join(map(str, counts)) + draw(END)
    text = header + "".join(rows)
    data = bytearray(text.encode())
    junk = st.one_of(st.sampled_from(b"0123456789:,. \t\r\n-+eEnax\x00\xff"), st.integers(0, 255))
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 3]))):
        where = draw(st.integers(0, len(data)))
        change = draw(st.sampled_from(["insert", "delete", "replace", "cut"]))
        if change == "insert":
            data.insert(where, draw(junk))
        elif change == "cut":
            del data[where:]
        elif where < len(data):
            data[where : where + 1] = bytes([draw(junk)]) if change == "replace" else b""
    return bytes(data)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "file.txt"


@given(texts(), st.sampled_from([True, "infer"]), st.integers(1, 3))
@example(b"1 1 1\n0 0:1e400\n", True, 1)
@example(b"1 1 1\n0 0:1e-9999999999\n", True, 1)
@example(b"1 1 1\n \r \n", True, 1)
@settings(max_examples=400, deadline=None)
def test_text_format(path, text, header, n_jobs):
    path.write_bytes(text)
    try:
        expected = parse(text, header=header)
    except Refused as refused:
        with pytest.raises(lt.exceptions.DataFormatError) as caught:
            lt.read_xc(path, header=header, n_jobs=n_jobs)
        assert caught.value.line == refused.line
        assert caught.value.column is not None and caught.value.column >= 1
    else:
        assert_same(*lt.read_xc(path, header=header, n_jobs=n_jobs), expected)


@given(texts(labelled=False), st.sampled_from([True, "infer"]))
@settings(max_examples=200, deadline=None)
def test_label_matrix(path, text, header):
    path.write_bytes(text)
    try:
        n_rows, n_labels, _, rows = parse(text, header=header, labelled=False, unit=True)
    except Refused as refused:
        with pytest.raises(lt.exceptions.DataFormatError) as caught:
            read_label_matrix(path, header=header)
        assert caught.value.line == refused.line
    else:
        Y = read_label_matrix(path, header=header)
        assert Y.shape == (n_rows, n_labels)
        assert entries_of(Y) == [{i: v for i, v in row.items() if v} for _, row in rows]
        assert np.all((Y.data > 0) & (Y.data <= 1))


@given(st.binary(max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_bytes(path, data):
    path.write_bytes(data)
    for header in (True, "infer"):
        try:
            X, Y = lt.read_xc(path, header=header)
        except lt.exceptions.DataFormatError as error:
            assert error.path == str(path) and error.line is not None
        else:
            assert X.shape[0] == Y.shape[0] and np.isfinite(X.data).all()
