"""LibMultiLabel's linear methods: one-vs-rest and label tree, over multi-core LIBLINEAR."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from libmultilabel import linear

from adapters.adapter import Adapter as Base
from adapters.adapter import best_labels

PACKAGE = "libmultilabel"
ROWS_AT_ONCE = 1024  # scores come as a dense array over all labels


class Adapter(Base):
    def train(self, folder: Path) -> None:
        # It starts one thread per physical core, and has no parameter for their number.
        psutil.cpu_count = lambda logical=True: self.n_threads
        np.random.seed(0)  # noqa: NPY002  its trees are drawn from the global generator
        method = getattr(linear, self.settings["method"])
        self.model = method(self.Y, self.X, options=self.settings["options"], verbose=False)

    def save(self, folder: Path) -> None:
        with open(folder / "model.pickle", "wb") as file:
            pickle.dump(self.model, file, protocol=pickle.HIGHEST_PROTOCOL)

    def load(self, folder: Path) -> None:
        with open(folder / "model.pickle", "rb") as file:
            self.model = pickle.load(file)

    def predict(self, batch: Any, k: int) -> Any:
        blocks = [batch[i : i + ROWS_AT_ONCE] for i in range(0, batch.shape[0], ROWS_AT_ONCE)]
        return np.vstack([best_labels(linear.predict_values(self.model, X), k) for X in blocks])
