"""Models as directories: a manifest and memory-mappable arrays.

    model/
      manifest.json     who wrote it, type tag, parameters, meta, and one record per array
      arrays.bin        all arrays, each aligned to 64 bytes, mapped on load (``arrays.py``)

``State`` is all that crosses: this room knows no model class, so a file can never name code to run.
Parts (a tagger's vectoriser, an ensemble's members) nest; their arrays live in the same file, so a
model of any size takes one file descriptor.

The manifest, format version 2, is one JSON object:

    format           "longtail-model"
    format_version   2; a reader refuses anything newer than it knows
    longtail         version of the library that wrote it (for people; never interpreted)
    type             type tag, looked up in an explicit table by ``longtail._models``
    params, meta     JSON values; a float that is not finite is {"$float": "nan"}, "inf" or "-inf"
    arrays           name → {dtype, shape, offset, bytes, sha256}; the last three of its place in
                     arrays.bin
    parts            name → {type, params, meta, arrays, parts}
    checksum         SHA-256 of every byte of the manifest before this member

Version 1 had one .npy file per array (``npy_files.py``); such models are read as before.

What a crash can do: a model is written to a hidden sibling, synced, and exchanged with the old one
in a single step (``replace.py`` tells the story), so at any moment the path holds the old model or
the new one, whole.
"""

from longtail.persist.state import CsrArrays, State
from longtail.persist.store import load, save

__all__ = ["CsrArrays", "State", "load", "save"]
