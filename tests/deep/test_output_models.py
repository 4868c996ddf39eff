"""Models with output layers of few bits or few weights: parameters, files, answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import longtail as lt
from longtail import persist
from longtail.deep.answers import rounded
from longtail.deep.output_plan import PRESETS, OutputPlan
from longtail.exceptions import ModelFormatError
from longtail.metrics import precision_at_k

torch = pytest.importorskip("torch", reason="torch is not installed")

NETWORK = {"hidden": 24, "epochs": 6, "batch_size": 32, "learning_rate": 0.05, "dropout": 0.0}
OUTPUTS: dict[str, dict[str, Any]] = {
    "sgd": {"output_options": {"optimiser": "sgd", "reduction": "sum", "momentum": 0.9}},
    "bfloat16": {"output_precision": "bfloat16", "output_options": {"reduction": "sum"}},
    "float8": {
        "output_precision": "float8",
        "output_options": {"reduction": "sum", "compensated": 0.2},
    },
    "fan_in": {"fan_in": 12, "output_options": {"rewire_every": 10, "rewire_share": 0.1}},
}


@pytest.fixture(scope="module")
def rows() -> tuple[Any, Any, Any, Any]:
    """Rows whose features tell their labels."""
    rng = np.random.default_rng(0)
    Y = np.zeros((400, 30), np.float32)
    Y[np.arange(400), rng.integers(0, 30, 400)] = 1
    Y[np.arange(400), rng.integers(0, 5, 400)] = 1
    X = Y @ rng.normal(size=(30, 60)).astype(np.float32)
    X = X + rng.normal(0, 0.3, X.shape).astype(np.float32)
    return X[:300], Y[:300], X[300:], Y[300:]


@pytest.mark.parametrize("name", OUTPUTS)
def test_networks_learn_and_answer_from_what_is_stored(
    name: str, rows: tuple[Any, ...], tmp_path: Path
) -> None:
    X, Y, X_test, Y_test = rows
    model = lt.Network(**NETWORK, **OUTPUTS[name]).fit(X, Y)
    top = model.predict_topk(X_test, k=5)
    assert precision_at_k(Y_test, top, k=1) > 0.8
    scores = model.decision_function(X_test)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :5]
    np.testing.assert_allclose(
        top.scores, np.take_along_axis(scores, order, 1), rtol=1e-4, atol=1e-4
    )
    kinds = {"bfloat16": np.uint16, "float8": np.uint8}
    assert model.output_weights_.dtype == kinds.get(name, np.float32)
    assert model.output_weights_.shape == ((12, 30) if name == "fan_in" else (30, 24))

    model.save(tmp_path / "model")
    again = lt.load(tmp_path / "model")
    assert again.output_weights_.dtype == model.output_weights_.dtype
    assert again.get_params() == model.get_params()
    found = again.predict_topk(X_test, k=5)
    np.testing.assert_array_equal(found.indices, top.indices)
    np.testing.assert_array_equal(found.scores, top.scores)

    some = again.predict_topk(X_test, k=3, include=[2, 3, 5, 7])
    best = np.array([2, 3, 5, 7])[np.argsort(-scores[:, [2, 3, 5, 7]], axis=1)[:, :3]]
    np.testing.assert_array_equal(some.indices, best)


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_stopped_training_goes_on_with_the_same_bits(
    name: str, rows: tuple[Any, ...], tmp_path: Path
) -> None:
    X, Y, _, _ = rows

    class Stop(Exception):
        pass

    def stop(epoch: int, seconds: float, network: Any) -> None:
        if epoch == 3:
            raise Stop

    whole = lt.Network(**NETWORK, **OUTPUTS[name]).fit(X, Y)
    model = lt.Network(**NETWORK, **OUTPUTS[name])
    with pytest.raises(Stop):
        model.fit(X, Y, checkpoint=tmp_path / "there", after_epoch=stop)
    model.fit(X, Y, checkpoint=tmp_path / "there")
    np.testing.assert_array_equal(model.output_weights_, whole.output_weights_)
    np.testing.assert_array_equal(model.input_weights_, whole.input_weights_)


@pytest.mark.parametrize("name", ["float8", "fan_in"])
def test_the_number_of_threads_changes_nothing(name: str, rows: tuple[Any, ...]) -> None:
    X, Y, _, _ = rows
    one, two = (lt.Network(**NETWORK, **OUTPUTS[name], n_jobs=jobs).fit(X, Y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.output_weights_, two.output_weights_)


def test_files_that_do_not_fit_are_refused(rows: tuple[Any, ...], tmp_path: Path) -> None:
    X, Y, _, _ = rows
    few = lt.Network(**NETWORK, fan_in=4).fit(X, Y)
    low = lt.Network(**NETWORK, output_precision="float8").fit(X, Y)

    def refused(model: Any, name: str, message: str, change: Any) -> None:
        state = model._get_state()
        state.arrays = dict(state.arrays)
        change(state)
        persist.save(tmp_path / name, state)
        with pytest.raises(ModelFormatError, match=message):
            lt.load(tmp_path / name)

    def out_of_range(state: Any) -> None:
        state.arrays["output_index"] = np.full_like(state.arrays["output_index"], 24)

    def other_shape(state: Any) -> None:
        state.arrays["output_index"] = state.arrays["output_index"][:2]

    def other_precision(state: Any) -> None:
        state.meta["output_precision"] = "bfloat16"

    def unknown(state: Any) -> None:
        state.meta["output_precision"] = "int4"

    refused(few, "range", "output_index must lie from 0 on, below 24", out_of_range)
    refused(few, "shape", "output_index", other_shape)
    refused(low, "other", "output_weights", other_precision)
    refused(low, "unknown", "no output weights of precision 'int4'", unknown)


def test_mach_takes_networks_of_few_bits(rows: tuple[Any, ...], tmp_path: Path) -> None:
    X, Y, X_test, Y_test = rows
    for name in ("float8", "fan_in"):
        estimator = lt.Network(**NETWORK, **OUTPUTS[name])
        model = lt.MACH(n_buckets=12, n_repetitions=4, estimator=estimator).fit(X, Y)
        top = model.predict_topk(X_test, k=3)
        assert precision_at_k(Y_test, top, k=1) > 0.6
        model.save(tmp_path / name)
        again = lt.load(tmp_path / name).predict_topk(X_test, k=3)
        np.testing.assert_array_equal(again.indices, top.indices)


def test_fine_tuning_keeps_the_layer(rows: tuple[Any, ...]) -> None:
    X, Y, _, _ = rows
    for name in ("float8", "fan_in"):
        model = lt.Network(**NETWORK, **OUTPUTS[name]).fit(X, Y)
        tuned = model.fine_tuned(X, Y)
        assert tuned.output_weights_.dtype == model.output_weights_.dtype
        if name == "fan_in":
            np.testing.assert_array_equal(tuned.output_index_, model.output_index_)


WRONG = [
    ({"output_precision": "int4"}, "output_precision must be one of float32, bfloat16, float8"),
    ({"preset": "fast"}, "preset must be one of renee, elmo-bf16, elmo-fp8, dst"),
    ({"output_options": {"speed": 1}}, "output_options has no 'speed'"),
    ({"output_options": {"momentum": 0.9}}, "momentum is for optimiser 'sgd'"),
    ({"fan_in": 4, "output_precision": "float8"}, "fan_in keeps float32"),
    ({"output_precision": "float8", "output_options": {"optimiser": "adam"}}, "Adam keeps float32"),
    ({"output_options": {"rewire_every": 5}}, "are for a layer with fan_in"),
    ({"fan_in": 0}, "fan_in"),
    ({"fan_in": 99}, "fan_in is 99, but there are 24 inputs"),
    ({"output_options": {"compensated": 2}}, "compensated must lie in"),
    ({"fan_in": 4, "output_options": {"hidden": 8}}, "a Network has its own hidden layer"),
    ({"fan_in": 4, "keep": 100}, "keep prunes float32 layers"),
]


@pytest.mark.parametrize(("params", "message"), WRONG, ids=str)
def test_what_does_not_fit_is_refused(
    params: dict[str, Any], message: str, rows: tuple[Any, ...]
) -> None:
    with pytest.raises(ValueError, match=message):
        lt.Network(**NETWORK, **params).fit(rows[0], rows[1])


def test_presets() -> None:
    for name in PRESETS:
        model = lt.TextNetwork(preset=name)
        plan = OutputPlan.of(model)
        assert plan.reduction == "sum"
        assert model._setting("dropout") == PRESETS[name].defaults["dropout"]
    assert OutputPlan.of(lt.TextNetwork(preset="elmo-fp8")).precision == "float8"
    given = lt.TextNetwork(preset="dst", fan_in=16, dropout=0.2)
    assert OutputPlan.of(given).fan_in == 16 and given._setting("dropout") == 0.2
    assert OutputPlan.of(lt.TextNetwork()) == OutputPlan()


def test_sparse_training_end_to_end(tmp_path: Path) -> None:
    """Texts, clusters from a label tree, a layer that is rewired; saved and answered without it."""
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(40)]
    labels = rng.integers(0, 20, 400)
    texts = [f"{words[label]} {words[label + 20]} {words[rng.integers(0, 40)]}" for label in labels]
    Y = np.eye(20, dtype=np.float32)[labels]
    model = lt.TextNetwork(
        encoder="average",
        loss="sigmoid",
        preset="dst",
        fan_in=16,
        dropout=0.0,
        learning_rate=0.02,
        epochs=8,
        batch_size=32,
        device="cpu",
        n_jobs=1,
        onnx=False,
        output_options={"learning_rate": 0.05, "clusters": 4, "rewire_every": 20, "hidden": 64},
    ).fit(texts, Y)
    assert precision_at_k(Y, model.predict_topk(texts, k=3), k=1) > 0.8
    assert model.output_weights_.shape == (16, 20) and model.hidden_ is not None
    model.save(tmp_path / "model")
    again = lt.load(tmp_path / "model")
    np.testing.assert_array_equal(
        again.predict_topk(texts, k=3).indices, model.predict_topk(texts, k=3).indices
    )
    old = again.output_weights_.copy()
    some = ["something new", *texts[:5]]
    again.add_labels(some, np.array([[1], [0], [0], [0], [0], [0]]))
    assert again.n_labels_ == 21 and again.output_index_.shape == (16, 21)
    np.testing.assert_array_equal(again.output_weights_[:, :20], old)
    assert again.predict_topk(some[:1], k=21).indices.shape == (1, 21)


@pytest.mark.parametrize("precision", ["bfloat16", "float8"])
def test_numbers_are_rounded_as_torch_does(precision: str) -> None:
    rng = np.random.default_rng(0)
    values = (rng.normal(size=5000) * 10.0 ** rng.uniform(-5, 2, 5000)).astype(np.float32)
    values = np.clip(values, -448, 448)
    kinds = {"bfloat16": torch.bfloat16, "float8": torch.float8_e4m3fn}
    bits = {"bfloat16": torch.int16, "float8": torch.uint8}
    wanted = torch.tensor(values).to(kinds[precision]).view(bits[precision]).numpy()
    found = rounded(values, precision)
    np.testing.assert_array_equal(found, wanted.view(found.dtype))
