"""Which rows the children of a node train on.

    tfn        teacher forcing: the rows that are positive for the node
    man        matcher aware: the rows whose beam reaches the node; and each child on its own
               positives, also where the beam misses them
    tfn+man    both: the rows of either are negatives of every child that they do not have

"man" and "tfn+man" differ in the rows that are positive for the node but whose beam misses it:
under "man" such a row trains the children that it has, as a positive, and no other child; under
"tfn+man" it is a negative of the others too. Rows that the user supplies come on top.

Yu et al., PECOS, 2022: the instances of a problem are the support of a column of the matching
matrix, and any missing positives.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from longtail.answers.topk import TopK
from longtail.linear.train.level import by_column, ones_of

__all__ = ["SCHEMES", "check_schemes", "parent_rows", "schemes_of"]

SCHEMES = ("tfn", "man", "tfn+man")


def check_schemes(names: str | Sequence[str]) -> None:
    """Raise ValueError for a name that is no scheme."""
    for name in [names] if isinstance(names, str) else names:
        if name not in SCHEMES:
            raise ValueError(f"negatives must be one of {', '.join(SCHEMES)}, got {name!r}")


def schemes_of(names: str | Sequence[str], depth: int) -> list[str]:
    """Return the scheme of every level but the first, whose nodes train on all rows.

    >>> schemes_of("tfn", 3), schemes_of(["tfn", "tfn+man"], 3)
    (['tfn', 'tfn'], ['tfn', 'tfn+man'])
    """
    each = [names] * (depth - 1) if isinstance(names, str) else [str(name) for name in names]
    if len(each) != depth - 1:
        raise ValueError(
            f"negatives names {len(each)} levels, but the tree has {depth - 1} below the first"
        )
    return each


def parent_rows(
    scheme: str, positives: sp.csc_matrix, reached: TopK | None, extra: sp.csc_matrix | None
) -> tuple[sp.csc_matrix, np.ndarray | None]:
    """Return the rows of every node, and what each weighs as a negative.

    Rows (n) by nodes (K) are the support of a CSC matrix, row numbers ascending; the weights stand
    beside its ``indices``: 0 for a row that only its positives train on, else 1; None if all are 1.

    ``positives``: the labels of this level; ``reached``: nodes in each row's beam, needed by
    "man"; ``extra``: rows the user wants as negatives.

    >>> beam = TopK.from_ranking([[0], [0], [1]], n_labels=2)
    >>> positives = sp.csc_matrix([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> rows, weight = parent_rows("man", positives, beam, None)
    >>> rows.indices.tolist(), rows.indptr.tolist(), weight.tolist()
    ([0, 1, 1, 2], [0, 2, 4], [1.0, 1.0, 0.0, 1.0])
    """
    check_schemes(scheme)
    support = ones_of(positives)
    if "man" in scheme:
        assert reached is not None
        support = support + 2 * reached.to_csr(binary=True).tocsc()
    if extra is not None:
        support = support + 2 * ones_of(extra)
    support = by_column(support)
    weight = (support.data >= 2).astype(np.float32)  # 1: positive for the node, and no more
    return support, None if scheme != "man" or weight.all() else weight
