"""napkinXC: probabilistic label trees and binary relevance. It writes the model while it trains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from napkinxc import models

from adapters.adapter import Adapter as Base
from adapters.adapter import padded

PACKAGE = "napkinxc"


class Adapter(Base):
    def _new(self, folder: Path) -> Any:
        settings = dict(self.settings)
        kind = getattr(models, settings.pop("model"))
        return kind(str(folder), threads=self.n_threads, seed=0, **settings)

    def train(self, folder: Path) -> None:
        self.model = self._new(folder)
        self.model.fit(self.X, self.Y)

    def save(self, folder: Path) -> None:
        pass

    def load(self, folder: Path) -> None:
        self.model = self._new(folder)
        self.model.load()

    def predict(self, batch: Any, k: int) -> Any:
        return self.model.predict(batch, top_k=k)

    def labels(self, answers: Any, k: int) -> np.ndarray:
        return padded(answers, k)
