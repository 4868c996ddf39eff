"""``Adapter``: what the worker asks of a system, and where its clock runs.

read      not timed    the training data, in the form the system takes
train     timed        everything from there to a model in memory (or on disk, where the system
                       does not separate the two)
save      not timed
load      timed        in a new process
batch, queries         not timed    rows in the form the system takes
predict, predict_one   timed        the answers, in the form the system gives
labels    not timed    those answers as label ids
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["Adapter", "best_labels", "padded"]


class Adapter:
    """One system with its ``settings``; ``model`` is set by ``train`` or ``load``."""

    def __init__(self, settings: dict[str, Any], n_threads: int) -> None:
        self.settings = settings
        self.n_threads = n_threads
        self.model: Any = None
        self.X: Any = None
        self.Y: Any = None

    def read(self, data: Path) -> None:
        self.X = sp.load_npz(data / "train_X.npz")
        self.Y = sp.load_npz(data / "train_Y.npz")

    def train(self, folder: Path) -> None:
        """``folder`` is where the model will be saved, for systems that write while training."""
        raise NotImplementedError

    def save(self, folder: Path) -> None:
        raise NotImplementedError

    def load(self, folder: Path) -> None:
        raise NotImplementedError

    def batch(self, X: sp.csr_matrix) -> Any:
        return X

    def queries(self, X: sp.csr_matrix) -> list[Any]:
        return [X[i] for i in range(X.shape[0])]

    def predict(self, batch: Any, k: int) -> Any:
        raise NotImplementedError

    def predict_one(self, query: Any, k: int) -> Any:
        return self.predict(query, k)

    def labels(self, answers: Any, k: int) -> np.ndarray:
        """Answers of ``predict`` as an (n, k) array of label ids, best first, padded with -1."""
        return np.asarray(answers)


def padded(rows: list[Any], k: int) -> np.ndarray:
    """Lists of label ids as an (n, k) array, short ones padded with -1."""
    result = np.full((len(rows), k), -1, np.int32)
    for i, row in enumerate(rows):
        result[i, : min(k, len(row))] = row[:k]
    return result


def best_labels(scores: np.ndarray, k: int) -> np.ndarray:
    """The k best columns of each row of a dense (n, L) array, best first."""
    k = min(k, scores.shape[1])
    chosen = np.argpartition(scores, -k, axis=1)[:, -k:]
    order = np.argsort(-np.take_along_axis(scores, chosen, axis=1), axis=1, kind="stable")
    return np.take_along_axis(chosen, order, axis=1).astype(np.int32)
