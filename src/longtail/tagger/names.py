"""Label names: found, or refused with the names that come close."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np

from longtail.answers import Vocabulary
from longtail.data.cells import label_name

__all__ = ["find_label", "label_ids", "search_labels"]

_LOOKED_AT = 20_000  # names compared for a suggestion: enough to help, quick enough for an error


def find_label(vocabulary: Vocabulary, name: str | int) -> int:
    """Return the id of a name; an unknown one is a ValueError that suggests the nearest.

    Whole numbers are names here as in ``Tagger.fit``: 7 is "7".
    """
    try:
        name = label_name(name)
    except ValueError:
        raise TypeError(f"a label is named by a string, got {name!r}") from None
    if name in vocabulary:
        return vocabulary.id(name)
    near = difflib.get_close_matches(name, list(islice(vocabulary, _LOOKED_AT)), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"unknown label {name!r}: this model knows {len(vocabulary):,} others{hint}")


def label_ids(vocabulary: Vocabulary, names: Iterable[str | int], what: str) -> np.ndarray:
    """Return ids of names, ascending, each once (int32)."""
    if isinstance(names, (str, bytes)):
        raise TypeError(f"{what} must be a list of label names, got one string: write [{names!r}]")
    found = sorted({find_label(vocabulary, name) for name in names})
    return np.asarray(found, np.int32)


def search_labels(
    names: Sequence[str], texts: Sequence[str] | None, query: str, limit: int
) -> list[int]:
    """Return ids of labels whose name or text holds the query, whatever its case.

    Those that begin with it come first, then those in which a word does, then the rest; each group
    in id order.

    >>> search_labels(["sat nav", "cat", "concatenate", "wild cat"], None, "CAT", 10)
    [1, 3, 2]
    """
    wanted = query.casefold().strip()
    groups: tuple[list[int], ...] = ([], [], [])
    for i, name in enumerate(names):
        shown = name if texts is None else f"{name}\n{texts[i]}"
        text = shown.casefold()
        if wanted in text:
            lines = text.split("\n")
            if any(line.startswith(wanted) for line in lines):
                groups[0].append(i)
            elif f" {wanted}" in text:
                groups[1].append(i)
            else:
                groups[2].append(i)
            if len(groups[0]) >= limit:
                break
    return [i for group in groups for i in group][:limit]
