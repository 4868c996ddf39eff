"""What a manifest says about its arrays, checked before a single byte of them is read."""

from __future__ import annotations

import math
import re
from typing import Any

from longtail.exceptions import ModelFormatError
from longtail.persist.arrays import ALIGN, ARRAYS, DTYPES, MOST_DIMENSIONS, Record, Slot, data_bytes

__all__ = ["MANIFEST", "check_bytes", "check_keys", "check_places", "kind", "parse_record", "short"]

MANIFEST = "manifest.json"
_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)


def parse_record(entry: Any, where: str) -> Record:
    check_keys(entry, ("dtype", "shape", "offset", "bytes", "sha256"), where)
    dtype, shape = kind(entry, where)
    offset = entry["offset"]
    if type(offset) is not int or offset < ALIGN or offset % ALIGN:
        raise ModelFormatError(
            f"{where}: offset {short(offset)} is not a multiple of {ALIGN} from {ALIGN} on"
        )
    check_bytes(entry, data_bytes(dtype, shape), where)
    return Record(dtype, shape, offset, entry["bytes"], entry["sha256"])


def kind(entry: dict[str, Any], where: str) -> tuple[str, tuple[int, ...]]:
    """Return the dtype and the shape that a record claims; its checksum is looked at as well."""
    dtype, shape = entry["dtype"], entry["shape"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ModelFormatError(f"{where}: dtype {short(dtype)} is not one of {', '.join(DTYPES)}")
    if (
        not isinstance(shape, list)
        or len(shape) > MOST_DIMENSIONS
        or any(type(n) is not int or n < 0 for n in shape)
        or math.prod(max(n, 1) for n in shape) * 8 >= 2**63
    ):
        raise ModelFormatError(f"{where}: {short(shape)} is not the shape of an array")
    if not isinstance(entry["sha256"], str) or not _HEX.fullmatch(entry["sha256"]):
        raise ModelFormatError(f"{where}: sha256 {short(entry['sha256'])} is not a checksum")
    return dtype, tuple(shape)


def check_bytes(entry: dict[str, Any], expected: int, where: str) -> None:
    if type(entry["bytes"]) is not int or entry["bytes"] != expected:
        raise ModelFormatError(
            f"{where}: {entry['dtype']} of shape {entry['shape']} takes {expected} bytes, "
            f"the manifest says {short(entry['bytes'])}"
        )


def check_places(slots: list[Slot]) -> None:
    """Refuse arrays that overlap, or lie where a file would be too long."""
    end = ALIGN
    for slot in sorted(slots, key=lambda slot: (slot.record.offset, slot.record.bytes)):
        record = slot.record
        if record.offset < end:
            raise ModelFormatError(f"{MANIFEST}: array {slot.where} overlaps another in {ARRAYS}")
        end = record.offset + record.bytes
    if end >= 2**63:
        raise ModelFormatError(f"{MANIFEST}: {ARRAYS} would have {end} bytes")


def check_keys(node: Any, expected: tuple[str, ...], where: str) -> None:
    if not isinstance(node, dict):
        raise ModelFormatError(f"{where}: expected an object, got {short(node)}")
    if set(node) != set(expected):
        missing, unknown = set(expected) - set(node), set(node) - set(expected)
        fault = (
            f"lacks {sorted(missing)[0]!r}" if missing else f"has an unknown {short(min(unknown))}"
        )
        raise ModelFormatError(f"{where} {fault}")


def short(value: Any) -> str:
    text = (
        repr(value)
        if not isinstance(value, (list, dict)) or len(value) < 40
        else type(value).__name__
    )
    return text if len(text) <= 60 else text[:57] + "..."
