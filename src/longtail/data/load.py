"""``load_dataset``: a name, a path or a table in, a ``Dataset`` out.

a folder   read in the layout that its files tell, see ``longtail.data.detect``; a folder with
           one file is read as that file
a file     becomes the training split: a table (.csv, .tsv, .jsonl, .parquet), fastText lines,
           or the text format (``N D L``) or a label matrix (``N L``), told by its first line
a table    a pandas DataFrame, a pyarrow Table, …: becomes the training split
a name     looked up in the registry of public benchmarks, see ``longtail.data.registry``
"""

from __future__ import annotations

import inspect
import numbers
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from longtail._lines import FilePath, read_lines
from longtail._validation import as_seed
from longtail.data.dataset import Dataset, Split
from longtail.data.detect import LAYOUTS, detect_layout, has_label_marks, nothing_found
from longtail.data.fasttext_lines import iter_fasttext
from longtail.data.records import Record, splits_from_records
from longtail.data.table_rows import is_table, is_table_name
from longtail.data.tables import iter_table
from longtail.data.xc_format import read_label_matrix, read_xc
from longtail.exceptions import DataFormatError

__all__ = ["iter_records", "load_dataset"]


def load_dataset(
    source: Any,
    *,
    layout: str | None = None,
    test_size: float | int | None = None,
    random_state: Any = 0,
    **options: Any,
) -> Dataset:
    """Read a data set from a path, a table in memory, or the registry of public benchmarks.

    Texts stay texts: ``X`` is None where the source has no features.

    Parameters
    ----------
    source : str, path or table
        An existing path comes before a name of the registry.
    layout : str, default=None
        The reader of a folder, by name; None finds out.
    test_size : float or int, default=None
        A fraction, or a number, of training rows that are moved into the test split, for sources
        without one.
    random_state : int, Generator or None, default=0
        Seed of that draw.
    **options : object
        For tables ``text_column``, ``label_column``, ``label_separator``, ``text_joiner``,
        ``delimiter`` and ``by_field`` (see ``iter_table``); for a folder with a ``labels.jsonl``
        also ``label_text_field``, such as "text_en": the field that label texts come from, where a
        label has it (``text`` otherwise).

    Returns
    -------
    Dataset

    Raises
    ------
    DataFormatError
        If a file is not as its format says; with file, line and what was expected.
    TypeError
        If the reader does not know an option.
    FileNotFoundError
        If there is no such file, folder or benchmark.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"title": ["a cat", "a cow"], "tags": ["pet", "cattle;mammal"]})
    >>> load_dataset(frame, text_column="title", label_column="tags", label_separator=";")
    Dataset(train: 2 rows, raw text, 3 labels with names)
    >>> load_dataset(
    ...     frame, text_column=["title", "tags"], label_column=None, by_field=True
    ... ).train.fields["title"]
    ['a cat', 'a cow']
    """
    if layout is not None and layout not in LAYOUTS:
        raise ValueError(f"layout must be one of {', '.join(LAYOUTS)}, got {layout!r}")
    if is_table(source):
        splits, names = splits_from_records({"train": _call(iter_table, source, options)})
        dataset = Dataset(splits["train"], label_names=list(names))
    elif not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"expected a name, a path or a table, got {type(source).__name__}")
    elif os.path.exists(source):
        dataset = _with_constants(_read_path(source, layout, options))
    else:
        dataset = _read_registered(os.fspath(source), layout, options)
    return dataset if test_size is None else _hold_out(dataset, test_size, random_state)


def _read_path(path: FilePath, layout: str | None, options: dict[str, Any]) -> Dataset:
    if os.path.isdir(path):
        layout = layout or detect_layout(path)
        if layout is not None:
            dataset: Dataset = _call(LAYOUTS[layout].read, path, options)
            if not dataset.splits:
                raise nothing_found(path)
            return dataset
        files = [entry for entry in Path(path).iterdir() if entry.is_file()]
        if len(files) != 1:
            raise nothing_found(path)
        return replace(_read_file(files[0], options), name=Path(path).name)
    if layout is not None:
        raise ValueError(f"layout={layout!r} is for folders, but {os.fspath(path)} is a file")
    return _read_file(path, options)


def _read_file(path: FilePath, options: dict[str, Any]) -> Dataset:
    name = Path(path).name.removesuffix(".gz")
    name = os.path.splitext(name)[0]
    if _has_records(path):
        splits, names = splits_from_records({"train": iter_records(path, options)})
        return Dataset(splits["train"], label_names=list(names), name=name)
    header = next((line for _, line in read_lines(path)), "").split()
    if len(header) == 3 and all(map(str.isdecimal, header)):
        X, Y = _call(read_xc, path, options)
        return Dataset(Split(X=X, Y=Y), name=name)
    if len(header) == 2 and all(map(str.isdecimal, header)):
        return Dataset(Split(Y=_call(read_label_matrix, path, options)), name=name)
    raise DataFormatError(
        "expected a table (.csv, .tsv, .jsonl, .parquet), fastText lines with __label__, "
        "or a first line 'N D L' or 'N L'",
        path=path,
        line=1,
    )


def iter_records(path: FilePath, options: dict[str, Any]) -> Iterator[Record]:
    """Yield the rows of a table or of fastText lines, one in memory at a time.

    ``options`` are those of ``load_dataset``. Raises DataFormatError for any other file.
    """
    if not _has_records(path):
        raise DataFormatError(
            "expected a table (.csv, .tsv, .jsonl, .parquet) or fastText lines with __label__",
            path=path,
        )
    yield from _call(iter_table if is_table_name(path) else iter_fasttext, path, options)


def _has_records(path: FilePath) -> bool:
    return is_table_name(path) or has_label_marks(path)


def _call(reader: Callable[..., Any], source: Any, options: dict[str, Any]) -> Any:
    """Call a reader; an option that it does not know is refused by name."""
    known = inspect.signature(reader).parameters.values()
    names = [parameter.name for parameter in known if parameter.kind is parameter.KEYWORD_ONLY]
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known)
    for option in options:
        if option not in names and not takes_any:
            raise TypeError(
                f"{option}= has no meaning for this kind of data set"
                + (f" (known: {', '.join(names)})" if names else "")
            )
    return reader(source, **options)


def _read_registered(name: str, layout: str | None, options: dict[str, Any]) -> Dataset:
    from longtail.data.registry import benchmark, build_dataset, fetch_dataset

    try:
        entry = benchmark(name)
    except KeyError as error:
        raise FileNotFoundError(f"no file or folder {name!r}, and {error.args[0]}") from None
    if entry.builder is not None:
        for option in ([] if layout is None else ["layout"]) + list(options):
            raise TypeError(
                f"{option}= has no meaning for {entry.name}, which is not read from files"
            )
        built: Dataset = build_dataset(entry)
        return built
    dataset = _read_path(fetch_dataset(name), layout or entry.layout, options)
    return replace(dataset, name=entry.name, a=entry.a, b=entry.b)


def _with_constants(dataset: Dataset) -> Dataset:
    """Add the published propensity constants, for a folder that bears the name of a benchmark."""
    from longtail.data.registry import benchmark

    try:
        entry = benchmark(dataset.name or "")
    except KeyError:
        return dataset
    return replace(dataset, a=entry.a, b=entry.b)


def _hold_out(dataset: Dataset, test_size: float | int, random_state: Any) -> Dataset:
    if len(dataset.test):
        raise ValueError("test_size is for sources without a test split, but this one has one")
    n = len(dataset.train)
    if isinstance(test_size, bool) or not isinstance(test_size, numbers.Real):
        raise TypeError(f"test_size must be a number, got {test_size!r}")
    if n < 2:
        raise ValueError(f"test_size needs at least 2 training rows to divide, got {n}")
    whole = isinstance(test_size, numbers.Integral)
    if not 0 < test_size < (n if whole else 1):
        raise ValueError(
            f"test_size must lie between 0 and 1, or be a whole number from 1 to {n - 1}, "
            f"got {test_size!r}"
        )
    size = int(test_size) if whole else max(1, min(n - 1, round(n * test_size)))
    chosen = np.zeros(n, bool)
    order = np.random.default_rng(as_seed(random_state)).permutation(n)
    chosen[order[:size]] = True
    filters = {}
    if dataset.train_filter is not None:
        rows, labels = dataset.train_filter.T
        for field, mine in (("train_filter", ~chosen), ("test_filter", chosen)):
            new_rows = np.cumsum(mine) - 1
            keep = mine[rows]
            filters[field] = np.stack([new_rows[rows[keep]], labels[keep]], axis=1)
    train, test = dataset.train.take(~chosen), dataset.train.take(chosen)
    return replace(dataset, train=train, test=test, **filters)
