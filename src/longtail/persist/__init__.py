"""Models as directories: a manifest and memory-mappable arrays.

    model/
      manifest.json     format version, type tag, parameters, meta, and for each array its
                        file, dtype, shape, bytes and sha256
      weights.npy …     one file per array, 64-byte aligned, mapped on load

``State`` is all that crosses: this room knows no model class. Parts (a tagger's vectoriser, an
ensemble's members) nest: their arrays live in the same directory under ``part.name``.
"""

from __future__ import annotations

import os

from longtail.persist.state import State

__all__ = ["State", "load", "save"]


def save(path: str | os.PathLike[str], state: State, *, overwrite: bool = False) -> None:
    raise NotImplementedError


def load(path: str | os.PathLike[str], *, mmap: bool = True, verify: bool = False) -> State:
    raise NotImplementedError
