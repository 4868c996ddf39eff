"""Rows of a sparse and a dense block: models and answers are those of the CSR form."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from linear_cases import make_rows

import longtail as lt
from longtail._blocks import BlockRows
from longtail._native import core
from longtail.linear.train.memory import plan_memory

TIGHT = {"tolerance": 1e-4, "threshold": 0.0, "max_iter": 5000}
TREE = lt.tree.LabelTree(leaf=6, branching=4)
MODELS: dict[str, Callable[..., Any]] = {
    "one-vs-all": lt.OneVsAll,
    "xr-linear": lambda **params: lt.XRLinear(**{"tree": TREE, **params}),
}


def problem(width: int = 24, n: int = 160, n_labels: int = 24) -> tuple[BlockRows, sp.csr_matrix]:
    X, Y = make_rows(n=n, n_labels=n_labels)
    rng = np.random.default_rng(3)
    vectors = Y @ rng.standard_normal((n_labels, width)) + rng.standard_normal((n, width))
    return lt.features.beside(X, vectors), Y


def weights(model: Any) -> np.ndarray:
    return np.vstack([layer.to_csr(model.n_features_in_).toarray() for layer in model.layers_])


def same_answers(model: Any, rows: BlockRows, k: int = 5, **how: Any) -> None:
    by_block, by_entry = (model.predict_topk(X, k=k, **how) for X in (rows, rows.tocsr()))
    np.testing.assert_allclose(by_block.scores, by_entry.scores, rtol=1e-5, atol=1e-6)
    assert (by_block.indices == by_entry.indices).mean() > 0.99


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"loss": "hinge"},
        {"solver": "newton"},
        {"loss": "logistic"},
        {"loss": "huber_hinge", "l1": 0.01},
        {"normalize": False},
        {"bias": 0.0},
    ],
    ids=str,
)
def test_the_optimum_is_that_of_the_csr_form(make: Any, params: dict[str, Any]) -> None:
    rows, Y = problem()
    by_block, by_entry = (make(**TIGHT, **params).fit(X, Y) for X in (rows, rows.tocsr()))
    np.testing.assert_array_equal(by_block.label_of_leaf_, by_entry.label_of_leaf_)
    np.testing.assert_allclose(weights(by_block), weights(by_entry), atol=5e-3)
    same_answers(by_block, rows)


@pytest.mark.parametrize("width", [1, 15, 16, 17, 384, 400])
def test_any_width(width: int) -> None:
    rows, Y = problem(width)
    by_block, by_entry = (lt.OneVsAll(**TIGHT).fit(X, Y) for X in (rows, rows.tocsr()))
    np.testing.assert_allclose(weights(by_block), weights(by_entry), atol=5e-3)
    same_answers(by_block, rows)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_a_block_without_columns_is_the_sparse_model(make: Any) -> None:
    rows, Y = problem()
    empty = BlockRows(rows.sparse, np.zeros((len(rows), 0), np.float32))
    by_block, by_entry = make().fit(empty, Y), make().fit(rows.sparse, Y)
    np.testing.assert_array_equal(weights(by_block), weights(by_entry))
    np.testing.assert_array_equal(
        by_block.predict_topk(empty).scores, by_entry.predict_topk(rows.sparse).scores
    )


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_without_sparse_columns(make: Any) -> None:
    rows, Y = problem()
    alone = BlockRows(sp.csr_matrix((len(rows), 0), dtype=np.float32), rows.dense)
    model = make(**TIGHT).fit(alone, Y)
    np.testing.assert_allclose(weights(model), weights(make(**TIGHT).fit(rows.dense, Y)), atol=5e-3)
    same_answers(model, alone)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("precision", ["float32", "bf16", "int8"])
@pytest.mark.parametrize("normalize", [True, False])
def test_search_answers_as_for_entries(make: Any, precision: str, normalize: bool) -> None:
    rows, Y = problem(n_labels=80, n=300)
    rows = rows[np.arange(300)]
    rows.dense *= 3
    model = lt.linear.compact(make(normalize=normalize).fit(rows, Y), precision=precision)
    for k in (1, 5, 80, 100):
        same_answers(model, rows, k)
    for one in (rows[7], rows[7:8], rows[[7]]):  # a single row, and a slice of the batch
        np.testing.assert_array_equal(
            model.predict_topk(one).indices, model.predict_topk(rows).indices[7:8]
        )
    assert model.predict_topk(rows[:0]).indices.shape == (0, 5)


def test_search_of_many_labels_leaves_out_only_those_that_cannot_be_answers() -> None:
    """More labels than a chunk, weights of many sizes, vectors that matter more than words."""
    rng = np.random.default_rng(0)
    n_labels, width = 5000, 40
    sparse = sp.random(n_labels, 50, density=0.1, format="csr", dtype=np.float32, random_state=1)
    dense = rng.standard_normal((n_labels, width)) * np.exp(rng.standard_normal((n_labels, 1)))
    dense[rng.random(dense.shape) < 0.5] = 0
    coefficients = sp.hstack([sparse, sp.csr_matrix(dense.astype(np.float32))], format="csr")
    coefficients.sort_indices()
    bias = rng.standard_normal(n_labels).astype(np.float32)
    layer = lt.linear.search.layer.Layer.from_csr(coefficients, bias, np.array([0, n_labels]))
    model = lt.OneVsAll(normalize=False).fit(np.eye(90, dtype=np.float32), [[i] for i in range(90)])
    model.n_labels_ = n_labels
    model._set_layers([layer], np.arange(n_labels, dtype=np.int32))
    queries = BlockRows(
        sp.random(60, 50, density=0.2, format="csr", dtype=np.float32, random_state=2),
        rng.standard_normal((60, width)).astype(np.float32),
    )
    expected = queries.toarray().astype(np.float64) @ coefficients.toarray().T + bias
    for k in (1, 10, 300):
        top = model.predict_topk(queries, k=k)
        np.testing.assert_allclose(
            top.scores, -np.sort(-expected, axis=1)[:, :k], rtol=1e-4, atol=1e-4
        )
    np.testing.assert_allclose(model.decision_function(queries), expected, rtol=1e-4, atol=1e-4)


def test_search_has_the_same_bits_on_every_instruction_set() -> None:
    rows, Y = problem(width=40)
    model = lt.XRLinear(tree=TREE).fit(rows, Y)
    best, found = core.active_isa(), []
    try:
        for isa in ("portable", "avx2", "avx512"):
            try:
                core.set_isa(isa)
            except ValueError:
                continue
            found.append(model.predict_topk(rows, k=7))
    finally:
        core.set_isa(best)
    for other in found[1:]:
        np.testing.assert_array_equal(other.scores, found[0].scores)
        np.testing.assert_array_equal(other.indices, found[0].indices)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_filters_act_inside_the_search(make: Any) -> None:
    rows, Y = problem(n_labels=80, n=300)
    model = make().fit(rows, Y)
    same_answers(model, rows, include=[3, 5, 8, 60, 61, 62])
    same_answers(model, rows, exclude=[0, 1, 2])
    allowed = [[i % 80, (i + 7) % 80] for i in range(300)]
    same_answers(model, rows, k=2, include=allowed)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_the_same_bits_for_any_number_of_threads(make: Any) -> None:
    rows, Y = problem(n_labels=80, n=300)
    one, four = (make(n_jobs=jobs).fit(rows, Y) for jobs in (1, 4))
    np.testing.assert_array_equal(weights(one), weights(four))
    np.testing.assert_array_equal(one.predict_topk(rows).scores, four.predict_topk(rows).scores)


def test_negatives_mined_by_search() -> None:
    rows, Y = problem()
    how = {"tree": TREE, "negatives": "tfn+man", "beam": 2, **TIGHT}
    by_block, by_entry = (lt.XRLinear(**how).fit(X, Y) for X in (rows, rows.tocsr()))
    np.testing.assert_allclose(weights(by_block), weights(by_entry), atol=5e-3)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_saved_models_answer_blocks_and_entries(make: Any, tmp_path: Path) -> None:
    rows, Y = problem()
    model = make().fit(rows, Y)
    model.save(tmp_path / "model")
    loaded = lt.load(tmp_path / "model")
    for X in (rows, rows.tocsr(), rows.toarray()):
        np.testing.assert_array_equal(loaded.predict_topk(X).scores, model.predict_topk(X).scores)
    same_answers(loaded, rows)


def test_a_model_fitted_to_entries_answers_blocks() -> None:
    rows, Y = problem()
    same_answers(lt.XRLinear(tree=TREE).fit(rows.tocsr(), Y), rows)


def test_calibration_probabilities_and_explanations() -> None:
    rows, Y = problem()
    model = lt.XRLinear(tree=TREE).fit(rows, Y).calibrate(rows, Y)
    np.testing.assert_allclose(
        model.predict_proba_topk(rows).scores,
        model.predict_proba_topk(rows.tocsr()).scores,
        atol=1e-5,
    )
    why, plain = (model.explain(x, 3) for x in (rows[4], rows.tocsr()[4]))
    np.testing.assert_allclose(why.shares, plain.shares)
    assert (why.features >= rows.sparse.shape[1]).any()
    top = model.predict_topk(rows[4], k=24)
    assert why.score == pytest.approx(float(top.scores[0, top.indices[0] == 3][0]), abs=1e-5)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_labels_come_and_change(make: Any) -> None:
    rows, Y = problem()
    old, new = Y[:, :20].tocsr(), Y[:, 20:].tocsr()
    grown = [make(**TIGHT).fit(X, old).add_labels(X, new, Y_old=old) for X in (rows, rows.tocsr())]
    assert grown[0].n_labels_ == 24
    np.testing.assert_allclose(weights(grown[0]), weights(grown[1]), atol=2e-2)
    again = copy.copy(grown[0]).partial_fit(rows, Y, labels=[1, 21])
    same_answers(again, rows)
    kept = make().fit(rows, old, keep_rows=50).add_labels(rows, new)
    assert kept.n_labels_ == 24


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_a_training_that_was_cut_short_goes_on(make: Any, tmp_path: Path) -> None:
    rows, Y = problem()
    whole = make().fit(rows, Y, checkpoint=tmp_path / "parts")
    again = make().fit(rows, Y, checkpoint=tmp_path / "parts")
    np.testing.assert_array_equal(weights(whole), weights(again))
    np.testing.assert_array_equal(weights(whole), weights(make().fit(rows, Y)))
    other = BlockRows(rows.sparse, rows.dense * np.float32(0.5))
    with pytest.raises(ValueError, match="another training"):
        make().fit(other, Y, checkpoint=tmp_path / "parts")


def test_memory_is_planned_for_both_blocks() -> None:
    rows, Y = problem()
    model = lt.XRLinear(tree=TREE, memory_limit="8GB").fit(rows, Y)
    np.testing.assert_array_equal(weights(model), weights(lt.XRLinear(tree=TREE).fit(rows, Y)))
    wide = BlockRows(rows.sparse, np.zeros((len(rows), 10**5), np.float32))
    with pytest.raises(ValueError, match="too small"):
        plan_memory(10**8, wide, Y, in_use=0)
    assert plan_memory(10**8, rows, Y, in_use=0)


def test_members_of_an_ensemble_and_other_models_take_them() -> None:
    rows, Y = problem()
    both = lt.Ensemble(models=[lt.OneVsAll(), lt.XRLinear(tree=TREE)]).fit(rows, Y)
    alone = lt.OneVsAll().fit(rows, Y)
    np.testing.assert_array_equal(weights(both.members_[0]), weights(alone))
    assert both.predict_topk(rows).indices.shape == (160, 5)
    mixed = lt.Ensemble(models=[lt.OneVsAll(), lt.baselines.NearestNeighbors()]).fit(rows, Y)
    assert mixed.predict_topk(rows).indices.shape == (160, 5)
    for model in (
        lt.baselines.NearestNeighbors(),
        lt.baselines.Popularity(),
        lt.MACH(n_buckets=8, n_repetitions=2),
    ):
        by_block, by_entry = (
            copy.copy(model).fit(X, Y).predict_topk(X) for X in (rows, rows.tocsr())
        )
        np.testing.assert_array_equal(by_block.indices, by_entry.indices)
    assert both.score(rows, Y) > 0


def test_rows_are_taken_like_those_of_a_matrix() -> None:
    rows, _ = problem()
    whole = rows.toarray()
    np.testing.assert_array_equal(rows.tocsr().toarray(), whole)
    assert rows.shape == whole.shape and len(rows) == 160 and "24 dense" in repr(rows)
    mask = np.arange(160) % 3 == 0
    for at in (slice(3, 9), np.array([5, 2, 2]), mask, [1], slice(0)):
        np.testing.assert_array_equal(rows[at].toarray(), whole[at])
    np.testing.assert_array_equal(rows[-1].toarray(), whole[-1:])
    with pytest.raises(TypeError, match="no columns to choose"):
        rows[:, 3]


def test_beside_weighs_and_refuses() -> None:
    X, vectors = sp.csr_matrix([[3.0, 4.0], [0.0, 0.0]]), np.array([[0.0, 2.0], [3.0, 4.0]])
    rows = lt.features.beside(X, vectors, weight=0.5)
    np.testing.assert_allclose(rows.toarray(), [[0.6, 0.8, 0, 0.5], [0, 0, 0.3, 0.4]], atol=1e-7)
    assert rows.dense.dtype == np.float32 and rows.sparse.dtype == np.float32
    none = lt.features.beside(X, vectors, weight=0.0)
    assert not none.dense.any()
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="vectors holds"):
            lt.features.beside(X, [[0.0, bad], [1.0, 1.0]])
    with pytest.raises(ValueError, match="same rows"):
        lt.features.beside(X, vectors[:1])
    with pytest.raises(TypeError, match="vectors must be dense"):
        lt.features.beside(X, sp.csr_matrix(vectors))
    for weight in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="weight must be"):
            lt.features.beside(X, vectors, weight=weight)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_refusals(make: Any) -> None:
    rows, Y = problem()
    model = make().fit(rows, Y)
    broken = BlockRows(rows.sparse, rows.dense.copy())
    broken.dense[3, 5] = np.nan
    for call in (lambda: make().fit(broken, Y), lambda: model.predict_topk(broken)):
        with pytest.raises(ValueError, match="X holds NaN"):
            call()
    narrow = BlockRows(rows.sparse, rows.dense[:, :-1])
    with pytest.raises(ValueError, match="has 53 features"):
        model.predict_topk(narrow)
    with pytest.raises(ValueError, match="same rows"):
        BlockRows(rows.sparse, rows.dense[:5])
    # Another cut between the blocks is the same matrix.
    moved = BlockRows(
        sp.hstack([rows.sparse, sp.csr_matrix(rows.dense[:, :4])], format="csr"), rows.dense[:, 4:]
    )
    same_answers(model, moved)


def test_float64_and_unsorted_blocks_become_canonical() -> None:
    rows, Y = problem()
    unsorted = rows.sparse.tocsc().tocsr()
    odd = BlockRows(unsorted.astype(np.float64), np.asfortranarray(rows.dense.astype(np.float64)))
    model = lt.OneVsAll().fit(odd, Y)
    np.testing.assert_array_equal(weights(model), weights(lt.OneVsAll().fit(rows, Y)))
    same_answers(model, rows)
    np.testing.assert_array_equal(model.predict_topk(odd).scores, model.predict_topk(rows).scores)


def test_row_weights_soft_labels_and_pruning_by_budget() -> None:
    rows, Y = problem()
    soft = Y.copy()
    soft.data[::3] = 0.4
    weight = np.linspace(0.2, 1, len(rows))
    for params in ({"prune_budget": 0.05}, {"loss": "logistic"}, {"positive_weight": 3.0}):
        how = {**TIGHT, **params}
        by_block, by_entry = (
            lt.OneVsAll(**how).fit(X, soft, sample_weight=weight) for X in (rows, rows.tocsr())
        )
        difference = np.abs(weights(by_block) - weights(by_entry))
        assert (difference > 5e-3).mean() < 0.01  # a cut falls on one side or the other


def test_mapped_sparse_block(tmp_path: Path) -> None:
    rows, Y = problem()
    lt.features.save_matrix(tmp_path / "rows", rows.sparse)
    mapped = BlockRows(lt.features.load_matrix(tmp_path / "rows"), rows.dense)
    np.testing.assert_array_equal(
        weights(lt.OneVsAll().fit(mapped, Y)), weights(lt.OneVsAll().fit(rows, Y))
    )
    assert os.listdir(tmp_path) == ["rows"]
