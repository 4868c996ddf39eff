"""Cross-fitting: copies see neither their fold nor anything that belongs to its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt


@pytest.fixture(scope="module")
def data() -> Any:
    return lt.data.make_longtail(n=400, d=60, L=40, n_test=100, random_state=0)


def test_every_row_is_answered_by_a_copy_without_it(data: Any, monkeypatch: Any) -> None:
    """The first column of X is the number of the row, so that copies can be watched."""
    X = sp.hstack([np.arange(1.0, 401)[:, None], data.train.X]).tocsr()
    trained: dict[int, set[float]] = {}
    asked: list[tuple[int, float]] = []
    fit, predict = lt.baselines.Popularity.fit, lt.baselines.Popularity.predict_topk

    def watched_fit(self: Any, X: Any, Y: Any) -> Any:
        trained[id(self)] = set(X[:, 0].toarray().ravel().tolist())
        return fit(self, X, Y)

    def watched_predict(self: Any, X: Any, *args: Any, **how: Any) -> Any:
        asked.extend((id(self), row) for row in X[:, 0].toarray().ravel().tolist())
        kept.append(self)
        return predict(self, X, *args, **how)

    kept: list[Any] = []  # so that no two copies share an id
    model = lt.baselines.Popularity().fit(X, data.train.Y)
    monkeypatch.setattr(lt.baselines.Popularity, "fit", watched_fit)
    monkeypatch.setattr(lt.baselines.Popularity, "predict_topk", watched_predict)
    model.calibrate(X, data.train.Y, folds=4)
    assert sorted(row for _, row in asked) == list(range(1, 401))
    assert all(row not in trained[who] for who, row in asked)
    assert {len(rows) for rows in trained.values()} == {300}


def test_options_of_fit_reach_the_copies(data: Any) -> None:
    X, Y = data.train.X, data.train.Y
    model = lt.OneVsAll().fit(X, Y)
    plain = model.calibrate(X, Y, folds=3).calibration_
    ones = model.calibrate(X, Y, folds=3, sample_weight=np.ones(400)).calibration_
    assert ones == plain
    rare = np.where(np.arange(400) % 2, 1.0, 0.01)
    assert model.calibrate(X, Y, folds=3, sample_weight=rare).calibration_ != plain
    tree = lt.XRLinear(tree=lt.tree.LabelTree(level_sizes=[4])).fit(X, Y)
    tree.calibrate(X, Y, folds=2, extra_rows=sp.csr_matrix(Y.shape))
    assert tree.calibration_ is not None and tree.calibration_["folds"] == 2
    with pytest.raises(TypeError, match="sample_weight"):
        model.calibrate(X, Y, sample_weight=np.ones(400))
    with pytest.raises(TypeError, match="no_such_option"):
        model.calibrate(X, Y, folds=2, no_such_option=1)


@pytest.mark.parametrize(
    "model",
    [lt.OneVsAll(), lt.XRLinear(), lt.Ensemble(models=[lt.OneVsAll()])],
    ids=lambda model: type(model).__name__,
)
def test_a_score_is_not_called_a_probability(data: Any, model: Any) -> None:
    model.fit(data.train.X, data.train.Y)
    assert not hasattr(model, "predict_proba_topk")
    with pytest.raises(AttributeError, match="calibrate"):
        model.predict_proba_topk(data.test.X)
