"""From the DATA argument and its options to splits of texts (or features) and labels."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from longtail.cli.output import note

__all__ = ["DataOptions", "Part", "Source", "file_hash", "learned_targets", "parse_weights", "read"]


_REMEMBERED = ("text_column", "label_column", "label_separator")


@dataclass(frozen=True)
class DataOptions:
    """What the user said about the data; None where nothing was said.

    ``quiet``: whether a label separator that occurs nowhere is no news.
    """

    text_column: str | None = None
    label_column: str | None = None
    label_separator: str | None = None
    delimiter: str | None = None
    layout: str | None = None
    field_weights: dict[str, float] | None = None
    label_texts: str | os.PathLike[str] | None = None
    label_text_field: str | None = None
    quiet: bool = False

    def given(self) -> dict[str, Any]:
        """Options for ``longtail.load_dataset``."""
        out: dict[str, Any] = {}
        for name in ("label_column", "label_separator", "delimiter", "layout"):
            if getattr(self, name) is not None:
                out[name] = getattr(self, name)
        if out.get("delimiter") in ("\\t", "tab"):
            out["delimiter"] = "\t"
        if self.label_text_field is not None and self.label_texts is None:
            out["label_text_field"] = self.label_text_field
        if self.text_column is not None:
            columns = self.text_column.split(",")
            out["text_column"] = columns[0] if len(columns) == 1 else columns
        return out

    def to_remember(self, data: str) -> dict[str, str]:
        """Return what a model keeps of these options, to read other data of the same kind."""
        kept = {name: value for name in _REMEMBERED if (value := getattr(self, name)) is not None}
        if self.delimiter is not None:
            kept |= {"delimiter": self.delimiter, "format": _format(data)}
        return kept

    def with_remembered(self, tagger: Any, data: str) -> DataOptions:
        """Return these options, with those of the training where nothing was said.

        A delimiter holds for files of the format it was said of. The fields of the tagger are read
        one by one.
        """
        made = tagger.provenance_ or {}
        kept = made.get("reading")
        kept = kept if isinstance(kept, dict) else {}
        names = [*_REMEMBERED, *(["delimiter"] if kept.get("format") == _format(data) else [])]
        taken: dict[str, Any] = {
            name: kept[name]
            for name in names
            if getattr(self, name) is None and isinstance(kept.get(name), str)
        }
        if tagger.fields_ is not None:
            taken["field_weights"] = dict.fromkeys(tagger.fields_, 1.0)
        return replace(self, **taken, quiet="label_separator" in taken)


def _format(data: str) -> str:
    """Return how a file is written, for as much as its name tells."""
    from longtail.data.table_rows import is_table_name, table_format

    return table_format(data) if is_table_name(data) else ""


@dataclass(frozen=True)
class Part:
    """Rows: ``texts`` (list, texts by field, or features), ``Y``, counts of unknown labels."""

    texts: Any
    Y: Any
    unknown: Any = None

    def __len__(self) -> int:
        return int(self.Y.shape[0])


@dataclass(frozen=True)
class Source:
    """A data set as commands use it. ``test`` is None where the source has none.

    ``whole``: the training rows with those of ``test``, where these were taken from them.
    ``sha256``: of the file, or of the files of the folder; None for a data set by name.
    ``vectorizer``: what made the features, where that is known.
    """

    name: str
    train: Part
    dev: Part | None
    test: Part | None
    label_names: list[str]
    label_texts: list[str] | None
    whole: Part | None = None
    sha256: str | None = None
    vectorizer: Any = None

    @property
    def measured_on(self) -> str:
        """What the test split is, in words."""
        if self.test is None:
            return "nothing"
        if self.whole is None:
            return f"the test split, {len(self.test):,} rows"
        return f"{len(self.test):,} of {len(self.whole):,} rows, set aside at random"

    def split(self, wanted: str) -> tuple[str, Part]:
        """Return the split of a name; "auto" is test, or else dev, or else all there is."""
        if wanted == "auto":
            for name in ("test", "dev", "train"):
                part: Part | None = getattr(self, name)
                if part is not None and len(part):
                    return name, part
        part = getattr(self, wanted, None) if wanted in ("train", "dev", "test") else None
        if part is None or not len(part):
            have = [n for n in ("train", "dev", "test") if getattr(self, n) is not None]
            raise ValueError(f"{self.name} has no split {wanted!r}: it has {', '.join(have)}")
        return wanted, part


def parse_weights(text: str | None) -> dict[str, float] | None:
    """``title=2,abstract`` to ``{"title": 2.0, "abstract": 1.0}``."""
    if text is None:
        return None
    out = {}
    for item in text.split(","):
        field, _, weight = item.partition("=")
        try:
            out[field.strip()] = float(weight or 1)
        except ValueError:
            raise ValueError(f"--field-weights: expected field=number, got {item!r}") from None
    return out


def learned_targets(learn: bool, targets: str | None) -> bool | float | str:
    """``learn_label_texts`` of a tagger, from ``--learn-label-texts`` and ``--label-targets``."""
    if targets is None:
        return learn
    from longtail.augment.gandalf_rows import GRAPHS

    if targets in GRAPHS:
        return targets
    with contextlib.suppress(ValueError):
        if 0 <= float(targets) <= 1:
            return float(targets)
    raise ValueError(
        f"--label-targets must be one of {', '.join(GRAPHS)}, or a number from 0 to 1, "
        f"got {targets!r}"
    )


def read(data: str, options: DataOptions) -> Source:
    """Read everything. ``-`` is JSON lines on standard input."""
    import longtail as lt
    from longtail.features.vectorized import is_vectorized

    with _path(data) as path, _warnings(options):
        sha256 = file_hash(path)
        vectorizer = None
        if is_vectorized(path):
            loaded, columns = lt.features.load_vectorized(path), None
            vectorizer = lt.load(os.path.join(path, "vectorizer"))
            for option in options.given():
                flag = f"--{option.replace('_', '-')}"
                raise TypeError(f"{flag} has no meaning for rows that vectorize has written")
        elif options.field_weights is None:
            loaded = lt.load_dataset(path, **options.given())
            columns = None
        else:
            # The same rows, read once for each field.
            fields = list(options.field_weights)
            given = {k: v for k, v in options.given().items() if k != "text_column"}
            by_field = {f: lt.load_dataset(path, text_column=f, **given) for f in fields}
            loaded, columns = by_field[fields[0]], by_field
    parts: dict[str, Part | None] = {"train": None, "dev": None, "test": None}
    for name, split in loaded.splits.items():
        if split.Y is None:
            raise ValueError(f"the {name} split of {data} has no labels")
        if split.texts is None and split.X is None:
            raise ValueError(f"{data} has labels only, neither texts nor features to learn from")
        texts: Any = split.texts if split.texts is not None else split.X
        if columns is not None:
            texts = {f: other.splits[name].texts for f, other in columns.items()}
        parts[name] = Part(texts, split.Y, split.unknown_labels)
    names = loaded.label_names or [str(i) for i in range(loaded.n_labels)]
    train = parts["train"] or Part([], _nothing(loaded.n_labels))
    title = loaded.name or ("standard input" if data == "-" else data)
    label_texts = loaded.label_texts
    if options.label_texts is not None:
        label_texts = _texts_of(names, label_texts, options)
    return Source(
        title,
        train,
        parts["dev"],
        parts["test"],
        names,
        label_texts,
        sha256=sha256,
        vectorizer=vectorizer,
    )


@contextlib.contextmanager
def _warnings(options: DataOptions) -> Iterator[None]:
    """Warnings of reading, each once: where there are fields, the rows are read once for each."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        if options.quiet:
            warnings.filterwarnings("ignore", "label_separator=.* stands in no cell")
        yield


def file_hash(path: str) -> str | None:
    """SHA-256 of a file, or of the files directly inside a folder, in the order of their names."""
    if os.path.isdir(path):
        files = sorted(entry.path for entry in os.scandir(path) if entry.is_file())
    elif os.path.isfile(path):
        files = [path]
    else:
        return None
    digest = hashlib.sha256()
    for name in files:
        with open(name, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _texts_of(names: list[str], texts: list[str] | None, options: DataOptions) -> list[str]:
    """Return the label texts from the file of ``--label-texts``, by name; a label that it does not
    name keeps the text that the data has, if any.
    """
    from longtail.data import read_label_file

    assert options.label_texts is not None
    found = read_label_file(options.label_texts, text_field=options.label_text_field or "text")
    if found.texts is None:
        raise ValueError(
            f"--label-texts: {options.label_texts} has names only; give JSON lines (.jsonl) with "
            "label and text, or a .tsv"
        )
    by_name = dict(zip(found.names, found.texts, strict=True))
    n_known = sum(name in by_name for name in names)
    if not n_known:
        raise ValueError(
            f"--label-texts: none of the {len(by_name):,} labels of {options.label_texts} is one "
            f"of the {len(names):,} labels of the data, such as {names[0]!r}"
        )
    note(f"label texts: of {n_known:,} of {len(names):,} labels, from {options.label_texts}")
    before = [""] * len(names) if texts is None else texts
    return [by_name.get(name, text) for name, text in zip(names, before, strict=True)]


@contextlib.contextmanager
def _path(data: str) -> Iterator[str]:
    """The path itself; standard input is put into a file that lives as long as it is read."""
    if data != "-":
        yield data
        return
    if sys.stdin.isatty():
        raise ValueError("standard input is a terminal: pipe JSON lines into it, or name a file")
    with tempfile.TemporaryDirectory(prefix="longtail-") as folder:
        path = os.path.join(folder, "stdin.jsonl")
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield path


def _nothing(n_labels: int) -> Any:
    import numpy as np
    import scipy.sparse as sp

    return sp.csr_matrix((0, n_labels), dtype=np.float32)
