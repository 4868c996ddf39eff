"""Who may import whom: the table of rooms in docs/architecture.md, kept true."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "longtail"

# A room may import the rooms that stand before it in the table of the docs, and nothing else.
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("\n| room ")[2].partition("\n\n")[0]
ORDER = re.findall(r"^\| `(\w+)` +\|", TABLE, re.MULTILINE)

# Packages that take long to import, or may be missing: only inside the function that needs them.
LAZY = {"fastapi", "joblib", "matplotlib", "pandas", "polars", "pyarrow", "sklearn", "torch"}

MODULES = sorted(SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> list[tuple[int, str]]:
    """Line and dotted name of everything imported; ``from longtail import x`` is ``longtail.x``."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write imports in full"
            names = [f"longtail.{alias.name}" for alias in node.names]
            found += [(node.lineno, name) for name in names] if node.module == "longtail" else []
            found += [(node.lineno, node.module or "")] if node.module != "longtail" else []
    return found


def at_import_time(tree: ast.Module) -> ast.Module:
    """The module without its functions and without what only type checkers read."""

    class Strip(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
            return None

        def visit_If(self, node: ast.If) -> ast.AST | None:
            return None if "TYPE_CHECKING" in ast.unparse(node.test) else self.generic_visit(node)

    return Strip().visit(ast.parse(ast.unparse(tree)))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_what_stands_before_it(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    room = room_of(path)
    if room == "__init__":  # the front door finds rooms by name, on first use
        assert not [name for _, name in imports(tree) if name.startswith("longtail")]
        return
    assert room in ORDER, f"{room} is a new room: give it a place in docs/architecture.md"
    for line, name in imports(tree):
        if name.split(".")[0] != "longtail":
            continue
        target = name.split(".")[1]
        if target == "_core":
            assert room == "_native", f"{path}:{line}: only _native may import the compiled core"
        elif target not in (room, "__version__"):
            assert ORDER.index(target) < ORDER.index(room), (
                f"{path}:{line}: {room} must not import {target}"
            )


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_heavy_packages_are_imported_where_they_are_used(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    packages = {name.split(".")[0] for _, name in imports(tree)}
    early = {name.split(".")[0] for _, name in imports(at_import_time(tree))}
    if room_of(path) == "deep":
        early.discard("torch")
    else:
        assert "torch" not in packages, f"{path}: torch lives only in longtail.deep"
    assert not early & LAZY, f"{path} imports {early & LAZY} when it is loaded"


def test_every_room_of_the_table_exists() -> None:
    rooms = {room_of(path) for path in MODULES} - {"__init__"}
    assert set(ORDER) == rooms, "the table of rooms in docs/architecture.md is out of date"


def test_importing_longtail_is_quick_and_light() -> None:
    code = (
        "import sys, time; begin = time.perf_counter(); import longtail; "
        "print(time.perf_counter() - begin, *sys.modules)"
    )
    best = 9.0
    for _ in range(3):  # the first one may have to read everything from a cold disk
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        seconds, *modules = out.stdout.decode().split()
        best = min(best, float(seconds))
        assert not {name.split(".")[0] for name in modules} & LAZY
    assert best < 0.5, f"import longtail takes {best:.2f} s"


def test_kernels_know_nothing_of_python() -> None:
    for path in (ROOT / "cpp" / "kernels").iterdir():
        text = path.read_text(encoding="utf-8")
        assert not re.search(r'#include\s*[<"](Python\.h|nanobind|.*bindings/)', text), path


def test_no_file_has_a_name_that_says_nothing() -> None:
    names = {path.stem for path in [*MODULES, *(ROOT / "cpp").rglob("*.*")]}
    assert not names & {"utils", "util", "common", "misc", "helpers"}
