"""Formats of the field, and data sets.

::

    name, path or table ──► load ──► detect ──► a module per layout ──► records ──► Dataset
                              │                 xc_folder, npz_pairs, pecos_folder, label_features,
                              │                 raw_text, fasttext_lines, table_folder, tables
                              └─► registry ──► download, archive, cache (published: what is known)

A new layout is one module with a reader and a writer, and a line in ``detect``. Files that layouts
share: ``label_file``, ``filter_pairs``, ``json_lines``, ``cells``; ``place`` says where something
is wrong. Data without a file: ``synthetic`` (``make_longtail``), ``icd10cm``. About data:
``describe``, ``split``, ``fingerprints`` and ``row_filter`` (which rows were seen). Rows of another
kind than a matrix: ``tokens``, ``text_rows``, ``paired_rows``.
"""

from typing import Any

from longtail._renamed import moved
from longtail.data.dataset import Dataset, Split
from longtail.data.description import Description
from longtail.data.fasttext_lines import (
    read_fasttext,
    read_fasttext_folder,
    write_fasttext,
    write_fasttext_folder,
)
from longtail.data.filter_pairs import read_filter_pairs, write_filter_pairs
from longtail.data.label_features import read_label_feature_folder, write_label_feature_folder
from longtail.data.label_file import read_label_file, write_label_file
from longtail.data.load import load_dataset
from longtail.data.npz_pairs import read_npz_folder, read_npz_pair, write_npz_folder, write_npz_pair
from longtail.data.paired_rows import PairedRows
from longtail.data.pecos_folder import read_pecos_folder, write_pecos_folder
from longtail.data.raw_text import (
    read_raw_text,
    read_raw_text_folder,
    write_raw_text,
    write_raw_text_folder,
)
from longtail.data.registry import benchmark, fetch_dataset, list_datasets, register_dataset
from longtail.data.split import train_validation_indices, train_validation_split
from longtail.data.synthetic import make_longtail
from longtail.data.table_folder import read_table_folder, write_table_folder
from longtail.data.tables import read_table, write_table
from longtail.data.tokens import Tokens
from longtail.data.xc_folder import (
    read_label_matrix_folder,
    read_xc_folder,
    write_label_matrix_folder,
    write_xc_folder,
)
from longtail.data.xc_format import (
    read_feature_matrix,
    read_label_matrix,
    read_xc,
    write_feature_matrix,
    write_label_matrix,
    write_xc,
)

__all__ = [
    "Dataset",
    "Description",
    "PairedRows",
    "Split",
    "Tokens",
    "benchmark",
    "fetch_dataset",
    "list_datasets",
    "load_dataset",
    "make_longtail",
    "read_fasttext",
    "read_fasttext_folder",
    "read_feature_matrix",
    "read_filter_pairs",
    "read_label_feature_folder",
    "read_label_file",
    "read_label_matrix",
    "read_label_matrix_folder",
    "read_npz_folder",
    "read_npz_pair",
    "read_pecos_folder",
    "read_raw_text",
    "read_raw_text_folder",
    "read_table",
    "read_table_folder",
    "read_xc",
    "read_xc_folder",
    "register_dataset",
    "train_validation_indices",
    "train_validation_split",
    "write_fasttext",
    "write_fasttext_folder",
    "write_feature_matrix",
    "write_filter_pairs",
    "write_label_feature_folder",
    "write_label_file",
    "write_label_matrix",
    "write_label_matrix_folder",
    "write_npz_folder",
    "write_npz_pair",
    "write_pecos_folder",
    "write_raw_text",
    "write_raw_text_folder",
    "write_table",
    "write_table_folder",
    "write_xc",
    "write_xc_folder",
]


def __getattr__(name: str) -> Any:
    return moved(__name__, name, dict.fromkeys(("TopK", "Vocabulary"), "longtail.answers"))
