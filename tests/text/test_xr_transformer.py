"""XRTransformer: levels, shortlists, identities of the method, ablations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from text_cases import worded

import longtail as lt
from longtail._validation import as_labels
from longtail.data.paired_rows import PairedRows
from longtail.features.beside import beside
from longtail.text.levels import NodeLists, levels_of, whole

SETTINGS: dict[str, Any] = {"leaf": 2, "branching": 2, "min_codes": 2, "refined_leaf": 4}
SETTINGS |= {"refined_branching": 2, "man_beam": 2, "steps": 80, "batch_size": 32}
SETTINGS |= {"learning_rate": 3e-3, "device": "cpu", "n_jobs": 1, "onnx": False}


def model_of(encoder: Any, **params: Any) -> lt.XRTransformer:
    return lt.XRTransformer(
        encoder=encoder, vectorizer=lt.Tfidf(min_df=1), **{**SETTINGS, **params}
    )


@pytest.fixture(scope="module")
def rows() -> Any:
    return worded(n=240, n_labels=12)


def test_counts_and_shortlists() -> None:
    tree = lt.LabelTree(kind="given", hierarchy=[[0, 1], [2, 3], [4, 5]]).fit(None, [[5]])
    Y = as_labels([[0, 1, 5], [2], []], n_labels=6)
    first, last = levels_of(tree, Y, 100)
    assert first.counts.toarray()[0].tolist() == [2, 0, 1]  # the card's exact case
    labels, targets, weights = NodeLists(first, None, 100).padded(np.array([0, 2]), [0])
    assert labels.tolist() == [[0, 1, 2]] * 2 and targets.tolist() == [[1, 0, 1], [0, 0, 0]]
    np.testing.assert_allclose(3 * weights, [[2, 1, 1], [1, 1, 1]])  # a mean over the list
    plain = NodeLists(first, None, 100, count_weights=False).padded(np.array([0]), [0])
    np.testing.assert_allclose(plain[2], [[1 / 3] * 3])
    ranked = first.problem(None, 100.0, count_weights=True)
    assert ranked.relevance is not None and ranked.relevance.tolist() == [2, 1, 1]
    matched = lt.TopK.from_ranking([[1], [1], [0]], n_labels=3)
    lists = NodeLists(last, matched, 100)
    labels, targets, weights = lists.padded(np.array([1, 0, 2]), [0])
    assert labels.tolist() == [[2, 3, -1, -1, -1, -1], [0, 1, 2, 3, 4, 5], [0, 1, -1, -1, -1, -1]]
    assert targets.tolist() == [[1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 1], [0] * 6]
    assert weights[0, 2:].sum() == 0 and lists.width == 6
    assert [len(level.above) for level in (first, last)] == [3, 9]
    again = lt.LabelTree(kind="given", hierarchy=whole(tree)).fit(None, Y)
    assert again.label_of_leaf_.tolist() == tree.label_of_leaf_.tolist()
    assert len(levels_of(tree, Y, 3)) == 1


def test_long_shortlists_keep_what_a_row_has() -> None:
    tree = lt.LabelTree(kind="given", hierarchy=[[0, 1], [2, 3], [4, 5]]).fit(None, [[5]])
    Y = as_labels([[0, 1, 5], [2]], n_labels=6)
    last = levels_of(tree, Y, 100)[1]
    matched = lt.TopK.from_ranking([[1], [0]], n_labels=3)
    seen = set()
    for most, seed in ((2, 0), (3, 0), (4, 0), (4, 1), (4, 2), (4, 3)):
        labels, targets, _ = NodeLists(last, matched, most).padded(np.array([0, 1]), [seed])
        assert labels.shape == (2, max(3, most)) and targets.sum(1).tolist() == [3, 1]
        assert {0, 1, 5} <= set(labels[0].tolist()) and 2 in labels[1]
        assert (np.diff(labels[0]) > 0).all()
        seen |= set(labels[0].tolist())
    assert seen >= {2, 3, 4}  # others each time


def test_it_learns_and_survives_the_disk(encoder: Path, rows: Any, tmp_path: Path) -> None:
    model = model_of(encoder).fit(*rows)
    texts, Y = worded(seed=5, n_labels=12)
    assert model.score(texts, Y) > 0.9
    assert [record["level"] for record in model.history_] == [1, 2, 3, 4]
    model.save(tmp_path / "m")
    loaded = lt.load(tmp_path / "m")
    assert loaded.predict_topk(texts) == model.predict_topk(texts)
    assert loaded.get_params()["vectorizer"].min_df == 1
    np.testing.assert_allclose(loaded.embed(texts[:5]), model.embed(texts[:5]), atol=1e-5)
    paired = PairedRows(model.tokenizer_.encode(texts, 64), model.vectorizer_.transform(texts))
    assert model.predict_topk(paired) == model.predict_topk(texts)


def test_no_steps_is_the_pretrained_encoder(encoder: Path, rows: Any) -> None:
    texts, Y = rows
    model = model_of(encoder, steps=0).fit(texts, Y)
    plain = lt.TextNetwork(
        encoder=encoder, frozen_layers=-1, epochs=1, device="cpu", n_jobs=1, onnx=False
    ).fit(texts, Y)
    np.testing.assert_allclose(model.embed(texts), plain.embed(texts), atol=1e-6)
    X = beside(model.vectorizer_.transform(texts), plain.embed(texts))
    ranker = model._ranker(12).fit(X, Y)
    found = model.predict_topk(texts, k=3)
    np.testing.assert_array_equal(found.indices, ranker.predict_topk(X, k=3).indices)


def test_without_vectors_it_is_the_linear_tree(rows: Any) -> None:
    texts, Y = rows
    model = model_of("average", features="tfidf", steps=4).fit(texts, Y)
    X = model.vectorizer_.transform(texts)
    ranker = model._ranker(12).set_params(normalize=True).fit(X, Y)
    assert model.predict_topk(texts, k=3) == ranker.predict_topk(X, k=3)
    nothing = beside(X, np.ones((X.shape[0], 4)), weight=0.0)
    same = model._ranker(12).fit(nothing, Y)
    np.testing.assert_array_equal(
        same.predict_topk(nothing, k=3).indices, ranker.predict_topk(X, k=3).indices
    )


def test_a_level_begins_where_the_solver_ends(rows: Any) -> None:
    losses = []
    for bootstrap in (True, False):
        model = model_of("average", bootstrap=bootstrap).fit(*rows)
        losses.append([record["first_loss"] for record in model.history_])
    assert losses[0][0] == losses[1][0]  # nothing to begin from on the first level
    assert all(a < b for a, b in zip(losses[0][1:], losses[1][1:], strict=True))


@pytest.mark.parametrize(
    "ablation",
    [
        {"count_weights": False, "cost_weights": None},
        {"refine": False},
        {"resolutions": "last"},
        {"features": "vectors"},
        {"frozen_layers": -1},
        {"preset": "amazon-670k"},
    ],
    ids=repr,
)
def test_ablations(ablation: dict[str, Any], encoder: Path, rows: Any) -> None:
    model = model_of(encoder, **{"steps": 24, **ablation}).fit(*rows)
    assert model.predict_topk(rows[0][:5], k=2).indices.shape == (5, 2)
    if ablation.get("resolutions") == "last":
        assert [record["nodes"] for record in model.history_] == [12]
    if "refine" in ablation:
        assert model.ranker_.tree_.level_sizes_ == [2, 4, 8, 12]


def test_training_goes_on_after_a_level(encoder: Path, rows: Any, tmp_path: Path) -> None:
    from longtail.text.level_training import LevelCheckpoint

    whole_run = model_of(encoder, steps=30).fit(*rows)

    class Stop(Exception):
        pass

    save = LevelCheckpoint.save

    def stopping(self: Any, level: int, *rest: Any) -> None:
        save(self, level, *rest)
        if level == 1:
            raise Stop

    model = model_of(encoder, steps=30)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LevelCheckpoint, "save", stopping)
        with pytest.raises(Stop):
            model.fit(*rows, checkpoint=tmp_path / "c")
    model.fit(*rows, checkpoint=tmp_path / "c")
    assert [record["level"] for record in model.history_] == [1, 2, 3, 4]
    assert model.predict_topk(rows[0], k=3) == whole_run.predict_topk(rows[0], k=3)
    with pytest.raises(ValueError, match="no checkpoint of this training"):
        model_of(encoder, steps=31).fit(*rows, checkpoint=tmp_path / "c")


def test_refusals(rows: Any) -> None:
    texts, Y = rows
    with pytest.raises(TypeError, match="reads the words"):
        model_of("average").fit(lt.Tokens([0, 1], [3]), Y[:1])
    with pytest.raises(ValueError, match="tokens of 1 texts"):
        PairedRows(lt.Tokens([0, 1], [3]), sp.csr_matrix((2, 3)))
