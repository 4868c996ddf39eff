"""Saved models, damaged as by somebody who knows the format and signs what he wrote.

``mutate(state, rng)`` changes arrays (values, shapes, types), parameters, facts and parts of a
state in one to three places; ``mutate_files(folder, rng)`` changes bytes, and makes the checksums
right again where the format has them.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
from text_models import FILES

from longtail.persist import State

__all__ = ["copied", "mutate", "mutate_files"]

NUMBERS = [0, 1, -1, 2, 3, 7, 12, 64, 255, 1000, 2**15, 2**31 - 1, -(2**31), 2**31, 2**40, 2**62]
NUMBERS += [2**63 - 1, -(2**63), 0.5, -0.0, 1e-30, 1e30, math.inf, -math.inf, math.nan]
JUNK: list[Any] = [*NUMBERS, None, True, False, "", "x", "\ud800", "nan", "a" * 300, [], {}, [0]]
JUNK += [[1, 2], {"a": 1}, [[]], [None], "word", "char", "cosine", "squared_hinge", "l2-hinge"]
DTYPES = ["|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u4", "<f2", "<f4", "<f8"]


def mutate(state: State, rng: random.Random) -> State:
    """A damaged copy."""
    state = copied(state)
    for _ in range(rng.randint(1, 3)):
        node = rng.choice(_nodes(state))
        if node.arrays and rng.random() < 0.7:
            name = rng.choice(sorted(node.arrays))
            file = name in FILES and rng.random() < 0.8
            node.arrays[name] = (
                _file(node.arrays[name], rng) if file else _array(node.arrays[name], node, rng)
            )
        else:
            _facts(node, rng)
    return state


def copied(state: State) -> State:
    """A copy that shares nothing but the values of arrays."""
    return State(
        state.type,
        copy.deepcopy(state.params),
        dict(state.arrays),
        copy.deepcopy(state.meta),
        {name: copied(part) for name, part in state.parts.items()},
    )


def _nodes(state: State) -> list[State]:
    return [state, *(node for part in state.parts.values() for node in _nodes(part))]


def _array(array: np.ndarray, node: State, rng: random.Random) -> np.ndarray:
    kind = rng.randrange(9)
    if kind < 4 and array.size:  # a few values
        array = np.array(array)
        flat = array.reshape(-1)
        for _ in range(rng.choice([1, 1, 2, 5])):
            flat[rng.randrange(flat.size)] = _fitting(rng.choice(NUMBERS), array.dtype, rng)
        return array
    if kind == 4 and array.size:  # all of them
        with np.errstate(all="ignore"):
            shift = _fitting(rng.choice(NUMBERS), array.dtype, rng)
            return (array + shift).astype(array.dtype) if array.dtype != bool else ~array
    if kind == 5 and array.size:
        return array.reshape(-1)[::-1].reshape(array.shape).copy()
    if kind == 6:  # another length
        flat = array.reshape(-1)
        size = max(0, flat.size + rng.choice([-flat.size, -1, 1, 2, -flat.size // 2]))
        longer = np.resize(flat, size) if flat.size else np.zeros(size, array.dtype)
        if array.ndim == 2 and array.shape[1] and size % array.shape[1] == 0:
            return longer.reshape(-1, array.shape[1])
        return longer
    if kind == 7:  # another type
        with np.errstate(all="ignore"):
            return array.astype(rng.choice(DTYPES))
    other = rng.choice(sorted(node.arrays))  # another array, or another shape
    return node.arrays[other] if rng.random() < 0.5 else array.reshape(1, *array.shape)


def _file(array: np.ndarray, rng: random.Random) -> np.ndarray:
    """A file in an array, changed in a few places: bytes, numbers of eight of them, pieces of JSON,
    cut out, doubled. Most changes keep its length, which the formats are strict about.
    """
    raw = bytearray(array.tobytes())
    for _ in range(rng.choice([1, 1, 2, 5])):
        # Headers come first, and are the smaller part.
        at = rng.randrange(max(1, rng.choice([len(raw), min(len(raw), 2000)])))
        kind = rng.randrange(10)
        if kind < 3:
            raw[at : at + 1] = bytes([rng.randrange(256)])
        elif kind < 5:
            number = rng.choice([0, 1, -1, 7, 2**31, 2**40, 2**62, 2**63 - 1, len(raw)])
            raw[at : at + 8] = number.to_bytes(8, "little", signed=True)
        elif kind < 8:
            piece = rng.choice([b"0", b"9", b'"', b"[", b"{", b"null", b"1e9", b"-1", b"99999"])
            raw[at : at + len(piece)] = piece
        elif kind == 8:
            del raw[at : at + rng.choice([1, 8, 100])]
        else:
            raw[at:at] = raw[at : at + rng.choice([1, 8, 100])]
    return np.frombuffer(bytes(raw), np.uint8)


def _fitting(value: Any, dtype: np.dtype, rng: random.Random) -> Any:
    if dtype.kind == "f":
        with np.errstate(all="ignore"):
            return np.float64(value).astype(dtype)
    if dtype.kind == "b":
        return bool(rng.randrange(2))
    bounds = np.iinfo(dtype)
    whole = int(value) if math.isfinite(value) else rng.choice([bounds.min, bounds.max])
    return min(max(whole, bounds.min), bounds.max)


def _facts(node: State, rng: random.Random) -> None:
    places: list[tuple[Any, Any]] = []
    for root in (node.params, node.meta):
        places += _places(root)
    action = rng.randrange(10)
    if action == 0 and node.parts:
        name = rng.choice(sorted(node.parts))
        if rng.random() < 0.5:
            del node.parts[name]
        else:
            node.parts[name] = node.parts[rng.choice(sorted(node.parts))]
    elif action == 1 and node.arrays:
        del node.arrays[rng.choice(sorted(node.arrays))]
    elif action == 2:
        node.type = rng.choice(["popularity", "tfidf", "tagger", "network", "nothing", node.type])
    elif action == 3 or not places:
        rng.choice([node.params, node.meta])[rng.choice(["k", "x", "n_rows"])] = rng.choice(JUNK)
    else:
        parent, key = rng.choice(places)
        if action == 4 and isinstance(parent, dict):
            del parent[key]
        else:
            parent[key] = copy.deepcopy(rng.choice(JUNK))


def _places(root: Any) -> list[tuple[Any, Any]]:
    inner = root.items() if isinstance(root, dict) else enumerate(root)
    out = [(root, key) for key, _ in list(inner)[:200]]
    for _, key in list(out):
        if isinstance(root[key], (dict, list)):
            out += _places(root[key])[:50]
    return out


def mutate_files(folder: Path, rng: random.Random) -> None:
    """Changes some bytes of some file in place, and signs again what is signed."""
    path = rng.choice(sorted(folder.iterdir()))
    raw = bytearray(path.read_bytes())
    start = 64 if path.name == "arrays.bin" else 0
    for _ in range(rng.randint(1, 4)):
        if len(raw) <= start:
            break
        at = rng.randrange(start, len(raw))
        kind = rng.randrange(4)
        if kind == 0:
            raw[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            raw[at : at + 8] = rng.choice([b"\xff" * 8, bytes(8), b"\x7f" * 8])
        elif kind == 2 and path.name != "arrays.bin":
            del raw[at : at + rng.randint(1, 9)]
        else:
            raw[at : at + 1] = rng.choice([b"0", b"9", b"-", b'"', b"[", b"{", b"e", b"}"])
    if path.name == "arrays.bin":
        del raw[path.stat().st_size :]
    path.write_bytes(raw)
    _sign(folder)


def _sign(folder: Path) -> None:
    """Checksums of arrays, of the file that holds them, and of the manifest."""
    manifest = folder / "manifest.json"
    text = manifest.read_bytes()
    try:
        document = json.loads(text)
        arrays = bytearray((folder / "arrays.bin").read_bytes())
        sums = list(_sums(document, arrays))
        arrays[:64] = hashlib.sha256("".join(sums).encode()).hexdigest().encode()
        (folder / "arrays.bin").write_bytes(arrays)
        body = json.dumps({k: v for k, v in document.items() if k != "checksum"}).encode()
    except (AttributeError, KeyError, OSError, TypeError, ValueError):
        body = text.rpartition(b',\n "checksum"')[0] or text  # no JSON any more: sign the bytes
        body += b"}"
    body = body.rstrip().removesuffix(b"}")
    checksum = hashlib.sha256(body).hexdigest().encode()
    manifest.write_bytes(body + b',\n "checksum": "' + checksum + b'"\n}\n')


def _sums(node: Any, arrays: bytearray) -> Any:
    for record in node["arrays"].values():
        data = arrays[record["offset"] : record["offset"] + record["bytes"]]
        record["sha256"] = hashlib.sha256(data).hexdigest()
        yield record["sha256"]
    for part in node["parts"].values():
        yield from _sums(part, arrays)
