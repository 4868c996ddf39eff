"""Clusters of labels for the auxiliary loss of a layer with few weights per label."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from longtail.data.tokens import Tokens
from longtail.deep.objectives import Binary
from longtail.deep.output_plan import OutputPlan
from longtail.deep.outputs import Full
from longtail.deep.outputs.clustered import Clustered
from longtail.deep.outputs.layer import Layer
from longtail.deep.training.plan import Plan
from longtail.tree import LabelTree

__all__ = ["clusters_of", "with_clusters"]

_LABELS_PER_CLUSTER = 64  # 2,048 clusters for 131 thousand labels


def with_clusters(
    layer: Layer, outputs: OutputPlan, plan: Plan, tokens: Tokens, Y: Any, steps: int
) -> Layer:
    """Return a layer with a head over clusters of its labels beside it; ``steps`` of an epoch."""
    if not sp.issparse(Y):
        raise ValueError("auxiliary is for labels, not for the targets of a regression")
    count = outputs.clusters or max(2, -(-Y.shape[1] // _LABELS_PER_CLUSTER))
    count = min(int(count), Y.shape[1])
    cluster_of = clusters_of(tokens, Y, count, plan)
    chain = sp.csr_matrix(
        (np.ones(len(cluster_of), np.float32), (np.arange(len(cluster_of)), cluster_of)),
        shape=(Y.shape[1], count),
    )
    share = sp.csr_matrix(Y @ chain)
    share.data[:] = 1
    device = torch.device(plan.device)
    rng = np.random.default_rng([plan.seed, 9])
    width = layer.width  # type: ignore[attr-defined]
    weights = rng.standard_normal((count, width), np.float32) * np.float32(0.02)
    head = Full(
        torch.tensor(weights).to(device),
        torch.tensor(Binary().start_bias(share)).to(device),
        weight_decay=plan.weight_decay,
        low_precision=plan.low,
    )
    until = int(outputs.auxiliary_epochs) * steps
    return Clustered(
        layer,
        head,
        torch.tensor(cluster_of.astype(np.int64)).to(device),
        weight=outputs.auxiliary,
        until=until,
    )


def clusters_of(tokens: Tokens, Y: sp.csr_matrix, count: int, plan: Plan) -> np.ndarray:
    """Return the cluster of every label, (L,): the last level of a label tree over the words of the
    texts that have the label, weighted by how rare they are.
    """
    size = int(tokens.ids.max(initial=0)) + 1
    ones = np.ones(len(tokens.ids), np.float32)
    X = sp.csr_matrix((ones, tokens.ids, tokens.offsets), shape=(len(tokens), size))
    X.sum_duplicates()
    seen = np.bincount(X.indices, minlength=size)
    X.data = np.asarray(np.log1p(X.data) * np.log((1 + len(tokens)) / (1 + seen[X.indices])), "f")
    X.eliminate_zeros()
    tree = LabelTree(level_sizes=[count], random_state=plan.seed, n_jobs=plan.threads)
    return tree.fit(X, Y).ancestors(0)
