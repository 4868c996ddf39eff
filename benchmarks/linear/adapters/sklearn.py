"""scikit-learn: ``OneVsRestClassifier(LinearSVC())``.

It trains in child processes. They are started, and have imported what they need, before the clock.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from adapters.adapter import Adapter as Base
from adapters.adapter import best_labels

PACKAGE = "scikit-learn"


class Adapter(Base):
    def _new(self) -> OneVsRestClassifier:
        return OneVsRestClassifier(
            LinearSVC(random_state=0, **self.settings), n_jobs=self.n_threads
        )

    def read(self, data: Path) -> None:
        super().read(data)
        warnings.filterwarnings("ignore", message="Label .* is present in")
        few = np.random.default_rng(0).random((20, 4 * self.n_threads))
        self._new().fit(few, few < 0.5)

    def train(self, folder: Path) -> None:
        self.model = self._new().fit(self.X, self.Y)

    def save(self, folder: Path) -> None:
        joblib.dump(self.model, folder / "model.joblib")

    def load(self, folder: Path) -> None:
        self.model = joblib.load(folder / "model.joblib")

    def predict(self, batch: Any, k: int) -> Any:
        return best_labels(self.model.decision_function(batch), k)
