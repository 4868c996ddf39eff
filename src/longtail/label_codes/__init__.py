"""Codes: fewer outputs than labels.

A code is learned from labels alone (``fit(Y)``), turns them into the targets of an estimator
(``encode(Y)``), and turns what the estimator predicts back into ranked labels
(``decode(scores, k)``). ``longtail.coded`` puts estimators behind them.

::

    HashCode      L labels ──► R times B buckets; a label scores what its buckets do
    SVDCode       rows of Y ──► c numbers each, Y = U S V^T; labels of the most similar rows
    NeighborCode  the same, with codes fitted to the similarities of near rows alone
"""

from longtail.label_codes.hash_code import HashCode
from longtail.label_codes.neighbor_code import NeighborCode
from longtail.label_codes.randomized_svd import truncated_svd
from longtail.label_codes.svd_code import SVDCode

__all__ = ["HashCode", "NeighborCode", "SVDCode", "truncated_svd"]
