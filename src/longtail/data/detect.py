"""Which layout a folder has, told from the files in it.

The layouts are tried in this order, and the first that fits is it:

    tables          train.jsonl, trn.csv, test.parquet, …         (table_folder)
    label-features  trn.json, tst.json, lbl.json                  (label_features)
    pecos           Y.trn.npz, Y.tst.npz                          (pecos_folder)
    npz             Y_train.npz, trn_X_Y.npz                      (npz_pairs)
    raw-text        train_texts.txt and train_labels.txt          (raw_text)
    label-matrix    trn_X_Y.txt, tst_X_Y.txt: ``N L``             (xc_folder)
    fasttext        train.txt, test.txt: ``__label__`` lines      (fasttext_lines)
    xc              train.txt, test.txt: ``N D L``                (xc_folder)

Every file may be gzip, and a folder may hold the test split alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from longtail._lines import FilePath, read_lines
from longtail.data import (
    fasttext_lines,
    label_features,
    npz_pairs,
    pecos_folder,
    raw_text,
    table_folder,
    xc_folder,
)
from longtail.data.dataset import Dataset
from longtail.data.layout import SHORT_NAMES, find_file, find_splits
from longtail.exceptions import DataFormatError

__all__ = ["LAYOUTS", "Layout", "detect_layout", "has_label_marks", "nothing_found"]


@dataclass(frozen=True)
class Layout:
    """A folder layout: what it looks for, whether that is there, and its reader."""

    files: str
    fits: Callable[[FilePath], bool]
    read: Callable[..., Dataset]


def has_label_marks(path: FilePath) -> bool:
    """Return whether a word with fastText's ``__label__`` stands in one of the first 20 lines."""
    try:
        words = (line.split() for _, line in islice(read_lines(path), 20))
        return any(word.startswith(fasttext_lines.PREFIX) for line in words for word in line)
    except DataFormatError:
        return False


def _holds(*patterns: str) -> Callable[[FilePath], bool]:
    return lambda folder: bool(find_splits(folder, *patterns))


def _is_pecos(folder: FilePath) -> bool:
    names = (f"Y.{short}.npz" for short in SHORT_NAMES.values())
    return find_file(folder, *names) is not None


def _is_fasttext(folder: FilePath) -> bool:
    return any(map(has_label_marks, find_splits(folder, "{}.txt").values()))


def _is_xc(folder: FilePath) -> bool:
    # Without a look at the header: a bad one is better reported by the reader than passed over.
    return bool(xc_folder.xc_files(folder))


LAYOUTS = {
    "tables": Layout(
        "train, dev or test with .jsonl, .csv, .tsv or .parquet",
        _holds(*table_folder.PATTERNS),
        table_folder.read_table_folder,
    ),
    "label-features": Layout(
        "trn.json or tst.json",
        _holds(*label_features.PATTERNS),
        label_features.read_label_feature_folder,
    ),
    "pecos": Layout("Y.trn.npz or Y.tst.npz", _is_pecos, pecos_folder.read_pecos_folder),
    "npz": Layout(
        "Y_train.npz or trn_X_Y.npz", _holds(*npz_pairs.LABELS), npz_pairs.read_npz_folder
    ),
    "raw-text": Layout(
        "train_texts.txt and train_labels.txt",
        _holds(*raw_text.LABELS, *raw_text.TEXTS),
        raw_text.read_raw_text_folder,
    ),
    "label-matrix": Layout(
        "trn_X_Y.txt or tst_X_Y.txt", _holds(xc_folder.LABELS), xc_folder.read_label_matrix_folder
    ),
    "fasttext": Layout(
        "train.txt or test.txt with __label__", _is_fasttext, fasttext_lines.read_fasttext_folder
    ),
    "xc": Layout("train.txt or test.txt", _is_xc, xc_folder.read_xc_folder),
}


def detect_layout(folder: FilePath) -> str | None:
    """Return the name of the first layout that fits, or None."""
    return next((name for name, layout in LAYOUTS.items() if layout.fits(folder)), None)


def nothing_found(folder: FilePath) -> DataFormatError:
    """Return the error for a folder that no layout fits: what was looked for, and what is there."""
    looked_for = "; ".join(f"{layout.files} ({name})" for name, layout in LAYOUTS.items())
    inside = ", ".join(sorted(os.listdir(folder))[:10]) or "nothing"
    return DataFormatError(
        f"no data set in this folder. Looked for, plain or .gz: {looked_for}. "
        f"The folder holds: {inside}",
        path=folder,
    )
