"""``LabelIndex``: the labels whose vectors have the largest products with those of a text."""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail._products import PackedRows
from longtail.exceptions import MissingDependencyError

__all__ = ["INDEXES", "LabelIndex"]

INDEXES = ("exact", "hnsw")
_NEIGHBOURS = 32  # of a label in the graph
_WIDTH = 128  # labels that a search keeps in sight, at least


class LabelIndex:
    """``kind`` "exact" compares with every label; "hnsw" walks a graph of similar labels (Malkov
    and Yashunin 2020; the package ``faiss``), and may miss some. Both give exact scores: the
    product and what ``bias`` (L,) adds to it.
    """

    def __init__(self, rows: np.ndarray, bias: np.ndarray, kind: str = "exact") -> None:
        self.rows, self.bias, self.kind = rows, bias, kind
        if kind == "exact":
            self.packed: Any = PackedRows(rows)
            return
        faiss = _library()
        wide = np.column_stack([rows, bias]).astype(np.float32)  # queries get a 1 there
        self.graph = faiss.IndexHNSWFlat(wide.shape[1], _NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
        self.graph.hnsw.efConstruction = 2 * _WIDTH
        self.graph.add(wide)

    def top(self, queries: np.ndarray, k: int, n_threads: int) -> tuple[np.ndarray, np.ndarray]:
        """Return ids and scores (n, k) of the best labels, best first; padded with -1, -inf."""
        if self.kind == "exact":
            return self.packed.top(queries, k, n_threads, self.bias)  # type: ignore[no-any-return]
        if not len(queries):
            return np.zeros((0, k), np.int32), np.zeros((0, k), np.float32)
        faiss = _library()
        settings = faiss.SearchParametersHNSW(efSearch=max(_WIDTH, 2 * k))
        wide = np.column_stack([queries, np.ones(len(queries))]).astype(np.float32)
        scores, ids = self.graph.search(wide, k, params=settings)
        ids = ids.astype(np.int32)
        scores = np.where(ids >= 0, scores, -np.inf).astype(np.float32)
        last = np.where(ids >= 0, ids, np.iinfo(np.int32).max)
        order = np.lexsort((last, -scores), axis=1)  # equal scores: the smaller id first
        return np.take_along_axis(ids, order, 1), np.take_along_axis(scores, order, 1)

    def recall(self, queries: np.ndarray, k: int, n_threads: int) -> float:
        """Return the share of the k best labels of every query that ``top`` finds."""
        found = self.top(queries, k, n_threads)[0]
        best = PackedRows(self.rows).top(queries, k, n_threads, self.bias)[0]
        hits = [np.isin(a[a >= 0], b).sum() for a, b in zip(best, found, strict=True)]
        return float(np.sum(hits) / max(1, (best >= 0).sum()))


def _library() -> Any:
    try:
        import faiss
    except ModuleNotFoundError as error:
        if error.name != "faiss":
            raise
        raise MissingDependencyError("faiss", "index", "searching labels by a graph") from error
    return faiss
