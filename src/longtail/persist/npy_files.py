"""Format version 1, which is read and no longer written: one ``.npy`` file per array.

The header of such a file is a function of dtype and shape, so it is compared and not parsed.
"""

from __future__ import annotations

import math
import mmap
import os
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.exceptions import ModelFormatError
from longtail.persist.arrays import (
    ALIGN,
    Record,
    Slot,
    byte_view,
    check_size,
    data_bytes,
    open_regular,
    read_file,
    sha256,
)
from longtail.persist.records import MANIFEST, check_bytes, check_keys, kind, short

__all__ = ["FileRecord", "check_files", "header", "parse_file_record", "read_npy"]

_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.]{0,200}\.npy", re.ASCII)


@dataclass
class FileRecord(Record):
    """``offset`` is the length of the header; ``bytes`` and ``sha256`` are those of the whole
    file.
    """

    file: str = ""


def header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """Return the bytes in front of the data, padded so that the data starts at a multiple of 64."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    length = len(text) + 1 + (-(10 + len(text) + 1)) % ALIGN
    return (
        b"\x93NUMPY\x01\x00"
        + length.to_bytes(2, "little")
        + text.ljust(length - 1).encode()
        + b"\n"
    )


def file_bytes(dtype: str, shape: tuple[int, ...]) -> int:
    """Return the size of the whole file."""
    return len(header(dtype, shape)) + data_bytes(dtype, shape)


def parse_file_record(entry: Any, where: str) -> FileRecord:
    """Return a record of format version 1."""
    check_keys(entry, ("file", "dtype", "shape", "bytes", "sha256"), where)
    file = entry["file"]
    if not isinstance(file, str) or not _FILE.fullmatch(file):
        raise ModelFormatError(
            f"{where}: file {short(file)} does not name an .npy file in the model's own directory"
        )
    dtype, shape = kind(entry, where)
    check_bytes(entry, file_bytes(dtype, shape), where)
    start = len(header(dtype, shape))
    return FileRecord(dtype, shape, start, entry["bytes"], entry["sha256"], file)


def read_npy(directory: int, slot: Slot, *, mapped: bool, verify: bool) -> None:
    """Fill the slot from its file in ``directory``: read-only and mapped, or writable and in
    memory.
    """
    record = slot.record
    assert isinstance(record, FileRecord)
    descriptor, size = open_regular(record.file, directory)
    try:
        check_size(record.file, size, record.bytes)
        raw: mmap.mmap | np.ndarray
        if mapped:
            raw = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
        else:
            raw = read_file(descriptor, 0, size, record.file)
    finally:
        os.close(descriptor)
    view = byte_view(raw)
    if view[: record.offset] != header(record.dtype, record.shape):
        raise ModelFormatError(
            f"the header of {record.file} does not say {record.dtype} {list(record.shape)} "
            "as the manifest does: it was altered"
        )
    if verify and sha256(view) != record.sha256:
        raise ModelFormatError(f"the checksum of {record.file} does not match: it was altered")
    dtype = np.dtype(record.dtype)
    slot.arrays[slot.name] = (
        np.frombuffer(raw, dtype, offset=record.offset).reshape(record.shape)
        if math.prod(record.shape)
        else np.empty(record.shape, dtype)
    )


def check_files(slots: list[Slot]) -> None:
    files = [slot.record.file.lower() for slot in slots if isinstance(slot.record, FileRecord)]
    if len(set(files)) != len(files):
        raise ModelFormatError(f"{MANIFEST}: two arrays share a file")
