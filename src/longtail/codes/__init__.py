"""Codes: models with fewer outputs than labels.

A code is learned from labels alone (``fit(Y)``), turns them into the targets of an estimator
(``encode(Y)``), and turns what the estimator predicts back into ranked labels
(``decode(scores, k)``)::

            Y ──► code.encode ──► targets ─┐
                                           ├─► estimator (linear, Network, TextNetwork, Ridge)
            X ─────────────────────────────┘        │
            labels ◄── code.decode ◄── scores or codes of new rows

    HashCode      L labels ──► R times B buckets; a label scores what its buckets do
    SVDCode       rows of Y ──► c numbers each, Y = U S V^T; labels of the most similar rows
    NeighborCode  the same, with codes fitted to the similarities of near rows alone

``MACH`` has an estimator for each repetition of a ``HashCode``, ``DECLARE`` one regressor for the
codes of ``SVDCode`` or ``NeighborCode``.
"""

from longtail.codes.declare import DECLARE
from longtail.codes.hash_code import HashCode
from longtail.codes.mach import MACH
from longtail.codes.neighbor_code import NeighborCode
from longtail.codes.randomized_svd import truncated_svd
from longtail.codes.ridge import Ridge
from longtail.codes.svd_code import SVDCode

__all__ = ["DECLARE", "HashCode", "MACH", "NeighborCode", "Ridge", "SVDCode", "truncated_svd"]
