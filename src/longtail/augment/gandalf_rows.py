"""``gandalf``: the text of a label as a training row, with the labels that go with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._validation import as_labels
from longtail.augment.appending import as_rows, filled
from longtail.augment.co_occurrence_graph import (
    as_ids,
    as_share,
    co_occurrence,
    counted,
    row_of,
    with_own,
)
from longtail.augment.random_walk_graph import random_walk

__all__ = ["GRAPHS", "gandalf"]

GRAPHS = ("co-occurrence", "symmetric", "random-walk", "self")


def gandalf(
    Y: Any,
    label_X: Any,
    delta: float = 0.1,
    *,
    graph: Any = "co-occurrence",
    labels: Any = None,
    filter_pairs: Any = None,
    random_state: Any = 0,
) -> tuple[Any, sp.csr_matrix]:
    """Return one more training row for every label that has a text, and its soft labels.

    The text z_j of label j is a short text about that label, and about those that occur with it::

        extra_Y[j, i] = G_ij / G_jj  if above delta, else 0;   extra_Y[j, j] = 1;   G = Y^T Y

    Training any model on the rows of the data and these (``append_rows``) teaches it rare labels
    and how labels go together, at no cost for answering.

    Parameters
    ----------
    Y : matrix of shape (n, L), or list of lists of int
        Labels (n, L) of the training rows, and of no others.
    label_X : list of str or matrix of shape (L, d)
        The texts of all L labels, as the model takes its rows: a list of texts (None or "" where a
        label has none), ``Tokens``, or their features, sparse or dense. Empty rows are left out.
    delta : float
        Targets up to and including it are dropped; 1 leaves the own label alone.
    graph : str or matrix of shape (L, L)
        Where targets come from: "co-occurrence", as above; "self" for the own label alone;
        "symmetric", ``sigmoid((G_ij / G_ii + G_ij / G_jj) / 2)`` where the mean of the two shares
        is above ``delta``, after GLaS; "random-walk" (``random_walk``); or a sparse matrix (L, L)
        of targets in [0, 1], row j for the text of label j.
    labels : array of int or None
        Ids of the labels to make rows of, or a mask (``tail_first``, ``uniform``).
    filter_pairs : array of shape (m, 2) or None
        (m, 2) pairs (row, label) that are taken out of ``Y`` before counting.
    random_state : int, Generator, RandomState or None
        Of the random walk.

    Returns ``extra_X``, of the kind of ``label_X``, and ``extra_Y`` (m, L) CSR float32, with values
    in (0, 1]. Labels that no row of ``Y`` has get their own label alone.

    >>> Y = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1]])
    >>> texts, targets = gandalf(Y, ["pet", "cat", ""])
    >>> texts
    ['pet', 'cat']
    >>> targets.toarray().round(3)
    array([[1.   , 0.667, 0.333],
           [1.   , 1.   , 0.5  ]], dtype=float32)

    S. Kharbanda et al., "Learning label-label correlations in extreme multi-label classification
    via label features", KDD 2024, section 4.
    GLaS: C. Guo et al., "Breaking the glass ceiling for embedding-based classifiers for large
    output spaces", NeurIPS 2019.
    """
    Y = counted(Y, filter_pairs)
    delta = as_share(delta, "delta")
    rows = as_rows(label_X, "label_X")
    if rows.shape[0] != Y.shape[1]:
        raise ValueError(
            f"label_X has {rows.shape[0]} rows, but Y has {Y.shape[1]} labels: give one row per "
            "label, empty for labels without a text"
        )
    chosen = as_ids(labels, Y.shape[1])
    chosen = chosen[filled(rows)[chosen]]
    return rows[chosen], _targets(Y, chosen, delta, graph, random_state)


def _targets(
    Y: sp.csr_matrix, chosen: np.ndarray, delta: float, graph: Any, random_state: Any
) -> sp.csr_matrix:
    if sp.issparse(graph) or isinstance(graph, np.ndarray):
        given = as_labels(graph, n_labels=Y.shape[1], name="graph")
        if given.shape[0] != Y.shape[1]:
            raise ValueError(f"graph must have a row per label ({Y.shape[1]}), got {given.shape}")
        return _above(given[chosen], delta, chosen)
    if not isinstance(graph, str) or graph not in GRAPHS:
        raise ValueError(f"graph must be one of {', '.join(GRAPHS)}, or a matrix, got {graph!r}")
    if graph == "self":
        nothing = np.zeros(0, np.int64)
        return with_own(nothing, nothing, nothing, chosen, Y.shape[1])
    if graph == "random-walk":
        return _above(random_walk(Y, labels=chosen, random_state=random_state), delta, chosen)
    shares = co_occurrence(Y, delta, symmetric=graph == "symmetric", labels=chosen)
    if graph == "symmetric":
        others = shares.indices != chosen[row_of(shares)]  # the own label stays at 1
        shares.data[others] = 1 / (1 + np.exp(-shares.data[others]))
    return shares


def _above(targets: sp.csr_matrix, delta: float, own: np.ndarray) -> sp.csr_matrix:
    """Return the targets above delta, and 1 for the own label of each row."""
    rows = row_of(targets)
    kept = (targets.data > delta) & (targets.indices != own[rows])
    columns, values = targets.indices[kept], targets.data[kept]
    return with_own(rows[kept], columns, values, own, targets.shape[1])
