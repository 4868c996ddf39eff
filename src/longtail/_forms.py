"""What labels and answers are when a user passes them: ids, names, or a table of numbers.

The one place where these are told apart, for ``fit``, ``evaluate``, every metric and every decision
rule (docs/metrics.md has the same as a table with examples):

===================================  =========================  ==================================
form                                 as labels ``Y``            as answers ``top``
===================================  =========================  ==================================
lists of whole numbers               label ids                  ranked label ids, best first
lists of texts                       label names                ranked label names, best first
lists with a float among them        a table of values (n, L)   a table of scores (n, L)
lists of True and False              a table of values (n, L)   refused: it does not rank
sets of whole numbers or of texts    label ids or names         refused: a set has no order
integer array or frame, 2-D          a table of values (n, L)   ranked label ids, padded with -1
integer array or series, 1-D         one label id per row       one answer per row
float array or frame, 2-D            a table of values (n, L)   a table of scores (n, L)
sparse matrix (n, L)                 a table of values          scores of the stored entries
===================================  =========================  ==================================

Refused because they could be two things: labels as lists of equal length that hold only 0 and 1,
which are ids or an indicator matrix; as answers, lists and integer arrays that name a label twice
in a row.

Floats that cannot be a table of label values, since they are whole and differ in number or exceed
1, are label ids: scikit-learn's reader of svmlight files returns labels as ``(3.0, 17.0)``.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["IDS_ARE_WHOLE", "Rows", "answers_of", "one_dimension", "rows_of"]

IDS_ARE_WHOLE = (
    "whole numbers are ranked label ids, best first; pass scores as floats "
    "(np.asarray(top, dtype=float)) and a 0/1 matrix of answers as scipy.sparse.csr_matrix(top)"
)


@dataclass(frozen=True)
class Rows:
    """Rows of a nested list, and what they hold: "ids", "names", "values" or "flags".

    ``sets``: some row is a set, which has no order and repeats nothing.
    """

    form: str
    rows: list[Any]
    sets: bool = False

    def as_ids(self) -> Rows:
        """Return the label ids that came as floats, as whole numbers; anything else as it is."""
        if self.form != "values":
            return self
        flat = [value for row in self.rows for value in row]
        if not all(float(value).is_integer() and value >= 0 for value in flat):
            return self
        if len({len(row) for row in self.rows}) == 1 and max(flat) <= 1:
            return self
        return Rows("ids", [[int(value) for value in row] for row in self.rows], self.sets)

    def table(self, name: str) -> np.ndarray:
        """Return the values or flags as an array (n, L); raise ValueError if rows differ in
        length.
        """
        width = len(self.rows[0]) if self.rows else 0
        for i, row in enumerate(self.rows):
            if len(row) != width:
                raise ValueError(
                    f"{name}[{i}] has {len(row)} numbers where {name}[0] has {width}: lists with "
                    "floats are a table with one column per label; label ids are whole numbers"
                )
        return np.array(self.rows, dtype=np.float64).reshape(-1, width)


def rows_of(values: Any, name: str) -> Rows | None:
    """Read a nested list, an array of lists or a series of lists; None for anything else.

    Raise TypeError for a row that is no collection, and for rows that mix ids, names and values.

    >>> rows_of([[0, 2], [1]], "Y").form, rows_of([["cat"], []], "Y").form
    ('ids', 'names')
    >>> rows_of([[0, 0.5]], "Y").form, rows_of(np.eye(2), "Y") is None
    ('values', True)
    """
    values = one_dimension(values)
    if isinstance(values, np.ndarray):
        nested = values.dtype == object and values.ndim == 1
    else:
        nested = isinstance(values, Sequence) and not isinstance(values, (str, bytes))
    if not nested:
        return None
    rows: list[Any] = []
    kinds: set[type] = set()
    sets = False
    for i, row in enumerate(values):
        if isinstance(row, np.ndarray):
            row = row.tolist()
        elif isinstance(row, Set):
            row, sets = list(row), True
        if not isinstance(row, (list, tuple)):
            row = _listed(row, i, name)
        kinds.update(map(type, row))
        rows.append(row)
    return Rows(_form(kinds, rows, name), rows, sets)


def one_dimension(values: Any) -> Any:
    """Return the array of a series; anything else as it is."""
    if not sp.issparse(values) and hasattr(values, "to_numpy") and getattr(values, "ndim", 0) == 1:
        return values.to_numpy()
    return values


def _listed(row: Any, i: int, name: str) -> list[Any]:
    if isinstance(row, numbers.Real):
        raise TypeError(
            f"{name}[{i}] is the number {row}: give one list of label ids per row, or a "
            "one-dimensional integer array for one label per row"
        )
    if isinstance(row, (str, bytes, Mapping)) or not isinstance(row, Iterable):
        raise TypeError(f"{name}[{i}] is {row!r}: give one list of label ids (or of names) per row")
    return list(row)


def _form(kinds: set[type], rows: list[Any], name: str) -> str:
    classes = {_class(kind) for kind in kinds}
    if len(classes) > 1 or None in classes:
        first = next(_class(type(item)) for row in rows for item in row)
        for i, row in enumerate(rows):
            for item in row:
                if _class(type(item)) in (None, *(classes - {first})):
                    raise TypeError(
                        f"{name}[{i}] holds {item!r}: rows hold label ids (whole numbers), label "
                        "names (texts) or values (floats), and all rows the same"
                    )
    if classes == {"number"} and not all(issubclass(kind, numbers.Integral) for kind in kinds):
        return "values"
    return {"flag": "flags", "name": "names"}.get(str(*classes), "ids")  # no item: no id either


def _class(kind: type) -> str | None:
    if kind in (bool, np.bool_):
        return "flag"
    if issubclass(kind, str):
        return "name"
    return "number" if issubclass(kind, numbers.Real) else None


def answers_of(top: Any, name: str = "top") -> tuple[str, Any]:
    """Tell answers apart: "ids" (rows or array), "names" (rows) or "scores" (a matrix).

    Raise TypeError or ValueError for answers without an order, and for those that hold neither
    numbers nor names.

    >>> [answers_of(top)[0] for top in ([[1, 0]], np.array([[1, 0]]), [[1.0, 0.0]], [["cat"]])]
    ['ids', 'ids', 'scores', 'names']
    """
    if hasattr(top, "dtypes") and hasattr(top, "sparse"):  # a frame of sparse columns
        top = top.sparse.to_coo()
    if sp.issparse(top):
        return "scores", top
    if hasattr(top, "dtypes") and hasattr(top, "to_numpy"):
        top = top.to_numpy()
    if np.ma.isMaskedArray(top) and np.ma.getmaskarray(top).any():
        raise ValueError(f"{name} holds masked entries: replace or drop them first")
    rows = rows_of(top, name)
    if rows is None:
        top = np.asarray(top)
        if top.ndim == 2 and top.dtype.kind in "OUS":
            rows = rows_of(top.tolist(), name)
    if rows is None:
        return _array(top, name)
    if rows.sets:
        raise TypeError(f"{name} holds sets, which have no order: give lists, best first")
    if rows.form == "flags":
        raise _unranked(name)
    return (rows.form, rows.rows) if rows.form != "values" else ("scores", rows.table(name))


def _array(top: np.ndarray, name: str) -> tuple[str, np.ndarray]:
    if top.dtype.kind == "b":
        raise _unranked(name)
    if top.dtype.kind in "iu" and top.ndim in (1, 2):
        return "ids", top.reshape(len(top), -1)
    return "scores", top


def _unranked(name: str) -> TypeError:
    return TypeError(
        f"{name} holds True and False, which do not rank: pass scipy.sparse.csr_matrix({name}) for "
        f"the labels that are True, or scores as floats"
    )
