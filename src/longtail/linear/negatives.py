"""Which rows a node trains on.

    tfn        teacher forcing: the rows that are positive for the node
    man        matcher aware: the rows whose beam reaches the node
    tfn+man    both

Positives are always among them, and rows that the user supplies come on top.
"""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from longtail.data.topk import TopK
from longtail.linear.level import by_column, ones_of

__all__ = ["SCHEMES", "parent_rows"]

SCHEMES = ("tfn", "man", "tfn+man")


def parent_rows(
    scheme: str, positives: sp.csc_matrix, reached: TopK | None, extra: sp.csc_matrix | None
) -> sp.csc_matrix:
    """Rows (n) by nodes (K) as the support of a CSC matrix, row numbers ascending.

    ``positives``: the labels of this level; ``reached``: nodes in each row's beam, needed by
    "man"; ``extra``: rows the user wants as negatives. With "man" alone, positives are kept too:
    a node must see its own positives.
    """
    if scheme not in SCHEMES:
        raise ValueError(f"negatives must be one of {', '.join(SCHEMES)}, got {scheme!r}")
    support: Any = ones_of(positives)
    if "man" in scheme:
        assert reached is not None
        support = support + reached.to_csr(binary=True).tocsc()
    if extra is not None:
        support = support + ones_of(extra)
    return by_column(support)
