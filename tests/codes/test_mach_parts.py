"""MACH in parts: what may be merged, and what a model keeps of how it was fitted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import longtail as lt
from longtail.codes import HashCode


@pytest.fixture(scope="module")
def data() -> Any:
    return lt.data.make_longtail(n=600, d=120, L=80, random_state=0)


def linear(**params: Any) -> lt.MACH:
    return lt.MACH(**{"estimator": "linear", "n_buckets": 20, "n_repetitions": 4, **params})


def test_models_that_do_not_belong_together_are_refused(data: Any) -> None:
    X, Y = data.train.X, data.train.Y
    first = linear().fit(X, Y, repetitions=[0, 1])
    for params, message in (
        ({"estimator": lt.OneVsAll(loss="logistic")}, "other parameters: .*estimator__loss"),
        ({"hashed_features": 64}, "other parameters: hashed_features"),
        ({"random_state": 5}, "other hashes"),
    ):
        with pytest.raises(ValueError, match=message):
            lt.MACH.merge([first, linear(**params).fit(X, Y, repetitions=[2, 3])])
    with pytest.raises(ValueError, match="repetition 1 was trained twice"):
        lt.MACH.merge([first, linear().fit(X[:300], Y[:300], repetitions=[1, 2])])
    with pytest.raises(TypeError, match="only MACH models"):
        lt.MACH.merge([first, lt.baselines.Popularity().fit(X, Y)])
    again = linear().fit(X, Y, repetitions=[1, 2, 3])  # the same repetition twice does no harm
    whole = linear().fit(X, Y)
    assert lt.MACH.merge([first, again]).predict_topk(X) == whole.predict_topk(X)


def test_names_of_any_part_are_kept(data: Any) -> None:
    X, Y = data.train.X, data.train.Y
    one, two = (linear().fit(X, Y, repetitions=[r]) for r in (0, 1))
    two.name_labels([f"l{i}" for i in range(80)])
    assert lt.MACH.merge([one, two]).label_names_ == two.label_names_
    one.name_labels([f"m{i}" for i in range(80)])
    with pytest.raises(ValueError, match="other names"):
        lt.MACH.merge([one, two])


def test_repetitions_and_codes_are_checked(data: Any) -> None:
    X, Y = data.train.X, data.train.Y
    for wrong in (["a"], [0.5], [True]):
        with pytest.raises(TypeError, match="repetitions must be whole numbers"):
            linear().fit(X, Y, repetitions=wrong)
    assert list(linear().fit(X, Y, repetitions=np.array([2, 0])).repetitions_) == [0, 2]
    with pytest.raises(TypeError, match="code must be a HashCode"):
        linear().fit(X, Y, code=5)
    with pytest.raises(ValueError, match="not fitted yet"):
        linear().fit(X, Y, code=HashCode())


def test_hashed_features_stay_as_they_were_fitted(data: Any, tmp_path: Path) -> None:
    X, Y = data.train.X, data.train.Y
    model = linear(hashed_features=32).fit(X, Y)
    expected = model.predict_topk(X)
    for later in (None, 99):
        assert model.set_params(hashed_features=later).predict_topk(X) == expected
    model.save(tmp_path / "m")
    assert lt.load(tmp_path / "m").predict_topk(X) == expected


@pytest.mark.parametrize("candidates", [None, 1])
def test_filters_hold_no_rows_by_labels(data: Any, candidates: int | None) -> None:
    """As many answers as are allowed, in the order of all; also where buckets are left out."""
    X, Y = data.train.X[:90], data.train.Y
    model = linear(aggregation="mean").fit(data.train.X, Y)
    full = model.predict_topk(X, k=80)
    model.set_params(candidates=candidates)
    lists = [[i % 80, (i * 7) % 80, 3] if i % 5 else None for i in range(90)]
    barred = [[0, 1, i % 80] for i in range(90)]
    for include, exclude in (([3, 4, 70], None), (None, [2, 9]), (lists, None), (lists, barred)):
        top = model.predict_topk(X, k=4, include=include, exclude=exclude)
        for i in range(90):
            yes = include[i] if include is lists else include
            no = (exclude[i] if exclude is barred else exclude) or []
            wanted = [j for j in full.indices[i] if (yes is None or j in yes) and j not in no][:4]
            assert [j for j in top.indices[i].tolist() if j >= 0] == wanted
    assert (model.predict_topk(X, k=3, include=[]).indices == -1).all()
    assert model.predict_topk(X[:0], k=3, include=[2]).indices.shape == (0, 3)


def test_a_filtered_search_asks_for_few_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    data = lt.data.make_longtail(n=300, d=60, L=5000, random_state=0)
    X = data.train.X
    model = linear(n_buckets=50).fit(X, data.train.Y)
    asked, decode = [], HashCode.decode

    def counted(self: HashCode, scores: Any, k: int, **how: Any) -> Any:
        asked.append((self.n_labels_, k))
        return decode(self, scores, k, **how)

    monkeypatch.setattr(HashCode, "decode", counted)
    model.predict_topk(X, k=2, include=[1, 2, 4000])
    model.predict_topk(X, k=2, exclude=[1, 2, 4000])
    assert asked == [(3, 2), (5000, 5)]
