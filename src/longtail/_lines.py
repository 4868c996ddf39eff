"""Text files as lines, and files that are written whole or not at all.

A line ends with LF or CRLF; the last one need not end at all. Nothing else ends a line: the Unicode
separators U+2028, U+2029 and U+0085 are ordinary characters, which is why ``str.splitlines`` is not
used anywhere. Files are UTF-8, with or without a byte-order mark, or UTF-16 with one (as Excel's
"Unicode text" has it); plain or gzip. All of this is told from the first bytes, not from the name.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import os
import secrets
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from longtail.exceptions import DataFormatError

__all__ = ["FilePath", "open_bytes", "open_for_writing", "read_lines", "read_text", "write_lines"]

FilePath = str | os.PathLike[str]

_LONGEST_LINE = 1 << 30
_BOM = codecs.BOM_UTF8
_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)  # the first begins like UTF-16


@contextlib.contextmanager
def open_bytes(path: FilePath) -> Iterator[BinaryIO]:
    """Return the bytes of a file, unpacked where it is gzip, in UTF-8 and without a byte-order mark
    where they begin with one.
    """
    with open(path, "rb") as raw:
        if raw.peek(2)[:2] == b"\x1f\x8b":
            with (
                gzip.GzipFile(fileobj=raw) as unpacked,
                io.BufferedReader(unpacked, 1 << 18) as file,
            ):  # type: ignore[type-var]
                yield _in_utf_8(file)
        else:
            yield _in_utf_8(raw)


def _in_utf_8(file: io.BufferedReader[Any]) -> BinaryIO:
    first = file.peek(4)[:4]
    if first[:3] == _BOM:
        file.read(3)
    elif first[:2] in _UTF_16 and first not in _UTF_32:
        file.read(2)
        return io.BufferedReader(_Recoded(file, _UTF_16[first[:2]]), 1 << 18)
    return file


class _Recoded(io.RawIOBase):
    """The bytes of a UTF-16 file in UTF-8, for a buffered reader."""

    def __init__(self, file: io.BufferedReader[Any], encoding: str) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            raw = self._file.read(1 << 17)
            self._left = self._decoder.decode(raw, final=not raw).encode("utf-8")
            if not raw:
                break
        n = min(len(buffer), len(self._left))
        buffer[:n], self._left = self._left[:n], self._left[n:]
        return n


def read_lines(path: FilePath, *, keep_ends: bool = False) -> Iterator[tuple[int, str]]:
    """Yield ``(number, line)``, numbers from 1, one line in memory at a time.

    ``keep_ends`` leaves the line ends on, for readers with their own idea of a record (CSV).

    Refuses bytes that are not UTF-8, damaged or truncated gzip data, and a line above 1 GiB.
    """
    number = 0
    try:
        with open_bytes(path) as file:
            while line := file.readline(_LONGEST_LINE):
                number += 1
                if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
                    raise DataFormatError("the line is longer than 1 GiB", path=path, line=number)
                if not keep_ends:
                    line = line[:-2] if line.endswith(b"\r\n") else line.removesuffix(b"\n")
                yield number, line.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.encoding.startswith("utf-16"):
            raise DataFormatError(
                f"expected UTF-16, as the first two bytes say: {error.reason}",
                path=path,
                line=number + 1,
            ) from None
        raise DataFormatError(
            f"expected UTF-8, found the byte 0x{error.object[error.start]:02x}: "
            "convert the file first, for example with iconv -f latin1 -t utf-8",
            path=path,
            line=number,
            column=error.start + 1,
        ) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataFormatError(
            f"damaged or truncated gzip data: {error}", path=path, line=number + 1
        ) from None


def read_text(path: FilePath) -> str:
    """Return the whole file as one string, with the same rules (and CRLF turned into LF)."""
    return "\n".join(line for _, line in read_lines(path))


@contextlib.contextmanager
def open_for_writing(path: FilePath) -> Iterator[BinaryIO]:
    """Open a file that appears under its name only when the block ends without an error.

    It is gzip where the name ends in .gz; the bytes depend on the contents alone (no time stamp).
    """
    target = os.fspath(path)
    folder, name = os.path.split(os.path.abspath(target))
    part = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "xb") as raw:
            if name.endswith(".gz"):
                with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed:
                    yield packed  # type: ignore[misc]
            else:
                yield raw
        os.replace(part, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        raise


def write_lines(path: FilePath, lines: Iterable[str]) -> None:
    """Write each string as one line. Refuses strings with a line break or a lone surrogate."""
    with open_for_writing(path) as file:
        for number, line in enumerate(lines, 1):
            if "\n" in line or line.endswith("\r"):
                raise ValueError(
                    f"line {number} for {os.fspath(path)} holds a line break, which this format "
                    "cannot carry: replace line breaks by spaces first"
                )
            if number == 1 and line.startswith("\ufeff"):
                file.write(_BOM)  # else a reader would take the text's own first character for one
            try:
                file.write(line.encode("utf-8"))
            except UnicodeEncodeError as error:
                raise ValueError(
                    f"line {number} for {os.fspath(path)} is not valid Unicode: {error}"
                ) from None
            file.write(b"\n")
