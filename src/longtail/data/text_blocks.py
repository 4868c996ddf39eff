"""Large text files as blocks of whole lines, for the native parsers.

    buffer   [ rest of the last block's last line | bytes read ........ | padding ]
               whole lines: parsed now ................. | carried over

Two buffers take turns: while the caller parses one (with the interpreter lock released), a thread
fills the other, and unpacks gzip there. So the memory in use is two blocks, whatever the file's
size, and more only where a single line is longer than a block.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np

from longtail._lines import FilePath, open_bytes
from longtail._native import core
from longtail.exceptions import DataFormatError

__all__ = ["Block", "feed_blocks", "next_block", "text_blocks"]

_BLOCK = 1 << 22
_LONGEST_LINE = 1 << 28
_SEARCH = 1 << 16
_LINE_END = ord("\n")


class Block(NamedTuple):
    """Whole lines ``buffer[begin:end]``; behind them there is room for the parser's padding."""

    buffer: np.ndarray
    begin: int
    end: int


class Parser(Protocol):
    """A native parser: ``feed`` returns None, or ``(line, column, message)``."""

    @property
    def line(self) -> int: ...

    def feed(self, buffer: np.ndarray, begin: int, end: int, *options: Any) -> Any: ...


def text_blocks(path: FilePath, block_bytes: int = _BLOCK) -> Generator[Block, None, None]:
    """Yield the file block by block; a block is valid until the next one is asked for.

    The last line gets a line end if it has none, a byte-order mark is skipped, gzip is unpacked.
    Refuses damaged gzip data and a line above 256 MiB with a DataFormatError without a line number:
    ``next_block`` adds it.
    """
    try:
        with open_bytes(path) as file, ThreadPoolExecutor(1) as reader:
            yield from _blocks(file, reader, block_bytes)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataFormatError(f"damaged or truncated gzip data: {error}", path=path) from None
    except UnicodeDecodeError as error:  # of UTF-16, which is turned into UTF-8
        raise DataFormatError(
            f"expected UTF-16, as the first two bytes say: {error.reason}", path=path
        ) from None


def _blocks(file: BinaryIO, reader: ThreadPoolExecutor, block_bytes: int) -> Iterator[Block]:
    buffer, other = _new_buffer(block_bytes), _new_buffer(block_bytes)
    carried = 0
    size = _fill(file, buffer, carried)
    while size:
        if size < _room(buffer):  # the file is at its end
            if buffer[size - 1] != _LINE_END:
                buffer[size] = _LINE_END
                size += 1
            yield Block(buffer, 0, size)
            return
        end = _after_last_line(buffer, carried, size)
        if end == 0:  # a single line fills the buffer: go on with a larger one
            if size >= _LONGEST_LINE:
                raise DataFormatError(f"expected a line end within {_LONGEST_LINE} bytes")
            longer = _new_buffer(2 * size)
            longer[:size] = buffer[:size]
            buffer, carried = longer, size
            size = _fill(file, buffer, carried)
            continue
        carried = size - end
        if 2 * carried > _room(other):
            other = _new_buffer(2 * carried)
        other[:carried] = buffer[end:size]
        filling = reader.submit(_fill, file, other, carried)
        yield Block(buffer, 0, end)
        size = filling.result()
        buffer, other = other, buffer


def next_block(path: FilePath, blocks: Iterator[Block], line: int) -> Block | None:
    """Return the next block, or None at the end; ``line`` is where it starts, for error
    messages.
    """
    try:
        return next(blocks, None)
    except DataFormatError as error:
        raise DataFormatError(error.message, path=path, line=line) from None


def feed_blocks(path: FilePath, blocks: Iterator[Block], parser: Parser, *options: Any) -> None:
    """Feed all blocks to a native parser; its first error is raised as a DataFormatError."""
    while (block := next_block(path, blocks, parser.line)) is not None:
        error = parser.feed(*block, *options)
        if error is not None:
            line, column, message = error
            raise DataFormatError(message, path=path, line=line, column=column)


def _new_buffer(room: int) -> np.ndarray:
    return np.empty(room + 1 + core.TEXT_PADDING, np.uint8)  # the one is for a missing line end


def _room(buffer: np.ndarray) -> int:
    return len(buffer) - 1 - int(core.TEXT_PADDING)


def _fill(file: BinaryIO, buffer: np.ndarray, size: int) -> int:
    """Read until the buffer is full or the file at its end; return the bytes in the buffer."""
    view = memoryview(buffer)[: _room(buffer)]  # type: ignore[arg-type]
    while size < len(view):
        got = file.readinto(view[size:])  # type: ignore[attr-defined]
        if not got:
            break
        size += got
    return size


def _after_last_line(buffer: np.ndarray, begin: int, end: int) -> int:
    """Return the position after the last line end in [begin, end), or 0."""
    while end > begin:
        start = max(begin, end - _SEARCH)
        found = buffer[start:end].tobytes().rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
