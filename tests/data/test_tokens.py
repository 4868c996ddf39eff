"""``Tokens``: ragged rows of ids."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.data import Tokens

ROWS = st.lists(st.lists(st.integers(0, 99), max_size=6), max_size=8)


def lists(tokens: Tokens) -> list[list[int]]:
    return [row.tolist() for row in tokens]


@given(ROWS, st.data())
def test_rows_are_taken_as_from_a_list(rows: list[list[int]], data: st.DataObject) -> None:
    tokens = Tokens.from_lists(rows)
    assert lists(tokens) == rows and len(tokens) == len(rows)
    assert tokens.lengths.tolist() == [len(row) for row in rows]
    a, b = (data.draw(st.integers(-9, 9)) for _ in range(2))
    assert lists(tokens[a:b]) == rows[a:b]
    assert lists(tokens[::-1]) == rows[::-1]
    if rows:
        numbers = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=6))
        assert lists(tokens[np.array(numbers, int)]) == [rows[i] for i in numbers]
        mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
        assert lists(tokens[mask]) == [r for r, keep in zip(rows, mask, strict=True) if keep]


@given(ROWS, st.integers(1, 5))
def test_cutting_keeps_the_last_token(rows: list[list[int]], most: int) -> None:
    cut = Tokens.from_lists(rows, n_truncated=2).cut(most)
    expected = [row if len(row) <= most else [*row[: most - 1], row[-1]] for row in rows]
    assert lists(cut) == expected
    assert cut.n_truncated == 2 + sum(len(row) > most for row in rows)


def test_mapped_from_disk(tmp_path) -> None:
    tokens = Tokens.from_lists([[1, 2, 3], [], [4]])
    for name in ("offsets", "ids"):
        np.save(tmp_path / f"{name}.npy", getattr(tokens, name))
    mapped = Tokens(*(np.load(tmp_path / f"{n}.npy", mmap_mode="r") for n in ("offsets", "ids")))
    assert lists(mapped[1:]) == [[], [4]]


@pytest.mark.parametrize(
    ("offsets", "ids", "message"),
    [
        ([0, 2, 1], [1, 2], "ascend"),
        ([1, 2], [1, 2], "ascend"),
        ([0, 3], [1, 2], "ascend"),
        ([], [], "one-dimensional"),
        ([[0, 1]], [1], "one-dimensional"),
        ([0, 1], [-1], "negative"),
    ],
)
def test_refusals(offsets, ids, message) -> None:
    with pytest.raises(ValueError, match=message):
        Tokens(np.array(offsets, np.int64), np.array(ids, np.int64))
