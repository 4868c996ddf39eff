"""Label names as numbers: who has names, who has ids, and what cannot be told."""

from __future__ import annotations

import pytest

from longtail import TopK
from longtail.metrics.named import number_names


def test_names_on_both_sides_are_numbered_together() -> None:
    names, Y, (top,) = number_names([["b"], ["c", "a"]], [[["a"], ["d"]]])
    assert names == ("a", "b", "c", "d")
    assert Y.toarray().tolist() == [[0, 1, 0, 0], [1, 0, 1, 0]]
    assert top.indices.tolist() == [[0], [3]] and top.n_labels == 4


def test_ids_pass_through_even_where_names_are_known() -> None:
    Y, top = [[0], [1]], TopK([[0], [0]], [[1.0], [1.0]], n_labels=2)
    for label_names in (None, ["x", "y"]):
        names, same, answers = number_names(Y, [top], label_names)
        assert names == label_names and same is Y and answers == [top]


def test_names_against_ids_need_the_list_of_names() -> None:
    top = TopK([[1], [0]], [[1.0], [1.0]], n_labels=2)
    with pytest.raises(TypeError, match="Y_true"):
        number_names([[0], [1]], [[["x"], ["y"]]])
    names, Y, (first, second) = number_names([["y"], ["x"]], [top, [["y"], ["y"]]], ["x", "y"])
    assert tuple(names) == ("x", "y") and Y.toarray().tolist() == [[0, 1], [1, 0]]
    assert first == top and second.indices.tolist() == [[1], [1]]
