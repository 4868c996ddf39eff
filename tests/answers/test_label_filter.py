"""The filter of a ranker that knows nothing of filters, and lists as dense indicators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from longtail import TopK
from longtail.answers import label_filter
from longtail.answers.label_filter import LabelFilter
from longtail.base import Ranker


class Plain(Ranker):
    """Scores are the features themselves: label j has feature j."""

    type_tag = "plain-for-tests"

    def _fit(self, X: Any, Y: Any) -> None:
        self.asked_: list[int] = []

    def _predict_topk(self, X: Any, k: int) -> TopK:
        self.asked_.append(k)
        return TopK.from_scores(X, k)


def test_a_plain_ranker_is_asked_for_more_until_enough_is_allowed() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((30, 64))
    model = Plain().fit(X, [[63], *([[0]] * 29)])
    lists = [rng.choice(64, rng.integers(0, 65), replace=False).tolist() for _ in range(30)]
    for k in (1, 4, 64, 100):
        found = model.predict_topk(X, k=k, include=lists)
        for i, row in enumerate(lists):
            best = sorted(row, key=lambda j: -X[i, j])[:k]
            assert found.indices[i, : len(best)].tolist() == best
            assert (found.indices[i, len(best) :] == -1).all()
    model.asked_.clear()
    model.predict_topk(X, k=2, exclude=[5])
    assert model.asked_ == [4], "one question is enough where little is excluded"


def test_rows_are_taken_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = [[i % 7] if i % 3 else None for i in range(50)]
    labels = LabelFilter.of(lists, [2], n_rows=50, n_labels=7)
    assert labels is not None
    whole, counts = labels.allowed(0, 50), labels.counts()
    assert (whole.sum(axis=1) == counts).all()
    monkeypatch.setattr(label_filter, "_BLOCK", 20)
    assert len(list(labels.blocks())) == 25
    assert (labels.counts() == counts).all()
    top = TopK.from_scores(np.random.default_rng(1).random((50, 7)), 7)
    kept = labels.keep(top, 3)
    for i in range(50):
        expected = [j for j in top.indices[i].tolist() if whole[i, j]][:3]
        assert kept.indices[i][kept.indices[i] >= 0].tolist() == expected
