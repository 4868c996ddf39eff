"""Models as directories: a manifest and memory-mappable arrays.

    model/
      manifest.json     format version, type tag, parameters, meta, one entry per array (file, dtype, shape, bytes, sha256)
      weights.npy …     one file per array, 64-byte aligned, mapped on load

``State`` is all that crosses: this room knows no model class. Parts (a tagger's vectoriser, an ensemble's members) nest:
their arrays live in the same directory under ``part.name``.
"""

from longtail.persist.state import State

__all__ = ["State", "load", "save"]


def save(path, state, *, overwrite=False):
    raise NotImplementedError


def load(path, *, mmap=True, verify=False):
    raise NotImplementedError
