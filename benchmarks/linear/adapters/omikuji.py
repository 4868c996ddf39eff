"""omikuji: Parabel and Bonsai settings.

It trains from a file in the text format only, so that reading the file is part of the training
time (about a second for 40,000 rows), and answers one row per call: a batch is a loop. Its trees
are drawn at random and cannot be seeded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import omikuji
import scipy.sparse as sp

from adapters.adapter import Adapter as Base
from adapters.adapter import padded

PACKAGE = "omikuji"


class Adapter(Base):
    def read(self, data: Path) -> None:
        self.file = data / "train.txt"

    def train(self, folder: Path) -> None:
        parameters = omikuji.Model.default_hyper_param()
        for name, value in self.settings.items():
            setattr(parameters, name, value)
        self.model = omikuji.Model.train_on_data(str(self.file), parameters, self.n_threads)

    def save(self, folder: Path) -> None:
        self.model.save(str(folder))

    def load(self, folder: Path) -> None:
        self.model = omikuji.Model.load(str(folder))
        self.model.init_prediction_thread_pool(self.n_threads)

    def batch(self, X: sp.csr_matrix) -> Any:
        return self.queries(X)

    def queries(self, X: sp.csr_matrix) -> list[Any]:
        rows = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        return [list(zip(X.indices[a:b].tolist(), X.data[a:b].tolist())) for a, b in rows]  # noqa: B905

    def predict(self, batch: Any, k: int) -> Any:
        return [self.model.predict(query, top_k=k) for query in batch]

    def predict_one(self, query: Any, k: int) -> Any:
        return [self.model.predict(query, top_k=k)]

    def labels(self, answers: Any, k: int) -> np.ndarray:
        return padded([[label for label, _ in row] for row in answers], k)
