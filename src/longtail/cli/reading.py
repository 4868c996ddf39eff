"""From the DATA argument and its options to a ``Dataset``."""

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
from typing import TYPE_CHECKING, Any

from longtail.cli.output import note

if TYPE_CHECKING:
    from longtail.data import Dataset, Split

__all__ = ["DataOptions", "file_hash", "learned_targets", "parse_weights", "read", "split_of"]


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
        """Return the options for ``longtail.load_dataset``."""
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


def split_of(dataset: Dataset, wanted: str) -> tuple[str, Split]:
    """Return the name and the rows of a split; "auto" is test, or else dev, or else train."""
    have = {name: rows for name, rows in dataset.splits.items() if len(rows)}
    names = ("test", "dev", "train") if wanted == "auto" else (wanted,)
    for name in names:
        if name in have:
            return name, have[name]
    raise ValueError(f"{dataset.name} has no split {wanted!r}: it has {', '.join(have) or 'none'}")


def parse_weights(text: str | None) -> dict[str, float] | None:
    """Turn ``title=2,abstract`` into ``{"title": 2.0, "abstract": 1.0}``."""
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
    """Return ``learn_label_texts`` of a tagger, from ``--learn-label-texts`` and
    ``--label-targets``.
    """
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


def read(data: str, options: DataOptions) -> Dataset:
    """Return a data set as commands use it: every split has labels, and every label a name.

    ``-`` is JSON lines on standard input. Features stay only where there are no texts, and filter
    pairs are left out: commands make no use of them.
    """
    with _path(data) as path, warnings.catch_warnings():
        if options.quiet:
            warnings.filterwarnings("ignore", "label_separator=.* stands in no cell")
        loaded = _load(path, options)
        sha256 = file_hash(path)
    splits: dict[str, Any] = {}
    for name, split in loaded.splits.items():
        if split.Y is None:
            raise ValueError(f"the {name} split of {data} has no labels")
        if split.inputs is None:
            raise ValueError(f"{data} has labels only, neither texts nor features to learn from")
        splits[name] = split if split.texts is None else replace(split, X=None)
    names = loaded.label_names or [str(i) for i in range(loaded.n_labels)]
    label_texts = loaded.label_texts
    if options.label_texts is not None:
        label_texts = _texts_of(names, label_texts, options)
    return replace(
        loaded,
        **splits,
        label_names=names,
        label_texts=label_texts,
        name=loaded.name or ("standard input" if data == "-" else data),
        train_filter=None,
        test_filter=None,
        sha256=sha256,
    )


def _load(path: str, options: DataOptions) -> Dataset:
    import longtail as lt
    from longtail.features.vectorized import is_vectorized

    given = options.given()
    if is_vectorized(path):
        for option in given:
            flag = f"--{option.replace('_', '-')}"
            raise TypeError(f"{flag} has no meaning for rows that vectorize has written")
        return lt.features.load_vectorized(path)
    if options.field_weights is not None:
        given |= {"text_column": list(options.field_weights), "by_field": True}
    return lt.load_dataset(path, **given)


def file_hash(path: str) -> str | None:
    """Return the SHA-256 of a file, or of the files directly inside a folder, in the order of their
    names.
    """
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
    """Yield the path itself; standard input is put into a file that lives as long as it is read."""
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
