"""Models written by every released version of the format still load, and answer as they did."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import make_golden
import numpy as np
import pytest
from model_files import same

import longtail as lt
from longtail.base import Ranker
from longtail.persist import load, save
from longtail.persist.manifest import VERSION

TEXT_MODELS = ("text-network", "xr-transformer", "dual-encoder", "unidec")
VERSIONS = sorted(make_golden.FOLDER.glob("v*"))
CASES = [
    pytest.param(folder, name, id=f"{folder.name}-{name}")
    for folder in VERSIONS
    for name in json.loads((folder / "answers.json").read_text())
]


def test_there_is_one_folder_for_every_version() -> None:
    assert [folder.name for folder in VERSIONS] == [f"v{i + 1}" for i in range(VERSION)]


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize(("folder", "name"), CASES)
def test_old_models_answer_as_they_did(folder: Path, name: str, mmap: bool) -> None:
    if name in TEXT_MODELS and not make_golden.HAS_TORCH:
        pytest.skip("torch is not installed")
    model = lt.load(folder / name, mmap=mmap, verify=True)
    expected = json.loads((folder / "answers.json").read_text())[name]
    top = model.predict_topk(make_golden.queries(model), k=3)
    np.testing.assert_array_equal(top.indices, expected["indices"])
    scores = np.array(expected["scores"], dtype=float)
    np.testing.assert_allclose(top.scores, scores, rtol=0 if name in make_golden.EXACT else 1e-5)


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_all_of_a_version(folder: Path, mmap: bool) -> None:
    found = load(folder / "everything", verify=True, mmap=mmap)
    assert same(found, make_golden.everything())


def test_a_front_asks_its_shards_as_it_did() -> None:
    """Together they answer as the tree that was cut."""
    folder = make_golden.FOLDER / "v2"
    front = lt.load(folder / "sharded", verify=True)
    front.use([lt.load(folder / f"shard-{i}", verify=True) for i in range(2)])
    expected = json.loads((folder / "answers.json").read_text())["xr-linear"]
    top = front.predict_topk(make_golden.QUERIES, k=3)
    np.testing.assert_array_equal(top.indices, expected["indices"])
    np.testing.assert_allclose(top.scores, np.array(expected["scores"], dtype=float), rtol=1e-5)


def test_every_kind_of_ranker_has_a_golden_file() -> None:
    golden = {model.type_tag for model in (*make_golden.models().values(), make_golden.front())}
    for tag, home in lt._models.TABLE.items():
        module, _, name = home.partition(":")
        if issubclass(getattr(importlib.import_module(module), name), Ranker):
            known = tag in golden or (tag in TEXT_MODELS and not make_golden.HAS_TORCH)
            assert known, f"add {name} to make_golden.py and run it"


@pytest.mark.parametrize("name", [*make_golden.EXACT, "everything"])
def test_the_same_bytes_are_written_today(name: str, tmp_path: Path) -> None:
    """Saving is a function of the state: the golden files of this version come out again."""
    if name == "everything":
        save(tmp_path / name, make_golden.everything())
    else:
        make_golden.models()[name].save(tmp_path / name)
    golden = make_golden.FOLDER / f"v{VERSION}" / name
    for file in golden.iterdir():
        if file.name != "manifest.json" or lt.__version__ == "0.1.0":  # which names the version
            assert (tmp_path / name / file.name).read_bytes() == file.read_bytes()
