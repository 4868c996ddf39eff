"""DECLARE and the regression behind it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse as sp

import longtail as lt
from longtail.codes import Ridge
from longtail.exceptions import ModelFormatError


@pytest.fixture(scope="module")
def data() -> Any:
    return lt.data.make_longtail(n=1200, d=300, L=150, random_state=0)


def test_ridge_solves_the_normal_equations() -> None:
    rng = np.random.default_rng(0)
    X = sp.random(200, 40, 0.2, random_state=0, dtype=np.float32).tocsr()
    T = rng.normal(size=(200, 7)).astype(np.float32)
    model = Ridge(l2=0.5, normalize=False, tolerance=1e-7).fit(X, T)
    A = np.hstack([X.toarray(), np.ones((200, 1))])
    exact = np.linalg.solve(A.T @ A + 0.5 * np.eye(41), A.T @ T)
    np.testing.assert_allclose(model.coef_, exact[:-1], atol=1e-4)
    np.testing.assert_allclose(model.intercept_, exact[-1], atol=1e-4)
    np.testing.assert_allclose(model.predict(X), A @ exact, atol=1e-3)
    with pytest.raises(ValueError, match="l2 must be positive"):
        Ridge(l2=0).fit(X, T)
    with pytest.raises(ValueError, match="targets must have the shape"):
        Ridge().fit(X, T[:-1])


def test_it_is_code_regression_and_recovery(data: Any) -> None:
    X, Y = data.train.X, data.train.Y
    model = lt.DECLARE.as_published(estimator="linear", n_components=20).fit(X, Y)
    z = model.transform(data.test.X)
    assert z.shape == (data.test.X.shape[0], 20)
    np.testing.assert_array_equal(z, model.estimator_.predict(data.test.X))
    s = z @ model.code_.codes_.T
    best = np.argsort(-s, axis=1)[:, :25]
    full = np.stack([s[q, best[q]] @ Y[best[q]].toarray() for q in range(len(z))])
    top = model.predict_topk(data.test.X, k=1)
    np.testing.assert_allclose(top.scores[:, 0], full.max(axis=1), rtol=1e-3)


@pytest.mark.parametrize("recovery", ["inner", "cosine", "labels"])
@pytest.mark.parametrize("compression", ["svd", "neighbors"])
def test_every_combination_learns(
    data: Any, recovery: str, compression: str, tmp_path: Path
) -> None:
    model = lt.DECLARE(
        estimator="linear",
        n_components=40,
        compression=compression,
        recovery=recovery,
        n_pairs=20,
        n_steps=3,
    ).fit(data.train.X, data.train.Y)
    popular = (
        lt.baselines.Popularity().fit(data.train.X, data.train.Y).score(data.test.X, data.test.Y)
    )
    assert model.score(data.test.X, data.test.Y) > popular + 0.05
    model.save(tmp_path / "m")
    expected = model.predict_topk(data.test.X)
    assert lt.load(tmp_path / "m").predict_topk(data.test.X) == expected


def test_the_ceiling_is_reported(data: Any) -> None:
    model = lt.DECLARE(n_components=60, compression="svd")
    model.fit(data.train.X, data.train.Y)
    found = model.evaluate(data.test.X, data.test.Y)
    assert set(found) == {f"{w}precision@{k}" for w in ("", "oracle_") for k in (1, 3, 5)}
    assert found["precision@1"] == pytest.approx(model.score(data.test.X, data.test.Y))
    assert found["oracle_precision@1"] == pytest.approx(model.ceiling(data.test.Y))
    assert found["oracle_precision@1"] > found["precision@1"]


def test_estimators_by_name_and_by_example(data: Any) -> None:
    model = lt.DECLARE(estimator=Ridge(l2=3.0), n_components=5).fit(data.train.X, data.train.Y)
    assert model.estimator_.l2 == 3.0 and model.get_params()["estimator__l2"] == 3.0
    with pytest.raises(ValueError, match="estimator must be 'linear', 'network'"):
        lt.DECLARE(estimator=lt.OneVsAll()).fit(data.train.X, data.train.Y)
    with pytest.raises(ValueError, match="compression must be one of"):
        lt.DECLARE(compression="pca", estimator="linear").fit(data.train.X, data.train.Y)


@pytest.mark.skipif("LONGTAIL_DATA" not in os.environ, reason="LONGTAIL_DATA is not set")
def test_bibtex() -> None:
    """The default is better than the paper's method on the same estimator."""
    data = lt.load_dataset(Path(os.environ["LONGTAIL_DATA"]) / "Bibtex")
    X, Y = data.train.X, data.train.Y
    model = lt.DECLARE.as_published(n_components=100, estimator="linear").fit(X, Y)
    for recovery, bar in (("inner", 0.57), ("cosine", 0.61), ("labels", 0.615)):
        assert model.set_params(recovery=recovery).score(data.test.X, data.test.Y) > bar
    for c in (None, 100):
        assert lt.DECLARE(n_components=c).fit(X, Y).score(data.test.X, data.test.Y) > 0.635


def test_the_default_is_what_won() -> None:
    chosen = {"estimator": "linear", "compression": "neighbors", "targets": "unit"}
    chosen["recovery"] = "cosine"
    params = lt.DECLARE().get_params(deep=False)
    assert {name: params[name] for name in chosen} == chosen


def test_the_recipe_of_the_paper() -> None:
    """Algorithm and hyper-parameters as the paper has them; what it does not tell is left alone."""
    model = lt.DECLARE.as_published(n_components=100)
    params = model.get_params()
    assert (params["compression"], params["targets"], params["recovery"]) == (
        "svd",
        "codes",
        "inner",
    )
    assert params["n_components"] == 100 and params["n_neighbors"] == 25
    assert params["weights"] == "similarity" and isinstance(model.estimator, lt.Network)
    assert params["estimator__hidden"] == 256 and params["estimator__batch_size"] == 128
    assert params["estimator__learning_rate"] == 5e-4 and params["estimator__loss"] == "squared"
    assert lt.DECLARE.as_published(n_neighbors=3, recovery="labels").n_neighbors == 3
    assert type(lt.DECLARE.as_published(estimator="linear")) is lt.DECLARE
    with pytest.raises(TypeError, match="no parameter 'n_component'"):
        lt.DECLARE.as_published(n_component=3)


@pytest.mark.skipif("LONGTAIL_DATA" not in os.environ, reason="LONGTAIL_DATA is not set")
def test_the_recipe_learns_bibtex() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    data = lt.load_dataset(Path(os.environ["LONGTAIL_DATA"]) / "Bibtex")
    model = lt.DECLARE.as_published(n_components=100).fit(data.train.X, data.train.Y)
    assert model.score(data.test.X, data.test.Y) > 0.52


def test_the_recipe_votes_by_hand(data: Any) -> None:
    """The exact case of the paper's vote: Y of full rank, z = Z_0, two neighbours."""
    Y = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1]])
    model = lt.DECLARE.as_published(estimator=Ridge(l2=1e-6), n_neighbors=2).fit(np.eye(3), Y)
    top = model.predict_topk(np.eye(3)[:1], k=3)
    assert top.indices[0, :2].tolist() == [0, 1]
    np.testing.assert_allclose(top.scores[0, :2], [3, 2], rtol=1e-2)


def test_models_from_before_there_was_a_choice(tmp_path: Path) -> None:
    """The golden file has no targets: it was fitted to the codes, and stays so when refitted."""
    folder = Path(__file__).parents[1] / "persist" / "golden" / "v1" / "declare"
    model = lt.load(folder)
    params = model.get_params(deep=False)
    assert (params["compression"], params["targets"], params["recovery"]) == (
        "svd",
        "codes",
        "inner",
    )
    model.save(tmp_path / "again")
    assert lt.load(tmp_path / "again").targets == "codes"


def test_unit_targets_count_every_row_alike(data: Any) -> None:
    X, Y = data.train.X, data.train.Y
    model = lt.DECLARE(n_components=20, compression="svd", targets="unit").fit(X, Y)
    codes = model.code_.codes_
    lengths = np.linalg.norm(codes, axis=1, keepdims=True)
    wanted = np.divide(codes, lengths, out=np.zeros_like(codes), where=lengths > 0)
    expected = Ridge(n_jobs=None).fit(X, wanted)
    np.testing.assert_allclose(model.estimator_.coef_, expected.coef_, atol=1e-5)
    with pytest.raises(ValueError, match="targets must be one of codes, unit"):
        lt.DECLARE(estimator="linear", targets="none").fit(X, Y)


def test_an_estimator_of_other_sizes_is_refused(data: Any) -> None:
    X, Y = data.train.X, data.train.Y
    state = lt.DECLARE(estimator="linear", n_components=5).fit(X, Y)._get_state()
    for other in (Ridge().fit(X[:, :9], np.zeros((X.shape[0], 5))), Ridge().fit(X, Y.toarray())):
        state.parts["estimator"] = other._get_state()
        with pytest.raises(ModelFormatError, match="300 features and 5 outputs"):
            lt.DECLARE._from_state(state)
