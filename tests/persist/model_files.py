"""Helpers of the persistence tests: a small state, comparison, and manifests altered on purpose."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from longtail.persist import State


def small_state(version: int = 1) -> State:
    """A state whose every array is filled with ``version``, so that a mixture is noticed."""
    part = State("part", {"deep": [1, 2]}, {"bias": np.full(5, version, np.float64)})
    return State(
        "demo",
        {"C": 0.5, "name": "x", "flag": True, "none": None},
        {
            "weights": np.full((64, 16), version, np.float32),
            "ids": np.full(300, version, np.int64),
        },
        {"version": version, "label_names": ["a", "ü", "\ud800"]},
        {"vectorizer": part},
    )


def same(a: State, b: State) -> bool:
    """Equality of everything, dtypes and bits included."""
    return (
        (a.type, a.params, a.meta) == (b.type, b.params, b.meta)
        and a.arrays.keys() == b.arrays.keys()
        and all(
            x.dtype == b.arrays[k].dtype
            and x.shape == b.arrays[k].shape
            and x.tobytes() == b.arrays[k].tobytes()
            for k, x in a.arrays.items()
        )
        and a.parts.keys() == b.parts.keys()
        and all(same(part, b.parts[k]) for k, part in a.parts.items())
    )


def read_manifest(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "manifest.json").read_bytes())


def signed(document: Any) -> bytes:
    """A manifest with the right checksum, whatever it says: what a forger would write."""
    text = json.dumps({k: v for k, v in document.items() if k != "checksum"})
    return sign(text.encode())


def sign(text: bytes) -> bytes:
    body = text.rstrip().removesuffix(b"}")
    return body + b',\n "checksum": "' + hashlib.sha256(body).hexdigest().encode() + b'"\n}\n'
