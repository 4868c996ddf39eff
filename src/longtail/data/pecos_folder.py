"""The PECOS folder layout.

    X.trn.npz, X.tst.npz     features, sparse; or X.trn.npy, dense. Optional. Also found one folder
                             down, as in the published archives (tfidf-attnxml/X.trn.npz)
    Y.trn.npz, Y.tst.npz     labels, what ``scipy.sparse.save_npz`` writes
    X.trn.txt, X.tst.txt     texts, one per line: optional
    output-items.txt         texts of the labels, one per line, in id order: optional

The lines of ``output-items.txt`` become ``label_texts``; they also serve as ``label_names`` where
no two are equal and none is empty. A development split is ``X.val.npz`` and so on.

Refuses texts, X and Y of different lengths, and more than one subfolder with features; a text with
a line break cannot be written.
"""

from __future__ import annotations

from pathlib import Path

import scipy.sparse as sp

from longtail._lines import FilePath, read_lines, write_lines
from longtail.data.dataset import Dataset, Split
from longtail.data.layout import SHORT_NAMES, assemble, find_file, make_folder
from longtail.data.npz_pairs import read_npz_pair, write_matrix
from longtail.exceptions import DataFormatError

__all__ = ["read_pecos_folder", "write_pecos_folder"]

_ITEMS = "output-items.txt"


def read_pecos_folder(folder: FilePath) -> Dataset:
    """Read every split, texts and features where they are given, and the label texts.

    Parameters
    ----------
    folder : str or path
        Where the files are.
    """
    splits = {}
    for split, short in SHORT_NAMES.items():
        y_path = find_file(folder, f"Y.{short}.npz")
        if y_path is None:
            continue
        X, Y = read_npz_pair(_features(folder, short), y_path)
        text_path = find_file(folder, f"X.{short}.txt")
        texts = None if text_path is None else [line for _, line in read_lines(text_path)]
        if texts is not None and len(texts) != Y.shape[0]:
            raise DataFormatError(
                f"expected {Y.shape[0]} lines, one for each row of {y_path.name}, got {len(texts)}",
                path=text_path,
            )
        splits[split] = Split(X=X, Y=Y, texts=texts)
    items_path = find_file(folder, _ITEMS)
    items = None if items_path is None else [line for _, line in read_lines(items_path)]
    named = items is not None and len(set(items)) == len(items) and "" not in items
    return assemble(folder, splits, label_texts=items, label_names=items if named else None)


def _features(folder: FilePath, short: str) -> Path | None:
    names = (f"X.{short}.npz", f"X.{short}.npy")
    here = find_file(folder, *names)
    if here is not None:
        return here
    below = [
        path
        for sub in sorted(Path(folder).iterdir())
        if sub.is_dir() and (path := find_file(sub, *names)) is not None
    ]
    if len(below) > 1:
        raise DataFormatError(
            f"features in more than one subfolder ({', '.join(p.parent.name for p in below)}): "
            "move the wanted ones next to Y",
            path=folder,
        )
    return below[0] if below else None


def write_pecos_folder(folder: FilePath, dataset: Dataset) -> None:
    """Write every split; ``output-items.txt`` holds the label texts, or else the label names.

    Parameters
    ----------
    folder : str or path
        Where the files are.
    dataset : Dataset
        What to write.
    """
    target = make_folder(folder)
    for name, split in dataset.splits.items():
        short = SHORT_NAMES[name]
        if split.Y is None:
            raise ValueError(f"the {name} split has no labels: this layout needs them")
        if split.X is not None:
            suffix = "npz" if sp.issparse(split.X) else "npy"
            write_matrix(target / f"X.{short}.{suffix}", split.X)
        write_matrix(target / f"Y.{short}.npz", split.Y)
        if split.texts is not None:
            write_lines(target / f"X.{short}.txt", split.texts)
    items = dataset.label_texts or dataset.label_names
    if items is not None:
        write_lines(target / _ITEMS, items)
