"""Published files: the counts are those that their owner states."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from xc_reference import assert_same, parse

import longtail as lt
from longtail.data import read_filter_pairs, read_label_matrix

ROOT = os.environ.get("LONGTAIL_DATA")
pytestmark = pytest.mark.skipif(
    not ROOT, reason="LONGTAIL_DATA does not name a folder of data sets"
)


def file(*parts: str) -> Path:
    path = Path(ROOT or "", *parts)
    if not path.exists():
        pytest.skip(f"no {'/'.join(parts)} in LONGTAIL_DATA")
    return path


@pytest.mark.parametrize(
    ("name", "n_train", "n_test", "n_features", "n_labels", "per_row"),
    [
        ("CiteULike-t", 20_817, 5_127, 20_000, 13_855, 9.43),
        ("Bibtex", 4_880, 2_515, 1_836, 159, 2.38),
        ("Delicious", 12_920, 3_185, 500, 983, 19.05),
        ("RCV1-subset1", 3_000, 3_000, 47_236, 101, 2.91),
    ],
)
def test_text_format(tmp_path, name, n_train, n_test, n_features, n_labels, per_row):
    for split, n_rows in (("train", n_train), ("test", n_test)):
        path = file(name, f"{split}.txt")
        X, Y = lt.read_xc(path)
        assert X.shape == (n_rows, n_features) and Y.shape == (n_rows, n_labels)
        if split == "train":
            assert round(Y.nnz / n_rows, 2) == per_row
        lt.write_xc(tmp_path / "copy.txt", X, Y)
        X2, Y2 = lt.read_xc(tmp_path / "copy.txt")
        assert (X2 != X).nnz == 0 and (Y2 != Y).nnz == 0


def test_every_bit_against_the_reference():
    path = file("RCV1-subset1", "test.txt")
    head = path.read_bytes().split(b"\n")[:301]
    head[0] = b"300 47236 101"
    text = b"\n".join(head) + b"\n"
    X, Y = lt.read_xc(path)
    expected = parse(text)
    assert_same(X[:300], Y[:300], expected)


def test_rows_without_labels():
    for split, n_empty in (("train", 10), ("test", 4)):
        _, Y = lt.read_xc(file("Delicious", f"{split}.txt"))
        assert (np.diff(Y.indptr) == 0).sum() == n_empty


def test_label_matrices():
    train = read_label_matrix(file("EURLex-4K-labels-only", "trn_X_Y.txt"))
    assert train.shape == (15_539, 3_993) and round(train.nnz / 15_539, 2) == 5.31
    assert (train.sum(axis=0) == 0).sum() == 207
    assert read_label_matrix(file("EURLex-4K-labels-only", "tst_X_Y.txt")).shape == (3_809, 3_993)
    amazon = read_label_matrix(file("LF-AmazonTitles-131K-partial", "tst_X_Y.txt"))
    assert amazon.shape == (134_835, 131_073) and (amazon.data == 1).all()


def test_filter_pairs():
    folder = "LF-AmazonTitles-131K-partial"
    pairs = read_filter_pairs(
        file(folder, "tst_filter_labels.txt"), n_rows=134_835, n_labels=131_073
    )
    assert pairs.shape == (79_663, 2)
    train = read_filter_pairs(file(folder, "trn_filter_labels.txt"), n_labels=131_073)
    np.testing.assert_array_equal(
        train, np.loadtxt(file(folder, "trn_filter_labels.txt"), dtype=np.int64)
    )
