"""Models that live on: labels come, go and change without training the others again.

A new label is a new leaf. It goes below the node to which the trained tree already sends its rows
(the highest score summed over them), and its classifier is trained there like any other: its own
rows against those of the labels beside it. The nodes above are moved as little as it takes to send
its rows there; the classifiers of old labels stay as they are. A node that has grown too large is
halved, and only the two new nodes are trained.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy.sparse as sp

from longtail._native import core, csr_args, n_threads
from longtail._validation import as_features, as_k, as_labels, as_seed
from longtail.data.vocabulary import Vocabulary
from longtail.features.unit_rows import unit_rows
from longtail.linear.label_weights import LabelWeights
from longtail.linear.layer import Layer
from longtail.linear.level import LevelProblem, train_level
from longtail.linear.missing_labels import corrected
from longtail.linear.post_processing import post_processors
from longtail.tree.clustering import cluster_order
from longtail.tree.label_features import pifa
from longtail.tree.shape import balanced_shape

if TYPE_CHECKING:
    from longtail.linear.ranker import LinearRanker

__all__ = ["PER_LABEL", "Growing"]

PER_LABEL = ("propensity_", "positive_weight_", "negative_weight_")

Self = TypeVar("Self", bound="Growing")


class Growing:
    """``add_labels``, ``remove_labels`` and ``partial_fit`` of linear models."""

    def add_labels(
        self: Self,
        X: Any,
        Y: Any,
        *,
        Y_old: Any = None,
        negatives: tuple[Any, Any] | None = None,
        names: Sequence[str] | None = None,
        split_above: int | None = None,
    ) -> Self:
        """Adds labels to a fitted model; their ids follow those it has.

        Parameters
        ----------
        X : (n, d) rows
        Y : (n, m) what the m new labels are for these rows: column j becomes label
            ``n_labels_ + j``
        Y_old : (n, L) the old labels of the same rows, if known
        negatives : ``(X, Y)``, further rows with their old labels and none of the new ones. Old
            rows are what keeps new labels from being answered everywhere: one of ``Y_old`` and
            ``negatives`` is needed, and the more of them the better
        names : of the new labels, for a model whose labels have names
        split_above : a tree node with more labels than this is halved (default: twice as many as
            the largest had before)

        Where labels have weights or propensities of their own, those of the new ones are 1.

        >>> import longtail as lt
        >>> X, Y = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [[0], [1], []]
        >>> model = lt.OneVsAll().fit(X, Y)
        >>> model.add_labels(X, [[], [], [0]], Y_old=Y).predict_topk([[0.0, 0.0, 2.0]], k=1).indices
        array([[2]], dtype=int32)
        """
        model: Any = self
        model._check_fitted()
        rows = _Rows.read(model, X, Y, Y_old, negatives)
        vocabulary = _longer(model.label_names_, names, rows.new.shape[1])
        largest = int(np.diff(model.layers_[-1].child_ptr).max())
        limit = 2 * largest if split_above is None else as_k(split_above, "split_above")
        n_old, n_new = model.n_labels_, rows.new.shape[1]
        if n_new == 0:
            return self
        home = _homes(model, rows)
        trained, arrival = _train(model, rows, home)
        above = _taught(model, rows, home)
        layer = model.layers_[-1]
        owner = np.repeat(np.arange(len(layer.child_ptr) - 1), np.diff(layer.child_ptr))
        owner = np.concatenate([owner, home[arrival]])
        pick = np.argsort(owner, kind="stable")
        labels = np.concatenate([model.label_of_leaf_, n_old + arrival])[pick]
        ptr = np.searchsorted(owner[pick], np.arange(len(layer.child_ptr)))
        grown = _arranged(model, [layer, trained], pick, ptr)
        model.n_labels_ = n_old + n_new
        model.label_names_ = vocabulary
        _change_per_label(model, lambda values: np.append(values, np.ones(n_new)))
        _install(model, [*above, grown], labels.astype(np.int32))
        if len(model.layers_) > 1:
            together = sp.hstack([rows.old, rows.new], format="csr")
            while (np.diff(model.layers_[-1].child_ptr) > limit).any():
                _split(model, rows.X, together, int(np.diff(model.layers_[-1].child_ptr).argmax()))
        return self

    def remove_labels(self: Self, labels: Sequence[int] | np.ndarray) -> Self:
        """Takes labels out; the others keep their order and close the gaps, as ``numpy.delete``.

        >>> import longtail as lt
        >>> model = lt.OneVsAll().fit([[1.0, 0.0], [0.0, 1.0]], [[0], [1]])
        >>> model.remove_labels([0]).n_labels_
        1
        """
        model: Any = self
        model._check_fitted()
        gone = np.zeros(model.n_labels_, bool)
        gone[_label_ids(labels, model.n_labels_)] = True
        if gone.all():
            raise ValueError("a model without labels has nothing to answer: keep one at least")
        number = np.cumsum(~gone) - 1
        keep = np.flatnonzero(~gone[model.label_of_leaf_])
        names = number[model.label_of_leaf_[keep]]
        layers = list(model.layers_)
        for t in reversed(range(len(layers))):  # nodes that lose all children go as well
            ptr = np.searchsorted(keep, layers[t].child_ptr)
            alive = np.flatnonzero(np.diff(ptr)) if t else np.zeros(1, np.int64)
            layers[t] = _arranged(model, [layers[t]], keep, np.append(0, ptr[1:][alive]))
            keep = alive
        model.n_labels_ = int((~gone).sum())
        if model.label_names_ is not None:
            kept = zip(model.label_names_, gone, strict=True)
            model.label_names_ = Vocabulary([name for name, out in kept if not out])
        _change_per_label(model, lambda values: values[~gone])
        _install(model, layers, names.astype(np.int32))
        return self

    def partial_fit(self: Self, X: Any, Y: Any, labels: Any = None) -> Self:
        """Trains some labels anew, where they are in the tree, and leaves all others as they are.

        ``X`` (n, d) and ``Y`` (n, L): the rows that count now, old and new. ``labels``: those whose
        data has changed; None takes every label that occurs in ``Y``. With all rows and all labels
        the last level becomes that of ``fit``.

        >>> import longtail as lt
        >>> X, Y = [[1.0, 0.0], [0.0, 1.0]], [[0], [1]]
        >>> lt.OneVsAll().fit(X, Y).partial_fit(X, Y, labels=[1]).n_labels_
        2
        """
        model: Any = self
        model._check_fitted()
        X = _features(model, X)
        Y = as_labels(Y, n_rows=X.shape[0], n_labels=model.n_labels_)
        if Y.shape[1] != model.n_labels_:
            raise ValueError(f"Y must have a column for each of {model.n_labels_} labels")
        changed = np.unique(Y.indices) if labels is None else _label_ids(labels, model.n_labels_)
        if len(changed) == 0:
            return self
        layer = model.layers_[-1]
        leaf = np.empty(model.n_labels_, np.int64)
        leaf[model.label_of_leaf_] = np.arange(model.n_labels_)
        home = np.searchsorted(layer.child_ptr, leaf[changed], side="right") - 1
        # An empty parent begins where the next one does: the last of equal offsets has the child.
        rows = _Rows(X, Y, Y[:, changed].tocsr())
        trained, arrival = _train(model, rows, home, positive=changed)
        pick = np.arange(layer.n_children)
        pick[leaf[changed[arrival]]] = layer.n_children + np.arange(len(changed))
        grown = _arranged(model, [layer, trained], pick, layer.child_ptr)
        _install(model, [*model.layers_[:-1], grown], model.label_of_leaf_)
        return self


class _Rows:
    """Rows to learn from: features, old labels (n, L) and the labels to train (n, m)."""

    def __init__(self, X: sp.csr_matrix, old: sp.csr_matrix, new: sp.csr_matrix) -> None:
        self.X, self.old, self.new = X, old, new

    @classmethod
    def read(
        cls, model: LinearRanker, X: Any, Y: Any, Y_old: Any, negatives: tuple[Any, Any] | None
    ) -> _Rows:
        if Y_old is None and negatives is None:
            raise ValueError(
                "old rows are needed as negatives, or the new labels would be answered everywhere: "
                "give Y_old, the old labels of these rows, or negatives=(X, Y), rows without the "
                "new labels"
            )
        X = _features(model, X)
        new = as_labels(Y, n_rows=X.shape[0])
        none = sp.csr_matrix((X.shape[0], model.n_labels_), dtype=np.float32)
        old = none
        if Y_old is not None:
            old = as_labels(Y_old, n_rows=X.shape[0], n_labels=model.n_labels_)
        if negatives is not None:
            more = _features(model, negatives[0])
            its = as_labels(negatives[1], n_rows=more.shape[0], n_labels=model.n_labels_)
            X = sp.vstack([X, more], format="csr")
            old = sp.vstack([old, its], format="csr")
            empty = sp.csr_matrix((more.shape[0], new.shape[1]), dtype=np.float32)
            new = sp.vstack([new, empty], format="csr")
        return cls(X, old, new)


def _features(model: LinearRanker, X: Any) -> sp.csr_matrix:
    X = as_features(X, n_features=model.n_features_in_)
    X = sp.csr_matrix(X) if not sp.issparse(X) else X
    return unit_rows(X, n_threads(model.n_jobs)) if model.normalize else X


def _longer(known: Vocabulary | None, names: Sequence[str] | None, n_new: int) -> Vocabulary | None:
    if names is None and known is None:
        return None
    if names is None or known is None:
        missing = "the new labels" if known is not None else "the old labels, see name_labels"
        raise ValueError(f"either all labels have names or none: names are missing for {missing}")
    if len(names) != n_new:
        raise ValueError(f"names must be one per new label ({n_new}), got {len(names)}")
    return Vocabulary([*known, *names])


def _label_ids(labels: Any, n_labels: int) -> np.ndarray:
    ids = np.unique(np.asarray(labels))
    if len(ids) and (ids.dtype.kind not in "iu" or ids[0] < 0 or ids[-1] >= n_labels):
        raise ValueError(f"labels must be ids from 0 to {n_labels - 1}, got {labels!r}")
    return ids.astype(np.int64)


def _homes(model: Any, rows: _Rows) -> np.ndarray:
    """The last inner node for each new label: where its rows' scores are highest in sum.

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
    width = min(n_nodes, 16)
    beams = [min(layer.n_children, 16) for layer in model.layers_[:-2]]
    threads = n_threads(model.n_jobs)
    queries = rows.X[own]
    ids, scores = inner.search_sparse(*csr_args(queries), width, beams, False, threads, None)
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


def _train(
    model: Any, rows: _Rows, home: np.ndarray, positive: np.ndarray | None = None
) -> tuple[Layer, np.ndarray]:
    """Classifiers of the labels to train, by node and then by falling frequency; and that order.

    ``positive``: their ids among the old labels, where they have any (for weights per label).
    """
    layer = model.layers_[-1]
    n_parents = len(layer.child_ptr) - 1
    counts = np.bincount(rows.new.indices, minlength=rows.new.shape[1])
    order = np.lexsort((np.arange(len(home)), -counts, home))
    child_ptr = np.searchsorted(home[order], np.arange(n_parents + 1)).astype(np.int64)
    used = np.flatnonzero(np.diff(child_ptr))
    if n_parents == 1:
        n = rows.X.shape[0]
        parents = sp.csc_matrix((np.ones(n, np.float32), np.arange(n), [0, n]), shape=(n, 1))
    else:
        node = np.empty(model.n_labels_, np.int64)
        sizes = np.diff(layer.child_ptr)
        node[model.label_of_leaf_] = np.repeat(np.arange(n_parents), sizes)
        below = sp.vstack([_indicator(node, n_parents), _indicator(home, n_parents)], format="csr")
        parents = (sp.hstack([rows.old, rows.new], format="csr") @ below).tocsc()[:, used]
        parents.sort_indices()
    columns, weights = _costs(model, rows, positive)
    columns = columns[:, order].tocsc()
    columns.sort_indices()
    problem = LevelProblem(
        parents=parents,
        child_ptr=np.append(0, child_ptr[1:][used]),
        positives=columns,
        positive_cost=model.C * weights.positive[order],
        negative_cost=model.C * weights.negative[order],
    )
    seed = (as_seed(model.random_state) + len(model.layers_) - 1) % 2**64
    threads = n_threads(model.n_jobs)
    return train_level(rows.X, problem, model._options(), seed=seed, n_threads=threads), order


def _costs(
    model: Any, rows: _Rows, positive: np.ndarray | None
) -> tuple[sp.csr_matrix, LabelWeights]:
    """Targets (n, m) and weights of the labels to train, as ``fit`` would give them."""
    n_new = rows.new.shape[1]
    weights = []
    for name in ("positive_weight", "negative_weight"):
        each = getattr(model, f"{name}_")
        if each is None:
            each = np.full(n_new, getattr(model, name), np.float64)
        else:
            each = np.ones(n_new) if positive is None else each[positive]
        weights.append(each)
    targets, p = rows.new, model.propensity_
    if p is not None:  # what a label aims at may depend on all labels of its row
        if positive is None:
            p, full = np.append(p, np.ones(n_new)), sp.hstack([rows.old, rows.new], format="csr")
            positive = model.n_labels_ + np.arange(n_new)
        else:
            full = rows.old
        observed = corrected(full, p, model.correction)
        targets = observed.targets[:, positive]
        weights[0] = weights[0] * observed.weight[positive]
    return targets, LabelWeights(*weights)


def _change_per_label(model: Any, change: Callable[[np.ndarray], np.ndarray]) -> None:
    for name in PER_LABEL:
        values = getattr(model, name)
        if values is not None:
            setattr(model, name, change(values))


def _taught(model: Any, rows: _Rows, home: np.ndarray) -> list[Layer]:
    """The inner layers, moved as little as it takes to send the rows of new labels to them.

    For every node, ``min_w 1/2 |w - w_old|^2 + sum_i C_i loss(y_i w.x_i)`` over the rows that have
    a new label and as many others: what the node has learned of the rest is in ``w_old``.
    """
    layers = list(model.layers_[:-1])
    options = model._options()
    seed = as_seed(model.random_state)
    if not layers or options.chosen_solver != "dual":
        return layers
    has_new = np.diff(rows.new.indptr) > 0
    others = np.random.default_rng(seed).permutation(np.flatnonzero(~has_new))
    own = np.sort(np.concatenate([np.flatnonzero(has_new), others[: int(has_new.sum())]]))
    X = rows.X[own]
    labels = sp.hstack([rows.old[own], rows.new[own]], format="csr")
    node = np.empty(model.n_labels_, np.int64)
    last = model.layers_[-1].child_ptr
    node[model.label_of_leaf_] = np.repeat(np.arange(len(last) - 1), np.diff(last))
    node = np.concatenate([node, home])
    threads = n_threads(model.n_jobs)
    for t in reversed(range(len(layers))):
        layer = layers[t]
        parent = np.repeat(np.arange(len(layer.child_ptr) - 1), np.diff(layer.child_ptr))
        positives = _binary(labels @ _indicator(node, layer.n_children))
        if t:
            parents = _binary(labels @ _indicator(parent[node], len(layer.child_ptr) - 1))
        else:
            n = len(own)
            parents = sp.csc_matrix((np.ones(n, np.float32), np.arange(n), [0, n]), shape=(n, 1))
        begin = layer.weights(model.n_features_in_)
        problem = LevelProblem(
            parents=parents,
            child_ptr=layer.child_ptr,
            positives=positives,
            positive_cost=model.C * float(np.mean(model.positive_weight)),
            negative_cost=model.C * float(np.mean(model.negative_weight)),
            start=(begin, layer.arrays["bias"]),
        )
        exact = replace(options, threshold=0.0, prune_budget=None)
        moved = train_level(X, problem, exact, seed=(seed + t) % 2**64, n_threads=threads)
        weights = (begin + moved.weights(model.n_features_in_)).tocsr()
        weights.data[np.abs(weights.data) < options.threshold] = 0
        weights.eliminate_zeros()
        bias = layer.arrays["bias"] + moved.arrays["bias"]
        built = Layer.from_csr(weights, bias, layer.child_ptr, threads)
        layers[t] = built.with_precision(layer.precision)
        node = parent[node]
    return layers


def _binary(matrix: sp.csr_matrix) -> sp.csc_matrix:
    out = matrix.tocsc()
    out.sort_indices()
    out.data = np.ones_like(out.data)
    return out


def _split(model: Any, X: sp.csr_matrix, Y: sp.csr_matrix, node: int) -> None:
    """Halves the labels below a last inner node by balanced 2-means, and trains the halves."""
    *_, inner, last = model.layers_
    low, high = (int(at) for at in last.child_ptr[node : node + 2])
    labels = model.label_of_leaf_[low:high]
    seed = as_seed(model.random_state) & (2**63 - 1)
    order = cluster_order(
        pifa(X, Y[:, labels].tocsr(), max_features_per_label=256, n_jobs=model.n_jobs),
        balanced_shape([2, high - low]),
        seed=seed,
        n_jobs=model.n_jobs,
    )
    middle = low + (high - low + 1) // 2
    leaves = np.arange(last.n_children)
    leaves[low:high] = low + order
    ptr = np.insert(last.child_ptr, node + 1, middle)
    parent = int(np.searchsorted(inner.child_ptr, node, side="right")) - 1
    first, end = last.child_ptr[inner.child_ptr[parent : parent + 2]]
    siblings = model.label_of_leaf_[first:end]
    if len(inner.child_ptr) == 2:  # below the root every row counts, labelled or not
        own = np.arange(X.shape[0])
    else:
        own = np.flatnonzero(np.diff(Y[:, siblings].tocsr().indptr))
    halves = np.full(model.n_labels_, -1)
    halves[labels[order[: middle - low]]], halves[labels[order[middle - low :]]] = 0, 1
    inside = np.flatnonzero(halves >= 0)
    sides = sp.csr_matrix(
        (np.ones(len(inside), np.float32), (inside, halves[inside])), shape=(model.n_labels_, 2)
    )
    positives = _binary(Y[own] @ sides)
    n = len(own)
    problem = LevelProblem(
        parents=sp.csc_matrix((np.ones(n, np.float32), np.arange(n), [0, n]), shape=(n, 1)),
        child_ptr=np.array([0, 2]),
        positives=positives,
        positive_cost=model.C * float(np.mean(model.positive_weight)),
        negative_cost=model.C * float(np.mean(model.negative_weight)),
    )
    threads = n_threads(model.n_jobs)
    halved = train_level(X[own], problem, model._options(), seed=seed + node, n_threads=threads)
    nodes = np.arange(inner.n_children)
    pick = np.concatenate([nodes[:node], inner.n_children + np.arange(2), nodes[node + 1 :]])
    above = inner.child_ptr + (np.arange(len(inner.child_ptr)) > parent)
    layers = [
        *model.layers_[:-2],
        _arranged(model, [inner, halved], pick, above),
        _arranged(model, [last], leaves, ptr),
    ]
    _install(model, layers, model.label_of_leaf_[leaves])


def _indicator(columns: np.ndarray, n_columns: int) -> sp.csr_matrix:
    n = len(columns)
    ones = np.ones(n, np.float32)
    return sp.csr_matrix((ones, columns, np.arange(n + 1)), shape=(n, n_columns))


def _arranged(model: Any, layers: list[Layer], pick: np.ndarray, child_ptr: np.ndarray) -> Layer:
    """The children ``pick`` of several layers, numbered one after the other, as a layer."""
    d = model.n_features_in_
    weights = sp.vstack([layer.weights(d) for layer in layers], format="csr")[pick]
    bias = np.concatenate([layer.arrays["bias"] for layer in layers])[pick]
    built = Layer.from_csr(weights, bias, child_ptr, n_threads(model.n_jobs))
    return built.with_precision(layers[0].precision)


def _install(model: Any, layers: list[Layer], label_of_leaf: np.ndarray) -> None:
    """Puts new layers into the model and, where it has one, its tree."""
    model._set_layers(layers, label_of_leaf)
    tree = getattr(model, "tree_", None)
    if tree is not None:  # a copy: the model may itself be one of a model that stays
        model.tree_ = copy.copy(tree)._store([layer.child_ptr for layer in layers], label_of_leaf)
