"""Answers of any system, by label name, from a table: ``evaluate --predictions``.

A row is a text with its labels, best first:

    {"id": "7", "labels": ["a", "b"]}                           names
    {"id": "7", "labels": [{"label": "a", "score": 0.9}, …]}    as ``predict`` writes them
    id,labels                                                   7,a;b in CSV, split at ; or another

or one answer of a text, in any order, as ``predict --per-label`` writes it:

    id,rank,label,score                                         by rank, or by score without one

Without ids, row i answers text i of the truth; where a row is one answer, ``row`` counts texts from
0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from longtail.data.place import Place, brief

__all__ = ["id_of", "matched", "names_of", "read_predictions"]

_ANSWERS = ("predicted_labels", "labels", "predicted_label", "label")


def read_predictions(
    path: str,
    *,
    id_column: str | None,
    separator: str | None,
    delimiter: str | None,
    n_texts: int,
) -> dict[str, list[str]]:
    """Return the label names of each text, best first, by id or by row number.

    Raises ValueError for a file without a column of labels, an id that occurs twice, a label that
    is answered twice for one text and, without ids, other than ``n_texts`` rows of texts.
    """
    columns = _columns(path, delimiter)
    answers = next((name for name in _ANSWERS if name in columns), None)
    if answers is None:
        have = ", ".join(columns) or "none"
        raise ValueError(
            f"{path}: expected a column labels, or label for one answer per row; it has {have}"
        )
    if not answers.endswith("s"):
        return _one_by_one(path, columns, answers, id_column, delimiter)
    found: dict[str, list[str]] = {}
    wanted = [answers, *([id_column] if id_column else [])]
    for number, (place, cells) in enumerate(_rows(path, wanted, delimiter)):
        key = id_of(cells[1], place) if id_column else str(number)
        if key in found:
            raise place.error(f"the id {brief(key)} occurs twice")
        found[key] = _once(names_of(cells[0], separator, place), place)
    if id_column is None and len(found) != n_texts:
        raise ValueError(
            f"{path} answers {len(found):,} texts and there are {n_texts:,}: pass --id-column to "
            "match them"
        )
    return found


def matched(
    predictions: dict[str, list[str]], ids: Sequence[str], path: str
) -> tuple[list[list[str]], int, int]:
    """Return the answers in the order of ``ids``, how many ids have none, and how many more there
    are. Raises ValueError if no id is answered.
    """
    answers = [predictions.get(key, []) for key in ids]
    missing = sum(key not in predictions for key in ids)
    if missing == len(ids):
        example = next(iter(predictions), None)
        raise ValueError(
            f"{path} answers none of the {len(ids):,} texts: its first id is {example!r}, that of "
            f"the truth {ids[0]!r}"
        )
    return answers, missing, len(set(predictions) - set(ids))


def _one_by_one(
    path: str, columns: Sequence[str], label: str, id_column: str | None, delimiter: str | None
) -> dict[str, list[str]]:
    by = id_column or "row"
    if by not in columns:
        raise ValueError(f"{path}: one answer per row needs the text it is for: pass --id-column")
    order = next((name for name in ("rank", "score") if name in columns), None)
    found: dict[str, list[tuple[float, str]]] = {}
    for place, cells in _rows(path, [by, label, *([order] if order else [])], delimiter):
        names = names_of([cells[1]], None, place)
        at = float(len(found))
        if order is not None:
            at = _number(cells[2], order, place) * (1 if order == "rank" else -1)
        found.setdefault(id_of(cells[0], place), []).append((at, names[0]))
    place = Place(path)
    return {
        key: _once([name for _, name in sorted(pairs, key=lambda pair: pair[0])], place)
        for key, pairs in found.items()
    }


def _columns(path: str, delimiter: str | None) -> list[str]:
    """Return names of the columns; of JSON lines, the fields of the first."""
    from longtail.data.json_lines import read_json_lines
    from longtail.data.table_rows import column_names, table_format

    if table_format(path) == "jsonl":
        return list(next((record for _, record in read_json_lines(path)), {}))
    return column_names(path, delimiter)


def _rows(path: str, columns: Sequence[str], delimiter: str | None) -> Any:
    from longtail.data.table_rows import table_rows

    for place, cells, _ in table_rows(path, columns, delimiter):
        yield place, cells


def id_of(cell: Any, place: Place) -> str:
    """Return the id in a cell, as text: files of several formats have to agree on it."""
    if cell is None or cell == "" or isinstance(cell, (list, dict)):
        raise place.error(f"expected an id, got {brief(cell)}")
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)  # as pandas makes of ids beside a missing one
    return str(cell)


def names_of(cell: Any, separator: str | None, place: Place) -> list[str]:
    """Return the label names in a cell; without a separator, a text that is no list is split at
    ``;``.
    """
    from longtail.data.cells import label_names

    if isinstance(cell, (list, tuple)):
        cell = [_name(item) for item in cell]
    elif isinstance(cell, str) and separator is None and not cell.lstrip().startswith("["):
        separator = ";"
    try:
        return label_names(cell, separator)
    except ValueError as error:
        raise place.error(f"labels: {error}") from None


def _name(item: Any) -> Any:
    """Return the name in ``{"label": …, "score": …}`` or ``[name, score]``; anything else as it
    is.
    """
    if isinstance(item, dict):
        return item.get("label", item)
    if isinstance(item, (list, tuple)) and len(item) == 2:
        return item[0]
    return item


def _once(names: list[str], place: Place) -> list[str]:
    for name in names:
        if names.count(name) > 1:
            raise place.error(f"the label {brief(name)} is answered twice for one text")
    return names


def _number(cell: Any, column: str, place: Place) -> float:
    try:
        number = float(cell)
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number):
        raise place.error(f"{column}: expected a number, got {brief(cell)}")
    return number
