"""Models as directories: a manifest and memory-mappable arrays.

    model/
      manifest.json     who wrote it, type tag, parameters, meta, and one record per array
      weights.npy …     one file per array: a standard NumPy 1.0 file, data aligned to 64 bytes,
                        mapped on load

``State`` is all that crosses: this room knows no model class, so a file can never name code to run.
Parts (a tagger's vectoriser, an ensemble's members) nest; their arrays live in the same directory
under ``part.name.npy``.

The manifest, format version 1, is one JSON object:

    format           "longtail-model"
    format_version   1; a reader refuses anything newer than it knows
    longtail         version of the library that wrote it (for people; never interpreted)
    type             type tag, looked up in an explicit table by ``longtail.models``
    params, meta     JSON values; a float that is not finite is {"$float": "nan"}, "inf" or "-inf"
    arrays           name → {file, dtype, shape, bytes, sha256}; the last two of the whole file
    parts            name → {type, params, meta, arrays, parts}
    checksum         SHA-256 of every byte of the manifest before this member

What a crash can do: a model is written to a hidden sibling, synced, and exchanged with the old one
in a single step (``replace.py`` tells the story), so at any moment the path holds the old model or
the new one, whole.
"""

from longtail.persist.state import CsrArrays, State
from longtail.persist.store import load, save

__all__ = ["CsrArrays", "State", "load", "save"]
