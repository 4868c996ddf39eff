"""A ranker from outside: the example of docs/own-models.md, saved, and under contract."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import longtail as lt
from longtail.base import Ranker
from longtail.exceptions import ModelFormatError

PAGE = Path(__file__).parents[2] / "docs" / "own-models.md"
TEST = """
import pytest
from acme import Centroids
from longtail.testing.contract import *

@pytest.fixture
def ranker():
    return Centroids
"""


def example() -> str:
    """The module of the page, as a file."""
    block = re.search(r"```python\n(>>> import numpy.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert block
    return "\n".join(re.sub(r"^(>>>|\.\.\.) ?", "", line) for line in block[1].splitlines())


def under_contract(folder: Path, module: str) -> tuple[int, str]:
    (folder / "acme.py").write_text(module)
    (folder / "test_centroids.py").write_text(TEST)
    source = str(Path(lt.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "test_centroids.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([source, *filter(None, sys.path)])},
    )
    return done.returncode, done.stdout


def test_the_example_keeps_the_contract(tmp_path: Path) -> None:
    code, said = under_contract(tmp_path, example())
    found = re.search(r"(\d+) passed", said)
    assert code == 0 and found and int(found[1]) > 100, said


def test_a_ranker_that_breaks_it_is_found(tmp_path: Path) -> None:
    broken = example().replace("from_scores(scores, k)", "from_scores(scores, k + 1)")
    code, said = under_contract(tmp_path, broken)
    assert code == 1 and "1 failed" in said


def test_an_unregistered_model_says_what_to_import(tmp_path: Path) -> None:
    space: dict[str, object] = {"__name__": "acme"}
    exec(example().replace("acme-centroids", "acme-others"), space)
    model = space["Centroids"]().fit(np.eye(3), [[0], [1], [2]])  # type: ignore[operator]
    model.save(tmp_path / "m")
    ask = "import longtail as lt, sys; lt.load(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", ask, str(tmp_path / "m")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(lt.__file__).parents[1])},
    )
    assert "unknown type of model 'acme-others'" in done.stderr
    assert "imported first" in done.stderr
    assert lt.load(tmp_path / "m").predict_topk(np.eye(3), k=1).indices[:, 0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("tag", ["", "Acme", "acme centroids", "a" * 81, "../x", None, "xr-linear"])
def test_tags_that_are_refused(tag: object) -> None:
    with pytest.raises(ValueError, match="tag"):
        lt.register_ranker(tag)  # type: ignore[arg-type]


def test_a_tag_belongs_to_one_class() -> None:
    class One(Ranker):
        pass

    class Two(Ranker):
        pass

    assert lt.register_ranker("acme-one")(One) is One and One.type_tag == "acme-one"
    lt.register_ranker("acme-one")(One)  # a cell that is run again
    with pytest.raises(ValueError, match=r"taken by .*One"):
        lt.register_ranker("acme-one")(Two)
    with pytest.raises(TypeError, match="Ranker"):
        lt.register_ranker("acme-two")(dict)  # type: ignore[type-var]


def test_a_tagger_around_an_unregistered_ranker_is_refused() -> None:
    class Mine(Ranker):
        type_tag = "acme-unknown"

        def _fit(self, X, Y):
            pass

    with pytest.raises(TypeError, match="register_ranker"):
        lt.Tagger(model=Mine()).fit(["a", "b"], [["x"], ["y"]])
    assert issubclass(ModelFormatError, ValueError)
