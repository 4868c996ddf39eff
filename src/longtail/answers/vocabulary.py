"""``Vocabulary``: label names to ids and back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, overload

import numpy as np
import scipy.sparse as sp

from longtail._lines import open_for_writing, read_text
from longtail.answers.topk import TopK
from longtail.exceptions import DataFormatError

__all__ = ["Vocabulary", "grown_names", "names_without"]


class Vocabulary:
    """Label names in id order: the name at position i has the id i, for good.

    Refuses names that are not strings, empty names, and names that occur twice. Names are compared
    exactly: no case folding, no stripping. ``Vocabulary.from_lists`` collects the names of a corpus
    in sorted order, so that the ids depend on the set of names and not on the order of the rows.

    Parameters
    ----------
    names : iterable of str
        Names, in the order of their ids.

    >>> vocabulary = Vocabulary(["cat", "dog"])
    >>> vocabulary.encode([["dog"], [], ["dog", "cat"]]).toarray()
    array([[0., 1.],
           [0., 0.],
           [1., 1.]], dtype=float32)
    >>> vocabulary.decode([1, 0])
    ['dog', 'cat']
    """

    __slots__ = ("_ids", "names")

    names: tuple[str, ...]

    def __init__(self, names: Iterable[str]) -> None:
        if isinstance(names, (str, bytes)):
            raise TypeError(f"names must be a list of strings, got the single string {names!r}")
        self.names = tuple(names)
        self._ids: dict[str, int] = {}
        for i, name in enumerate(self.names):
            if not isinstance(name, str):
                raise TypeError(f"label names must be strings, but name {i} is {name!r}")
            if not name:
                raise ValueError(f"label names must not be empty, but name {i} is")
            if self._ids.setdefault(name, i) != i:
                raise ValueError(
                    f"the label name {name!r} occurs twice: ids {self._ids[name]} and {i}"
                )

    @classmethod
    def from_lists(cls, *corpora: Iterable[Iterable[str]]) -> Vocabulary:
        """Return all names that occur in the label lists, sorted by code point.

        Parameters
        ----------
        *corpora : iterables of iterables of str
            Label lists.

        >>> Vocabulary.from_lists([["b", "a"], []], [["c"]]).names
        ('a', 'b', 'c')
        """
        found: set[str] = set()
        for label_lists in corpora:
            for row, labels in enumerate(label_lists):
                _refuse_bare_string(labels, row)
                found.update(labels)
        for name in found:
            if not isinstance(name, str):
                raise TypeError(f"label names must be strings, got {name!r}")
        return cls(sorted(found))

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._ids

    def __getitem__(self, label: int) -> str:
        return self.names[label]

    def __eq__(self, other: object) -> bool:
        return self.names == other.names if isinstance(other, Vocabulary) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.names)

    def __repr__(self) -> str:
        shown = [repr(name) for name in self.names[:3]] + ["…"] * (len(self) > 3)
        return f"Vocabulary({len(self)} names: {', '.join(shown)})" if shown else "Vocabulary()"

    def id(self, name: str) -> int:
        """Return the id of a name; an unknown name is a KeyError.

        Parameters
        ----------
        name : str
            A name.
        """
        try:
            return self._ids[name]
        except KeyError:
            raise KeyError(f"{name!r} is not one of the {len(self)} label names") from None

    @overload
    def encode(
        self, label_lists: Iterable[Iterable[str]], unknown: Literal["error", "ignore"] = ...
    ) -> sp.csr_matrix: ...
    @overload
    def encode(
        self, label_lists: Iterable[Iterable[str]], unknown: Literal["count"]
    ) -> tuple[sp.csr_matrix, np.ndarray]: ...
    def encode(self, label_lists: Iterable[Iterable[str]], unknown: str = "error") -> Any:
        """Return the label lists as ``Y``: CSR float32 (n, L) of ones. A name twice in a row counts
        once.

        ``unknown`` says what becomes of a name outside the vocabulary: "error" refuses it, "ignore"
        drops it, and "count" drops it too and returns ``(Y, counts)`` with the number of distinct
        unknown names of each row (n,) int64.

        Parameters
        ----------
        label_lists : iterable of iterables of str
            Names of the labels of each row.
        unknown : {"error", "ignore", "count"}, default="error"
            What becomes of other names.

        >>> Y, counts = Vocabulary(["cat"]).encode([["cat", "emu"], ["emu"]], unknown="count")
        >>> counts.tolist()
        [1, 1]
        """
        if unknown not in ("error", "ignore", "count"):
            raise ValueError(f"unknown must be 'error', 'ignore' or 'count', got {unknown!r}")
        ids, flat, ends, missing = self._ids, [], [0], []
        for row, labels in enumerate(label_lists):
            _refuse_bare_string(labels, row)
            names = dict.fromkeys(labels)  # a set that keeps the order, for the message below
            known = [ids[name] for name in names if name in ids]
            if len(known) < len(names):
                self._check_strangers(names, row, unknown)
            known.sort()
            flat.extend(known)
            ends.append(len(flat))
            missing.append(len(names) - len(known))
        Y = sp.csr_matrix(
            (
                np.ones(len(flat), np.float32),
                np.asarray(flat, np.int32),
                np.asarray(ends, np.int64),
            ),
            shape=(len(missing), len(self)),
        )
        return (Y, np.asarray(missing, np.int64)) if unknown == "count" else Y

    def _check_strangers(self, names: Iterable[object], row: int, unknown: str) -> None:
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"row {row} has the label {name!r}: label names must be strings")
            if unknown == "error" and name not in self._ids:
                raise ValueError(
                    f"row {row} has the label {name!r}, which is not one of the {len(self)} label "
                    "names: pass unknown='ignore' to drop such labels"
                )

    def decode(self, labels: Any) -> Any:
        """Return names for ids: a list, nested lists, an integer array, a CSR ``Y`` or a ``TopK``.

        The answer has the shape of the question; padding (-1) is left out. For a ``TopK`` each row
        is a list of ``(name, score)``, best first.

        Parameters
        ----------
        labels : list of int, array, CSR matrix or TopK
            Ids.

        >>> Vocabulary(["cat", "dog"]).decode(TopK([[1, -1]], [[0.5, -np.inf]]))
        [[('dog', 0.5)]]
        """
        if isinstance(labels, TopK):
            return [
                [(self.names[i], float(s)) for i, s in zip(ids, scores, strict=True) if i >= 0]
                for ids, scores in zip(
                    self._checked(labels.indices).tolist(), labels.scores, strict=True
                )
            ]
        if sp.issparse(labels):
            Y = labels.tocsr()
            if Y.shape[1] != len(self):
                raise ValueError(
                    f"the matrix has {Y.shape[1]} columns, but there are {len(self)} labels"
                )
            return [
                [self.names[i] for i in np.sort(Y.indices[start:end])]
                for start, end in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)
            ]
        if isinstance(labels, np.ndarray) and labels.ndim > 1:
            return [self.decode(row) for row in labels]
        if isinstance(labels, Sequence) and any(
            isinstance(row, (Sequence, np.ndarray)) for row in labels
        ):
            return [self.decode(row) for row in labels]
        return [
            self.names[i] for i in self._checked(np.asarray(labels)).reshape(-1).tolist() if i >= 0
        ]

    def _checked(self, ids: np.ndarray) -> np.ndarray:
        if ids.size and ids.dtype.kind not in "iu":
            raise TypeError(f"label ids must be whole numbers, got {ids.reshape(-1)[0]!r}")
        if ids.size and (ids.min() < -1 or ids.max() >= len(self)):
            wrong = ids.min() if ids.min() < -1 else ids.max()
            raise ValueError(f"label id {wrong} is out of range: there are {len(self)} labels")
        return ids

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the names as one JSON array of strings, in id order.

        Parameters
        ----------
        path : str or path
            Where the file is.
        """
        with open_for_writing(path) as file:
            file.write(json.dumps(self.names, ensure_ascii=False, indent=0).encode("utf-8"))
            file.write(b"\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """Read what ``save`` wrote.

        Parameters
        ----------
        path : str or path
            Where the file is.
        """
        try:
            names = json.loads(read_text(path))
        except (ValueError, RecursionError) as error:
            if isinstance(error, DataFormatError):
                raise
            line, column = getattr(error, "lineno", None), getattr(error, "colno", None)
            raise DataFormatError(
                f"expected a JSON array of label names: {error}",
                path=path,
                line=line,
                column=column,
            ) from None
        if not isinstance(names, list):
            raise DataFormatError(
                f"expected a JSON array of label names, got {type(names).__name__}", path=path
            )
        try:
            return cls(names)
        except (TypeError, ValueError) as error:
            raise DataFormatError(str(error), path=path) from None


def _refuse_bare_string(labels: object, row: int) -> None:
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
        raise TypeError(
            f"row {row} must be a list of label names, got {labels!r}: "
            f"write [{labels!r}] for a single label"
        )


def grown_names(
    known: Vocabulary | None, names: Sequence[str] | None, n_new: int
) -> Vocabulary | None:
    """Return the names of a model's labels and of ``n_new`` further ones: all have one, or none.

    >>> grown_names(Vocabulary(["cat"]), ["dog"], 1).names
    ('cat', 'dog')
    """
    if names is not None and len(names) != n_new:
        raise ValueError(f"names must be one per new label ({n_new}), got {len(names)}")
    if names is None and known is None:
        return None
    if names is None or known is None:
        missing = "the new labels" if names is None else "the old labels, see name_labels"
        raise ValueError(f"either all labels have names or none: names are missing for {missing}")
    return Vocabulary([*known, *names])


def names_without(known: Vocabulary | None, gone: np.ndarray) -> Vocabulary | None:
    """Return the names of the labels that are left where ``gone`` (L,) is True for the others.

    >>> names_without(Vocabulary(["cat", "dog"]), np.array([True, False])).names
    ('dog',)
    """
    if known is None:
        return None
    return Vocabulary([name for name, out in zip(known, gone, strict=True) if not out])
