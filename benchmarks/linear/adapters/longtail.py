"""Longtail. ``settings["make"]`` is the expression that makes the model, as a user writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import longtail as lt
from adapters.adapter import Adapter as Base

PACKAGE = "longtail"


class Adapter(Base):
    def __init__(self, settings: dict[str, Any], n_threads: int) -> None:
        super().__init__(settings, n_threads)
        # Modules are imported on first use; peers have imported theirs before the clock starts.
        self.model = eval(settings["make"], {"lt": lt, "n_threads": n_threads})
        assert lt.load

    def train(self, folder: Path) -> None:
        self.model.fit(self.X, self.Y)

    def save(self, folder: Path) -> None:
        self.model.save(folder / "model")

    def load(self, folder: Path) -> None:
        self.model = lt.load(folder / "model")

    def predict(self, batch: Any, k: int) -> Any:
        return self.model.predict_topk(batch, k)

    def labels(self, answers: Any, k: int) -> np.ndarray:
        return np.asarray(answers.indices)
