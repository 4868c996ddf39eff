from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import longtail as lt
from longtail.compat import omikuji


@pytest.fixture(scope="module")
def data() -> lt.data.Dataset:
    return lt.data.make_longtail(n=600, d=120, L=300, n_test=100, random_state=1)


@pytest.fixture(scope="module")
def train_file(data: lt.data.Dataset, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("omikuji") / "train.txt"
    lt.write_xc(path, data.train.X, data.train.Y)
    header, _, rest = path.read_text().partition("\n")
    padded = " ".join(number.zfill(8) for number in header.split())
    path.write_text(f"{padded}\n{rest}")  # as Annif writes it, with room for a later count
    return str(path)


@pytest.fixture(scope="module")
def model(train_file: str) -> omikuji.Model:
    parameters = omikuji.Model.default_hyper_param()
    parameters.min_branch_size = 20
    return omikuji.Model.train_on_data(train_file, parameters, n_threads=2)


def pairs(X: object, row: int) -> list[tuple[int, float]]:
    one = X[row]
    return list(zip(one.indices.tolist(), one.data.tolist(), strict=True))


def test_it_answers_as_the_ensemble_does(model: omikuji.Model, data: lt.data.Dataset) -> None:
    top = model.ensemble.predict_topk(data.test.X, 10)
    assert model.predict_batch(data.test.X, top_k=10)[3] == model.predict(pairs(data.test.X, 3))
    assert [label for label, _ in model.predict(pairs(data.test.X, 3))] == top.indices[3].tolist()
    scores = [score for _, score in model.predict(pairs(data.test.X, 3), top_k=5)]
    assert scores == sorted(scores, reverse=True) and 0 <= min(scores) <= max(scores) <= 1
    assert model.n_trees == 3 and model.n_features == 120
    assert model.predict([], top_k=2)  # no features: what is likely without any


def test_it_learns(model: omikuji.Model, data: lt.data.Dataset) -> None:
    top = model.ensemble.predict_topk(data.test.X, 5)
    popular = lt.baselines.Popularity().fit(data.train.X, data.train.Y).predict_topk(data.test.X, 5)
    precision = lt.metrics.precision_at_k
    assert precision(data.test.Y, top, k=1) > precision(data.test.Y, popular, k=1)


def test_labels_that_no_row_has_are_never_answered(tmp_path: Path) -> None:
    path = tmp_path / "gaps.txt"
    rows = ["3 0:1", "7 1:1", "3,7 0:1 1:1", "11 2:1"] * 10
    path.write_text(f"{len(rows)} 3 5000\n" + "\n".join(rows) + "\n")
    model = omikuji.Model.train_on_data(str(path))
    model.save(str(tmp_path / "model"))
    for found in (model, omikuji.Model.load(str(tmp_path / "model"))):
        assert {label for label, _ in found.predict([(0, 1.0)], top_k=10)} == {3, 7, 11}
        assert found.predict([(2, 1.0)], top_k=1)[0][0] == 11


def test_save_load_and_replace(model: omikuji.Model, data: lt.data.Dataset, tmp_path: Path) -> None:
    path = str(tmp_path / "model")
    for _ in range(2):
        model.save(path)
    again = omikuji.Model.load(path)
    again.init_prediction_thread_pool(1)
    again.densify_weights(0.1)
    assert again.predict(pairs(data.test.X, 0)) == model.predict(pairs(data.test.X, 0))
    with pytest.raises(RuntimeError, match="Failed to load"):
        omikuji.Model.load(str(tmp_path / "nothing"))
    lt.baselines.Popularity().fit(data.train.X, data.train.Y).save(tmp_path / "other")
    with pytest.raises(RuntimeError, match="other"):
        omikuji.Model.load(str(tmp_path / "other"))


def test_hyper_parameters_reach_the_model() -> None:
    parameters = omikuji.HyperParam(
        n_trees=2, cluster_k=2, collapse_every_n_layers=3, linear_loss_type=1, linear_c=0.5
    )
    first, second = parameters.to_model().models
    assert first.tree.branching == 16 and first.loss == "logistic" and first.C == 0.5
    assert first.random_state != second.random_state
    for wrong in (
        {"tree_structure_only": True},
        {"centroid_threshold": 0.1},
        {"n_trees": 0},
        {"cluster_k": 0},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            omikuji.HyperParam(**wrong).to_model()


def test_a_narrow_beam_is_respected(model: omikuji.Model, data: lt.data.Dataset) -> None:
    rows = data.test.X[:20]
    wide, narrow = model.predict_batch(rows, beam_size=100), model.predict_batch(rows, beam_size=1)
    best = [np.mean([answer[0][1] for answer in answers]) for answers in (wide, narrow)]
    assert best[0] >= best[1]


@pytest.mark.parametrize("wrong", [[(-1, 1.0)], [(120, 1.0)], [(3, 1.0), (3, 2.0)]])
def test_wrong_features_are_refused(model: omikuji.Model, wrong: list[tuple[int, float]]) -> None:
    with pytest.raises(AssertionError, match="Incorrect feature index"):
        model.predict(wrong)


def test_it_can_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "omikuji", raising=False)
    omikuji.install()
    import omikuji as found

    assert found.Model is omikuji.Model and found.LossType.HINGE.value == 0
    del sys.modules["omikuji"]


def test_training_says_its_parameters(
    train_file: str, capfd: pytest.CaptureFixture[str], data: lt.data.Dataset
) -> None:
    """As Annif's own tests ask for: labels that are not divided, and a line on standard output."""
    parameters = omikuji.Model.default_hyper_param()
    parameters.cluster_k, parameters.max_depth, parameters.collapse_every_n_layers = 1, 2, 42
    model = omikuji.Model.train_on_data(train_file, parameters)
    (line,) = capfd.readouterr().out.splitlines()
    assert line == (
        "Training model with hyper-parameters HyperParam { n_trees: 3, min_branch_size: 100, "
        "max_depth: 2, centroid_threshold: 0.0, collapse_every_n_layers: 42, "
        "linear: HyperParam { loss_type: Hinge, eps: 0.1, c: 1.0, weight_threshold: 0.1, "
        "max_iter: 20 }, cluster: HyperParam { k: 1, balanced: true, eps: 0.0001, min_size: 2 }, "
        "tree_structure_only: false, train_trees_1_by_1: false }"
    )
    assert all(len(tree.layers_) == 1 for tree in model.ensemble.members_)
    assert model.predict(pairs(data.test.X, 3))
    assert "eps: 1e-5," in str(omikuji.HyperParam(linear_eps=1e-5)), "as Rust writes it"


@pytest.mark.parametrize(("k", "n"), [(2, 0), (2, 42), (300, 5), (1, 0)])
def test_any_number_of_collapsed_layers(train_file: str, k: int, n: int) -> None:
    parameters = omikuji.HyperParam(cluster_k=k, collapse_every_n_layers=n, min_branch_size=20)
    parameters.n_trees = 1
    assert omikuji.Model.train_on_data(train_file, parameters).predict([(0, 1.0)])


@pytest.mark.parametrize("name", ["n_trees", "min_branch_size", "max_depth", "cluster_k"])
def test_what_omikuji_refuses_is_refused_before_anything_is_read(name: str) -> None:
    parameters = omikuji.HyperParam(**{name: 0})
    with pytest.raises(ValueError, match=name):
        omikuji.Model.train_on_data("no such file", parameters)


def test_a_training_that_fails_halfway(
    train_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Annif writes vectoriser and training file first: the old model must not be used with them."""
    file, saved = tmp_path / "omikuji-train.txt", str(tmp_path / "omikuji-model")
    file.write_bytes(Path(train_file).read_bytes())
    omikuji.Model.train_on_data(str(file)).save(saved)
    before = omikuji.Model.load(saved).predict([(0, 1.0)])

    rows = file.read_text().splitlines()
    file.write_text("\n".join([rows[0].replace("00000600", "00000599"), *rows[1:-1]]) + "\n")
    with monkeypatch.context() as patch:
        patch.setattr(lt.Ensemble, "fit", lambda *a, **k: (_ for _ in ()).throw(MemoryError))
        with pytest.raises(MemoryError):
            omikuji.Model.train_on_data(str(file))
    with pytest.raises(RuntimeError, match=r"omikuji-train\.txt"):
        omikuji.Model.load(saved)
    omikuji.Model.train_on_data(str(file)).save(saved)
    assert omikuji.Model.load(saved).predict([(0, 1.0)])
    file.unlink()  # taken elsewhere, without what it was trained on
    again = omikuji.Model.load(saved)
    again.save(saved)
    assert omikuji.Model.load(saved).predict([(0, 1.0)]) != [] and before


def test_a_model_that_tells_nothing_of_its_training_file(train_file: str, tmp_path: Path) -> None:
    model = omikuji.Model.train_on_data(train_file)
    outside = {"name": f"../{tmp_path.name}/secret", "bytes": 1}
    (tmp_path / "secret").write_text("x")
    for told in ({}, {"name": None}, outside, {"name": "\0"}):
        model._trained_on = told
        model.save(str(tmp_path / "models" / "m"))
        assert omikuji.Model.load(str(tmp_path / "models" / "m")).n_trees == 3
