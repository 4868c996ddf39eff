"""The manifest: ``State`` to bytes and back, with every claim checked before a single array is
opened.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from longtail.exceptions import ModelFormatError
from longtail.persist.arrays import Record, Slot, data_bytes, place, plain_array
from longtail.persist.npy_files import check_files, parse_file_record
from longtail.persist.records import MANIFEST, check_keys, check_places, parse_record, short
from longtail.persist.state import State
from longtail.persist.values import parse_json, to_json

__all__ = ["FORMAT", "MANIFEST", "VERSION", "decode", "encode", "outline"]

FORMAT = "longtail-model"
VERSION = 2

_NAME = re.compile(r"[A-Za-z0-9_]{1,80}", re.ASCII)
_TAG = re.compile(r"[a-z0-9_-]{1,80}", re.ASCII)
_TAIL = re.compile(rb',\n "checksum": "([0-9a-f]{64})"\n\}\n')
_TAIL_BYTES = len(',\n "checksum": ""\n}\n') + 64
_NODE = ("type", "params", "meta", "arrays", "parts")
_ROOT = ("format", "format_version", "longtail", *_NODE, "checksum")
_DEEPEST = 16  # parts within parts


def outline(state: State, library: str) -> tuple[dict[str, Any], list[Slot]]:
    """Return the manifest of a state as a document whose array records still lack their checksums,
    and the arrays to write.

    Refuses what cannot be saved (``TypeError`` or ``ValueError`` that names it), before anything
    touches the disk.
    """
    slots: list[Slot] = []
    document = {"format": FORMAT, "format_version": VERSION, "longtail": library}
    document.update(_node(state, "", slots, 0))
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
        offset = place(slots[-1].record if slots else None)
        record = Record(dtype, shape, offset, data_bytes(dtype, shape))
        slots.append(Slot({name: plain}, name, f"{prefix}{name}", record))
        node["arrays"][name] = record
    for name, part in state.parts.items():
        node["parts"][name] = _node(part, f"{prefix}{name}.", slots, depth + 1)
    return node


def encode(document: dict[str, Any]) -> bytes:
    """Return the bytes of an outline whose records are complete: one line per member, one per
    array.
    """
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


def decode(raw: bytes) -> tuple[State, list[Slot], int]:
    """Return the state of a manifest, the slots that its arrays are still to be read into, and its
    format version; or ``ModelFormatError``.

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
    check_keys(document, _ROOT, MANIFEST)
    parse = parse_file_record if version == 1 else parse_record
    state = _state({name: document[name] for name in _NODE}, "", slots, parse, 0)
    (check_files if version == 1 else check_places)(slots)
    tail = _TAIL.fullmatch(raw[-_TAIL_BYTES:])
    if tail is None or hashlib.sha256(raw[:-_TAIL_BYTES]).hexdigest() != tail[1].decode():
        raise ModelFormatError(f"the checksum of {MANIFEST} does not match: it was altered")
    return state, slots, version


Parse = Callable[[Any, str], Record]


def _state(node: Any, prefix: str, slots: list[Slot], parse: Parse, depth: int) -> State:
    where = f"{MANIFEST}: part {prefix[:-1]}" if prefix else MANIFEST
    if depth > _DEEPEST:
        raise ModelFormatError(f"{MANIFEST}: parts are nested more than {_DEEPEST} deep")
    check_keys(node, _NODE, where)
    if not isinstance(node["type"], str) or not _TAG.fullmatch(node["type"]):
        raise ModelFormatError(f"{where}: type {short(node['type'])} is not a type tag")
    for name in _NODE[1:]:
        if not isinstance(node[name], dict):
            raise ModelFormatError(f"{where}: {name} must be an object, got {short(node[name])}")
    state = State(node["type"], node["params"], {}, node["meta"], {})
    for name, entry in node["arrays"].items():
        full = prefix + _name(name, where)
        record = parse(entry, f"{MANIFEST}: array {full}")
        slots.append(Slot(state.arrays, name, full, record))
    for name, part in node["parts"].items():
        inner = f"{prefix}{_name(name, where)}."
        state.parts[name] = _state(part, inner, slots, parse, depth + 1)
    return state


def _name(name: str, where: str) -> str:
    if not _NAME.fullmatch(name):
        raise ModelFormatError(f"{where}: {short(name)} is not a name for an array or part")
    return name
