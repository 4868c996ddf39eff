"""Fingerprints of rows: 64 bits that tell whether two rows have the same text or features.

Among a million rows the chance that any two different ones agree is about 1 in 40 million.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["feature_fingerprints", "text_fingerprints"]

_ROWS = 1 << 16


def text_fingerprints(texts: Iterable[str]) -> np.ndarray:
    """Return hashes (n,) uint64, equal for texts that differ in case and white space only.

    >>> a, b, c = text_fingerprints(["Two  words", "two words", "twowords"])
    >>> bool(a == b), bool(a == c)
    (True, False)
    """
    return np.fromiter(map(_text_key, texts), np.uint64)


def _text_key(text: str) -> int:
    plain = " ".join(text.casefold().split()).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(plain, digest_size=8).digest(), "little")


def feature_fingerprints(X: Any) -> np.ndarray:
    """Return hashes (m,) uint64 of the m rows of a canonical CSR or dense float32 matrix that are
    not empty.

    The sum of the mixed bits of all (column, value) pairs.

    >>> feature_fingerprints(np.array([[1, 2], [0, 0], [1, 2]], np.float32)).size
    2
    """
    chunks = [np.zeros(0, np.uint64)]
    for start in range(0, X.shape[0], _ROWS):
        rows = sp.csr_matrix(X[start : start + _ROWS])
        pairs = (rows.indices.astype(np.uint64) << np.uint64(32)) | rows.data.view(np.uint32)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_mixed(pairs), dtype=np.uint64)])
        keys = sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]  # wraps around, and back
        chunks.append(keys[np.diff(rows.indptr) > 0])
    return np.concatenate(chunks)


def _mixed(x: np.ndarray) -> np.ndarray:
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    mixed: np.ndarray = x ^ (x >> np.uint64(31))
    return mixed
