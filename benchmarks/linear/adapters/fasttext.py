"""fastText, supervised. Its input is words, so that a row is the list of its features, unweighted.

Rows without a label are left out by fastText itself. Threads write to the same weights without
locks: results differ from run to run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fasttext
import numpy as np
import scipy.sparse as sp

from adapters.adapter import Adapter as Base
from adapters.adapter import padded

PACKAGE = "fasttext-wheel"


class Adapter(Base):
    def read(self, data: Path) -> None:
        self.file = data / "train_words.txt"

    def train(self, folder: Path) -> None:
        self.model = fasttext.train_supervised(
            str(self.file), thread=self.n_threads, verbose=0, **self.settings
        )

    def save(self, folder: Path) -> None:
        self.model.save_model(str(folder / "model.bin"))

    def load(self, folder: Path) -> None:
        self.model = fasttext.load_model(str(folder / "model.bin"))

    def batch(self, X: sp.csr_matrix) -> Any:
        return self.queries(X)

    def queries(self, X: sp.csr_matrix) -> list[Any]:
        rows = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        return [" ".join(map(str, X.indices[a:b].tolist())) for a, b in rows]

    def predict(self, batch: Any, k: int) -> Any:
        return self.model.predict(batch, k=k)[0]

    def predict_one(self, query: Any, k: int) -> Any:
        return [self.model.predict(query, k=k)[0]]

    def labels(self, answers: Any, k: int) -> np.ndarray:
        mark = len("__label__")
        return padded([[int(name[mark:]) for name in row] for row in answers], k)
