"""Models in fewer bytes: rounding within its bounds, dropping in its order, both saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from linear_cases import make_rows

import longtail as lt
from longtail.linear.search.layer import PRECISIONS, Layer

PARAMS = {"threshold": 0.01}


@pytest.fixture(scope="module")
def model() -> lt.XRLinear:
    X, Y = make_rows(n=300, n_labels=60)
    return lt.XRLinear(tree=lt.tree.LabelTree(level_sizes=[3]), **PARAMS).fit(X, Y)


def test_layer_from_weights_is_the_layer(model: lt.XRLinear) -> None:
    for layer in model.layers_:
        again = Layer.from_csr(layer.weights(30), layer.arrays["bias"], layer.child_ptr, 2)
        assert again.arrays.keys() == layer.arrays.keys()
        for name, array in layer.arrays.items():
            np.testing.assert_array_equal(again.arrays[name], array, err_msg=name)


def test_layers_without_weights_or_children() -> None:
    nothing = sp.csr_matrix((3, 7), dtype=np.float32)
    layer = Layer.from_csr(nothing, np.zeros(3, np.float32), np.array([0, 0, 3, 3]))
    for precision in PRECISIONS:
        assert layer.with_precision(precision).weights(7).nnz == 0
    assert layer.child_ptr.tolist() == [0, 0, 3, 3]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_rounding(model: lt.XRLinear, precision: str) -> None:
    for layer in model.layers_:
        exact, rounded = layer.weights(30), layer.with_precision(precision).weights(30)
        error = abs((exact - rounded).toarray())
        if precision == "float32":
            assert error.max() == 0
        elif precision == "bf16":
            assert (error <= abs(exact.toarray()) * 2.0**-8).all() and error.max() > 0
        else:
            step = abs(exact).max(axis=1).toarray() / 127
            assert (error <= 0.5001 * step).all() and error.max() > 0


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("dense", [False, True])
def test_search_reads_rounded_weights(model: lt.XRLinear, precision: str, dense: bool) -> None:
    X, _ = make_rows(n=300, n_labels=60)
    small = lt.linear.compact(model, precision=precision)
    plain = lt.linear.compact(small, precision="float32")  # the rounded weights as floats
    queries = X.toarray() if dense else X
    mine, its = (m.predict_topk(queries, k=60).to_csr().toarray() for m in (small, plain))
    np.testing.assert_allclose(mine, its, rtol=2e-5, atol=1e-7)


def test_a_target_is_kept_and_small_weights_go_first(model: lt.XRLinear) -> None:
    X, Y = make_rows(n=300, n_labels=60)
    half = lt.linear.compact(model, target_mb=model.nbytes / 2e6, precision="float32", X=X, Y=Y)
    assert 0.4 * model.nbytes < half.nbytes <= model.nbytes / 2
    before, after = (m.layers_[-1].weights(30).toarray() for m in (model, half))
    cut = half.compaction_["cut"]
    gone = (before != 0) & (after == 0)
    assert gone.any() and (before[gone] <= 2 * cut).all() and (-before[gone] <= cut).all()
    kept = after[after != 0]
    assert ((kept > 2 * cut) | (-kept > cut)).all()
    told = half.compaction_["precision_at"]
    assert told["before"]["1"] == pytest.approx(model.score(X, Y))
    assert told["after"]["1"] == pytest.approx(half.score(X, Y))
    assert model.compaction_ is None


@pytest.mark.parametrize("precision", PRECISIONS)
def test_saved_with_what_was_done(model: lt.XRLinear, precision: str, tmp_path: Path) -> None:
    X, Y = make_rows(n=300, n_labels=60)
    small = lt.linear.compact(model, precision=precision, X=X, Y=Y)
    small.save(tmp_path / "m")
    loaded = lt.load(tmp_path / "m")
    assert loaded.compaction_ == small.compaction_
    assert loaded.predict_topk(X) == small.predict_topk(X)
    assert loaded.explain(X[0], 3).score == pytest.approx(small.explain(X[0], 3).score)


def test_refusals(model: lt.XRLinear) -> None:
    with pytest.raises(ValueError, match="too few"):
        lt.linear.compact(model, target_mb=1e-4)
    with pytest.raises(ValueError, match="precision must be one of"):
        lt.linear.compact(model, precision="int4")
    with pytest.raises(TypeError, match="linear model"):
        lt.linear.compact(lt.baselines.Popularity())  # type: ignore[type-var]
    with pytest.raises(ValueError, match="neither"):
        lt.linear.compact(model, X=[[1.0]])
    with pytest.raises(ValueError, match="not fitted"):
        lt.linear.compact(lt.XRLinear())
