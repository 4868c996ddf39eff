"""Public docstrings follow numpydoc: a Parameters section that names every parameter, typed."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import longtail as lt

OTHER = {"cli", "compat", "deep", "testing", "text"}  # programs, tests, and what needs torch
ROOMS = [m.name for m in pkgutil.iter_modules(lt.__path__) if m.ispkg and m.name not in OTHER]


def public() -> Iterator[tuple[str, Any]]:
    """Functions, classes and their methods that rooms and the package list."""
    rooms = [importlib.import_module(f"longtail.{room}") for room in ROOMS]
    for room in (lt, *rooms):
        for name in room.__all__:
            try:
                found = getattr(room, name)
            except ImportError:  # without torch
                continue
            if not getattr(found, "__module__", "").startswith("longtail."):
                continue
            title = f"{room.__name__}.{name}"
            if inspect.isfunction(found):
                yield title, found
            elif inspect.isclass(found):
                if not (dataclasses.is_dataclass(found) or issubclass(found, (Exception, tuple))):
                    yield title, found
                for key, member in inspect.getmembers(found):
                    function = getattr(member, "__func__", member)
                    ours = str(getattr(function, "__module__", "")).startswith("longtail.")
                    if inspect.isfunction(function) and ours and not key.startswith("_"):
                        yield f"{title}.{key}", function


def section(doc: str) -> str:
    found = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+$|\Z)", doc, re.S | re.M)
    return "" if found is None else found[1]


@pytest.mark.parametrize(
    ("title", "found"), list(public()), ids=lambda v: v if isinstance(v, str) else ""
)
def test_every_parameter_is_documented_with_its_type(title: str, found: Any) -> None:
    doc = inspect.getdoc(found) or ""
    assert doc, "no docstring"
    takes = [p for p in inspect.signature(found).parameters if p not in ("self", "cls")]
    entries = re.findall(r"^([*\w]+(?:, [*\w]+)*) : \S.*\n    \S", section(doc), re.M)
    named = {name.strip("* ") for entry in entries for name in entry.split(",")}
    if "All other parameters are those of" not in doc:
        assert set(takes) <= named, f"undocumented: {sorted(set(takes) - named)}"
    assert not takes or named <= set(takes), f"no such parameter: {sorted(named - set(takes))}"


def test_pages_show_sections_of_a_docstring() -> None:
    pages = runpy.run_path(str(Path(__file__).parents[1] / "docs" / "docstrings.py"))
    doc = inspect.getdoc(lt.data.Dataset) or ""
    examples = doc[doc.index(">>>") :].splitlines()
    shown = pages["to_rest"](doc.splitlines())
    assert shown[shown.index("**Examples**") + 2 :] == [*examples, ""]
    assert shown[shown.index("``sha256``") + 1].startswith("    str, default=None")
