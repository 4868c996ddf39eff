"""DualEncoder and UniDEC: what they find, and labels that have no training row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from text_cases import WORDS, worded

import longtail as lt

SETTINGS = {"epochs": 10, "batch_size": 32, "learning_rate": 3e-3, "head_learning_rate": 3e-3}
SETTINGS |= {"device": "cpu", "n_jobs": 1, "onnx": False, "negatives": 2, "period": 3}
LABEL_TEXTS = [" ".join(WORDS[4 * j : 4 * j + 4]) for j in range(8)]
KINDS = [lt.DualEncoder, lt.UniDEC]


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.__name__)
def trained(request: pytest.FixtureRequest, encoder: Path) -> Any:
    X, Y = worded()
    return request.param(encoder=encoder, **SETTINGS).fit(X, Y, label_texts=LABEL_TEXTS)


def precision(model: Any, k: int = 1) -> float:
    X, Y = worded(seed=5)
    return float(lt.metrics.precision_at_k(Y, model.predict_topk(X, k=k), k=k))


def test_it_learns(trained: Any) -> None:
    assert precision(trained) > 0.8
    assert trained.history_[-1]["loss"] < trained.history_[0]["loss"] / 3


def test_the_score_is_a_sum_of_cosines(trained: Any) -> None:
    X, _ = worded(n=6, seed=7)
    top = trained.predict_topk(X, k=8)
    u = trained.embed(X)
    np.testing.assert_allclose(np.linalg.norm(u, axis=1), 1, rtol=1e-5)
    expected = u @ trained.label_vectors_.T
    if isinstance(trained, lt.UniDEC):
        h = trained._vectors(trained.tokenize(X))
        v = h @ trained.heads_["classifier.weight"].T + trained.heads_["classifier.bias"]
        v /= np.linalg.norm(v, axis=1, keepdims=True)
        table = trained.heads_["table"]
        expected = expected + v @ (table / np.linalg.norm(table, axis=1, keepdims=True)).T
    found = np.take_along_axis(expected, top.indices.astype(np.int64), axis=1)
    np.testing.assert_allclose(top.scores, found, rtol=1e-4, atol=1e-5)


def test_labels_without_training_rows_are_found(trained: Any, tmp_path: Path) -> None:
    model = trained.fine_tuned(*worded())
    before = model.predict_topk(worded(seed=5)[0], k=1)
    model.name_labels([f"label {j}" for j in range(8)])
    model.add_labels(["new", "newer"], label_texts=["word50 word51", "word55 word56"])
    assert model.n_labels_ == 10 and model.label_names_[8] == "new"
    model.set_params(new_label_margin=0.0)
    top = model.predict_topk(["word50 word51 word52", "word56 word55"], k=1)
    plain = top.scores[:, 0]
    assert top.indices[:, 0].tolist() == [8, 9]
    model.set_params(new_label_margin=0.05)
    top = model.predict_topk(["word50 word51 word52", "word56 word55"], k=10)
    np.testing.assert_allclose(top.scores[top.indices == [[8], [9]]], plain - 0.05, atol=1e-6)
    after = model.predict_topk(worded(seed=5)[0], k=1, exclude=["new", "newer"])
    np.testing.assert_array_equal(before.indices, after.indices)
    model.save(tmp_path / "grown")
    assert lt.load(tmp_path / "grown").predict_topk(["word50 word51"], k=3) == model.predict_topk(
        ["word50 word51"], k=3
    )
    texts = ["word50 word3 word51", "word55 word56 word7"] * 4
    Y = np.zeros((8, 10), np.float32)
    Y[::2, 8] = Y[1::2, 9] = 1
    tuned = model.fine_tuned(texts, Y, epochs=2)
    assert model.has_rows_.tolist() == [True] * 8 + [False] * 2 and tuned.has_rows_.all()
    assert tuned.predict_topk(["word51 word50"], k=1).indices.tolist() == [[8]]


def test_without_label_texts_rows_describe_labels(encoder: Path) -> None:
    X, Y = worded()
    model = lt.DualEncoder(encoder=encoder, **SETTINGS).fit(X, Y)
    assert precision(model) > 0.5
    shortest = min((X[i] for i in Y[:, 2].nonzero()[0]), key=lambda text: len(text.split()))
    ids = model.tokenize([shortest]).ids
    assert len(model.label_tokens_[2:3].ids) == len(ids)


def test_the_answer_is_chosen_on_other_rows(encoder: Path) -> None:
    X, Y = worded(n=240)
    model = lt.UniDEC(encoder=encoder, validation=0.2, **SETTINGS)
    model.fit(X, Y, label_texts=LABEL_TEXTS)
    assert model.answer_ in ("both", "classifier", "dual")
    model.heads_ = {**model.heads_, "table": -model.heads_["table"]}  # now it is always wrong
    assert model.choose_answer(*worded(seed=5)).answer_ == "dual"
    assert model.predict_topk(X, k=1).scores.max() <= 1 + 1e-5  # one cosine, not two


def test_heads_may_have_unequal_parts(encoder: Path, tmp_path: Path) -> None:
    X, Y = worded()
    model = lt.UniDEC(encoder=encoder, mine_by="both", **SETTINGS)
    model.fit(X, Y, label_texts=LABEL_TEXTS)
    scores = {}
    for answer, share in (("dual", 0.5), ("classifier", 0.5), ("both", 0.5), ("both", 0.25)):
        model.answer_, model.share_ = answer, share
        scores[answer, share] = model.predict_topk(X, k=8).to_csr().toarray()
    dual, classifier = scores["dual", 0.5], scores["classifier", 0.5]
    assert_allclose(scores["both", 0.5], dual + classifier, atol=1e-5)
    assert_allclose(scores["both", 0.25], 1.5 * dual + 0.5 * classifier, atol=1e-5)
    model.save(tmp_path / "model")
    again = lt.load(tmp_path / "model")
    assert (again.answer_, again.share_) == ("both", 0.25)
    assert_array_equal(again.predict_topk(X, k=8).scores, model.predict_topk(X, k=8).scores)


@pytest.mark.parametrize("kind", KINDS)
def test_training_goes_on_where_it_stopped(kind: Any, encoder: Path, tmp_path: Path) -> None:
    X, Y = worded()
    settings = {**SETTINGS, "epochs": 5, "period": 3}
    whole = kind(encoder=encoder, **settings).fit(X, Y, label_texts=LABEL_TEXTS)

    class Stop(Exception):
        pass

    from longtail.deep.training.checkpoint import Checkpoint

    saves, save = [], Checkpoint.save

    def stopping(self: Any, trainer: Any, spent: float) -> None:
        save(self, trainer, spent)
        saves.append(len(trainer.history))
        if len(saves) == 2:
            raise Stop

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "save", stopping)
        model = kind(encoder=encoder, **settings)
        with pytest.raises(Stop):
            model.fit(X, Y, label_texts=LABEL_TEXTS, checkpoint=tmp_path / "c")
    model.fit(X, Y, label_texts=LABEL_TEXTS, checkpoint=tmp_path / "c")
    assert [record["epoch"] for record in model.history_] == [1, 2, 3, 4, 5]
    assert model.predict_topk(X, k=3) == whole.predict_topk(X, k=3)


def test_presets_and_refusals(encoder: Path) -> None:
    X, Y = worded(n=40)
    model = lt.DualEncoder(encoder="average", preset="ngame", epochs=3, batch_size=16)
    assert model._setting("loss") == "triplet" and model._setting("pick") == "one"
    model.set_params(device="cpu", n_jobs=1).fit(X, Y, label_texts=LABEL_TEXTS)
    for settings, message in (
        ({"loss": "softmax"}, "loss must be"),
        ({"preset": "nothing"}, "preset must be"),
        ({"pick": "two"}, "pick must be"),
        ({"index": "tree"}, "index must be"),
        ({"to_labels": 2.0}, "to_labels"),
        ({"new_label_margin": -1.0}, "new_label_margin"),
    ):
        with pytest.raises(ValueError, match=message):
            lt.DualEncoder(**settings).fit(X, Y)
    with pytest.raises(ValueError, match="7 label_texts for 8 labels"):
        lt.DualEncoder().fit(X, Y, label_texts=LABEL_TEXTS[:7])
    with pytest.raises(ValueError, match="no triplets"):
        lt.UniDEC(loss="triplet").fit(X, Y)
    with pytest.raises(ValueError, match="cosine=False"):
        lt.UniDEC(auxiliary=0.5).fit(X, Y)
    published = lt.UniDEC(cosine=False, auxiliary=0.5, epochs=2, device="cpu", n_jobs=1)
    assert published.fit(X, Y, label_texts=LABEL_TEXTS).answer_ == "both"
    with pytest.raises(ValueError, match="answer must be"):
        lt.UniDEC(answer="none").fit(X, Y)


def test_an_index_that_walks_a_graph(trained: Any) -> None:
    pytest.importorskip("faiss", reason="faiss is not installed")
    X, _ = worded(seed=5)
    exact = trained.predict_topk(X, k=3)
    model = type(trained)._from_state(trained._get_state()).set_params(index="hnsw")
    found = model.predict_topk(X, k=3)
    np.testing.assert_array_equal(exact.indices, found.indices)  # eight labels: nothing to miss
    assert model.index_recall(X, k=3) == trained.index_recall(X, k=3) == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_the_cost_is_known_before(kind: Any, encoder: Path, caplog: Any, monkeypatch: Any) -> None:
    X, Y = worded()
    model = kind(encoder=encoder, **SETTINGS)
    cost = model.plan(X, Y, label_texts=LABEL_TEXTS)
    told = str(cost).splitlines()
    assert told[0] == "One of 10 epochs on cpu:"
    assert any("labels searched, every 3 epochs" in line for line in told)
    assert cost.total_seconds == sum(cost.seconds.values()) > 0
    width = 32
    has_table = "label vectors and their optimiser" in cost.memory
    assert has_table == (kind is lt.UniDEC)
    if has_table:
        assert cost.memory["label vectors and their optimiser"] == 3 * 4 * 8 * width

    # From many labels on it is told by itself, and changes nothing.
    quiet = kind(encoder=encoder, **{**SETTINGS, "epochs": 2}).fit(X, Y, label_texts=LABEL_TEXTS)
    monkeypatch.setattr("longtail.text.dual_training._MANY_LABELS", 8)
    with caplog.at_level("INFO", logger="longtail"):
        loud = kind(encoder=encoder, **{**SETTINGS, "epochs": 2}).fit(X, Y, label_texts=LABEL_TEXTS)
    assert "One of 2 epochs on cpu:" in caplog.text
    for name, array in quiet.heads_.items():
        assert_array_equal(array, loud.heads_[name])
