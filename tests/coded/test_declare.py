"""DECLARE and the regression behind it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse as sp

import longtail as lt
from longtail.coded import Ridge
from longtail.exceptions import ModelFormatError


@pytest.fixture(scope="module")
def data() -> Any:
    return lt.make_longtail(n=1200, d=300, L=150, random_state=0)


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
    model = lt.DECLARE(estimator="linear", n_components=20).fit(X, Y)
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
    popular = lt.Popularity().fit(data.train.X, data.train.Y).score(data.test.X, data.test.Y)
    assert model.score(data.test.X, data.test.Y) > popular + 0.05
    model.save(tmp_path / "m")
    expected = model.predict_topk(data.test.X)
    assert lt.load(tmp_path / "m").predict_topk(data.test.X) == expected


def test_the_ceiling_is_reported(data: Any) -> None:
    model = lt.DECLARE(estimator="linear", n_components=60, recovery="cosine")
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
    """A linear regressor at c = 100; the network of the paper does a little better."""
    data = lt.load_dataset(Path(os.environ["LONGTAIL_DATA"]) / "Bibtex")
    model = lt.DECLARE(n_components=100, estimator="linear").fit(data.train.X, data.train.Y)
    for recovery, bar in (("inner", 0.57), ("cosine", 0.61), ("labels", 0.615)):
        assert model.set_params(recovery=recovery).score(data.test.X, data.test.Y) > bar


def test_unit_targets_count_every_row_alike(data: Any) -> None:
    X, Y = data.train.X, data.train.Y
    model = lt.DECLARE(estimator="linear", n_components=20, targets="unit").fit(X, Y)
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
