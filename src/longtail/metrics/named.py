"""Labels and answers given by name: numbered, so that metrics see ids only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from longtail._forms import answers_of, rows_of
from longtail._validation import as_labels
from longtail.answers.topk import TopK
from longtail.answers.vocabulary import Vocabulary
from longtail.metrics.matches import Matches

__all__ = ["number_names"]


def number_names(
    Y_true: Any, answers: Sequence[Any], label_names: Sequence[str] | None = None
) -> tuple[Sequence[str] | None, Any, list[Any]]:
    """Replace names by ids: ``label_names``, ``Y_true`` and ``answers``, what holds none as it is.

    Ids are places in ``label_names``. Without it, all must be given by name, and the names that
    occur are numbered in sorted order. Raise ValueError for a name outside ``label_names``, and
    TypeError if only some are names and there is nothing to number them by.

    >>> names, Y, (top,) = number_names([["b"], []], [[["a", "b"], ["b"]]])
    >>> names, Y.toarray().tolist(), top.indices.tolist()
    (('a', 'b'), [[0.0, 1.0], [0.0, 0.0]], [[0, 1, -1], [1, -1, -1]])
    """
    named = [_named_answers(top) for top in answers]
    truth = None
    if label_names is not None or any(rows is not None for rows in named):
        found = rows_of(Y_true, "Y_true")
        truth = found.rows if found is not None and found.form == "names" else None
    if truth is None and not any(rows is not None for rows in named):
        return label_names, Y_true, list(answers)
    if label_names is None and (truth is None or any(rows is None for rows in named)):
        raise TypeError(
            "some of Y_true and the answers hold label names and some do not: give names in all of "
            "them, label ids in all of them, or label_names to longtail.evaluate"
        )
    if label_names is None:
        vocabulary = Vocabulary.from_lists(*(rows for rows in (truth, *named) if rows is not None))
    else:
        vocabulary = Vocabulary(label_names)
    if truth is not None:
        ids = map(set, _ids(truth, vocabulary, "Y_true"))
        Y_true = as_labels(list(ids), n_labels=len(vocabulary), name="Y_true")
    tops = [
        top
        if rows is None
        else TopK.from_ranking(_ids(rows, vocabulary, "top"), n_labels=len(vocabulary))
        for top, rows in zip(answers, named, strict=True)
    ]
    return vocabulary.names, Y_true, tops


def _named_answers(top: Any) -> list[Any] | None:
    if isinstance(top, (TopK, Matches)):
        return None
    form, rows = answers_of(top)
    return rows if form == "names" else None


def _ids(rows: list[Any], vocabulary: Vocabulary, name: str) -> list[list[int]]:
    out = []
    for i, row in enumerate(rows):
        try:
            out.append([vocabulary.id(label) for label in row])
        except KeyError as error:
            raise ValueError(f"{name}[{i}]: {error.args[0]}") from None
    return out
