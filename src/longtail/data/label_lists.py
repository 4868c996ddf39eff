"""Label lists in memory: any column of collections becomes lists of label names.

The rules for one row are those of a label cell in a table (``longtail.data.cells``), except that a
row must be a collection: a bare string might be one name or several.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from longtail.data.cells import is_missing, label_name

__all__ = ["is_label_matrix", "label_lists"]


def is_label_matrix(labels: Any) -> bool:
    """Return whether these are numbers by row and column (or ids by row), and not collections of
    names.
    """
    if hasattr(labels, "tocsr") or hasattr(labels, "columns"):  # sparse matrices, data frames
        return True
    kind = getattr(getattr(labels, "dtype", None), "kind", "")
    return kind in ("b", "i", "u", "f")


def label_lists(labels: Any) -> list[list[str]]:
    """Return the label names of each row.

    Parameters
    ----------
    labels : list, series or array
        A list, pandas or polars Series, NumPy array or pyarrow array with one collection per row: a
        list, tuple, set or array of names. Whole numbers are taken as names (7 is "7"), as in
        ``load_dataset``; a missing row (None, NaN) has no labels.

    Raises TypeError, with the row, for a row that is no collection and for a label that is neither
    a string nor a whole number.

    >>> label_lists([("red", "blue"), {7}, None])
    [['red', 'blue'], ['7'], []]
    """
    if isinstance(labels, (str, bytes, Mapping)) or not isinstance(labels, Iterable):
        raise TypeError(f"labels must be one list of names per row, got {labels!r}")
    for method in ("to_pylist", "tolist", "to_list"):  # pyarrow, NumPy and pandas, polars
        if hasattr(labels, method):
            labels = getattr(labels, method)()
            break
    return [_names(row, i) for i, row in enumerate(labels)]


def _names(labels: Any, row: int) -> list[str]:
    if is_missing(labels):
        return []
    if isinstance(labels, (str, bytes, Mapping)) or not isinstance(labels, Iterable):
        raise TypeError(
            f"row {row} must be a list of label names, got {labels!r}: "
            f"write [{labels!r}] for a single label"
        )
    try:
        return [name if type(name) is str else label_name(name) for name in labels]
    except ValueError as error:
        raise TypeError(f"row {row} of labels: {error}") from None
