"""Strategies and checks that the tests of the formats share."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from longtail.data import Dataset, Split

# Each example writes and reads files: few of them, and no deadline on a busy machine.
with_files = settings(max_examples=40, deadline=None)

any_text = st.text(st.characters(codec="utf-8"), max_size=12)
line_text = any_text.filter(lambda text: "\n" not in text and not text.endswith("\r"))
any_name = any_text.filter(bool)
# What a name may be in formats that separate names by blanks.
word = st.text(
    st.characters(codec="utf-8", exclude_characters="\n\r\t \v\f\0"), min_size=1, max_size=8
).filter(lambda name: not name.startswith("__label__"))


@st.composite
def datasets(
    draw: Any,
    text: st.SearchStrategy[str] = any_text,
    name: st.SearchStrategy[str] = any_name,
    soft: bool = False,
) -> Dataset:
    """Data sets with texts, features and names; every split may be missing but the first."""
    names = draw(st.lists(name, min_size=1, max_size=5, unique=True))
    width = draw(st.integers(1, 4))
    values = st.sampled_from([0.0, 0.25, 0.5, 1.0] if soft else [0.0, 1.0])

    def split(n: int) -> Split:
        cells = [draw(st.lists(values, min_size=len(names), max_size=len(names))) for _ in range(n)]
        features = st.lists(st.integers(-3, 3), min_size=width, max_size=width)
        X = np.array([draw(features) for _ in range(n)], np.float32).reshape(n, width)
        Y = np.array(cells, np.float32).reshape(n, len(names))
        return Split(X=_csr(X), Y=Y, texts=[draw(text) for _ in range(n)])

    sizes = draw(st.tuples(st.integers(1, 4), st.integers(0, 3), st.integers(0, 3)))
    train, test, dev = (split(n) if n else None for n in sizes)
    return Dataset(
        train=train,
        test=test or Split(),
        dev=dev,
        label_names=names,
        label_texts=[draw(text) for _ in names],
    )


def _csr(dense: np.ndarray) -> Any:
    import scipy.sparse as sp

    return sp.csr_matrix(dense)


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A fresh folder for one hypothesis example (pytest's own is made once a test)."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def assert_same_matrix(found: Any, expected: Any) -> None:
    if expected is None:
        assert found is None
        return
    assert found.shape == expected.shape
    assert found.dtype == np.float32
    np.testing.assert_array_equal(_dense(found), _dense(expected))


def _dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)


def assert_same(found: Dataset, expected: Dataset, *, X: bool = True, texts: bool = True) -> None:
    """Same splits, cell by cell, and same names; without X or texts where a format has none."""
    assert list(found.splits) == list(expected.splits)
    for name, split in expected.splits.items():
        other = found.splits[name]
        assert_same_matrix(other.X, split.X if X else None)
        assert_same_matrix(other.Y, split.Y)
        assert other.texts == (split.texts if texts else None)
    assert found.label_names == expected.label_names
