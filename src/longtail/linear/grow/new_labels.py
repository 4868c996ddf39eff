"""Where new labels go in a trained tree, and their classifiers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from longtail._native import core, csr_args, n_threads
from longtail._validation import as_seed
from longtail.linear.grow.arranging import indicator, node_of_label
from longtail.linear.search.layer import Layer
from longtail.linear.search.post_processing import post_processors
from longtail.linear.train.level import LevelProblem, all_rows, by_column, level_cost, train_level
from longtail.linear.train.missing_labels import corrected

if TYPE_CHECKING:
    from longtail.linear.ranker import LinearRanker

__all__ = ["Rows", "find_homes", "train_labels"]

_BEAM = 16  # nodes that a row votes for
_NEGATIVES = 0.25  # of a node's rows without a new label there; they count for all of them
_LARGE = 1000  # rows of a node, from which on it can do without some of them


@dataclass
class Rows:
    """Rows to learn from: features, old labels (n, L) and the labels to train (n, m)."""

    X: sp.csr_matrix
    old: sp.csr_matrix
    new: sp.csr_matrix


def find_homes(model: LinearRanker, rows: Rows) -> np.ndarray:
    """Return the last inner node for each new label: where its rows' scores are highest in sum.

    A label without rows goes to the smallest node.
    """
    depth = len(model.layers_)
    n_new = rows.new.shape[1]
    if depth == 1:
        return np.zeros(n_new, np.int64)
    own = np.flatnonzero(np.diff(rows.new.indptr))
    codes, powers = post_processors(model.post_processor, depth)
    inner = core.BeamSearcher(
        [layer.native() for layer in model.layers_[:-1]],
        codes[: depth - 1],
        powers[: depth - 1],
        None,
        model.n_features_in_,
    )
    n_nodes = model.layers_[-2].n_children
    width = min(n_nodes, _BEAM)
    beams = [min(layer.n_children, _BEAM) for layer in model.layers_[:-2]]
    threads = n_threads(model.n_jobs)
    queries = rows.X[own]
    ids, scores = inner.search_sparse(csr_args(queries), width, beams, False, threads, None)
    scores = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf))
    reached = sp.csr_matrix(
        (scores.ravel(), ids.ravel(), np.arange(0, ids.size + 1, width)),
        shape=(len(own), n_nodes),
    )
    total = (rows.new[own].T.tocsr() @ reached).tocsr()
    smallest = int(np.diff(model.layers_[-1].child_ptr).argmin())
    homes = np.full(n_new, smallest, np.int64)
    for label in np.flatnonzero(np.diff(total.indptr)):
        low, high = total.indptr[label : label + 2]
        homes[label] = total.indices[low:high][total.data[low:high].argmax()]
    return homes


def train_labels(
    model: LinearRanker, rows: Rows, home: np.ndarray, positive: np.ndarray | None = None
) -> tuple[Layer, np.ndarray]:
    """Return classifiers of the labels to train, by node and then by falling frequency; and that
    order.

    ``positive``: their ids among the old labels, where they have any (for weights per label). New
    labels of nodes with many rows see some of those that have none of them, which count for the
    others too, which saves most of the time at a small price in P@k.
    """
    layer = model.layers_[-1]
    n_parents = len(layer.child_ptr) - 1
    counts = np.bincount(rows.new.indices, minlength=rows.new.shape[1])
    order = np.lexsort((np.arange(len(home)), -counts, home))
    child_ptr = np.searchsorted(home[order], np.arange(n_parents + 1)).astype(np.int64)
    used = np.flatnonzero(np.diff(child_ptr))
    columns = by_column(_targets(model, rows, positive)[:, order])
    if n_parents == 1:
        parents = all_rows(rows.X.shape[0])
    else:
        below = sp.vstack(
            [indicator(node_of_label(model), n_parents), indicator(home, n_parents)], format="csr"
        )
        parents = by_column(sp.hstack([rows.old, rows.new], format="csr") @ below)[:, used]
    weights, chosen = model._label_weights(len(home)), positive
    if chosen is None:
        chosen = model.n_labels_ + np.arange(len(home))
    C = level_cost(model.C, len(model.layers_) - 1, len(model.layers_))
    problem = LevelProblem(
        parents=parents,
        child_ptr=np.append(0, child_ptr[1:][used]),
        positives=columns,
        positive_cost=C * weights.positive[chosen[order]],
        negative_cost=C * weights.negative[chosen[order]],
    )
    seed = (as_seed(model.random_state) + len(model.layers_) - 1) % 2**64
    if n_parents > 1 and positive is None and parents.nnz > _LARGE * len(used):
        problem = _thinned(problem, seed)
    threads = n_threads(model.n_jobs)
    return train_level(rows.X, problem, model._options(), seed=seed, n_threads=threads), order


def _targets(model: LinearRanker, rows: Rows, positive: np.ndarray | None) -> sp.csr_matrix:
    """Return what the labels to train aim at (n, m); it may depend on all labels of a row."""
    if model.propensity_ is None:
        return rows.new
    if positive is not None:
        return corrected(rows.old, model.propensity_, model.correction).targets[:, positive]
    full = sp.hstack([rows.old, rows.new], format="csr")
    p = np.append(model.propensity_, np.ones(rows.new.shape[1]))
    return corrected(full, p, model.correction).targets[:, model.n_labels_ :]


def _thinned(problem: LevelProblem, seed: int) -> LevelProblem:
    """Return some of the negatives of each node, which count for all; every row with a new label
    there.
    """
    parents, positives = problem.parents, problem.positives
    kept = np.random.default_rng(seed).random(parents.nnz) < _NEGATIVES
    child_of = np.repeat(np.arange(positives.shape[1]), np.diff(positives.indptr))
    node_of = np.searchsorted(problem.child_ptr, child_of, side="right") - 1
    n_rows = parents.shape[0]
    places = np.repeat(np.arange(parents.shape[1]), np.diff(parents.indptr)) * n_rows
    places += parents.indices  # ascending
    kept[np.searchsorted(places, node_of * n_rows + positives.indices)] = True
    indptr = np.concatenate([[0], np.cumsum(kept)])[parents.indptr]
    thinner = sp.csc_matrix((parents.data[kept], parents.indices[kept], indptr), parents.shape)
    return replace(problem, parents=thinner, negative_cost=problem.negative_cost / _NEGATIVES)
