"""``Popularity``: the same answer for everybody."""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail import persist
from longtail.answers.label_filter import LabelFilter
from longtail.answers.topk import TopK
from longtail.calibrate.ranker import ProbabilityRanker
from longtail.exceptions import ModelFormatError

__all__ = ["Popularity"]


class Popularity(ProbabilityRanker):
    """Ranks labels by how often they occur, whatever the features are.

    The score of label j is its prior, ``(1/n) sum_i Y[i, j]``: the share of training rows that have
    it (of their weight, for soft labels). Labels that never occur have the score 0 and come last,
    by id. A model that does not beat this has learned nothing from the features.

    After ``fit``: ``prior_`` (L,) float32.

    >>> model = Popularity().fit([[1.0], [2.0], [3.0]], [[0, 2], [2], []])
    >>> model.predict_topk([[5.0]], k=2).indices
    array([[2, 0]], dtype=int32)
    """

    type_tag = "popularity"

    prior_: np.ndarray

    def _fit(self, X: Any, Y: Any) -> None:
        counts = np.bincount(Y.indices, weights=Y.data, minlength=Y.shape[1])
        self.prior_ = (counts / Y.shape[0]).astype(np.float32)

    def _predict_topk(self, X: Any, k: int) -> TopK:
        return self._ranked(X.shape[0], slice(None), k)

    def _predict_allowed(self, X: Any, k: int, labels: LabelFilter) -> TopK:
        return labels.best(k, lambda rows, ids, k: self._ranked(rows.stop - rows.start, ids, k))

    def _ranked(self, n_rows: int, ids: Any, k: int) -> TopK:
        """Return the k most frequent of some labels, numbered by their place among them."""
        best = TopK.from_scores(self.prior_[ids].reshape(1, -1), k, n_jobs=1)
        return best[np.zeros(n_rows, dtype=np.intp)]

    def _scores_are_probabilities(self) -> bool:
        return True  # the prior is a label's probability when nothing else is known

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        state.arrays["prior"] = self.prior_
        return state

    def _set_state(self, state: persist.State) -> None:
        super()._set_state(state)
        self.prior_ = state.array("prior", np.float32, (self.n_labels_,))
        if not ((self.prior_ >= 0) & (self.prior_ <= 1)).all():
            raise ModelFormatError("array 'prior' holds values that are not probabilities")
