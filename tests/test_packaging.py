"""Extras, pins and the source tree agree."""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

import longtail

ROOT = Path(__file__).parents[1]
PINS = {
    re.split(r"==|;", line)[0].strip()
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if line and not line.startswith("#")
}


ENGINES = {"ray", "dask", "spark"}  # hundreds of megabytes each: `make engines` installs them


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def read_pyproject() -> dict:
    tomllib = pytest.importorskip("tomllib", reason="tomllib comes with Python 3.11")
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def extras() -> dict[str, list[str]]:
    return read_pyproject()["project"]["optional-dependencies"]


def within(extra: str) -> set[str]:
    """The extra and those it includes."""
    found = {extra}
    for requirement in extras()[extra]:
        inner = re.match(r"longtail\[([\w,]+)\]", requirement)
        for name in inner[1].split(",") if inner else []:
            found |= within(name)
    return found


def test_setup_installs_every_extra() -> None:
    assert within("dev") == set(extras()) - ENGINES


def test_all_is_everything_a_user_may_want() -> None:
    assert within("all") == set(extras()) - {"test", "peers", "docs", "dev"} - ENGINES


def test_everything_required_is_pinned() -> None:
    required = [*read_pyproject()["project"]["dependencies"]]
    for requirements in extras().values():
        required += requirements
    names = {normal(re.match(r"[\w.-]+", requirement)[0]) for requirement in required}
    assert names - {"longtail"} <= PINS


def test_pins_install_on_the_first_release_of_this_python() -> None:
    """Distributions carry an early 3.x.y for years; pip refuses what asks for a later one."""
    first = f"3.{sys.version_info.minor}.0"
    for package in metadata.distributions():
        if normal(package.name) in PINS:
            needed = package.metadata["Requires-Python"] or ""
            assert SpecifierSet(needed).contains(first), f"{package.name} needs Python {needed}"


def test_one_version() -> None:
    assert read_pyproject()["project"]["version"] == longtail.__version__
    assert metadata.version("longtail") == longtail.__version__


def test_constraints_name_versions_and_nothing_else() -> None:
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        pin = re.fullmatch(r'[a-z0-9-]+==[\w.+]+(; python_version (<|>=) "3\.\d+")?', line)
        assert pin or line.startswith("#"), line
