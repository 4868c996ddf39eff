"""PECOS: XR-Linear, with the label tree built inside the training time, loaded for prediction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel

from adapters.adapter import Adapter as Base
from adapters.adapter import padded

PACKAGE = "libpecos"


class Adapter(Base):
    def read(self, data: Path) -> None:
        super().read(data)
        self.Y = sp.csc_matrix(self.Y, dtype=np.float32)

    def train(self, folder: Path) -> None:
        label_features = LabelEmbeddingFactory.create(self.Y, self.X, method="pifa")
        chain = Indexer.gen(
            label_features, indexer_type="hierarchicalkmeans", threads=self.n_threads
        )
        self.model = XLinearModel.train(
            self.X, self.Y, C=chain, threads=self.n_threads, **self.settings
        )

    def save(self, folder: Path) -> None:
        self.model.save(str(folder))

    def load(self, folder: Path) -> None:
        self.model = XLinearModel.load(str(folder), is_predict_only=True)

    def predict(self, batch: Any, k: int) -> Any:
        return self.model.predict(batch, only_topk=k, threads=self.n_threads)

    def predict_one(self, query: Any, k: int) -> Any:
        return self.model.predict(query, only_topk=k, threads=1)

    def labels(self, answers: Any, k: int) -> np.ndarray:
        rows = []
        for start, end in zip(answers.indptr[:-1], answers.indptr[1:], strict=True):
            order = np.argsort(-answers.data[start:end], kind="stable")
            rows.append(answers.indices[start:end][order])
        return padded(rows, k)
