"""``TextNetwork``: it learns, answers, is saved, goes on, and says what is wrong."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from text_cases import WORDS, text_network, worded

import longtail as lt


def test_a_transformer_learns(encoder: Path, data: Any, fitted: Any) -> None:
    texts, Y = worded(seed=1)
    popular = np.asarray(Y.mean(axis=0)).max()
    assert fitted.score(texts, Y) > popular + 0.4
    assert fitted.loss_ == "sigmoid" and len(fitted.history_) == 12
    assert fitted.history_[-1]["loss"] < fitted.history_[0]["loss"]


@pytest.mark.parametrize(("kind", "epochs"), [("average", 12), ("convolution", 25)])
def test_frugal_encoders_learn(kind: str, epochs: int, data: Any, tmp_path: Path) -> None:
    model = text_network(kind, epochs=epochs, learning_rate=1e-2).fit(*data)
    texts, Y = worded(seed=1)
    assert model.score(texts, Y) > 0.6
    model.save(tmp_path / "model")
    assert lt.load(tmp_path / "model").predict_topk(texts) == model.predict_topk(texts)


def test_saved_models_answer_alike(fitted: Any, data: Any, tmp_path: Path) -> None:
    texts = data[0]
    fitted.save(tmp_path / "model")
    loaded = lt.load(tmp_path / "model")
    assert loaded.predict_topk(texts) == fitted.predict_topk(texts)
    np.testing.assert_array_equal(loaded.embed(texts[:5]), fitted.embed(texts[:5]))
    assert loaded.history_ == fitted.history_ and loaded.n_truncated_ == fitted.n_truncated_
    assert not list(tmp_path.rglob("*.pkl")) and not list(tmp_path.rglob("*.bin.index*"))


def test_the_encoder_alone_goes_into_a_folder_that_transformers_reads(
    fitted: Any, data: Any, tmp_path: Path
) -> None:
    from transformers import AutoModel

    fitted.save_encoder(tmp_path / "encoder")
    model = AutoModel.from_pretrained(tmp_path / "encoder").eval()
    tokens = fitted.tokenize(data[0][:1])
    with torch.no_grad():
        ids = torch.tensor(tokens.ids.astype(np.int64))[None]
        states = model(input_ids=ids).last_hidden_state
    np.testing.assert_allclose(states.mean(1)[0], fitted.embed(tokens)[0], rtol=1e-4, atol=1e-5)
    again = text_network(tmp_path / "encoder", epochs=1).fit(*data)
    assert again.n_labels_ == fitted.n_labels_


def test_tokens_in_place_of_texts(encoder: Path, data: Any, fitted: Any) -> None:
    texts, Y = data
    tokens = fitted.tokenize(texts)
    assert fitted.predict_topk(tokens) == fitted.predict_topk(texts)
    plain = lt.data.Tokens(tokens.offsets, tokens.ids)  # without their tokenizer
    one, two = (text_network(encoder, epochs=2).fit(X, Y) for X in (texts, plain))
    np.testing.assert_array_equal(one.output_weights_, two.output_weights_)
    assert one.tokenizer_ == two.tokenizer_
    with pytest.raises(ValueError, match="token id 999"):
        fitted.predict_topk(lt.data.Tokens([0, 1], [999]))


def test_answers_do_not_depend_on_what_else_is_asked(fitted: Any, data: Any) -> None:
    texts = [*data[0][:20], "", "word1 " * 40]
    together = fitted.predict_topk(texts, k=3)
    for i, text in enumerate(texts):
        alone = fitted.predict_topk([text], k=3)
        np.testing.assert_allclose(alone.scores[0], together.scores[i], rtol=1e-4, atol=1e-5)


def test_long_texts_are_cut_counted_and_told(
    encoder: Path, data: Any, caplog: pytest.LogCaptureFixture
) -> None:
    texts, Y = data
    long = [text + " word59" * 30 if i < 7 else text for i, text in enumerate(texts)]
    with caplog.at_level(logging.INFO, logger="longtail"):
        model = text_network(encoder, epochs=1, max_length=12).fit(long, Y)
    assert model.n_truncated_ == 7
    assert "7 of 160 texts were longer than 12 tokens" in caplog.text
    assert model.tokenize(["word1 " * 50]).lengths.tolist() == [12]


def test_the_same_seed_gives_the_same_bits(encoder: Path, data: Any) -> None:
    torch.manual_seed(5)
    before = torch.rand(1)
    torch.manual_seed(5)
    models = [text_network(encoder, epochs=2, random_state=s).fit(*data) for s in (1, 1, 2)]
    assert torch.equal(torch.rand(1), before)  # nobody else's random numbers were used
    np.testing.assert_array_equal(models[0].output_weights_, models[1].output_weights_)
    np.testing.assert_array_equal(models[0].encoder_.weights, models[1].encoder_.weights)
    assert not np.array_equal(models[0].output_weights_, models[2].output_weights_)


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("decay", ["linear", "plateau"])
def test_a_training_that_was_interrupted_goes_on(
    encoder: Path, data: Any, tmp_path: Path, decay: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from longtail.deep.training.checkpoint import Checkpoint

    how = {"epochs": 4, "validation": 0.2, "decay": decay, "metric": "psp"}
    expected = text_network(encoder, **how).fit(*data)
    save = Checkpoint.save

    def interrupt(self: Any, trainer: Any, spent: float) -> None:
        save(self, trainer, spent)
        if len(trainer.history) == 2:
            raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", interrupt)
        with pytest.raises(Interrupted):
            text_network(encoder, **how).fit(*data, checkpoint=tmp_path / "c")
    model = text_network(encoder, **how).fit(*data, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(model.output_weights_, expected.output_weights_)
    np.testing.assert_array_equal(model.encoder_.weights, expected.encoder_.weights)
    assert len(model.history_) == 4 and model.best_epoch_ == expected.best_epoch_
    with pytest.raises(lt.exceptions.ModelFormatError, match="other data or parameters"):
        text_network(encoder, **{**how, "pooling": "first"}).fit(*data, checkpoint=tmp_path / "c")


def test_a_batch_in_pieces_is_the_same_step(encoder: Path, data: Any) -> None:
    """The gradient of a batch that passes in pieces is that of the whole batch."""
    from longtail.deep.batches.token_rows import TokenRows
    from longtail.deep.encoders.transformer import Transformer
    from longtail.deep.objectives import named
    from longtail.deep.outputs import Full
    from longtail.deep.training.plan import Plan
    from longtail.deep.training.step import Step
    from longtail.features.tokenizer import Tokenizer

    texts, Y = data
    tokens = Tokenizer.from_folder(encoder).encode(texts[:24])
    rows, goal = torch.arange(24), named("sigmoid")
    gradients = []
    for micro in (None, 7, 1):
        module = Transformer.pretrained(encoder).eval()  # no dropout: pieces draw their own
        output = Full(torch.ones(8, 32) * 0.1, torch.zeros(8))
        plan = Plan.of(
            text_network(encoder), seed=0, weight_decay=0, dropout=0.0, micro_batch=micro
        )
        step = Step(module, output, goal, plan)
        step.begin(1)
        inputs = TokenRows(tokens, torch.device("cpu")).take(rows)
        targets = goal.rows(Y[:24], torch.device("cpu"), 1).take(rows)
        step(inputs, targets, 0.01, 0)
        assert step.pieces == {None: 1, 7: 4, 1: 24}[micro]
        gradients.append([p.grad for p in module.parameters() if p.grad is not None])
    for other in gradients[1:]:
        for one, two in zip(gradients[0], other, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-6)


def test_frozen_layers_stay(encoder: Path, data: Any) -> None:
    from safetensors.numpy import load

    from longtail.deep.encoders.transformer import Transformer

    before = {n: p.numpy() for n, p in Transformer.pretrained(encoder).state_dict().items()}
    for frozen, same in ((1, "encoder.layer.0"), (-1, "")):
        model = text_network(encoder, epochs=1, frozen_layers=frozen).fit(*data)
        after = load(model.encoder_.weights.tobytes())
        for name, array in after.items():
            if same in name or "embeddings" in name:
                np.testing.assert_array_equal(array, before[name], err_msg=name)
        moved = [name for name, array in after.items() if not np.array_equal(array, before[name])]
        assert bool(moved) == (frozen == 1)


def test_pooling_and_early_stopping(encoder: Path, data: Any) -> None:
    first = text_network(encoder, pooling="first", epochs=8).fit(*data)
    assert first.score(*worded(seed=1)) > 0.3
    model = text_network(encoder, validation=0.25, patience=1, epochs=30).fit(*data)
    values = [record["validation"] for record in model.history_]
    assert model.best_epoch_ == int(np.argmax(values)) + 1 and len(values) < 30


def test_fine_tuning_and_new_labels(fitted: Any, data: Any) -> None:
    texts, Y = data
    tuned = fitted.fine_tuned(texts, Y, epochs=1)
    assert tuned.n_labels_ == 8 and not np.array_equal(
        tuned.output_weights_, fitted.output_weights_
    )
    before = fitted.predict_topk(texts, k=8)
    new = [f"{WORDS[50]} {WORDS[51]} {word}" for word in WORDS[32:48]]
    grown = fitted.fine_tuned(texts, Y, epochs=1)
    weights = grown.output_weights_.copy()
    grown.add_labels(new, np.ones((16, 1)), negatives=(texts, Y))
    assert grown.n_labels_ == 9
    np.testing.assert_array_equal(grown.output_weights_[:8], weights)
    found = grown.predict_topk([f"{WORDS[50]} {WORDS[51]} {WORDS[49]}"], k=2).indices[0]
    assert 8 in found
    assert fitted.predict_topk(texts, k=8) == before  # copies leave the model alone


def test_calibration_and_filters(fitted: Any, data: Any) -> None:
    texts, Y = worded(seed=2)
    model = fitted.fine_tuned(*data).calibrate(texts, Y, k=3, method="platt")
    proba = model.predict_proba_topk(texts, k=3).scores
    assert proba.min() >= 0 and proba.max() <= 1
    top = model.predict_topk(texts[:9], k=2, include=[1, 5, 6])
    assert np.isin(top.indices, [1, 5, 6]).all()
    everything = model.decision_function(texts[:9])[:, [1, 5, 6]]
    np.testing.assert_allclose(top.scores, -np.sort(-everything, 1)[:, :2], rtol=1e-5)


def test_objectives_reach_text_models(encoder: Path, data: Any) -> None:
    texts, Y = data
    for params in (
        {"loss": "squared_hinge"},
        {"loss": "softmax"},
        {"missing_labels": lt.JainPropensity()},
        {"missing_labels": np.full(8, 0.5), "loss": "softmax", "correction": "pol"},
    ):
        model = text_network(encoder, **params).fit(texts, Y)
        assert model.score(*worded(seed=1)) > 0.4, params
    targets = np.random.default_rng(0).normal(size=(len(texts), 3))
    codes = text_network(encoder, epochs=2).fit_targets(texts, targets)
    assert codes.decision_function(texts).shape == (len(texts), 3)


def test_refusals(encoder: Path, data: Any, tmp_path: Path) -> None:
    texts, Y = data
    for X, message in (
        ("one text", "a single text"),
        ([1, 2], "must be a text"),
        ([*texts[:-1], None], "must be a text"),
        (sp.csr_matrix((160, 5)), "reads texts"),
    ):
        with pytest.raises(TypeError, match=message):
            text_network(encoder).fit(X, Y)
    with pytest.raises(ValueError, match="no rows"):
        text_network(encoder).fit([], sp.csr_matrix((0, 8)))
    with pytest.raises(FileNotFoundError, match="no folder"):
        text_network("/nowhere/at/all").fit(texts, Y)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(FileNotFoundError, match=r"tokenizer\.json"):
        text_network(empty).fit(texts, Y)
    for params, message in (
        ({"pooling": "last"}, "pooling must be"),
        ({"decay": "never"}, "decay must be"),
        ({"metric": "f1"}, "metric must be"),
        ({"runtime": "tf"}, "runtime must be"),
        ({"frozen_layers": 9}, "has 2 layers"),
        ({"device": "cuda:77"}, "no device"),
        ({"loss": "absolute"}, "loss must be"),
    ):
        with pytest.raises(ValueError, match=message):
            text_network(encoder, **{"epochs": 1, **params}).fit(texts, Y).predict_topk(texts[:1])


def test_empty_texts_and_one_text(encoder: Path) -> None:
    model = text_network(encoder, epochs=1).fit(["word1", "", "word2 nothing"], [[0], [1], [0]])
    assert model.predict_topk(["", "unknown words only"], k=2).indices.shape == (2, 2)
    assert len(model.predict_topk([], k=1)) == 0
    single = text_network("average", epochs=1, batch_size=4).fit(["a text"], [[0]])
    assert single.predict_topk(["another"], k=1).indices.tolist() == [[0]]


def test_divergence_is_an_error(encoder: Path, data: Any) -> None:
    with pytest.raises(ValueError, match="diverged"):
        text_network(encoder, learning_rate=1e30, clip=None, epochs=2).fit(*data)
