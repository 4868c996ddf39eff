"""Texts of any number, from files to rows on disk, a block in memory at a time.

    files ─ pass 1 ─► terms of each block, counted    ─ merged ─► vectorizer
                      labels of each file, numbered   ─ merged ─► labels.jsonl
    files ─ pass 2 ─► X/00000, X/00001, …   features, one shard per file
                      Y/00000, Y/00001, …   labels
                      rows.json             written last

Both passes are tasks, one per file: they run here, or on the workers of joblib
(``longtail.distributed``), which must see the files and the folder under the same paths. The rows
are those of ``Tfidf.fit_transform`` and ``load_dataset``, bit for bit, whoever made them.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import secrets
import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import __version__, persist
from longtail.data import Dataset, Split, read_label_file, write_label_file
from longtail.data.load import iter_records
from longtail.data.records import Record
from longtail.distributed.tasks import Task, finish, workers
from longtail.exceptions import DataFormatError
from longtail.features.mapped_rows import load_matrix, save_matrix
from longtail.features.tfidf import Tfidf

__all__ = ["first_texts", "is_vectorized", "load_vectorized", "vectorize_files"]

_BLOCK = 1 << 26  # characters
_DONE, _BEGUN, _NAMES, _VECTORIZER = "rows.json", "begun.json", "labels.jsonl", "vectorizer"


@dataclass(frozen=True)
class _Job:
    """What every task knows: parameters of the vectoriser, options of the reader."""

    folder: str
    files: tuple[str, ...]
    params: dict[str, Any] = field(hash=False)
    options: dict[str, Any] = field(hash=False)
    block: int
    token: str = field(default_factory=lambda: secrets.token_hex(6))  # tells calls apart

    def path(self, kind: str, shard: int) -> Path:
        return Path(self.folder, kind, f"{shard:05d}")

    def blocks(self, shard: int) -> Iterator[list[Record]]:
        """Rows of a file, as many at a time as have about ``block`` characters."""
        rows: list[Record] = []
        size = 0
        for record in iter_records(self.files[shard], self.options):
            rows.append(record)
            size += len(record.text) + 64
            if size >= self.block:
                yield rows
                rows, size = [], 0
        if rows:
            yield rows


def vectorize_files(
    files: Iterable[str | os.PathLike[str]],
    folder: str | os.PathLike[str],
    vectorizer: Tfidf | None = None,
    *,
    block: int = _BLOCK,
    overwrite: bool = False,
    **options: Any,
) -> Tfidf:
    """Turn files of texts with labels into rows on disk, and return the fitted vectoriser.

    Reads every file twice and holds a block of its texts at a time, the terms that are kept, and
    the names of the labels. A call that was cut short, made again, does what is missing.

    Parameters
    ----------
    files : iterable of path
        Tables (.csv, .tsv, .jsonl, .parquet) or fastText lines; their rows follow one another in
        this order.
    folder : str or path
        Where the rows go, for ``load_vectorized``.
    vectorizer : Tfidf, default=None
        What to count; its parameters are used, it is not changed. None is ``Tfidf()``.
    block : int
        Characters of text in memory at a time.
    overwrite : bool, default=False
        Replace rows that are there.
    **options : object
        ``text_column``, ``label_column`` and so on, as for ``load_dataset``.

    Raises FileExistsError if the folder holds something else, and whatever reading a file raises.

    >>> import tempfile, longtail as lt
    >>> folder = tempfile.mkdtemp()
    >>> for i, word in enumerate(["cat", "cow"]):
    ...     row = {"text": f"a {word}", "labels": [word]}
    ...     _ = Path(folder, f"{i}.jsonl").write_text(json.dumps(row))
    >>> files = sorted(Path(folder).glob("*.jsonl"))
    >>> vectorizer = lt.features.vectorize_files(files, f"{folder}/rows", lt.Tfidf(min_df=1))
    >>> data = lt.features.load_vectorized(f"{folder}/rows")
    >>> data.train.X.toarray().tolist(), data.label_names
    ([[1.0, 0.0], [0.0, 1.0]], ['cat', 'cow'])
    """
    if isinstance(files, (str, os.PathLike)):
        raise TypeError(f"files must be a list of paths, got the single path {os.fspath(files)!r}")
    paths = tuple(os.path.abspath(path) for path in files)
    if not paths:
        raise ValueError("there are no files: give at least one")
    if block < 1:
        raise ValueError(f"block must be at least 1 character, got {block}")
    template = Tfidf() if vectorizer is None else vectorizer
    place = Path(folder).absolute()
    job = _Job(str(place), paths, template.get_params(deep=False), options, block)
    _begin(job, overwrite)
    shards = range(len(paths))
    _run(job, [Task(f"counts/{i:05d}", _count, (job, i)) for i in shards], "counting terms")
    fitted = Tfidf(**job.params)
    counts = [job.path("counts", i) for i in shards]
    sizes = [persist.load(path).count("n_blocks") for path in counts]
    fitted.fit_counts(
        [
            persist.load(_block_path(job, i, j))
            for i, size in zip(shards, sizes, strict=True)
            for j in range(size)
        ]
    )
    names = sorted(set().union(*(_names(path) for path in counts)))
    fitted.save(place / _VECTORIZER, overwrite=True)
    write_label_file(place / _NAMES, names)
    _run(job, [Task(f"X/{i:05d}", _write, (job, i)) for i in shards], "writing rows")
    done = {"format": "longtail-rows", "format_version": 1, "shards": len(paths)}
    _put(place / _DONE, done)
    for name in ("counts", "blocks"):
        shutil.rmtree(place / name, ignore_errors=True)
    os.unlink(place / _BEGUN)
    return fitted


def load_vectorized(folder: str | os.PathLike[str]) -> Dataset:
    """Return the rows that ``vectorize_files`` wrote as a training split: ``X`` mapped, and ``Y``.

    ``vectorizer`` of the data set is what made ``X``; shards are joined as by ``load_matrix``.
    Raises DataFormatError for another folder, or one that is not finished.

    Parameters
    ----------
    folder : str or path
        Where the files are.
    """
    place = Path(folder)
    if not is_vectorized(place):
        why = "vectorizing was cut short: run it again" if (place / _BEGUN).exists() else "not rows"
        raise DataFormatError(f"expected {_DONE}, of vectorize_files; {why}", path=place)
    shards = _got(place / _DONE).get("shards")
    if not isinstance(shards, int) or shards < 1:
        raise DataFormatError("expected a number of shards", path=place / _DONE)
    X, Y = (load_matrix([place / kind / f"{i:05d}" for i in range(shards)]) for kind in ("X", "Y"))
    names = read_label_file(place / _NAMES).names
    return Dataset(
        Split(X=X, Y=Y),
        label_names=names,
        name=place.absolute().name,
        vectorizer=Tfidf._from_state(persist.load(place / _VECTORIZER)),
    )


def first_texts(files: Sequence[str | os.PathLike[str]], n: int, **options: Any) -> list[str]:
    """Return the texts of the first ``n`` rows, to choose from what to count."""
    rows = chain.from_iterable(iter_records(path, options) for path in files)
    return [row.text for row in islice(rows, n)]


def is_vectorized(folder: str | os.PathLike[str]) -> bool:
    """Return whether a folder holds the finished rows of ``vectorize_files``."""
    return Path(folder, _DONE).is_file()


def _begin(job: _Job, overwrite: bool) -> None:
    """Make the folder, or find it as the same call has left it."""
    place = Path(job.folder)
    digest = hashlib.sha256(__version__.encode())
    digest.update(json.dumps([job.params, job.options, job.block], default=str).encode())
    for path in job.files:
        about = os.stat(path)  # raises FileNotFoundError before anything is made
        digest.update(f"{path}\0{about.st_size}\0{about.st_mtime_ns}".encode())
    problem = {"fingerprint": digest.hexdigest()}
    if place.is_dir() and any(place.iterdir()):
        if (place / _BEGUN).exists() and _got(place / _BEGUN) == problem:
            return
        ours = (place / _BEGUN).exists() or is_vectorized(place)
        if not (ours and overwrite):
            what = (
                "holds rows already: pass overwrite=True to replace them"
                if ours
                else "is not empty"
            )
            raise FileExistsError(f"{place} {what}, or name another folder")
        for name in (_DONE, _BEGUN, _NAMES):
            (place / name).unlink(missing_ok=True)
        for name in ("counts", "blocks", "X", "Y", _VECTORIZER):
            shutil.rmtree(place / name, ignore_errors=True)
    for name in ("counts", "blocks", "X", "Y"):
        (place / name).mkdir(parents=True, exist_ok=True)
    _put(place / _BEGUN, problem)


def _run(job: _Job, tasks: Sequence[Task], what: str) -> None:
    """Do what is missing, here or by the workers of joblib."""
    place = Path(job.folder)
    missing = [task for task in tasks if not (place / task.name).is_dir()]
    if missing and workers() is not None:
        finish(missing, place, what=what)
        return
    for task in missing:
        task.run(*task.args, watch=lambda: None)


def _count(job: _Job, shard: int, *, watch: Callable[[], None]) -> None:
    """Pass 1 over a file: terms of its blocks, and its labels by numbers of its own."""
    vectorizer = Tfidf(**job.params)
    ids: dict[str, int] = {}
    flat, ends = array("i"), array("q", [0])
    n_blocks = 0
    for rows in job.blocks(shard):
        watch()
        counts = vectorizer.count_terms([row.text for row in rows])
        persist.save(_block_path(job, shard, n_blocks), counts, overwrite=True)
        n_blocks += 1
        for row in rows:
            flat.extend(ids.setdefault(name, len(ids)) for name in row.labels)
            ends.append(len(flat))
    state = persist.State("file-labels", meta={"n_blocks": n_blocks})
    state.put_strings("label_name", ids)
    state.arrays |= {
        "labels": np.asarray(flat, np.int32),
        "row_ends": np.asarray(ends, np.int64),
    }
    persist.save(job.path("counts", shard), state, overwrite=True)


def _write(job: _Job, shard: int, *, watch: Callable[[], None]) -> None:
    """Pass 2 over a file: its labels by the numbers of all, and its features."""
    vectorizer, numbers = _learned(job)
    state = persist.load(job.path("counts", shard))
    own = np.array([numbers[name] for name in _names(job.path("counts", shard))], np.int32)
    labels, ends = state.arrays["labels"], state.arrays["row_ends"]
    Y = sp.csr_matrix(
        (np.ones(len(labels), np.float32), own[labels] if len(labels) else labels, ends),
        shape=(len(ends) - 1, len(numbers)),
    )
    Y.sum_duplicates()
    Y.data[:] = 1
    save_matrix(job.path("Y", shard), Y, overwrite=True)

    def features() -> Iterator[Any]:
        for rows in job.blocks(shard):
            watch()
            yield vectorizer.transform([row.text for row in rows])
        if len(ends) == 1:  # a file without rows
            yield sp.csr_matrix((0, vectorizer.n_columns_), dtype=np.float32)

    save_matrix(job.path("X", shard), features(), overwrite=True)


@functools.lru_cache(maxsize=1)
def _learned(job: _Job) -> tuple[Tfidf, dict[str, int]]:
    """Return the fitted vectoriser and the number of each label; read once by a worker."""
    vectorizer = Tfidf._from_state(persist.load(Path(job.folder, _VECTORIZER)))
    names = read_label_file(Path(job.folder, _NAMES)).names
    return vectorizer, {name: i for i, name in enumerate(names)}


def _block_path(job: _Job, shard: int, block: int) -> Path:
    return Path(job.folder, "blocks", f"{shard:05d}-{block:05d}")


def _names(path: Path) -> list[str]:
    return persist.load(path).strings("label_name")


def _put(path: Path, value: dict[str, Any]) -> None:
    draft = path.with_name(f".{path.name}-{os.getpid()}")
    draft.write_text(json.dumps(value))
    os.replace(draft, path)


def _got(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text())
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {}
