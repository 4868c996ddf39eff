"""From a file in one of the extreme-classification text formats to parsed rows.

``xc_format`` has the grammar; here are the header and the way of the blocks into the parser.
"""

from __future__ import annotations

import contextlib
import numbers
import os
import re
from typing import Any, NamedTuple

from longtail._lines import FilePath
from longtail._native import core, n_threads
from longtail.data.text_blocks import Block, feed_blocks, next_block, text_blocks
from longtail.exceptions import DataFormatError

__all__ = ["Layout", "parse_file"]

_CHUNK = (
    1 << 16
)  # bytes that a worker parses at a time: they and what they become stay in its cache
_BLOCK_PER_THREAD = 1 << 21
_HEADER_BYTES = 1 << 12
_MEANING = {"N": "rows", "D": "features", "L": "labels"}
_READER = {"N D L": "read_xc", "N L": "read_label_matrix"}


class Layout(NamedTuple):
    """One of the formats: what its header counts, and what its rows hold."""

    header: tuple[str, ...]
    noun: str = "feature"
    labelled: bool = False
    unit_values: bool = False

    @property
    def header_text(self) -> str:
        """The header as error messages show it."""
        return f"'{' '.join(self.header)}' ({', '.join(_MEANING[name] for name in self.header)})"


def parse_file(
    path: FilePath,
    layout: Layout,
    header: bool | str,
    widths: tuple[int | None, ...],
    n_jobs: int | None,
    *,
    block_bytes: int | None = None,
    chunk_bytes: int = _CHUNK,
) -> tuple[Any, tuple[int, ...]]:
    """Parse a file; return the parser that holds its rows, and the shape ``(N, D, L)``.

    ``widths`` are D and L (or the one of them that there is) as the caller wants them, or None.
    """
    if header is not True and header != "infer":
        raise ValueError(f"header must be True or 'infer', got {header!r}")
    threads = n_threads(n_jobs)
    widths = tuple(
        _checked_width(width, name) for width, name in zip(widths, layout.header[1:], strict=True)
    )
    block_bytes = block_bytes or min(threads, 32) * _BLOCK_PER_THREAD
    with contextlib.closing(text_blocks(path, block_bytes)) as blocks:
        block = next_block(path, blocks, line=1)
        counts = None if block is None else _leading_numbers(block, len(layout.header))
        if counts is None:
            if header is True:
                raise _header_missing(path, block, layout)
            limits = [core.MAX_COLUMNS if width is None else width for width in widths]
            parser = _new_parser(layout, -1, limits, line=1)
        else:
            _check_counts(path, layout, counts, widths)
            parser = _new_parser(layout, counts[0], counts[1:], line=2)
        if block is not None:
            first = block if counts is None else block._replace(begin=_first_line_end(block))
            feed_blocks(path, iter([first]), parser, threads, chunk_bytes)
            parser.expect(first.end - first.begin, os.stat(path).st_size)
            feed_blocks(path, blocks, parser, threads, chunk_bytes)
    if counts is None:
        parser.drop_blank_end()
        counts = (parser.n_rows, parser.width, parser.label_width)[: len(layout.header)]
    elif parser.n_rows < counts[0]:
        raise DataFormatError(
            f"expected {counts[0]} rows, as the header announces, got {parser.n_rows}",
            path=path,
            line=parser.line,
            column=1,
        )
    shape = [
        count if width is None else width for count, width in zip(counts[1:], widths, strict=True)
    ]
    return parser, (counts[0], *shape)


def _new_parser(layout: Layout, n_rows: int, limits: Any, line: int) -> Any:
    n_columns, n_labels = (*limits, 0)[:2]
    return core.XcParser(
        labelled=layout.labelled,
        unit_values=layout.unit_values,
        noun=layout.noun,
        n_rows=n_rows,
        n_columns=n_columns,
        n_labels=n_labels,
        line=line,
    )


def _checked_width(width: int | None, name: str) -> int | None:
    if width is None:
        return None
    name = f"n_{_MEANING[name]}"
    if isinstance(width, bool) or not isinstance(width, numbers.Integral):
        raise TypeError(f"{name} must be a whole number, got {width!r}")
    if not 0 <= width <= core.MAX_COLUMNS:
        raise ValueError(f"{name} must lie between 0 and {core.MAX_COLUMNS}, got {width}")
    return int(width)


def _leading_numbers(block: Block, n: int) -> tuple[int, ...] | None:
    """Return the numbers in the first line, or None if it is not n numbers."""
    text = block.buffer[block.begin : block.end][:_HEADER_BYTES].tobytes()
    blank = rb"[ \t]"
    pattern = blank + b"*" + (blank + b"+").join([rb"(\d+)"] * n) + blank + rb"*\r?\n"
    match = re.match(pattern, text)
    if match is None:
        return None
    # Longer numbers will be refused as too large; int() would refuse them too, in its own words.
    return tuple(int(digits.lstrip(b"0")[:19] or b"0") for digits in match.groups())


def _first_line_end(block: Block) -> int:
    text = block.buffer[block.begin : block.end][:_HEADER_BYTES].tobytes()
    return block.begin + text.index(b"\n") + 1


def _header_missing(path: FilePath, block: Block | None, layout: Layout) -> DataFormatError:
    expected = f"expected the header {layout.header_text}"
    if block is None:
        return DataFormatError(f"{expected}, got an empty file", path=path, line=1, column=1)
    for names, reader in _READER.items():
        if names != " ".join(layout.header) and _leading_numbers(block, len(names.split())):
            return DataFormatError(
                f"{expected}, got another number of counts: {reader} reads files with {names!r}",
                path=path,
                line=1,
                column=1,
            )
    text = block.buffer[block.begin : block.end][:_HEADER_BYTES].tobytes().split(b"\n")[0]
    shown = text[:40].decode("ascii", "backslashreplace") + ("..." if len(text) > 40 else "")
    return DataFormatError(
        f"{expected}, got {shown!r}: if the file has no header, header='infer' counts for itself",
        path=path,
        line=1,
        column=1,
    )


def _check_counts(
    path: FilePath, layout: Layout, counts: tuple[int, ...], widths: tuple[int | None, ...]
) -> None:
    for name, count, width in zip(layout.header, counts, (None, *widths), strict=True):
        limit = core.MAX_COLUMNS if name != "N" else 10**18
        if count > limit:
            message = f"expected {name} to be at most {limit}, got {count}"
        elif width is not None and width < count:
            message = (
                f"the header gives {name} = {count}, which is more than "
                f"n_{_MEANING[name]}={width}: it can only be widened"
            )
        else:
            continue
        raise DataFormatError(message, path=path, line=1, column=1)
