"""Arrays as files: standard ``.npy``, version 1.0, little-endian, row-major, and nothing else.

The header is a function of dtype and shape (``header``), so a reader compares it instead of parsing
it: there is no expression to evaluate, no object array and no pickle on any path.
"""

from __future__ import annotations

import errno
import hashlib
import math
import mmap
import os
import stat
from dataclasses import dataclass

import numpy as np

from longtail.exceptions import ModelFormatError

__all__ = ["Record", "plain_array", "read_array", "write_array"]

DTYPES = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8")
MOST_DIMENSIONS = 32
_ALIGN = 64
_CHUNK = 1 << 23


@dataclass
class Record:
    """What a manifest says about one array: file name, dtype, shape, size of the file and its
    SHA-256.
    """

    file: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    sha256: str = ""


def header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """The bytes in front of the data, padded so that the data starts at a multiple of 64."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    length = len(text) + 1 + (-(10 + len(text) + 1)) % _ALIGN
    return (
        b"\x93NUMPY\x01\x00"
        + length.to_bytes(2, "little")
        + text.ljust(length - 1).encode()
        + b"\n"
    )


def file_bytes(dtype: str, shape: tuple[int, ...]) -> int:
    """Size of the whole file."""
    return len(header(dtype, shape)) + np.dtype(dtype).itemsize * math.prod(shape)


def plain_array(array: object, where: str) -> np.ndarray:
    """``array`` as little-endian and row-major; refuses what a file may not hold (objects, texts,
    complex numbers).
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"{where} cannot be saved: it is a {type(array).__name__}, not a NumPy array"
        )
    dtype = array.dtype.newbyteorder("<")
    if dtype.str not in DTYPES:
        raise TypeError(
            f"{where} cannot be saved: arrays of dtype {array.dtype} are not supported; "
            "texts and other small facts belong in meta"
        )
    if array.ndim > MOST_DIMENSIONS:
        raise ValueError(f"{where} cannot be saved: it has more than {MOST_DIMENSIONS} dimensions")
    return np.asarray(array, dtype=dtype, order="C")


def write_array(descriptor: int, array: np.ndarray) -> str:
    """Writes a ``plain_array`` to an open file and returns the SHA-256 of what was written."""
    digest = hashlib.sha256()
    parts = [memoryview(header(array.dtype.str, array.shape))]
    if array.size:
        parts.append(array.reshape(-1).view(np.uint8).data)
    for part in parts:
        for start in range(0, len(part), _CHUNK):
            chunk = part[start : start + _CHUNK]
            digest.update(chunk)
            write_all(descriptor, chunk)
    return digest.hexdigest()


def write_all(descriptor: int, data: memoryview) -> None:
    """``os.write`` until all is written."""
    while len(data):
        data = data[os.write(descriptor, data) :]


def open_regular(name: str, directory: int) -> tuple[int, int]:
    """Descriptor and size of the regular file ``name``; a link, a pipe or a missing file is
    refused.

    Not following links keeps every read inside the model's own directory.
    """
    try:
        # O_NONBLOCK: opening a pipe somebody left there must not wait for a writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(name, flags, dir_fd=directory)
    except FileNotFoundError:
        raise ModelFormatError(f"{name} is missing") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ModelFormatError(f"{name} is a link; a model holds its own files") from None
        raise
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise ModelFormatError(f"{name} is not a file")
    return descriptor, found.st_size


def read_array(directory: int, record: Record, *, mapped: bool, verify: bool) -> np.ndarray:
    """The array of a record whose file lies in ``directory``, read-only and mapped, or writable and
    in memory.
    """
    descriptor, size = open_regular(record.file, directory)
    try:
        if size != record.bytes:
            raise ModelFormatError(
                f"{record.file} has {size} bytes, the manifest says {record.bytes}: "
                + ("it is truncated" if size < record.bytes else "it was altered")
            )
        raw: mmap.mmap | np.ndarray
        if mapped:
            raw = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
        else:
            raw = _read_all(descriptor, size, record.file)
    finally:
        os.close(descriptor)
    view = (memoryview(raw) if isinstance(raw, mmap.mmap) else raw.data).cast("B")
    expected = header(record.dtype, record.shape)
    if view[: len(expected)] != expected:
        raise ModelFormatError(
            f"the header of {record.file} does not say {record.dtype} {list(record.shape)} "
            "as the manifest does: it was altered"
        )
    if verify and _sha256(view) != record.sha256:
        raise ModelFormatError(f"the checksum of {record.file} does not match: it was altered")
    dtype = np.dtype(record.dtype)
    if math.prod(record.shape) == 0:
        return np.empty(record.shape, dtype)
    return np.frombuffer(raw, dtype, offset=len(expected)).reshape(record.shape)


def _read_all(descriptor: int, size: int, name: str) -> np.ndarray:
    # Starts at a multiple of 64, and so does the data, because the header's length is one too.
    raw = np.empty(size + _ALIGN, np.uint8)
    start = -raw.ctypes.data % _ALIGN
    raw = raw[start : start + size]
    done = 0
    with open(descriptor, "rb", buffering=0, closefd=False) as file:
        while done < size:
            got = file.readinto(raw.data[done : done + _CHUNK])
            if not got:
                raise ModelFormatError(f"{name} became shorter while it was read")
            done += got
    return raw


def _sha256(view: memoryview) -> str:
    digest = hashlib.sha256()
    for start in range(0, len(view), _CHUNK):
        digest.update(view[start : start + _CHUNK])
    return digest.hexdigest()
