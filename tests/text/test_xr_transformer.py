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
    tree = lt.tree.LabelTree(kind="given", hierarchy=[[0, 1], [2, 3], [4, 5]]).fit(None, [[5]])
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
    again = lt.tree.LabelTree(kind="given", hierarchy=whole(tree)).fit(None, Y)
    assert again.label_of_leaf_.tolist() == tree.label_of_leaf_.tolist()
    assert len(levels_of(tree, Y, 3)) == 1


def test_long_shortlists_keep_what_a_row_has() -> None:
    tree = lt.tree.LabelTree(kind="given", hierarchy=[[0, 1], [2, 3], [4, 5]]).fit(None, [[5]])
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
    X = lt.features.beside(model.vectorizer_.transform(texts), plain.embed(texts))
    ranker = model._ranker(12).fit(X, Y)
    found = model.predict_topk(texts, k=3)
    np.testing.assert_array_equal(found.indices, ranker.predict_topk(X, k=3).indices)


def test_without_vectors_it_is_the_linear_tree(rows: Any) -> None:
    texts, Y = rows
    model = model_of("average", features="tfidf", steps=4).fit(texts, Y)
    X = model.vectorizer_.transform(texts)
    ranker = model._ranker(12).set_params(normalize=True).fit(X, Y)
    assert model.predict_topk(texts, k=3) == ranker.predict_topk(X, k=3)
    nothing = lt.features.beside(X, np.ones((X.shape[0], 4)), weight=0.0)
    usual = model._ranker(12).fit(nothing, Y).predict_topk(nothing, k=3)
    np.testing.assert_array_equal(usual.indices, ranker.predict_topk(X, k=3).indices)
    tight = {"tolerance": 1e-5, "max_iter": 10_000, "threshold": 0.0}
    exact = model._ranker(12).set_params(normalize=True, **tight).fit(X, Y)
    same = model._ranker(12).set_params(**tight).fit(nothing, Y)
    for a, b in zip(exact.layers_, same.layers_, strict=True):
        d = X.shape[1]
        np.testing.assert_allclose(
            a.to_csr(d).toarray()[:, :d], b.to_csr(d + 4).toarray()[:, :d], atol=1e-4
        )
    np.testing.assert_allclose(
        same.predict_topk(nothing, k=3).scores, exact.predict_topk(X, k=3).scores, atol=1e-4
    )


def test_a_level_begins_where_the_solver_ends(rows: Any) -> None:
    losses = []
    for bootstrap in (True, False):
        model = model_of("average", bootstrap=bootstrap).fit(*rows)
        losses.append([record["first_loss"] for record in model.history_])
    assert losses[0][0] == losses[1][0]  # nothing to begin from on the first level
    assert all(a < b for a, b in zip(losses[0][1:], losses[1][1:], strict=True))


def trained(encoder: Any, rows: Any, **params: Any) -> lt.XRTransformer:
    return model_of(encoder, **{"steps": 24, **params}).fit(*rows)


def test_without_cost_weights(encoder: Path, rows: Any) -> None:
    plain = trained(encoder, rows, count_weights=False, cost_weights=None)
    whole_method = trained(encoder, rows)
    assert plain.ranker_.cost_weights is None
    assert whole_method.ranker_.cost_weights == "normalized"
    losses = [[r["loss"] for r in model.history_] for model in (plain, whole_method)]
    assert losses[0] != losses[1]  # nodes weigh as many labels as a row has there


def test_without_the_refined_tree(encoder: Path, rows: Any) -> None:
    first = trained(encoder, rows, refine=False)
    assert first.ranker_.tree_.level_sizes_ == [2, 4, 8, 12]
    tree = lt.tree.LabelTree(leaf=2, branching=2, min_codes=2, random_state=0)
    tree.fit(first.vectorizer_.transform(rows[0]), rows[1])

    def clusters(of: lt.tree.LabelTree) -> set[frozenset[int]]:
        cuts = of.child_ptr_[-1][1:-1]
        return {frozenset(part.tolist()) for part in np.split(of.label_of_leaf_, cuts)}

    assert clusters(first.ranker_.tree_) == clusters(tree)
    assert trained(encoder, rows).ranker_.tree_.level_sizes_ == [2, 4, 12]


def test_one_resolution(encoder: Path, rows: Any) -> None:
    model = trained(encoder, rows, resolutions="last")
    assert [(r["nodes"], r["steps"]) for r in model.history_] == [(12, 24)]


def test_vectors_only_and_features_only(encoder: Path, rows: Any) -> None:
    vectors = trained(encoder, rows, features="vectors")
    words = trained(encoder, rows, features="tfidf")
    assert vectors.ranker_.n_features_in_ == vectors.encoder_.width == 32
    assert words.ranker_.n_features_in_ == words.n_columns_
    both = trained(encoder, rows)
    assert both.ranker_.n_features_in_ == 32 + words.n_columns_
    np.testing.assert_allclose(vectors.embed(rows[0][:9]), both.embed(rows[0][:9]), atol=1e-6)
    X = vectors.embed(rows[0])
    alone = vectors._ranker(12).fit(X / np.linalg.norm(X, axis=1, keepdims=True), rows[1])
    top = alone.predict_topk(X / np.linalg.norm(X, axis=1, keepdims=True), k=2)
    same = vectors.predict_topk(rows[0], k=2).indices == top.indices
    # Lengths are rounded in another place, and descent stops near the optimum.
    assert same.mean() > 0.97


def test_a_frozen_encoder_is_the_pretrained_one(encoder: Path, rows: Any) -> None:
    frozen, pretrained = trained(encoder, rows, frozen_layers=-1), trained(encoder, rows, steps=0)
    assert frozen.history_ == [] and frozen.predict_topk(rows[0]) == pretrained.predict_topk(
        rows[0]
    )
    assert not np.allclose(frozen.embed(rows[0]), trained(encoder, rows).embed(rows[0]), atol=1e-3)


def test_other_presets_and_encoders_learn(encoder: Path, rows: Any) -> None:
    other = trained(encoder, rows, preset="amazon-670k")
    assert other.ranker_.cost_weights is None and len(other.history_) == 4
    convolution = trained("convolution", rows, steps=60)
    assert convolution.embed(rows[0][:2]).shape[0] == 2


def test_a_head_with_vectors_is_the_optimum(rows: Any) -> None:
    """At the optimum of the bootstrap w = 2 C sum_i c_i y_i max(0, 1 - y_i w.x_i) x_i over the rows
    of the shortlist, with raw counts for positives.
    """
    from longtail.linear.train.level import train_level
    from longtail.linear.train.solver_options import SolverOptions

    tree = lt.tree.LabelTree(kind="given", hierarchy=[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])
    Y = rows[1]
    first, _ = levels_of(tree.fit(None, Y), Y, 100)
    X = np.random.default_rng(0).standard_normal((Y.shape[0], 5)).astype(np.float32)
    exact = SolverOptions(threshold=0.0, tolerance=1e-6, max_iter=20_000)
    problem = first.problem(None, 0.1, count_weights=True)
    layer = train_level(sp.csr_matrix(X), problem, exact, seed=0, n_threads=1)
    weights = layer.to_csr(5).toarray().astype(np.float64)
    with_bias, counts = np.hstack([X, np.ones((len(X), 1))]), first.counts.toarray()
    for node, w in enumerate(weights):
        y = np.where(counts[:, node] > 0, 1.0, -1.0)
        cost = 0.1 * np.maximum(counts[:, node], 1)
        pull = 2 * (cost * y * np.maximum(0, 1 - y * (with_bias @ w))) @ with_bias
        np.testing.assert_allclose(w, pull, atol=1e-3)
    assert counts.max() > 1


def test_training_goes_on_after_a_level(encoder: Path, rows: Any, tmp_path: Path) -> None:
    from longtail.deep.outputs import Pool

    whole_run = model_of(encoder, steps=30).fit(*rows)
    step, calls = Pool.step, []

    def interrupted(self: Any, *args: Any, **how: Any) -> Any:
        calls.append(self.n_labels)
        if len(calls) == 13:  # five steps on each of the first levels, and in the third
            raise KeyboardInterrupt
        return step(self, *args, **how)

    model = model_of(encoder, steps=30)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pool, "step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(*rows, checkpoint=tmp_path / "c")
    assert not hasattr(model, "ranker_") and calls[-1] == 8
    calls.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pool, "step", lambda *a, **k: calls.append(a[0].n_labels) or step(*a, **k))
        model.fit(*rows, checkpoint=tmp_path / "c")
    assert set(calls) == {8, 12}  # the first two levels were not trained again
    assert [record["level"] for record in model.history_] == [1, 2, 3, 4]
    assert model.predict_topk(rows[0], k=3) == whole_run.predict_topk(rows[0], k=3)
    assert model.encoder_.weights.tobytes() == whole_run.encoder_.weights.tobytes()
    calls.clear()
    with pytest.MonkeyPatch.context() as patch:  # another ranker on the same levels
        patch.setattr(Pool, "step", lambda *a, **k: calls.append(0) or step(*a, **k))
        other = model_of(encoder, steps=30, refine=False, features="vectors")
        other.fit(*rows, checkpoint=tmp_path / "c")
    assert not calls and other.ranker_.n_features_in_ == 32
    with pytest.raises(ValueError, match="no checkpoint of this training"):
        model_of(encoder, steps=31).fit(*rows, checkpoint=tmp_path / "c")


def test_threads_and_texts_in_any_order(encoder: Path, rows: Any) -> None:
    model = trained(encoder, rows)
    texts = rows[0][:30]
    some = model.predict_topk(texts, k=3)
    backwards = model.predict_topk(texts[::-1], k=3)
    np.testing.assert_array_equal(some.indices, backwards.indices[::-1])
    assert model.set_params(n_jobs=2).predict_topk(texts, k=3) == some
    model.set_params(n_jobs=1)
    long = " ".join(["word1"] * 900)
    assert model.predict_topk(["", long, "nothing known"], k=2).indices.shape == (3, 2)
    only = model.predict_topk(texts, k=2, include=[3, 5])
    assert set(only.indices.ravel().tolist()) == {3, 5}


def test_probabilities(encoder: Path, rows: Any) -> None:
    model = trained(encoder, rows, steps=40)
    with pytest.raises(Exception, match="probabilit"):
        model.predict_proba_topk(rows[0][:3])
    other, Y = worded(seed=3, n_labels=12)
    proba = model.calibrate(other, Y).predict_proba_topk(rows[0][:30], k=3)
    assert proba.scores.min() >= 0 and proba.scores.max() <= 1


def test_several_encoders(encoder: Path, rows: Any, tmp_path: Path) -> None:
    texts, Y = rows
    settings = {**SETTINGS, "steps": 24, "vectorizer": lt.Tfidf(min_df=1)}
    for rule in ("softmax", "sigmoid", "rank"):
        pair = lt.Ensemble.of_encoders([encoder, "average"], rule=rule, candidates=6, **settings)
        pair.fit(texts, Y)
        tops = [member.predict_topk(texts, k=6) for member in pair.members_]
        assert pair.predict_topk(texts, k=3) == lt.ensemble.combine(tops, 3, rule)
    assert pair.reads_texts and pair.score(texts, Y) > 0.8
    assert [model.random_state for model in pair.models] == [0, 1]
    sizes = {member.n_features_in_ for member in pair.members_}
    assert len(sizes) == 2  # each has a tokenizer of its own
    pair.save(tmp_path / "m")
    loaded = lt.load(tmp_path / "m")
    assert loaded.predict_topk(texts[:20]) == pair.predict_topk(texts[:20])
    assert lt.Ensemble.of(pair.members_, rule="rank", candidates=6).predict_topk(
        texts[:20]
    ) == pair.predict_topk(texts[:20])
    with pytest.raises(ValueError, match="encoders is empty"):
        lt.Ensemble.of_encoders([])
    with pytest.raises(TypeError, match="Popularity takes features, and these are texts"):
        lt.Ensemble(models=[pair.models[0], lt.baselines.Popularity()]).fit(texts, Y)
    wiki = lt.Ensemble.of_encoders(["a", "b", "c"], preset="wiki-500k")
    assert (wiki.rule, wiki.candidates) == ("sigmoid", 50)


def test_refusals(rows: Any) -> None:
    with pytest.raises(TypeError, match="reads the words"):
        model_of("average").fit(lt.data.Tokens([0, 1], [3]), rows[1][:1])
    with pytest.raises(ValueError, match="tokens of 1 texts"):
        PairedRows(lt.data.Tokens([0, 1], [3]), sp.csr_matrix((2, 3)))
