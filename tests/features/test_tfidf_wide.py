"""Hashing to very many columns takes memory for the terms that occur, not for the columns."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import longtail as lt

TEXTS = ["rare labels matter", "labels with few texts", "rare texts, rare labels"] * 5
MOST = 2**31 - 1

NARROW = """
import json, resource, sys
import longtail as lt
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (400 << 20),) * 2)
texts, folder = json.loads(sys.argv[1]), sys.argv[2]
vectorizer = lt.Tfidf(n_features=2**31 - 1)
X = vectorizer.fit_transform(texts)
assert (X != vectorizer.transform(texts)).nnz == 0
vectorizer.save(folder)
assert (X != lt.load(folder).transform(texts)).nnz == 0
print(json.dumps([list(X.shape), X.data.tolist()]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_most_columns_fit_into_little_memory(tmp_path) -> None:
    """Dense arrays would take 17 GB; the process may have 400 MB more than it starts with."""
    done = subprocess.run(
        [sys.executable, "-c", NARROW, json.dumps(TEXTS), str(tmp_path / "m")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    shape, values = json.loads(done.stdout)
    assert shape == [15, MOST]
    kept = lt.Tfidf().fit_transform(TEXTS)
    assert len(values) == kept.nnz
    np.testing.assert_allclose(np.sort(values), np.sort(kept.data), rtol=1e-6)
    assert sum(file.stat().st_size for file in (tmp_path / "m").iterdir()) < 5000


@pytest.mark.parametrize("n_features", [50, 1 << 20])
@pytest.mark.parametrize("min_df", [0.0, 1, 2])
def test_one_text_and_many_agree(n_features: int, min_df: float) -> None:
    vectorizer = lt.Tfidf(n_features=n_features, min_df=min_df, max_df=0.9).fit(TEXTS)
    new = [*TEXTS, "words that never occurred, and labels"]
    X = vectorizer.transform(new)
    for i, text in enumerate(new):
        columns, values = vectorizer.transform_one(text)
        np.testing.assert_array_equal(columns, X[i].indices)
        np.testing.assert_array_equal(values, X[i].data)


def test_a_model_with_an_idf_for_every_column_still_loads() -> None:
    """As they were saved before, 0 for the columns left out."""
    vectorizer = lt.Tfidf(n_features=64).fit(TEXTS)
    state = vectorizer._get_state()
    dense = np.zeros(64, np.float32)
    dense[vectorizer.columns_] = vectorizer.idf_
    state.arrays, state.meta = {"idf": dense}, {}
    old = lt._models.from_state(state)
    assert (old.transform(TEXTS) != vectorizer.transform(TEXTS)).nnz == 0


@pytest.mark.parametrize(
    ("columns", "other", "message"),
    [
        ([3, 2], 0.0, "ascend"),
        ([1, 1], 0.0, "ascend"),
        ([-1, 2], 0.0, "ascend"),
        ([0, 64], 0.0, "ascend"),
        ([1, 2, 3], 0.0, "'idf'"),
        ([1, 2], -1.0, "other_idf"),
        ([1, 2], None, "other_idf"),
    ],
)
def test_forged_columns_are_refused(columns: list[int], other: object, message: str) -> None:
    state = lt.Tfidf(n_features=64).fit(TEXTS)._get_state()
    state.arrays = {"columns": np.array(columns, np.int32), "idf": np.ones(2, np.float32)}
    state.meta["other_idf"] = other
    with pytest.raises(lt.exceptions.ModelFormatError, match=message):
        lt._models.from_state(state)
