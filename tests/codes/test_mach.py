"""MACH: what it equals, what it adds up to, and what can be done to it after training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse as sp

import longtail as lt
from longtail.codes import HashCode


@pytest.fixture(scope="module")
def data() -> Any:
    return lt.data.make_longtail(n=1200, d=300, L=150, random_state=0)


def linear(**params: Any) -> lt.MACH:
    return lt.MACH(
        **{"estimator": "linear", "n_buckets": 30, "n_repetitions": 4, "random_state": 1, **params}
    )


def test_an_injective_hash_is_one_vs_all(data: Any) -> None:
    X, Y = data.train.X, data.train.Y
    identity = HashCode.from_table(np.arange(Y.shape[1]).reshape(-1, 1), Y.shape[1])
    same = linear(aggregation="logits").fit(X, Y, code=identity)
    twin = lt.OneVsAll(random_state=same.repetitions_[0].random_state).fit(X, Y)
    assert same.predict_topk(data.test.X, k=10) == twin.predict_topk(data.test.X, k=10)
    # Any injective table. Renamed labels have another seed, which shows only above the optimum.
    precise = lt.OneVsAll(tolerance=1e-4, max_iter=5000)
    table = np.random.default_rng(0).permutation(200)[: Y.shape[1]].reshape(-1, 1)
    other = linear(aggregation="logits", estimator=precise)
    other.fit(X, Y, code=HashCode.from_table(table, 200))
    found, expected = (m.predict_topk(data.test.X, k=10) for m in (other, precise.fit(X, Y)))
    np.testing.assert_allclose(found.scores, expected.scores, atol=2e-3)
    assert (found.indices == expected.indices).mean() > 0.99


def test_scores_are_the_mean_over_the_buckets_of_a_label(data: Any) -> None:
    model = linear(aggregation="mean").fit(data.train.X, data.train.Y)
    raw = model.bucket_scores(data.test.X)
    assert raw.shape == (data.test.X.shape[0], 4, 30)
    values = np.exp(-(np.maximum(0, 1 - raw.astype(np.float64)) ** 2))
    full = np.mean([values[:, r, model.code_.table_[:, r]] for r in range(4)], axis=0)
    top = model.predict_topk(data.test.X, k=3)
    np.testing.assert_allclose(top.scores, -np.sort(-full, axis=1)[:, :3], rtol=1e-5)


def test_repetitions_trained_apart_give_the_same_model(data: Any, tmp_path: Path) -> None:
    X, Y = data.train.X, data.train.Y
    whole = linear().fit(X, Y)
    apart = [linear().fit(X, Y, repetitions=part) for part in ([0, 2], [1], [3])]
    assert apart[0].missing_repetitions_ == [1, 3]
    for i, model in enumerate(apart):  # through files, as from other machines
        model.save(tmp_path / str(i))
    merged = lt.MACH.merge([lt.load(tmp_path / str(i)) for i in (2, 0, 1)])
    assert merged.missing_repetitions_ == []
    assert merged.predict_topk(data.test.X) == whole.predict_topk(data.test.X)
    assert apart[0].predict_topk(data.test.X, k=2).k == 2  # a part answers with what it has
    with pytest.raises(ValueError, match="other hashes"):
        lt.MACH.merge([whole, linear(random_state=2).fit(X, Y)])
    with pytest.raises(ValueError, match="repetitions must lie between 0 and 3"):
        linear().fit(X, Y, repetitions=[4])


def test_several_processes_give_the_same_model(data: Any) -> None:
    from joblib import parallel_config

    X, Y = data.train.X, data.train.Y
    expected = linear(n_jobs=1).fit(X, Y).predict_topk(data.test.X)
    with parallel_config("loky", n_jobs=2):
        found = linear(n_jobs=1).fit(X, Y).predict_topk(data.test.X)
    assert found == expected


def test_labels_that_share_all_buckets_tie(data: Any) -> None:
    model = linear(n_buckets=5, n_repetitions=2).fit(data.train.X, data.train.Y)
    labels, firsts = model.code_.twins()
    assert model.code_.n_ties_ == len(labels) >= 150 - 25
    scores = model.predict_topk(data.test.X[:1], k=150).to_csr().toarray()[0]
    np.testing.assert_array_equal(scores[labels], scores[firsts])


def test_hashed_features_differ_by_repetition(data: Any, tmp_path: Path) -> None:
    model = linear(hashed_features=64).fit(data.train.X, data.train.Y)
    assert {m.n_features_in_ for m in model.repetitions_.values()} == {64}
    assert len(set(model.feature_seeds_.tolist())) == 4
    popular = (
        lt.baselines.Popularity().fit(data.train.X, data.train.Y).score(data.test.X, data.test.Y)
    )
    assert model.score(data.test.X, data.test.Y) > popular
    model.save(tmp_path / "m")
    expected = model.predict_topk(data.test.X)
    assert lt.load(tmp_path / "m").predict_topk(data.test.X) == expected
    assert model.predict_topk(data.test.X.toarray()) == expected


def test_adding_labels_needs_no_training(data: Any, tmp_path: Path) -> None:
    X, Y = data.train.X, data.train.Y
    old, new = np.arange(120), np.arange(120, 150)
    model = linear(n_buckets=60).fit(X, Y[:, old])
    before = model.predict_topk(data.test.X, k=120)
    weights = model.repetitions_[0].coef_
    hashed = linear(n_buckets=60).fit(X, Y[:, old]).add_labels(30)
    assert hashed.n_labels_ == 150
    after = hashed.predict_topk(data.test.X, k=150)
    kept = [[i for i in row if i < 120] for row in after.indices.tolist()]
    assert kept == before.indices.tolist()  # the others stay as they were
    assert (hashed.repetitions_[0].coef_ != weights).nnz == 0
    rows = np.flatnonzero(np.diff(Y[:, new].indptr))
    placed = model.add_labels(X[rows], Y[rows][:, new], Y_old=Y[rows][:, old])
    truth = sp.hstack([sp.csr_matrix((data.test.X.shape[0], 120)), data.test.Y[:, new]]).tocsr()

    def recall(m: lt.MACH) -> float:
        top = m.predict_topk(data.test.X, k=20).to_csr(binary=True)
        return float(top.multiply(truth).sum() / truth.sum())

    assert recall(placed) > recall(hashed)
    placed.save(tmp_path / "m")
    loaded = lt.load(tmp_path / "m")
    assert loaded.predict_topk(data.test.X) == placed.predict_topk(data.test.X)


def test_names_of_added_labels(data: Any) -> None:
    X, Y = data.train.X, data.train.Y
    model = linear(n_buckets=60).fit(X, Y).name_labels([f"l{i}" for i in range(Y.shape[1])])
    with pytest.raises(ValueError, match="missing for the new labels"):
        model.add_labels(2)
    with pytest.raises(ValueError, match="one per new label"):
        model.add_labels(2, names=["a"])
    model.add_labels(2, names=["a", "b"])
    assert list(model.label_names_)[-2:] == ["a", "b"]
    assert lt.MACH.merge([model]).label_names_ == model.label_names_
    with pytest.raises(ValueError, match="missing for the old labels"):
        linear(n_buckets=60).fit(X, Y).add_labels(1, names=["a"])


def test_a_label_without_rows_is_hashed(data: Any) -> None:
    X, Y = data.train.X, data.train.Y
    hashed = linear(n_buckets=60).fit(X, Y).add_labels(2).code_.table_[-2:]
    new = [[1] if i == 0 else [] for i in range(X.shape[0])]
    model = linear(n_buckets=60).fit(X, Y).add_labels(X, new, negatives=(X[:3], Y[:3]))
    np.testing.assert_array_equal(model.code_.table_[-2], hashed[0])
    model = linear(n_buckets=60).fit(X, Y).add_labels(X[:0], Y[:0, :2])
    np.testing.assert_array_equal(model.code_.table_[-2:], hashed)


def test_rows_of_new_labels_are_read_in_parts(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y, new = data.train.X, data.train.Y[:, :120], data.train.Y[:, 120:]
    model = linear().fit(X, Y)
    state = model._get_state()
    whole = model.add_labels(X[:500], new[:500], negatives=(X[500:], Y[500:])).code_.table_
    monkeypatch.setattr("longtail.codes.growing.CHUNK", 1)
    parts = lt.MACH._from_state(state)
    parts.add_labels(X[:500], new[:500], negatives=(X[500:], Y[500:]))
    np.testing.assert_array_equal(parts.code_.table_, whole)
    with pytest.raises(TypeError, match="pair"):
        parts.add_labels(X[:500], new[:500], negatives=X[500:])


def test_one_label_per_row() -> None:
    data = lt.data.make_longtail(n=1500, d=300, L=60, random_state=1)
    rows = np.split(data.train.Y.indices, data.train.Y.indptr[1:-1])
    classes = np.array([row[0] if len(row) else 0 for row in rows])
    model = linear(n_buckets=24, estimator=lt.OneVsAll(loss="logistic"), aggregation="mean")
    model.fit(data.train.X, classes)
    assert model.score(data.train.X, classes) > 0.3
    proba = model.predict_proba_topk(data.test.X, k=3).scores
    assert ((proba >= 0) & (proba <= 1)).all()
    with pytest.raises(ValueError, match="unbiased"):
        linear(aggregation="unbiased").fit(data.train.X, classes)


def test_probabilities_only_where_they_are(data: Any) -> None:
    assert not hasattr(linear().fit(data.train.X, data.train.Y), "predict_proba_topk")


def test_candidate_decoding_comes_close(data: Any) -> None:
    model = linear(n_repetitions=6, n_buckets=60, aggregation="mean").fit(
        data.train.X, data.train.Y
    )
    exact = model.score(data.test.X, data.test.Y, k=1)
    assert model.set_params(candidates=20).score(data.test.X, data.test.Y, k=1) > exact - 0.05


def test_refusals(data: Any) -> None:
    X, Y = data.train.X, data.train.Y
    with pytest.raises(ValueError, match="estimator must be 'linear', 'network'"):
        linear(estimator="tree").fit(X, Y)
    with pytest.raises(ValueError, match="aggregation must be one of"):
        linear(aggregation="max").fit(X, Y)
    with pytest.raises(ValueError, match="the code has 3 labels"):
        linear().fit(X, Y, code=HashCode(n_buckets=2, n_repetitions=1).fit(3))
    with pytest.raises(TypeError, match="fine_tune needs networks"):
        linear().fit(X, Y).fine_tune(X, Y)
    with pytest.raises(ValueError, match="nothing to merge"):
        lt.MACH.merge([])
