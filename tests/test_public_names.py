"""The public face: few names at the top, the rest in rooms, old names that warn."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import longtail

PACKAGE = Path(longtail.__file__).parent
# What outside programs rely on: these never leave the top.
RELIED_ON = [
    "BlockCoordinateAscent",
    "DECLARE",
    "DataFormatError",
    "DualEncoder",
    "FrankWolfe",
    "JainPropensity",
    "MACH",
    "MissingDependencyError",
    "ModelFormatError",
    "OneVsAll",
    "Tagger",
    "TextNetwork",
    "Tfidf",
    "UniDEC",
    "XRLinear",
    "XRTransformer",
    "augment",
    "evaluate",
    "load",
    "load_dataset",
    "metrics",
    "read_xc",
    "write_xc",
]


def test_names_are_listed_and_found() -> None:
    assert set(longtail._HOME) <= set(longtail.__all__) == set(dir(longtail))
    for name in longtail._HOME:
        assert getattr(longtail, name).__name__ == name
    for name in longtail._ROOMS:
        assert getattr(longtail, name).__name__ == f"longtail.{name}"
    with pytest.raises(AttributeError, match="no attribute 'Popularty'"):
        longtail.Popularty  # noqa: B018


def test_the_face_is_small_and_keeps_what_programs_rely_on() -> None:
    assert len(longtail._HOME) <= 27
    assert set(RELIED_ON) <= set(longtail.__all__)
    assert not {*longtail._HOME, *longtail._ROOMS} & {*longtail._MOVED, *longtail._MOVED_ROOMS}
    assert not [name for name in longtail.__all__ if re.match("_[^_]", name)]


def test_the_stub_says_what_the_package_does() -> None:
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    homes = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            home = (node.module or "").removeprefix("longtail").lstrip(".")
            homes.update({alias.name: home for alias in node.names})
        elif isinstance(node, ast.Assign):
            listed = ast.literal_eval(node.value)
    assert homes == {**longtail._HOME, **dict.fromkeys(longtail._ROOMS, "")}
    assert listed == longtail.__all__


@pytest.mark.parametrize("name", sorted(longtail._MOVED))
def test_moved_names_work_and_warn_every_time(name: str) -> None:
    home = f"longtail.{longtail._MOVED[name]}"
    value = getattr(importlib.import_module(home), name)
    for _ in range(2):
        with pytest.warns(DeprecationWarning, match=rf"has moved to {home}\.{name};") as said:
            assert getattr(longtail, name) is value
        assert said[0].filename == __file__
    assert name not in longtail.__all__


@pytest.mark.parametrize("room", sorted(longtail._MOVED_ROOMS))
@pytest.mark.parametrize(
    "use",
    ["import longtail; longtail.{0}.__all__", "from longtail.{0} import *", "import longtail.{0}"],
)
def test_moved_rooms_work_and_warn(room: str, use: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", use.format(room)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.search(rf"DeprecationWarning: longtail\.{room} .*goes in 0\.2", done.stderr)


@pytest.mark.parametrize("name", ["TopK", "Vocabulary"])
def test_what_left_data_is_found_there_with_a_warning(name: str) -> None:
    home = r"longtail\.answers"
    with pytest.warns(DeprecationWarning, match=rf"has moved to {home}\.{name}; .* 0\.2") as said:
        assert getattr(longtail.data, name) is getattr(longtail.answers, name)
    assert said[0].filename == __file__ and name not in longtail.data.__all__
    with pytest.raises(AttributeError, match="has no attribute 'Topk'"):
        longtail.data.Topk  # noqa: B018


def test_the_changelog_lists_every_name_that_has_moved() -> None:
    text = (Path(__file__).parents[1] / "CHANGELOG.md").read_text(encoding="utf-8")
    old = [*longtail._MOVED, *longtail._MOVED_ROOMS]
    missing = [name for name in old if not re.search(rf"`(lt\.)?{re.escape(name)}\b", text)]
    assert old and not missing
