"""What the pages say about the package is true."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import longtail

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
REFERENCE = "\n".join(page.read_text(encoding="utf-8") for page in DOCS.glob("reference/*.md"))
SOURCES = sorted((ROOT / "src" / "longtail").rglob("*.py"))


@pytest.mark.parametrize("room", ["", *sorted(longtail._ROOMS)])
def test_every_public_name_is_in_the_reference(room: str) -> None:
    module = importlib.import_module(f"longtail.{room}".rstrip("."))
    names = list(longtail._HOME) if module is longtail else module.__all__
    entry = r"^\.\. (?:auto(?:function|class|data)|data):: (?:[\w.]+\.)?(\w+)$"
    described = set(re.findall(entry, REFERENCE, re.M))
    for name in re.findall(r"^\.\. automodule:: ([\w.]+)\n(?!   :no-members:)", REFERENCE, re.M):
        described.update(importlib.import_module(name).__all__)
    assert not set(names) - described


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_between_files_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / target).exists(), f"{page} links to {target}, which does not exist"


def test_every_benchmark_is_on_its_page() -> None:
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    scripts = [*ROOT.glob("benchmarks/*.py"), *ROOT.glob("benchmarks/*/compare.py")]
    assert scripts
    for script in scripts:
        assert f"`{script.relative_to(ROOT).as_posix()}`" in page


def test_no_file_has_a_name_that_says_nothing() -> None:
    names = {path.stem for path in [*SOURCES, *(ROOT / "cpp").rglob("*.*")]}
    assert not names & {"utils", "util", "common", "misc", "helpers"}
