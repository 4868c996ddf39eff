"""A saved model answers with the same bits, from mapped files, from memory, or from a pickle."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import longtail as lt
from longtail.exceptions import ModelFormatError
from longtail.testing.problems import Problem, features, shown

Make = Callable[..., Any]


@features
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("mmap", [True, False])
def test_round_trip(make: Make, problem: Problem, tmp_path: Path, mmap: bool, dense: bool) -> None:
    X = problem.X.toarray() if dense else problem.X
    model = make().fit(X, problem.Y)
    model.save(tmp_path / "m")
    found = lt.load(tmp_path / "m", mmap=mmap, verify=True)
    assert type(found) is type(model)
    assert shown(found) == shown(model)
    assert (found.n_features_in_, found.n_labels_) == (model.n_features_in_, model.n_labels_)
    for query in (X, problem.X, problem.X.toarray(), problem.X[:0]):
        assert found.predict_topk(query, k=20) == model.predict_topk(query, k=20)
    found.save(tmp_path / "again")  # and what was loaded saves to the same bytes
    for file in os.listdir(tmp_path / "m"):
        assert (tmp_path / "again" / file).read_bytes() == (tmp_path / "m" / file).read_bytes()
    assert found.fit(problem.X, problem.Y).predict_topk(problem.X) is not None


def test_overwriting(make: Make, problem: Problem, tmp_path: Path) -> None:
    model = make().fit(problem.X, problem.Y)
    model.save(tmp_path / "m")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        model.save(tmp_path / "m")
    mapped = lt.load(tmp_path / "m")
    expected = mapped.predict_topk(problem.X)
    mapped.save(tmp_path / "m", overwrite=True)
    assert mapped.predict_topk(problem.X) == expected
    assert lt.load(tmp_path / "m", verify=True).predict_topk(problem.X) == expected


def test_parameters_that_cannot_be_saved_are_named(
    make: Make, problem: Problem, tmp_path: Path
) -> None:
    model = make().fit(problem.X, problem.Y)
    for name in model.get_params(deep=False):
        before = getattr(model, name)
        model.set_params(**{name: object()})
        with pytest.raises(TypeError, match=name):
            model.save(tmp_path / "m")
        model.set_params(**{name: before})
    assert os.listdir(tmp_path) == []


def test_every_damaged_array_is_noticed(make: Make, problem: Problem, tmp_path: Path) -> None:
    make().fit(problem.X, problem.Y).save(tmp_path / "m")
    file = tmp_path / "m" / "arrays.bin"
    whole = file.read_bytes()
    for node in _nodes(json.loads((tmp_path / "m" / "manifest.json").read_bytes())):
        for name, record in node["arrays"].items():
            if record["bytes"]:
                at = record["offset"] + record["bytes"] - 1
                file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
                with pytest.raises(ModelFormatError, match=f"{name} in arrays.bin"):
                    lt.load(tmp_path / "m", verify=True)
    file.unlink()
    with pytest.raises(ModelFormatError, match=r"arrays.bin is missing"):
        lt.load(tmp_path / "m")


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for part in node["parts"].values():
        yield from _nodes(part)


def test_pickle_and_joblib(make: Make, problem: Problem, tmp_path: Path) -> None:
    import joblib

    model = make().fit(problem.X, problem.Y)
    expected = model.predict_topk(problem.X)
    model.save(tmp_path / "m")
    for fitted in (model, lt.load(tmp_path / "m")):
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            found = pickle.loads(pickle.dumps(fitted, protocol))
            assert found.predict_topk(problem.X) == expected
        joblib.dump(fitted, tmp_path / "m.joblib")
        for mode in (None, "r"):
            found = joblib.load(tmp_path / "m.joblib", mmap_mode=mode)
            assert found.predict_topk(problem.X) == expected
    assert shown(pickle.loads(pickle.dumps(make()))) == shown(make())
