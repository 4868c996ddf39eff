"""``Split`` and ``Dataset``: what every reader returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail._validation import as_features, as_labels, check_same_rows
from longtail.answers.vocabulary import Vocabulary

if TYPE_CHECKING:
    from longtail.data.describe import Description

__all__ = ["Dataset", "Split"]


@dataclass(eq=False, repr=False)
class Split:
    """Hold rows of a data set: features, labels, texts; any may be None.

    To put features next to texts, ``dataclasses.replace(split, X=X)``, which checks again.

    Parameters
    ----------
    X : matrix of shape (n, d), default=None
        Features; kept as CSR or dense float32.
    Y : matrix of shape (n, L), or lists of label ids, default=None
        Labels; kept as CSR float32 with values in (0, 1].
    texts : list of str, default=None
        One text per row. Filled from ``fields`` where only these are given.
    unknown_labels : ndarray of shape (n,), default=None
        How many true labels of each row the label set does not hold, so that ``Y`` cannot show
        them.
    fields : dict of str to list of str, default=None
        The texts by field, such as title and abstract, which a ``Tagger`` can weigh.

    Raises
    ------
    ValueError
        If they describe different numbers of rows.
    TypeError
        If texts are not strings.

    Examples
    --------
    >>> Split(Y=[[0, 2], [1]], texts=["first", "second"])
    Split(2 rows, 3 labels, texts)
    >>> Split(fields={"title": ["cats", "cows"], "body": ["purr", ""]}).texts
    ['cats purr', 'cows']
    """

    X: Any = None
    Y: Any = None
    texts: list[str] | None = None
    unknown_labels: np.ndarray | None = None
    fields: dict[str, list[str]] | None = None

    def __post_init__(self) -> None:
        if self.X is not None:
            self.X = as_features(self.X)
        if self.Y is not None:
            self.Y = as_labels(self.Y)
        if self.fields is not None:
            self.fields = _as_fields(self.fields)
            if self.texts is None:
                self.texts = _joined(self.fields)
        self.texts = _as_strings(self.texts, "texts")
        if self.unknown_labels is not None:
            self.unknown_labels = np.asarray(self.unknown_labels, dtype=np.int64)
        sizes = self._sizes()
        for name, size in sizes[1:]:
            check_same_rows(sizes[0][1], size, sizes[0][0], name)

    def _sizes(self) -> list[tuple[str, int]]:
        sizes = [
            (name, int(m.shape[0])) for name, m in (("X", self.X), ("Y", self.Y)) if m is not None
        ]
        others: list[tuple[str, Any]] = [("texts", self.texts)]
        others += [(f"fields[{name!r}]", column) for name, column in (self.fields or {}).items()]
        others.append(("unknown_labels", self.unknown_labels))
        return sizes + [(name, len(values)) for name, values in others if values is not None]

    def __len__(self) -> int:
        sizes = self._sizes()
        return sizes[0][1] if sizes else 0

    @property
    def inputs(self) -> Any:
        """What a ``Tagger`` reads of the rows: texts by field, or else texts, or else features."""
        if self.fields is not None:
            return self.fields
        return self.X if self.texts is None else self.texts

    @property
    def n_unknown_labels(self) -> int:
        """True labels outside the label set, over all rows."""
        return 0 if self.unknown_labels is None else int(self.unknown_labels.sum())

    def take(self, rows: Any) -> Split:
        """Return a subset of rows (slice, boolean mask or array of row numbers), in the order
        given.

        Parameters
        ----------
        rows : slice, mask or array of int
            Which rows, in which order.

        >>> Split(Y=[[0], [1], [2]], texts=["a", "b", "c"]).take([2, 0]).texts
        ['c', 'a']
        """
        chosen = np.atleast_1d(np.arange(len(self))[rows])
        numbers = chosen.tolist()
        fields = None
        if self.fields is not None:
            fields = {name: [column[i] for i in numbers] for name, column in self.fields.items()}
        return Split(
            X=None if self.X is None else self.X[chosen],
            Y=None if self.Y is None else self.Y[chosen],
            texts=None if self.texts is None else [self.texts[i] for i in numbers],
            unknown_labels=None if self.unknown_labels is None else self.unknown_labels[chosen],
            fields=fields,
        )

    def __repr__(self) -> str:
        if not self._sizes():
            return "Split(empty)"
        facts = [f"{len(self)} rows"]
        if self.X is not None:
            facts.append(f"{self.X.shape[1]} features")
        if self.Y is not None:
            facts.append(f"{self.Y.shape[1]} labels")
        if self.fields is not None:
            facts.append(f"texts by {', '.join(self.fields)}")
        elif self.texts is not None:
            facts.append("texts")
        return f"Split({', '.join(facts)})"


@dataclass(eq=False, repr=False)
class Dataset:
    """Hold training and test rows over one label set.

    Parameters
    ----------
    train, test : Split
        The rows; an empty ``Split()`` where the source has none.
    dev : Split, default=None
        Rows to validate on.
    label_names : list of str, default=None
        Unique names, in the order of label ids.
    label_texts : list of str, default=None
        What labels are called in words, in the same order.
    feature_names : list of str, default=None
        Names of the columns of ``X``.
    name : str, default=None
        What the data set is called.
    train_filter, test_filter : ndarray of shape (m, 2), default=None
        Pairs (row, label) that evaluation must leave out.
    a, b : float, default=None
        Published constants of the Jain propensity.
    inverse_propensity : ndarray of shape (L,), default=None
        Published weights of labels.
    vectorizer : Tfidf, default=None
        What made ``X``, where that is known.
    sha256 : str, default=None
        Hash of the file it was read from, or of the files of the folder, where that is known.
    whole : Split, default=None
        Training and test rows together, where the test rows were drawn from them.

    Raises
    ------
    ValueError
        If splits differ in width, names or texts of labels in number, filter pairs are out of
        range, or label names are empty or occur twice.
    TypeError
        If names or texts are not strings.

    Examples
    --------
    >>> Dataset(Split(Y=[[0, 1], [1]]), label_names=["cat", "dog"], name="pets")
    Dataset('pets', train: 2 rows, 2 labels with names)
    >>> Dataset(train=Split(Y=[{0, 1}]), test=Split(Y=[[0]]))
    Traceback (most recent call last):
    ...
    ValueError: the splits have different numbers of labels: train 2, test 1
    """

    train: Split = field(default_factory=Split)
    test: Split = field(default_factory=Split)
    dev: Split | None = None
    label_names: list[str] | None = None
    label_texts: list[str] | None = None
    feature_names: list[str] | None = None
    name: str | None = None
    train_filter: np.ndarray | None = None
    test_filter: np.ndarray | None = None
    a: float | None = None
    b: float | None = None
    inverse_propensity: np.ndarray | None = None
    vectorizer: Any = None
    sha256: str | None = None
    whole: Split | None = None

    def __post_init__(self) -> None:
        if self.label_names is not None:
            self.label_names = list(self.vocabulary.names)
        self.label_texts = _as_strings(self.label_texts, "label_texts")
        self.feature_names = _as_strings(self.feature_names, "feature_names")
        if self.inverse_propensity is not None:
            self.inverse_propensity = np.asarray(self.inverse_propensity, np.float64).reshape(-1)
        _same_width(
            "features", {k: s.X for k, s in self.splits.items()}, feature_names=self.feature_names
        )
        _same_width(
            "labels",
            {k: s.Y for k, s in self.splits.items()},
            label_names=self.label_names,
            label_texts=self.label_texts,
            inverse_propensity=self.inverse_propensity,
        )
        self.train_filter = self._as_filter(self.train_filter, self.train, "train_filter")
        self.test_filter = self._as_filter(self.test_filter, self.test, "test_filter")

    def _as_filter(self, pairs: Any, split: Split, name: str) -> np.ndarray | None:
        if pairs is None:
            return None
        checked: np.ndarray = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        # A source may give the pairs of a split but not the split itself: then any row is legal.
        for column, what, bound in ((0, "row", len(split)), (1, "label", self.n_labels)):
            values = checked[:, column]
            if len(values) and (values.min() < 0 or (bound and values.max() >= bound)):
                wrong = values.min() if values.min() < 0 else values.max()
                raise ValueError(
                    f"{name} names the {what} {wrong}, but there are {bound} (counted from 0)"
                )
        return checked

    @property
    def splits(self) -> dict[str, Split]:
        """The splits that hold anything, by name."""
        named = {"train": self.train, "dev": self.dev, "test": self.test}
        return {
            name: split for name, split in named.items() if split is not None and split._sizes()
        }

    @property
    def validation(self) -> Split | None:
        """Another name for ``dev``."""
        return self.dev

    @property
    def n_labels(self) -> int:
        """Size of the label set, L."""
        widths = [int(s.Y.shape[1]) for s in self.splits.values() if s.Y is not None]
        known = (self.label_names, self.label_texts, self.inverse_propensity)
        return (widths + [len(values) for values in known if values is not None] + [0])[0]

    @property
    def n_features(self) -> int | None:
        """Width of the features, D; None where no split has features (raw text)."""
        widths = [int(s.X.shape[1]) for s in self.splits.values() if s.X is not None]
        return widths[0] if widths else None

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Label names as a two-way table; refused where the data set has no names."""
        if self.label_names is None:
            raise ValueError(
                f"the data set {self.name or ''} has no label names".replace("  ", " ")
            )
        return Vocabulary(self.label_names)

    def describe(self) -> Description:
        """Return the field's statistics of this data set: see ``longtail.data.describe``."""
        from longtail.data.describe import describe

        return describe(self)

    def __repr__(self) -> str:
        facts = [repr(self.name)] if self.name else []
        facts += [f"{name}: {len(split)} rows" for name, split in self.splits.items()]
        if self.n_features is not None:
            facts.append(f"{self.n_features} features")
        elif any(split.texts is not None for split in self.splits.values()):
            facts.append("raw text")
        extras = [
            w
            for w, v in (("names", self.label_names), ("texts", self.label_texts))
            if v is not None
        ]
        facts.append(
            f"{self.n_labels} labels" + (f" with {' and '.join(extras)}" if extras else "")
        )
        return f"Dataset({', '.join(facts)})"


def _as_fields(fields: Any) -> dict[str, list[str]]:
    if not isinstance(fields, Mapping) or not fields:
        raise TypeError(f"fields must map names to lists of texts, got {fields!r:.100}")
    return {name: _as_strings(column, f"fields[{name!r}]") for name, column in fields.items()}


def _joined(fields: dict[str, list[str]]) -> list[str]:
    rows = zip_longest(*fields.values(), fillvalue="")  # fields of other lengths are refused later
    return [" ".join(text for text in row if text) for row in rows]


def _as_strings(values: Any, name: str) -> Any:
    if values is None:
        return None
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{name} must be a list of strings, got one string")
    values = values if isinstance(values, list) else list(values)
    for i, value in enumerate(values):
        if not isinstance(value, str):
            raise TypeError(f"{name}[{i}] must be a string, got {value!r}")
    return values


def _same_width(what: str, matrices: dict[str, Any], **lists: Any) -> None:
    widths = {name: int(m.shape[1]) for name, m in matrices.items() if m is not None}
    if len(set(widths.values())) > 1:
        found = ", ".join(f"{name} {width}" for name, width in widths.items())
        raise ValueError(f"the splits have different numbers of {what}: {found}")
    widths.update({name: len(values) for name, values in lists.items() if values is not None})
    for name, width in widths.items():
        first, expected = next(iter(widths.items()))
        if width != expected:
            raise ValueError(f"{name} has {width} entries, but {first} has {expected} {what}")
