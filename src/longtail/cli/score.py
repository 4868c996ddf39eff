"""Measures answers of another system against true labels, both by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from longtail.cli.output import note
from longtail.cli.predictions import id_of, matched, names_of, read_predictions
from longtail.cli.provenance import measured_now
from longtail.cli.reading import DataOptions, file_hash, read, split_of

__all__ = ["score_predictions"]


def score_predictions(
    predictions: str,
    truth: str,
    train: str | None,
    options: DataOptions,
    split: str,
    id_column: str | None,
    ks: Sequence[int],
) -> Any:
    """Return the report on the answers in the file ``predictions``.

    The label set is every name that occurs in one of the files. A text without an answer counts as
    one without a right answer, and answers to other texts are left out; both are said.
    """
    import numpy as np

    from longtail.answers import TopK, Vocabulary
    from longtail.propensity import JainPropensity
    from longtail.report import evaluate

    true, ids = _labels(truth, options, split, id_column)
    given = options.given()
    found = read_predictions(
        predictions,
        id_column=id_column,
        separator=given.get("label_separator"),
        delimiter=given.get("delimiter"),
        n_texts=len(true),
    )
    answers, n_missing, n_more = matched(found, ids, predictions)
    if n_missing:
        note(f"{n_missing:,} of {len(ids):,} texts have no answer and count as missed")
    if n_more:
        note(f"{n_more:,} answers are for other texts and are left out")
    learned = None if train is None else _labels(train, options, "train", None)[0]
    vocabulary = Vocabulary.from_lists(true, answers, learned or [])
    width = max([*ks, *(len(names) for names in answers)])
    ranked = np.full((len(answers), width), -1, np.int32)
    for row, names in zip(ranked, answers, strict=True):
        row[: len(names)] = [vocabulary.id(name) for name in names]
    options_of: dict[str, Any] = {}
    if learned is not None:
        Y = vocabulary.encode(learned)
        options_of = {"train_Y": Y, "propensity": JainPropensity().fit(Y)}
    report = evaluate(
        vocabulary.encode(true),
        TopK.from_ranking(ranked, n_labels=len(vocabulary)),
        label_names=vocabulary.names,
        k=list(ks),
        title=f"{predictions} on {truth}",
        **options_of,
    )
    return measured_now(report, truth, file_hash(truth), predictions=predictions)


def _labels(
    data: str, options: DataOptions, split: str, id_column: str | None
) -> tuple[list[list[str]], list[str]]:
    """Return the label names of every row, and what the rows are called: ids, or numbers from 0."""
    from longtail.data.table_rows import is_table_name, table_rows

    if data == "-" or not is_table_name(data):
        if id_column is not None:
            raise ValueError(f"--id-column: {data} is no table, and has no columns")
        dataset = read(data, options)
        lists = dataset.vocabulary.decode(split_of(dataset, split)[1].Y)
        return lists, [str(i) for i in range(len(lists))]
    given = options.given()
    columns = [given.get("label_column", "labels"), *([id_column] if id_column else [])]
    lists, ids = [], list[str]()
    for place, cells, _ in table_rows(data, columns, given.get("delimiter")):
        found = names_of(cells[0], given.get("label_separator"), place)
        ids.append(id_of(cells[1], place) if id_column else str(len(ids)))
        lists.append(list(dict.fromkeys(found)))
    if len(set(ids)) < len(ids):
        twice = next(key for key in ids if ids.count(key) > 1)
        raise ValueError(f"{data}: the id {twice!r} occurs twice")
    return lists, ids
