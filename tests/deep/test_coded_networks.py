"""Networks behind codes: checkpoints of repetitions, what is a probability, exact pruning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import longtail as lt

torch = pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture(scope="module")
def data() -> Any:
    return lt.data.make_longtail(n=400, d=80, L=60, random_state=0)


def small(**params: Any) -> lt.Network:
    return lt.Network(**{"hidden": 8, "epochs": 2, "n_jobs": 1, **params})


def mach(**params: Any) -> lt.MACH:
    return lt.MACH(**{"n_buckets": 12, "n_repetitions": 3, "estimator": small(), **params})


def test_every_repetition_has_its_own_checkpoint(data: Any, tmp_path: Path) -> None:
    X, Y = data.train.X, data.train.Y
    folder = tmp_path / "checkpoint"
    expected = mach().fit(X, Y).predict_topk(X)
    for _ in range(2):  # the second time all are found there
        model = mach().fit(X, Y, checkpoint=folder)
        assert model.predict_topk(X) == expected
    assert sorted(path.name for path in folder.glob("rep*")) == [f"repetition{r}" for r in range(3)]


def test_a_regression_on_codes_keeps_a_checkpoint(data: Any, tmp_path: Path) -> None:
    X, Y = data.train.X, data.train.Y
    expected = lt.DECLARE(estimator=small(), n_components=5).fit(X, Y).predict_topk(X)
    for _ in range(2):
        model = lt.DECLARE(estimator=small(), n_components=5).fit(X, Y, checkpoint=tmp_path / "c")
        assert model.predict_topk(X) == expected
    with pytest.raises(ValueError, match="other data"):
        lt.DECLARE(estimator=small(), n_components=5).fit(X, Y[::-1], checkpoint=tmp_path / "c")


@pytest.mark.filterwarnings("ignore:Network.checkpoint")  # the old place, until 0.2
@pytest.mark.parametrize("kind", ["mach", "network"])
def test_cross_fitting_leaves_a_checkpoint_alone(data: Any, tmp_path: Path, kind: str) -> None:
    X, Y = data.train.X, data.train.Y
    network = small(checkpoint=str(tmp_path / "c"))
    model: Any = mach(estimator=network) if kind == "mach" else network
    model.fit(X, Y).calibrate(X, Y, folds=2)
    assert model.calibrator_ is not None
    assert network.checkpoint == str(tmp_path / "c")
    before = model.predict_topk(X)
    assert model.fit(X, Y).predict_topk(X) == before  # taken up from there


def test_a_softmax_is_a_probability_for_one_label_per_row(data: Any, tmp_path: Path) -> None:
    X, Y = data.train.X, data.train.Y
    several = mach(estimator=small(loss="softmax"), aggregation="mean").fit(X, Y)
    assert not hasattr(several, "predict_proba_topk")
    with pytest.raises(ValueError, match="one label per row"):
        several.set_params(aggregation="unbiased").predict_topk(X)
    with pytest.raises(ValueError, match="one label per row"):
        mach(estimator=small(loss="softmax"), aggregation="unbiased").fit(X, Y)
    classes = np.arange(X.shape[0]) % 60
    one = mach(aggregation="unbiased").fit(X, classes)
    one.save(tmp_path / "m")
    loaded = lt.load(tmp_path / "m")
    assert loaded.predict_proba_topk(X) == one.predict_proba_topk(X)
    assert not hasattr(loaded.fine_tune(X, Y).set_params(aggregation="mean"), "predict_proba_topk")
    with pytest.raises(ValueError, match="at least two buckets"):
        mach(aggregation="unbiased", n_buckets=1).fit(X, classes)


@pytest.mark.parametrize("schedule", ["gradual", "one_shot"])
@pytest.mark.parametrize(("epochs", "warmup"), [(1, 1), (2, 5), (3, 3)])
def test_pruning_ends_at_its_count(data: Any, schedule: str, epochs: int, warmup: int) -> None:
    params = {"keep": 100, "epochs": epochs, "warmup": warmup, "schedule": schedule}
    model = small(**params).fit(data.train.X, data.train.Y)
    assert np.count_nonzero(model.input_weights_) + np.count_nonzero(model.output_weights_) == 100
