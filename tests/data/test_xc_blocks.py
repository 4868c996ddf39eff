"""Blocks, chunks and threads: where the cuts fall changes nothing, and memory stays bounded."""

from __future__ import annotations

import gzip
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xc_reference import assert_same, parse

import longtail as lt
from longtail.data import text_blocks, xc_format, xc_text
from longtail.data.xc_text import parse_file


def some_rows(n: int, seed: int = 0) -> bytes:
    """Rows of very different length, some of them empty, some out of order."""
    rng = np.random.default_rng(seed)
    lines = [b"%d 1000 50" % n]
    for _ in range(n):
        labels = ",".join(map(str, rng.integers(0, 50, rng.integers(0, 4))))
        columns = rng.integers(0, 1000, int(rng.exponential(6)))
        entries = "".join(f" {i}:{rng.random():.{rng.integers(1, 12)}f}" for i in columns)
        lines.append((labels + entries).encode())
    return b"\n".join(lines) + b"\n"


def read(path, **options):
    parser, shape = parse_file(path, xc_format._TEXT, True, (None, None), 2, **options)
    ends, labels = parser.take_labels()
    return shape, ends.tobytes(), labels.tobytes(), *(a.tobytes() for a in parser.take_entries())


def test_same_result_for_any_number_of_threads(tmp_path):
    path = tmp_path / "file.txt"
    path.write_bytes(some_rows(20_000))
    X, Y = lt.read_xc(path, n_jobs=1)
    assert path.stat().st_size > 2 * xc_text._CHUNK
    for n_jobs in (2, 3, 8, -1):
        X2, Y2 = lt.read_xc(path, n_jobs=n_jobs)
        assert all(a.tobytes() == b.tobytes() for a, b in zip(arrays(X), arrays(X2), strict=True))
        assert all(a.tobytes() == b.tobytes() for a, b in zip(arrays(Y), arrays(Y2), strict=True))


def arrays(matrix):
    return matrix.indptr, matrix.indices, matrix.data


def test_same_result_as_the_reference(tmp_path):
    path = tmp_path / "file.txt"
    path.write_bytes(some_rows(1000))
    assert_same(*lt.read_xc(path), parse(path.read_bytes()))


@pytest.mark.parametrize("packed", [False, True])
def test_same_result_for_any_cut(tmp_path, packed):
    text = some_rows(60, seed=1)
    path = tmp_path / "file.txt"
    path.write_bytes(gzip.compress(text) if packed else text)
    expected = read(path)
    for block_bytes in [*range(1, 40), 100, len(text) - 1, len(text), len(text) + 1]:
        for chunk_bytes in (1, 7, 64, 1 << 18):
            assert read(path, block_bytes=block_bytes, chunk_bytes=chunk_bytes) == expected


@given(
    st.lists(st.sampled_from([b"", b"0", b" 1:1", b"0,1 0:1 1:2", b"x"]), max_size=12), st.data()
)
@settings(max_examples=100, deadline=None)
def test_same_error_for_any_cut(tmp_path_factory, rows, data):
    path = tmp_path_factory.mktemp("cut") / "file.txt"
    path.write_bytes(b"%d 2 2\n" % max(0, len(rows) - 1) + b"\n".join(rows))
    outcomes = set()
    for _ in range(4):
        cut = {
            "block_bytes": data.draw(st.integers(1, 60)),
            "chunk_bytes": data.draw(st.integers(1, 60)),
        }
        try:
            outcomes.add(read(path, **cut))
        except lt.exceptions.DataFormatError as error:
            outcomes.add(str(error))
    assert len(outcomes) == 1


def test_first_of_two_errors_is_reported(tmp_path):
    lines = some_rows(5000).split(b"\n")
    lines[1234] = b"0 1:oops"
    lines[4321] = b"0 1000:1"
    path = tmp_path / "file.txt"
    path.write_bytes(b"\n".join(lines))
    for n_jobs in (1, 4):
        for chunk_bytes in (1000, 100_000):
            with pytest.raises(lt.exceptions.DataFormatError, match=":1235:5: expected a number"):
                parse_file(
                    path, xc_format._TEXT, True, (None, None), n_jobs, chunk_bytes=chunk_bytes
                )


def test_line_longer_than_a_block(tmp_path):
    path = tmp_path / "file.txt"
    n = 3000
    path.write_bytes(b"2 %d 1\n0" % n + b"".join(b" %d:1" % i for i in range(n)) + b"\n0 5:2")
    for block_bytes in (10, 1000):
        assert read(path, block_bytes=block_bytes) == read(path)


def test_line_without_end_is_refused_in_time(tmp_path, monkeypatch):
    monkeypatch.setattr(text_blocks, "_LONGEST_LINE", 4000)
    path = tmp_path / "file.txt"
    path.write_bytes(b"2 9 9\n0 1:1\n" + b"1" * 10_000)
    with pytest.raises(
        lt.exceptions.DataFormatError, match="expected a line end within 4000 bytes"
    ) as caught:
        read(path, block_bytes=100)
    assert caught.value.line == 3


def test_blocks_of_a_file(tmp_path):
    path = tmp_path / "file.txt"
    path.write_bytes(b"one\ntwo\nthree")
    for block_bytes in range(1, 20):
        blocks = [
            b.buffer[b.begin : b.end].tobytes() for b in text_blocks.text_blocks(path, block_bytes)
        ]
        assert b"".join(blocks) == b"one\ntwo\nthree\n"
        assert all(block.endswith(b"\n") for block in blocks)
    path.write_bytes(b"")
    assert list(text_blocks.text_blocks(path)) == []


MEASURE = """
import resource, sys
import longtail as lt

unit = 1 if sys.platform == "darwin" else 1024

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

lt.read_xc(sys.argv[1])  # imports, threads, buffers
before = peak()
X, Y = lt.read_xc(sys.argv[2])
print(peak() - before, sum(a.nbytes for m in (X, Y) for a in (m.indptr, m.indices, m.data)))
"""


@pytest.mark.parametrize("suffix", ["txt", "txt.gz"])
def test_memory_is_the_result_and_a_few_blocks(tmp_path, suffix):
    row = b"1,2 " + b" ".join(b"%d:%d" % (i, i % 10) for i in range(0, 900, 7))
    small, large = tmp_path / "small.txt", tmp_path / f"large.{suffix}"
    small.write_bytes(b"10 1000 10\n" + b"\n".join([row] * 10))
    text = b"60000 1000 10\n" + b"\n".join([row] * 60_000)
    large.write_bytes(gzip.compress(text, 1) if suffix.endswith("gz") else text)
    out = subprocess.run(
        [sys.executable, "-c", MEASURE, small, large], capture_output=True, text=True, check=True
    )
    grown, result = map(int, out.stdout.split())
    assert result > 60 << 20
    assert grown < result + (30 << 20)
