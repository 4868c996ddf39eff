"""The manifest: ``State`` to bytes and back, with every claim checked before a single array is
opened.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from longtail.exceptions import ModelFormatError
from longtail.persist.arrays import DTYPES, MOST_DIMENSIONS, Record, file_bytes, plain_array
from longtail.persist.state import State
from longtail.persist.values import parse_json, to_json

__all__ = ["FORMAT", "MANIFEST", "VERSION", "Slot", "decode", "encode", "outline"]

FORMAT = "longtail-model"
MANIFEST = "manifest.json"
VERSION = 1

_NAME = re.compile(r"[A-Za-z0-9_]{1,80}", re.ASCII)
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.]{0,200}\.npy", re.ASCII)
_TAG = re.compile(r"[a-z0-9_-]{1,80}", re.ASCII)
_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)
_TAIL = re.compile(rb',\n "checksum": "([0-9a-f]{64})"\n\}\n')
_TAIL_BYTES = len(',\n "checksum": ""\n}\n') + 64
_NODE = ("type", "params", "meta", "arrays", "parts")
_ROOT = ("format", "format_version", "longtail", *_NODE, "checksum")
_DEEPEST = 16  # parts within parts


@dataclass
class Slot:
    """One array of a state: the dictionary it lives in, its name there, and its record."""

    arrays: dict[str, np.ndarray]
    name: str
    record: Record


def outline(state: State, library: str) -> tuple[dict[str, Any], list[Slot]]:
    """The manifest of a state as a document whose array records still lack their checksums, and the
    arrays to write.

    Refuses what cannot be saved (``TypeError`` or ``ValueError`` that names it), before anything
    touches the disk.
    """
    slots: list[Slot] = []
    document = {"format": FORMAT, "format_version": VERSION, "longtail": library}
    document.update(_node(state, "", slots, 0))
    seen: set[str] = set()
    for slot in slots:
        file = slot.record.file.lower()
        if file in seen:
            raise ValueError(f"two arrays have names that differ only in case: {slot.record.file}")
        seen.add(file)
    return document, slots


def _node(state: State, prefix: str, slots: list[Slot], depth: int) -> dict[str, Any]:
    if depth > _DEEPEST:
        raise ValueError(f"parts are nested more than {_DEEPEST} deep")
    if not isinstance(state.type, str) or not _TAG.fullmatch(state.type):
        raise ValueError(
            f"type tag {state.type!r} must be lower-case letters, digits, dashes and underscores"
        )
    for name in (*state.arrays, *state.parts):
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(
                f"{prefix}{name} cannot name an array or part: use letters, digits and underscores"
            )
    node: dict[str, Any] = {
        "type": state.type,
        "params": to_json(state.params, f"{prefix}params"),
        "meta": to_json(state.meta, f"{prefix}meta"),
        "arrays": {},
        "parts": {},
    }
    for name, array in state.arrays.items():
        plain = plain_array(array, f"array {prefix}{name}")
        dtype, shape = plain.dtype.str, tuple(int(n) for n in plain.shape)
        record = Record(f"{prefix}{name}.npy", dtype, shape, file_bytes(dtype, shape))
        slots.append(Slot({name: plain}, name, record))
        node["arrays"][name] = record
    for name, part in state.parts.items():
        node["parts"][name] = _node(part, f"{prefix}{name}.", slots, depth + 1)
    return node


def encode(document: dict[str, Any]) -> bytes:
    """The bytes of an outline whose records are complete: one line a member, one line an array."""
    members = [f"{json.dumps(key)}: {_dumps(value)}" for key, value in document.items()]
    body = ("{\n " + ",\n ".join(members)).encode("ascii")
    return body + f',\n "checksum": "{hashlib.sha256(body).hexdigest()}"\n}}\n'.encode()


def _dumps(value: Any) -> str:
    # Not json's indent, which gives up its fast encoder: a manifest may hold millions of label
    # names.
    if isinstance(value, dict) and any(isinstance(item, Record) for item in value.values()):
        lines = [f"{json.dumps(key)}: {json.dumps(asdict(item))}" for key, item in value.items()]
        return "{\n  " + ",\n  ".join(lines) + "}"
    return json.dumps(value, allow_nan=False, default=asdict)


def decode(raw: bytes) -> tuple[State, list[Slot]]:
    """The state of a manifest with its arrays still to be read into their slots, or
    ``ModelFormatError``.

    The version comes first, then structure, then the checksum, so that the message names the most
    telling fault.
    """
    try:
        document = parse_json(raw)
    except ModelFormatError as error:
        raise ModelFormatError(f"{MANIFEST} is truncated or damaged: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFormatError(f"{MANIFEST} does not describe a longtail model")
    version = document.get("format_version")
    if type(version) is not int or version < 1:
        raise ModelFormatError(f"{MANIFEST}: format_version must be 1 or more, got {version!r}")
    if version > VERSION:
        raise ModelFormatError(
            f"it has format version {version}, this longtail reads up to {VERSION}: "
            f"it was written by longtail {document.get('longtail')!r}, upgrade to read it"
        )
    slots: list[Slot] = []
    _keys(document, _ROOT, MANIFEST)
    state = _state({name: document[name] for name in _NODE}, MANIFEST, slots, 0)
    files = [slot.record.file.lower() for slot in slots]
    if len(set(files)) != len(files):
        raise ModelFormatError(f"{MANIFEST}: two arrays share a file")
    tail = _TAIL.fullmatch(raw[-_TAIL_BYTES:])
    if tail is None or hashlib.sha256(raw[:-_TAIL_BYTES]).hexdigest() != tail[1].decode():
        raise ModelFormatError(f"the checksum of {MANIFEST} does not match: it was altered")
    return state, slots


def _state(node: Any, where: str, slots: list[Slot], depth: int) -> State:
    if depth > _DEEPEST:
        raise ModelFormatError(f"{MANIFEST}: parts are nested more than {_DEEPEST} deep")
    _keys(node, _NODE, where)
    if not isinstance(node["type"], str) or not _TAG.fullmatch(node["type"]):
        raise ModelFormatError(f"{where}: type {_short(node['type'])} is not a type tag")
    for name in _NODE[1:]:
        if not isinstance(node[name], dict):
            raise ModelFormatError(f"{where}: {name} must be an object, got {_short(node[name])}")
    state = State(node["type"], node["params"], {}, node["meta"], {})
    for name, entry in node["arrays"].items():
        slots.append(
            Slot(state.arrays, _name(name, where), _record(entry, f"{where}: array {name}"))
        )
    for name, part in node["parts"].items():
        state.parts[_name(name, where)] = _state(part, f"{where}: part {name}", slots, depth + 1)
    return state


def _record(entry: Any, where: str) -> Record:
    _keys(entry, ("file", "dtype", "shape", "bytes", "sha256"), where)
    file, dtype, shape = entry["file"], entry["dtype"], entry["shape"]
    if not isinstance(file, str) or not _FILE.fullmatch(file):
        raise ModelFormatError(
            f"{where}: file {_short(file)} does not name an .npy file in the model's own directory"
        )
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ModelFormatError(f"{where}: dtype {_short(dtype)} is not one of {', '.join(DTYPES)}")
    if (
        not isinstance(shape, list)
        or len(shape) > MOST_DIMENSIONS
        or any(type(n) is not int or n < 0 for n in shape)
        or math.prod(max(n, 1) for n in shape) * 8 >= 2**63
    ):
        raise ModelFormatError(f"{where}: {_short(shape)} is not the shape of an array")
    if not isinstance(entry["sha256"], str) or not _HEX.fullmatch(entry["sha256"]):
        raise ModelFormatError(f"{where}: sha256 {_short(entry['sha256'])} is not a checksum")
    expected = file_bytes(dtype, tuple(shape))
    if type(entry["bytes"]) is not int or entry["bytes"] != expected:
        raise ModelFormatError(
            f"{where}: {dtype} of shape {shape} takes {expected} bytes, "
            f"the manifest says {_short(entry['bytes'])}"
        )
    return Record(file, dtype, tuple(shape), expected, entry["sha256"])


def _name(name: str, where: str) -> str:
    if not _NAME.fullmatch(name):
        raise ModelFormatError(f"{where}: {_short(name)} is not a name for an array or part")
    return name


def _keys(node: Any, expected: tuple[str, ...], where: str) -> None:
    if not isinstance(node, dict):
        raise ModelFormatError(f"{where}: expected an object, got {_short(node)}")
    if set(node) != set(expected):
        missing, unknown = set(expected) - set(node), set(node) - set(expected)
        fault = (
            f"lacks {sorted(missing)[0]!r}" if missing else f"has an unknown {_short(min(unknown))}"
        )
        raise ModelFormatError(f"{where} {fault}")


def _short(value: Any) -> str:
    text = (
        repr(value)
        if not isinstance(value, (list, dict)) or len(value) < 40
        else type(value).__name__
    )
    return text if len(text) <= 60 else text[:57] + "..."
