"""Longtail. ``settings["make"]`` is the expression that makes the model, as a user writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import longtail as lt
from adapters.adapter import Adapter as Base

PACKAGE = "longtail"


class Adapter(Base):
    def train(self, folder: Path) -> None:
        names = {"lt": lt, "n_threads": self.n_threads}
        self.model = eval(self.settings["make"], names).fit(self.X, self.Y)

    def save(self, folder: Path) -> None:
        self.model.save(folder / "model")

    def load(self, folder: Path) -> None:
        self.model = lt.load(folder / "model")

    def predict(self, batch: Any, k: int) -> Any:
        return self.model.predict_topk(batch, k)

    def labels(self, answers: Any, k: int) -> np.ndarray:
        return np.asarray(answers.indices)
