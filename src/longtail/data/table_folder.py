"""A folder of tables, one per split, with an optional label file.

    trn.jsonl.gz, dev.jsonl.gz, tst.jsonl.gz    ``text`` and ``labels`` (names); others ignored
    labels.jsonl.gz                             ``label`` and ``text``, in label-id order

Any table format serves (``train.csv``, ``test.parquet``, …; see ``longtail.data.tables``), a split
may be called train or trn, test or tst, dev, valid, validation or val. The ids are those of the
label file; a training label that it lacks is refused, one of another split is counted in
``Split.unknown_labels``, together with what records list as ``unseen_labels``. Without a label file
the label set is every name that occurs in any split, sorted.
"""

from __future__ import annotations

from typing import Any

from longtail._lines import FilePath
from longtail.data.dataset import Dataset
from longtail.data.label_file import write_label_file
from longtail.data.layout import find_splits, make_folder
from longtail.data.records import named_splits, read_record_folder
from longtail.data.tables import iter_table, write_table

__all__ = ["PATTERNS", "read_table_folder", "write_table_folder"]

PATTERNS = ("{}.jsonl", "{}.ndjson", "{}.csv", "{}.tsv", "{}.parquet")


def read_table_folder(
    folder: FilePath, *, label_text_field: str = "text", **options: Any
) -> Dataset:
    """Read every split; ``X`` stays None. The options are those of ``iter_table``.

    Parameters
    ----------
    folder : str or path
        Where the files are.
    label_text_field : str, default="text"
        Field of the label file that label texts come from.
    **options : object
        Those of ``iter_table``.
    """
    files = find_splits(folder, *PATTERNS)
    streams = {split: iter_table(path, **options) for split, path in files.items()}
    return read_record_folder(folder, streams, label_text_field=label_text_field)


def write_table_folder(folder: FilePath, dataset: Dataset, *, suffix: str = ".jsonl.gz") -> None:
    """Write every split as ``train``, ``dev`` or ``test`` with the suffix, and the label file.

    Parameters
    ----------
    folder : str or path
        Where the files are.
    dataset : Dataset
        What to write.
    suffix : str, default=".jsonl.gz"
        End of the file names, which tells the format.
    """
    target = make_folder(folder)
    for name, texts, label_lists in named_splits(dataset):
        write_table(target / f"{name}{suffix}", texts, label_lists)
    label_file = "labels.jsonl.gz" if suffix.endswith(".gz") else "labels.jsonl"
    write_label_file(target / label_file, list(dataset.vocabulary), dataset.label_texts)
