"""The choices of ``Tfidf`` as options of a command, under the same names.

An option that is not given is left to the automatic choice (``longtail.tagger.choose_terms``).
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from longtail.data import Dataset

__all__ = ["TEXT_OPTIONS", "refuse_for_features", "with_text_options"]

_PANEL = "How texts become features (chosen from the texts unless given)"


def with_text_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add one option per parameter of ``Tfidf`` to a command that takes ``tfidf``, a mapping.

    The command gets the parameters that were given, checked, before any data is read.
    """
    signature = inspect.signature(command, eval_str=True)
    kept = [p for p in signature.parameters.values() if p.name != "tfidf"]
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                kind | None,  # type: ignore[valid-type]
                typer.Option(help=text, rich_help_panel=_PANEL, show_default=False),
            ],
        )
        for name, (kind, text, _) in TEXT_OPTIONS.items()
    ]

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        given = {name: options.pop(name, None) for name in TEXT_OPTIONS}
        command(*arguments, tfidf=_parsed(given), **options)

    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in kept] + added
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _parsed(given: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of ``Tfidf`` from what was typed; refuses what it would refuse."""
    out = {name: TEXT_OPTIONS[name][2](value) for name, value in given.items() if value is not None}
    if out:
        from longtail.features import Tfidf
        from longtail.features.tfidf_params import TfidfParams

        TfidfParams.check(Tfidf(**out).get_params(deep=False))
    return out


def refuse_for_features(tfidf: dict[str, Any], dataset: Dataset) -> None:
    """Raise ValueError if options for texts are given and the data has features instead."""
    if tfidf and dataset.train.X is not None:
        option = f"--{next(iter(tfidf)).replace('_', '-')}"
        raise ValueError(f"{option} is for texts, and {dataset.name} has features: leave it out")


def _same(value: Any) -> Any:
    return value


def _or_none(value: str) -> str | None:
    return None if value.lower() == "none" else value


def _range(value: str) -> tuple[int, int]:
    try:
        low, high = (int(part) for part in value.replace("-", ",").split(","))
    except ValueError:
        raise ValueError(f"--ngram-range: expected two numbers, as in 1,2, got {value!r}") from None
    return low, high


def _count_or_part(value: str) -> int | float:
    try:
        return int(value)
    except ValueError:
        pass
    try:
        return float(value)
    except ValueError:
        raise ValueError(
            f"--min-df and --max-df take a number of texts, as in 2, or a part of them, as in "
            f"0.01, got {value!r}"
        ) from None


def _words(value: str) -> list[str]:
    """Return the words of a file, one per line, or those between commas."""
    if os.path.isfile(value):
        with open(value, encoding="utf-8") as file:
            return [word for line in file if (word := line.strip())]
    if os.sep in value:
        raise FileNotFoundError(f"--stop-words: there is no file {value}")
    return [word for part in value.split(",") if (word := part.strip())]


#: Parameter of ``Tfidf`` → type on the command line, help, and how what is typed is read.
TEXT_OPTIONS: dict[str, tuple[type, str, Callable[[Any], Any]]] = {
    "analyzer": (str, "What is counted: word, char or char_wb (characters within words).", _same),
    "ngram_range": (str, "Shortest and longest n-gram, as in 1,2.", _range),
    "lowercase": (bool, "Make texts lower case first.", _same),
    "strip_accents": (str, "Then drop accents: unicode, ascii or none.", _or_none),
    "min_word_length": (int, "Leave shorter words out: 1 keeps 'type 2', 2 does not.", _same),
    "stop_words": (str, "Words to leave out: a file with one per line, or a,b,c.", _words),
    "min_df": (str, "Keep terms of so many texts (2) or part of them (0.01).", _count_or_part),
    "max_df": (str, "Drop terms of more texts (1000) or a larger part (0.5).", _count_or_part),
    "max_features": (int, "Keep at most so many terms, the most frequent ones.", _same),
    "n_features": (int, "Hash terms to so many columns, without a vocabulary.", _same),
    "binary": (bool, "Count every term of a text once.", _same),
    "sublinear_tf": (bool, "Weigh a term by 1 + log(count), not by its count.", _same),
    "use_idf": (bool, "Weigh rare terms more.", _same),
    "smooth_idf": (bool, "Smooth these weights.", _same),
    "norm": (str, "Length of the rows: l2, l1 or none.", _or_none),
}
