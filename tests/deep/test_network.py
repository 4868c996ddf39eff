"""The network: gradients against autograd, pruning, stopping, checkpoints, bits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt

torch = pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture(scope="module")
def data() -> Any:
    return lt.data.make_longtail(n=1200, d=300, L=120, random_state=0)


def small(**params: Any) -> lt.Network:
    return lt.Network(**{"hidden": 32, "epochs": 4, "batch_size": 64, "n_jobs": 1, **params})


def test_it_learns_and_answers_without_torch(data: Any, tmp_path: Path) -> None:
    X, Y = data.train.X, data.train.Y
    model = small(epochs=10).fit(X, Y)
    popular = lt.baselines.Popularity().fit(X, Y).score(data.test.X, data.test.Y)
    assert model.score(data.test.X, data.test.Y) > popular + 0.1
    top = model.predict_topk(data.test.X, k=3)
    outputs = model.decision_function(data.test.X)
    np.testing.assert_array_equal(top.scores, -np.sort(-outputs, axis=1)[:, :3])
    model.save(tmp_path / "m")
    sp.save_npz(tmp_path / "X.npz", data.test.X)
    code = (
        "import sys, scipy.sparse as sp, numpy as np; sys.modules['torch'] = None\n"
        "import longtail as lt; m = lt.load(sys.argv[1]); X = sp.load_npz(sys.argv[2])\n"
        "np.save(sys.argv[3], m.predict_topk(X, k=3).scores)\n"
        "try: lt.Network().fit(X, np.eye(X.shape[0]))\n"
        "except lt.exceptions.MissingDependencyError as error: print(error)"
    )
    files = [str(tmp_path / name) for name in ("m", "X.npz", "scores.npy")]
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-c", code, *files],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    np.testing.assert_array_equal(np.load(tmp_path / "scores.npy"), top.scores)
    assert "pip install 'longtail[deep]'" in done.stdout


def test_threads_do_not_change_the_bits() -> None:
    wide = lt.data.make_longtail(n=600, d=200, L=2500, random_state=0)  # many chunks of labels
    odd = lt.data.make_longtail(n=257, d=60, L=700, random_state=0)  # a last batch of one row
    for data, params in (
        (wide, {}),
        (odd, {"hidden": 512, "batch_size": 256}),
        (odd, {"hidden": 400, "loss": "softmax", "validation": 0.0}),
    ):
        fits = [small(n_jobs=n, epochs=2, **params) for n in (1, 2, 5)]
        _same_weights([model.fit(data.train.X, data.train.Y) for model in fits])
    codes = np.random.default_rng(0).normal(size=(257, 300))
    for loss in ("squared", "length"):
        fits = [small(n_jobs=n, hidden=400, epochs=2, loss=loss) for n in (1, 2)]
        _same_weights([model.fit_targets(odd.train.X, codes) for model in fits])


def _same_weights(models: list[lt.Network]) -> None:
    for name in ("input_weights_", "input_bias_", "output_weights_", "output_bias_"):
        for model in models[1:]:
            np.testing.assert_array_equal(getattr(models[0], name), getattr(model, name))


def test_rows_without_labels_say_nothing_to_a_softmax() -> None:
    data = lt.data.make_longtail(n=400, d=60, L=40, random_state=0)
    X, Y = data.train.X, data.train.Y
    model = small(loss="softmax", weight_decay=0.0).fit(X, Y)
    tuned = model.fine_tuned(X, sp.csr_matrix(Y.shape))
    _same_weights([model, tuned])


def test_what_auto_stood_for_is_kept(tmp_path: Path) -> None:
    data = lt.data.make_longtail(n=300, d=60, L=20, random_state=0)
    single = [[int(row.indices[0])] if row.nnz else [0] for row in data.train.Y]
    model = small(epochs=2).fit(data.train.X, single)
    assert model.loss_ == "softmax"
    model.save(tmp_path / "model")
    loaded = lt.load(tmp_path / "model")
    assert loaded.loss_ == "softmax" and loaded.loss == "auto"
    assert loaded.fine_tuned(data.train.X, single).loss_ == "softmax"
    assert small(epochs=1).fit(data.train.X, data.train.Y).loss_ == "sigmoid"


def test_pruned_weights_stay_pruned_in_fine_tuning(data: Any) -> None:
    X, Y = data.train.X, data.train.Y
    model = small(keep=900, epochs=3).fit(X, Y)
    tuned = model.fine_tuned(X, Y, epochs=2)
    for name in ("input_weights_", "output_weights_"):
        assert not getattr(tuned, name)[getattr(model, name) == 0].any()


@pytest.mark.parametrize("validation", [0.0, 0.2])
def test_divergence_is_an_error(data: Any, validation: float) -> None:
    X, Y = data.train.X, data.train.Y
    for loss in ("sigmoid", "softmax"):
        with pytest.raises(ValueError, match="diverged"):
            small(learning_rate=1e30, loss=loss, validation=validation).fit(X, Y)
    with pytest.raises(ValueError, match="diverged"):
        small(learning_rate=1e20, validation=validation).fit_targets(X, np.ones((X.shape[0], 3)))


def test_filters_look_at_allowed_labels_alone(data: Any) -> None:
    model = small(epochs=2).fit(data.train.X, data.train.Y)
    X = data.test.X[:20]
    everything = model.decision_function(X)
    for allowed in ([3, 50, 7], list(range(0, 120, 2))):
        top = model.predict_topk(X, k=2, include=allowed)
        wanted = np.array(sorted(allowed))[np.argsort(-everything[:, sorted(allowed)])[:, :2]]
        np.testing.assert_array_equal(top.indices, wanted)


def test_pruning_is_exact_and_final(data: Any) -> None:
    for schedule in ("gradual", "one_shot"):
        model = small(keep=3000, schedule=schedule, epochs=6).fit(data.train.X, data.train.Y)
        left = np.count_nonzero(model.input_weights_) + np.count_nonzero(model.output_weights_)
        assert left == 3000


@pytest.mark.parametrize("loss", ["sigmoid", "squared_hinge", "softmax"])
def test_training_under_missing_labels(data: Any, loss: str) -> None:
    X, Y = data.train.X, data.train.Y
    popular = lt.baselines.Popularity().fit(X, Y).score(data.test.X, data.test.Y)
    model = small(loss=loss, epochs=8, missing_labels=lt.JainPropensity()).fit(X, Y)
    assert model.score(data.test.X, data.test.Y) > popular
    plain = small(loss=loss, epochs=8).fit(X, Y)
    assert not np.array_equal(model.output_weights_, plain.output_weights_)
    complete = small(loss=loss, epochs=8, missing_labels=np.ones(Y.shape[1])).fit(X, Y)
    np.testing.assert_allclose(complete.output_weights_, plain.output_weights_, atol=2e-2)


def test_early_stopping_keeps_the_best_epoch(data: Any) -> None:
    model = small(epochs=30, patience=2, learning_rate=0.05).fit(data.train.X, data.train.Y)
    values = [record["validation"] for record in model.history_]
    assert model.best_epoch_ == int(np.argmax(values)) + 1
    assert len(values) < 30 and len(values) - model.best_epoch_ == 2
    whole = small(epochs=3, validation=0).fit(data.train.X, data.train.Y)
    assert whole.best_epoch_ == 3 and whole.history_[0]["validation"] is None


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("keep", [None, 2000])
def test_a_training_that_was_interrupted_goes_on(data: Any, tmp_path: Path, keep: Any) -> None:
    X, Y = data.train.X, data.train.Y
    expected = small(epochs=5, keep=keep).fit(X, Y)
    path = str(tmp_path / "checkpoint")

    def interrupt(epoch: int, seconds: float, network: Any) -> None:
        if epoch == 3:
            raise Interrupted

    model = small(epochs=5, keep=keep)
    with pytest.raises(Interrupted):
        model.fit(X, Y, checkpoint=path, after_epoch=interrupt)
    model.fit(X, Y, checkpoint=path)
    np.testing.assert_array_equal(model.output_weights_, expected.output_weights_)
    np.testing.assert_array_equal(model.input_weights_, expected.input_weights_)
    assert len(model.history_) == len(expected.history_)
    with pytest.raises(lt.exceptions.ModelFormatError, match="other data or parameters"):
        small(epochs=5, keep=keep, hidden=16).fit(X, Y, checkpoint=path)


def test_the_old_place_of_the_checkpoint_warns(data: Any, tmp_path: Path) -> None:
    X, Y = data.train.X, data.train.Y
    old = small(epochs=2, checkpoint=str(tmp_path / "c"))
    with pytest.warns(DeprecationWarning, match=r"fit\(…, checkpoint=…\) now") as said:
        old.fit(X, Y)
    assert said[0].filename == __file__ and (tmp_path / "c").is_dir()
    with pytest.warns(DeprecationWarning, match="the old place goes in 0.2"):
        old.fit_targets(X, Y.toarray(), checkpoint=tmp_path / "d")
    assert (tmp_path / "d").is_dir()


def test_fine_tuning_continues(data: Any) -> None:
    X, Y = data.train.X, data.train.Y
    model = small(epochs=2).fit(X, Y)
    tuned = model.fine_tuned(X, Y, epochs=3)
    assert tuned.score(X, Y) > model.score(X, Y)


def test_one_label_per_row_is_a_softmax() -> None:
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 20, 800)
    X = sp.csr_matrix(np.eye(20)[classes] + 0.3 * (rng.random((800, 20)) < 0.1))
    model = lt.MACH(
        n_buckets=7,
        n_repetitions=6,
        aggregation="unbiased",
        estimator=small(epochs=12, hidden=16, dropout=0.0),
    ).fit(X, classes)
    assert model.repetitions_[0].loss == "softmax"
    assert model.score(X, classes) > 0.9
    proba = model.predict_proba_topk(X, k=20)
    assert ((proba.scores >= 0) & (proba.scores <= 1)).all()
    assert proba.scores[:, 0].mean() > 0.5


def test_mach_and_declare_on_networks(data: Any, tmp_path: Path) -> None:
    X, Y = data.train.X, data.train.Y
    popular = lt.baselines.Popularity().fit(X, Y).score(data.test.X, data.test.Y)
    for model in (
        lt.MACH(n_buckets=40, n_repetitions=4, estimator=small(epochs=8)),
        lt.DECLARE(n_components=30, recovery="cosine", estimator=small(epochs=8)),
    ):
        assert model.fit(X, Y).score(data.test.X, data.test.Y) > popular + 0.05
        model.save(tmp_path / type(model).__name__)
        loaded = lt.load(tmp_path / type(model).__name__)
        assert loaded.predict_topk(data.test.X) == model.predict_topk(data.test.X)
    mach = lt.MACH(n_buckets=40, n_repetitions=4, estimator=small(epochs=8)).fit(X, Y[:, :100])
    rows = np.flatnonzero(np.diff(Y[:, 100:].indptr))
    mach.add_labels(X[rows], Y[rows][:, 100:], Y_old=Y[rows][:, :100])
    new = sp.hstack([sp.csr_matrix((len(rows), 100)), Y[rows][:, 100:]]).tocsr()

    def recall() -> float:
        found = mach.predict_topk(X[rows], k=20).to_csr(binary=True)
        return float(found.multiply(new).sum() / new.sum())

    before = recall()
    mach.fine_tune(X, Y, epochs=4)
    assert recall() > before


def test_refusals(data: Any) -> None:
    X, Y = data.train.X, data.train.Y
    for params, message in (
        ({"loss": "absolute"}, "loss must be one of"),
        ({"correction": "more", "missing_labels": lt.JainPropensity()}, "correction must be"),
        ({"hidden": 0}, "hidden must be at least 1"),
        ({"dropout": 1.0}, "lie in"),
        ({"learning_rate": 0}, "learning_rate must be positive"),
        ({"precision": "bfloat16"}, "on a GPU"),
        ({"schedule": "never", "keep": 5}, "schedule must be one of"),
    ):
        with pytest.raises(ValueError, match=message):
            small(**params).fit(X, Y)
    for params, kind in (
        ({"device": "tpu"}, ValueError),
        ({"device": "cuda:99"}, ValueError),
        ({"warmup": -1, "keep": 5}, ValueError),
        ({"warmup": 1.5}, ValueError),
        ({"learning_rate": "x"}, TypeError),
        ({"loss": "length"}, ValueError),
    ):
        with pytest.raises(kind):
            small(**params).fit(X, Y)
    codes = small(epochs=1).fit_targets(X, np.ones((X.shape[0], Y.shape[1])))
    with pytest.raises(TypeError, match="cannot be tuned on labels"):
        codes.fine_tuned(X, Y)
    with pytest.raises(ValueError, match="for a regression"):
        small(loss="softmax").fit_targets(X, np.ones((X.shape[0], 2)))
    with pytest.raises(ValueError, match="finite"):
        small().fit_targets(X, np.full((X.shape[0], 2), np.nan))
    with pytest.raises(ValueError, match="targets must have the shape"):
        small().fit_targets(X, np.zeros((3, 2)))
