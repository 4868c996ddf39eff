"""All arrays of a model in one file, ``arrays.bin``: plain bytes, little-endian and row-major.

    0      64 hex digits: the SHA-256 of the checksums of all arrays, in the order of the manifest
    64     the first array; every array starts at a multiple of 64 bytes, zeros fill the gaps

What the bytes mean stands in the manifest alone: there is no expression to evaluate, no object
array and no pickle on any path. The digits at the front tie the file to its manifest, so that one
that belongs to another model of the same shape is noticed without reading it.
"""

from __future__ import annotations

import errno
import hashlib
import math
import mmap
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from longtail.exceptions import ModelFormatError

__all__ = ["ARRAYS", "Record", "Slot", "plain_array", "read_arrays", "write_arrays"]

ARRAYS = "arrays.bin"
DTYPES = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8")
MOST_DIMENSIONS = 32
ALIGN = 64
_CHUNK = 1 << 23


@dataclass
class Record:
    """What a manifest says about one array: dtype, shape, where its bytes begin, their number and
    their SHA-256.
    """

    dtype: str
    shape: tuple[int, ...]
    offset: int
    bytes: int
    sha256: str = ""


@dataclass
class Slot:
    """One array of a state: the dictionary it lives in, its name there, its name in messages, and
    its record.
    """

    arrays: dict[str, np.ndarray]
    name: str
    where: str
    record: Record


def data_bytes(dtype: str, shape: tuple[int, ...]) -> int:
    return np.dtype(dtype).itemsize * math.prod(shape)


def place(previous: Record | None) -> int:
    """Return the offset of the array that follows ``previous``."""
    end = ALIGN if previous is None else previous.offset + previous.bytes
    return end + -end % ALIGN


def plain_array(array: object, where: str) -> np.ndarray:
    """Return ``array`` as little-endian and row-major; refuse what a file may not hold (objects,
    texts, complex numbers).
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


def write_arrays(descriptor: int, slots: Sequence[Slot]) -> None:
    """Write the arrays of all slots to an open file, and their checksums into the records."""
    write_all(descriptor, memoryview(bytes(ALIGN)))  # the digits come last
    end = ALIGN
    for slot in slots:
        array, record = slot.arrays[slot.name], slot.record
        write_all(descriptor, memoryview(bytes(record.offset - end)))
        digest = hashlib.sha256()
        data = array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")
        for start in range(0, len(data), _CHUNK):
            chunk = data[start : start + _CHUNK]
            digest.update(chunk)
            write_all(descriptor, chunk)
        record.sha256 = digest.hexdigest()
        end = record.offset + record.bytes
    os.lseek(descriptor, 0, os.SEEK_SET)
    write_all(descriptor, memoryview(_digits(slots)))


def read_arrays(directory: int, slots: Sequence[Slot], *, mapped: bool, verify: bool) -> None:
    """Fill the slots from the file in ``directory``: read-only and mapped, or writable and in
    memory.
    """
    descriptor, size = open_regular(ARRAYS, directory)
    try:
        end = max((s.record.offset + s.record.bytes for s in slots), default=ALIGN)
        check_size(ARRAYS, size, end)
        if os.pread(descriptor, ALIGN, 0) != _digits(slots):
            raise ModelFormatError(
                f"{ARRAYS} does not belong to this manifest: it is another model's, or was altered"
            )
        whole = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ) if mapped else None
        for slot in slots:
            record, dtype = slot.record, np.dtype(slot.record.dtype)
            raw: mmap.mmap | np.ndarray
            if whole is None:
                raw, start = read_file(descriptor, record.offset, record.bytes, ARRAYS), 0
            else:
                raw, start = whole, record.offset
            view = byte_view(raw)[start : start + record.bytes]
            if verify and sha256(view) != record.sha256:
                raise ModelFormatError(
                    f"the checksum of {slot.where} in {ARRAYS} does not match: it was altered"
                )
            count = math.prod(record.shape)
            slot.arrays[slot.name] = (
                np.frombuffer(raw, dtype, count, start).reshape(record.shape)
                if count
                else np.empty(record.shape, dtype)
            )
    finally:
        os.close(descriptor)


def _digits(slots: Sequence[Slot]) -> bytes:
    return hashlib.sha256("".join(s.record.sha256 for s in slots).encode()).hexdigest().encode()


def write_all(descriptor: int, data: memoryview) -> None:
    """Call ``os.write`` until all is written."""
    while len(data):
        data = data[os.write(descriptor, data) :]


def open_regular(name: str, directory: int) -> tuple[int, int]:
    """Return the descriptor and size of the regular file ``name``; a link, a pipe or a missing file
    is refused.

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


def check_size(name: str, size: int, expected: int) -> None:
    if size != expected:
        raise ModelFormatError(
            f"{name} has {size} bytes, the manifest says {expected}: "
            + ("it is truncated" if size < expected else "it was altered")
        )


def read_file(descriptor: int, offset: int, size: int, name: str) -> np.ndarray:
    """Return ``size`` bytes of a file in memory that starts at a multiple of 64, as the kernels
    like.
    """
    raw = np.empty(size + ALIGN, np.uint8)
    start = -raw.ctypes.data % ALIGN
    raw = raw[start : start + size]
    done = 0
    with open(descriptor, "rb", buffering=0, closefd=False) as file:
        file.seek(offset)
        while done < size:
            got = file.readinto(raw.data[done : done + _CHUNK])
            if not got:
                raise ModelFormatError(f"{name} became shorter while it was read")
            done += got
    return raw


def byte_view(raw: mmap.mmap | np.ndarray) -> memoryview:
    return (memoryview(raw) if isinstance(raw, mmap.mmap) else raw.data).cast("B")


def sha256(view: memoryview) -> str:
    digest = hashlib.sha256()
    for start in range(0, len(view), _CHUNK):
        digest.update(view[start : start + _CHUNK])
    return digest.hexdigest()
