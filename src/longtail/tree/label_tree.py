"""``LabelTree``: groups of labels, in levels, for models that decide from coarse to fine."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from longtail._csr import csr
from longtail._native import core, csr_args, n_threads
from longtail._validation import as_features, as_k, as_labels, as_seed
from longtail.base import Estimator
from longtail.exceptions import ModelFormatError
from longtail.features.unit_length import unit_rows
from longtail.persist import State
from longtail.tree import hierarchy as hierarchies
from longtail.tree.clustering import cluster_order
from longtail.tree.huffman import huffman_parents
from longtail.tree.label_features import concatenate, pifa
from longtail.tree.shape import (
    TreeShape,
    balanced_shape,
    default_level_sizes,
    default_shape,
    leaf_offsets,
)

__all__ = ["LabelTree"]

_NODE_VALUES = {"one": 0, "sum": 1, "max": 2}


class LabelTree(Estimator):
    """A tree whose leaves are the labels, each exactly once, all on the last level.

    ``kind="kmeans"``: labels are described by ``features`` and halved by balanced spherical
    2-means ``D = max(1, ceil(log2(L / leaf)))`` times; the ``2**D`` clusters, in their order, are
    grouped by ``branching`` until at most ``min_codes`` remain below the root. ``leaf >= L`` leaves
    a single level, the labels under the root: one-versus-all. ``kind="random"`` has the same shape
    with labels at random, ``kind="huffman"`` joins the rarest labels first (``branching`` at a
    time), and ``kind="given"`` takes ``hierarchy``. Random and Huffman trees know nothing of what
    labels have in common: they are there to be compared with.

    Parameters
    ----------
    kind : str
        "kmeans", "random", "huffman" or "given".
    features : str
        What describes a label: "pifa", the normalised sum of its positive rows of X; "text", the
        ``label_features`` given to ``fit``; "pifa+text", both side by side.
    leaf : int
        Largest number of labels in a last cluster.
    branching : int
        Children per node above the last clusters.
    min_codes : int or None
        How many nodes the level below the root may have (default: ``branching``).
    level_sizes : sequence of int or None
        Numbers of clusters per level, ascending, instead of what ``leaf``, ``branching`` and
        ``min_codes`` imply: ``[64]`` is 64 clusters under the root, labels under them. The last
        clusters differ by at most one label. More than one cluster per label is refused.
    normalize_label_rows : bool
        Scale rows of Y to unit length for PIFA, as the reference code does; the papers' formula is
        False.
    spherical : bool
        Centroids of unit length; False uses means.
    max_iter : int
        Assignments per split.
    max_features_per_label : int or None
        Keep the largest entries of PIFA vectors (see ``pifa``); None keeps all.
    hierarchy : array, list or None
        For ``kind="given"``: a parent array over nodes, labels first, -1 for the root; nested lists
        of label ids; or the indicator matrices of a cluster chain (see
        ``longtail.tree.hierarchy``). Labels at different depths are padded with only children.
    random_state : int, Generator, RandomState or None
        Seed of the splits or of the random order. Same seed, same tree, for any n_jobs.
    n_jobs : int or None
        Threads; None and -1 are all cores.

    Attributes
    ----------
    level_sizes_ : list of int, nodes per level, the last is L
    child_ptr_ : list of int64 arrays; children of node c of the level above are the nodes
        ``child_ptr_[t][c] .. child_ptr_[t][c + 1]`` of level t
    label_of_leaf_, leaf_of_label_ : int32 (L), the order of the last level and its inverse
    n_labels_ : int

    >>> import numpy as np
    >>> X = np.eye(4, dtype=np.float32)[[0, 0, 1, 1]] + 0.1
    >>> tree = LabelTree(leaf=2).fit(X, [[0], [2], [1], [3]])
    >>> tree.level_sizes_, sorted(tree.label_of_leaf_[:2].tolist()) in ([0, 2], [1, 3])
    ([2, 4], True)
    >>> tree.node_labels([[0, 2], [1]], level=0).nnz
    2

    Yu et al., PECOS: prediction for enormous and correlated output spaces, JMLR 2022, section 3.
    """

    type_tag: ClassVar[str] = "label-tree"
    level_sizes_: list[int]
    child_ptr_: list[np.ndarray]
    label_of_leaf_: np.ndarray
    leaf_of_label_: np.ndarray

    def __init__(
        self,
        *,
        kind: str = "kmeans",
        features: str = "pifa",
        leaf: int = 100,
        branching: int = 16,
        min_codes: int | None = None,
        level_sizes: Sequence[int] | None = None,
        normalize_label_rows: bool = True,
        spherical: bool = True,
        max_iter: int = 20,
        max_features_per_label: int | None = None,
        hierarchy: Any = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.kind = kind
        self.features = features
        self.leaf = leaf
        self.branching = branching
        self.min_codes = min_codes
        self.level_sizes = level_sizes
        self.normalize_label_rows = normalize_label_rows
        self.spherical = spherical
        self.max_iter = max_iter
        self.max_features_per_label = max_features_per_label
        self.hierarchy = hierarchy
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def n_labels_(self) -> int:
        return len(self.label_of_leaf_)

    def fit(self, X: Any, Y: Any, label_features: Any = None) -> LabelTree:
        """Build the tree from features ``X`` (n, d) and labels ``Y`` (n, L).

        Parameters
        ----------
        X : matrix of shape (n, d) or None
            Features; read for PIFA only.
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        label_features : matrix of shape (L, d), default=None
            Rows describing the labels, sparse or dense, brought to unit length. ``X`` is read
            for PIFA only, and may be None otherwise.
        """
        uses_pifa, uses_text = self._sources()
        Y = as_labels(Y)
        n_labels = Y.shape[1]
        if n_labels == 0:
            raise ValueError("Y has no labels: nothing to build a tree of")
        if self.kind == "given":
            if self.hierarchy is None:
                raise ValueError('kind="given" needs a hierarchy')
            parents = hierarchies.parents_of_hierarchy(self.hierarchy, n_labels)
            return self._store(*hierarchies.levels_of_parents(parents, n_labels))
        if self.kind == "huffman":
            counts = np.bincount(Y.indices, minlength=n_labels)
            branching = as_k(self.branching, "branching")
            if branching < 2:
                raise ValueError(f"branching must be at least 2, got {branching}")
            parents = huffman_parents(counts, branching)
            return self._store(*hierarchies.levels_of_parents(parents, n_labels))
        shape = self._shape(n_labels)
        if self.kind == "random":
            return self._store(shape.child_ptr, self._random_order(shape, n_labels))
        parts = []
        if uses_pifa:
            parts.append(self._pifa(X, Y))
        if uses_text:
            parts.append(self._text(label_features, n_labels))
        order = cluster_order(
            parts[0] if len(parts) == 1 else concatenate(*parts),
            shape,
            seed=as_seed(self.random_state),
            max_iter=as_k(self.max_iter, "max_iter"),
            spherical=self.spherical,
            n_jobs=self.n_jobs,
        )
        counts = np.bincount(Y.indices, minlength=n_labels)
        return self._store(shape.child_ptr, _frequent_first(order, shape.child_ptr[-1], counts))

    def ancestors(self, level: int) -> np.ndarray:
        """Return the node of ``level`` above each label, int32 (L); on the last level, its
        position.

        Parameters
        ----------
        level : int
            A level of the tree; -1 is the last.
        """
        self._check_fitted()
        offsets = leaf_offsets(self.child_ptr_, self._level(level))
        nodes = np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))
        return np.asarray(nodes[self.leaf_of_label_])

    def node_labels(self, Y: Any, level: int, *, value: str = "one") -> sp.csr_matrix:
        """Return labels of rows as labels of the nodes of ``level``: (n, K_level) CSR float32.

        A node gets, from the labels of a row below it, ``"one"`` if there is any (binarised), the
        ``"sum"`` of their values (the relevance R^(t) = Y C of XR-Transformer), or the ``"max"``.
        On the last level this is Y with its columns in leaf order. Negative levels count from the
        end.

        Parameters
        ----------
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        level : int
            A level of the tree; -1 is the last.
        value : {"one", "sum", "max"}, default="one"
            What a node gets from the labels below it.

        >>> tree = LabelTree(kind="given", hierarchy=[[0, 1], [2]]).fit(None, [[2]])
        >>> tree.node_labels([[0, 1], [1, 2]], 0, value="sum").toarray()
        array([[2., 0.],
               [1., 1.]], dtype=float32)
        """
        nodes = self.ancestors(level)
        Y = as_labels(Y, n_labels=self.n_labels_)
        if value not in _NODE_VALUES:
            raise ValueError(f"value must be one of {', '.join(_NODE_VALUES)}, got {value!r}")
        indptr, indices, values = core.node_labels(
            csr_args(Y), nodes, _NODE_VALUES[value], n_threads(self.n_jobs)
        )
        return csr(indptr, indices, values, self.level_sizes_[level])

    def _sources(self) -> tuple[bool, bool]:
        kinds = ("kmeans", "random", "huffman", "given")
        if self.kind not in kinds:
            raise ValueError(f"kind must be one of {', '.join(kinds)}, got {self.kind!r}")
        sources = {"pifa": (True, False), "text": (False, True), "pifa+text": (True, True)}
        if self.features not in sources:
            raise ValueError(f"features must be one of {', '.join(sources)}, got {self.features!r}")
        return sources[self.features]

    def _shape(self, n_labels: int) -> TreeShape:
        if self.level_sizes is None:
            sizes = default_level_sizes(
                n_labels, leaf=self.leaf, branching=self.branching, min_codes=self.min_codes
            )
            return default_shape(sizes, self.branching)
        sizes = [as_k(size, "level_sizes") for size in self.level_sizes]
        if any(a >= b for a, b in pairwise(sizes)):
            raise ValueError(f"level_sizes must ascend, got {sizes}")
        if sizes and sizes[-1] > n_labels:
            raise ValueError(f"level_sizes asks for {sizes[-1]} clusters of {n_labels} labels")
        return balanced_shape([*sizes, n_labels])

    def _random_order(self, shape: TreeShape, n_labels: int) -> np.ndarray:
        order = np.random.default_rng(as_seed(self.random_state)).permutation(n_labels)
        cluster = np.repeat(np.arange(len(shape.child_ptr[-1]) - 1), np.diff(shape.child_ptr[-1]))
        return order[np.lexsort((order, cluster))].astype(np.int32)

    def _pifa(self, X: Any, Y: sp.csr_matrix) -> Any:
        if X is None:
            raise ValueError(f"features={self.features!r} needs X, got None")
        return pifa(
            X,
            Y,
            normalize_label_rows=self.normalize_label_rows,
            max_features_per_label=self.max_features_per_label,
            n_jobs=self.n_jobs,
        )

    def _text(self, label_features: Any, n_labels: int) -> Any:
        if label_features is None:
            raise ValueError(f"features={self.features!r} needs label_features, got None")
        label_features = as_features(label_features, name="label_features")
        if label_features.shape[0] != n_labels:
            raise ValueError(
                f"label_features has {label_features.shape[0]} rows for {n_labels} labels"
            )
        return unit_rows(label_features)

    def _level(self, level: int) -> int:
        n_levels, level = len(self.child_ptr_), operator.index(level)
        if not -n_levels <= level < n_levels:
            raise IndexError(f"level {level} of a tree with {n_levels} levels")
        return level % n_levels

    def _store(self, child_ptr: list[np.ndarray], label_of_leaf: np.ndarray) -> LabelTree:
        leaf_of_label = np.empty(len(label_of_leaf), dtype=np.int32)
        leaf_of_label[label_of_leaf] = np.arange(len(label_of_leaf), dtype=np.int32)
        self.child_ptr_ = child_ptr
        self.level_sizes_ = [int(ptr[-1]) for ptr in child_ptr]
        self.label_of_leaf_, self.leaf_of_label_ = label_of_leaf, leaf_of_label
        return self

    def _get_state(self) -> State:
        params = self.get_params(deep=False)
        params["hierarchy"] = None  # the tree itself says it all
        if not isinstance(self.random_state, numbers.Integral):  # a generator is no plain data
            params["random_state"] = None
        if self.level_sizes is not None:
            params["level_sizes"] = [int(size) for size in self.level_sizes]
        arrays = {f"child_ptr_{t}": ptr for t, ptr in enumerate(self.child_ptr_)}
        arrays["label_of_leaf"] = self.label_of_leaf_
        return State(self.type_tag, params, arrays, {"n_levels": len(self.child_ptr_)})

    def _set_state(self, state: State) -> None:
        child_ptr = [state.arrays[f"child_ptr_{t}"] for t in range(int(state.meta["n_levels"]))]
        label_of_leaf = state.arrays["label_of_leaf"]
        _check_tree(child_ptr, label_of_leaf)
        self._store(child_ptr, label_of_leaf)
        if self.kind == "given":
            self.hierarchy = hierarchies.parents_of_levels(child_ptr, label_of_leaf)


def _check_tree(child_ptr: list[np.ndarray], label_of_leaf: np.ndarray) -> None:
    """Refuse stored arrays that are no tree: they are used as indices without further checks."""
    above = 1
    for level, ptr in enumerate(child_ptr):
        if ptr.dtype != np.int64 or ptr.shape != (above + 1,) or ptr[0] != 0:
            raise ModelFormatError(f"child_ptr_{level} must hold {above + 1} int64 offsets from 0")
        if (np.diff(ptr) < 1).any():
            raise ModelFormatError(f"child_ptr_{level} has a node without children")
        above = int(ptr[-1])
    if label_of_leaf.dtype != np.int32 or label_of_leaf.shape != (above,) or not child_ptr:
        raise ModelFormatError(f"label_of_leaf must be {above} int32 label ids")
    if not np.array_equal(np.sort(label_of_leaf), np.arange(above)):
        raise ModelFormatError("label_of_leaf must hold every label exactly once")


def _frequent_first(order: np.ndarray, child_ptr: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return labels of each cluster, which ascend in ``order``, by falling frequency.

    Their order inside a cluster is free; neighbours of like frequency share a block of the solver
    and need about the same number of its passes.
    """
    cluster = np.repeat(np.arange(len(child_ptr) - 1), np.diff(child_ptr))
    most = int(counts.max(initial=0))
    return np.asarray(order[np.argsort(cluster * (most + 1) - counts[order], kind="stable")])
