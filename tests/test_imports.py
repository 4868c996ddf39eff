"""The rooms of the house and who may import whom: one direction, checked by reading the source."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import longtail

PACKAGE = Path(longtail.__file__).parent
KERNELS = Path(__file__).parents[1] / "cpp" / "kernels"

# From the ground up: a room may import those above it in the table of the page on architecture.
PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
TABLE = PAGE.read_text(encoding="utf-8").partition("\n| room ")[2].partition("\n\n")[0]
ROOMS = re.findall(r"^\| `(\w+)` +\|", TABLE, re.MULTILINE)
FLOOR = {room: floor for floor, room in enumerate(ROOMS)}

# Slow to import or optional: only inside the function that needs them.
SLOW = ("scipy.optimize", "scipy.stats", "scipy.linalg")  # a quarter of a second or more
HEAVY = {
    "jinja2",
    "markupsafe",
    "matplotlib",
    "pandas",
    "polars",
    "pyarrow",
    "sklearn",
    "torch",
    "transformers",
}
WEB = {"aiohttp", "django", "fastapi", "flask", "http.server", "starlette", "tornado", "uvicorn"}
# May be imported at the top of these rooms.
AT_HOME = {
    "torch": ("deep", "text"),
    "transformers": ("deep", "text"),
    "fastapi": ("serve",),
    "starlette": ("serve",),
    "uvicorn": ("serve",),
    "pandas": ("testing",),
}

NAMED = re.compile(r"longtail\.(\w+)(\.\w+)*(:\w+)?")  # a module named in a string, to import later


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Every module that a file imports, anywhere in it, by its full name."""
    package = ["longtail", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield node.lineno, module
            if module == "longtail":
                yield from ((node.lineno, f"longtail.{alias.name}") for alias in node.names)
        elif room_of(path) == "_models":  # its table names every room: a model is loaded by its tag
            continue
        elif isinstance(node, ast.Constant) and NAMED.fullmatch(str(node.value)):
            yield node.lineno, str(node.value).partition(":")[0]


def top_level_imports(path: Path) -> Iterator[tuple[int, str]]:
    """What runs when the module is imported: not the bodies of functions, not type checking."""
    pending: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.lineno, node.module
        pending.extend(ast.iter_child_nodes(node))


SOURCES = sorted(PACKAGE.rglob("*.py"))


def test_every_room_has_its_place() -> None:
    assert len(SOURCES) > 100 and len(ROOMS) == len(set(ROOMS))
    assert {room_of(path) for path in SOURCES} - {"__init__"} == set(ROOMS), PAGE


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path: Path) -> None:
    room = room_of(path)
    if room == "__init__":
        assert not [name for _, name in imports(path) if name.startswith("longtail")]
        return
    for line, name in imports(path):
        parts = name.split(".")
        if parts[0] != "longtail" or len(parts) == 1 or parts[1] == room:
            continue
        if parts[1] == "_core":
            assert room == "_native", f"{path}:{line}: only _native imports _core"
        elif parts[1] in FLOOR:  # others are names of the package, such as longtail.TopK
            assert FLOOR[parts[1]] < FLOOR[room], f"{path}:{line}: {room} may not import {parts[1]}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_heavy_packages_are_imported_where_they_are_used(path: Path) -> None:
    for line, name in top_level_imports(path):
        package = name.partition(".")[0]
        assert not name.startswith(SLOW), f"{path}:{line}: import {name} lazily"
        if package in HEAVY | WEB or name in WEB:
            at_home = room_of(path) in AT_HOME.get(package, ())
            assert at_home, f"{path}:{line}: import {name} lazily"


def loaded_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*sorted(sys.modules), sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_import_longtail_is_light() -> None:
    loaded = loaded_after("import longtail")
    assert "longtail" in loaded
    assert not loaded & (HEAVY | WEB | {"numpy", "scipy"}), "names are loaded on first use"


def test_public_names_are_light() -> None:
    """Even when every public name is used: none of these is needed before it is called."""
    code = "import longtail\nfor name in longtail._HOME: getattr(longtail, name)"
    loaded = loaded_after(code)
    assert {"numpy", "scipy.sparse"} <= loaded
    assert not loaded & (HEAVY | WEB)


def test_scikit_learn_is_not_needed() -> None:
    code = """
import sys
sys.modules["sklearn"] = None  # importing it is an error
import tempfile
import longtail as lt
data = lt.data.make_longtail(n=200, d=50, L=20, n_test=50, random_state=0)
model = lt.XRLinear().fit(data.train.X, data.train.Y).calibrate(data.test.X, data.test.Y)
lt.evaluate(data.test.Y, model.predict_proba_topk(data.test.X), train_Y=data.train.Y)
try:
    lt.OneVsAll().predict_topk(data.test.X)
except lt.base.NotFittedError:
    pass
tagger = lt.Tagger().fit(["paper jam", "log in"] * 10, [["printer"], ["login"]] * 10)
with tempfile.TemporaryDirectory() as folder:
    tagger.save(folder + "/model")
    assert lt.load(folder + "/model", mmap=False).predict(["paper"], k=1)[0][0][0] == "printer"
"""
    assert "sklearn.base" not in loaded_after(code)


def test_kernels_know_no_python() -> None:
    if not KERNELS.is_dir():
        pytest.skip("the C++ sources are not here")
    for path in sorted(KERNELS.rglob("*.[hc]*")):
        for line in path.read_text().splitlines():
            if line.lstrip().startswith("#include"):
                assert not re.search(r"Python\.h|nanobind|bindings/|pybind|numpy", line), path


def test_rooms_of_kernels_stand_on_base_alone() -> None:
    if not KERNELS.is_dir():
        pytest.skip("the C++ sources are not here")
    rooms = sorted(path.name for path in KERNELS.iterdir())
    assert rooms == ["base", "codes", "decide", "fusion", "linear", "outputs", "text", "tree"]
    for room in rooms:
        assert "```text" in (KERNELS / room / "README.md").read_text(), "a page draws the layout"
        for path in sorted((KERNELS / room).glob("*.[hc]*")):
            included = re.findall(r'#include "kernels/(\w+)/', path.read_text())
            assert {*included} <= {"base", room}, path


def test_no_name_hides_its_module() -> None:
    """``longtail.report.compare`` is a function or a module: one of them could not be reached."""
    for path in PACKAGE.rglob("__init__.py"):
        beside = {each.stem for each in path.parent.glob("*.py")}
        beside |= {each.name for each in path.parent.iterdir() if (each / "__init__.py").exists()}
        tree = ast.parse(path.read_text(encoding="utf-8"))
        froms = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        bound = {alias.asname or alias.name for node in froms for alias in node.names}
        bound |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert not bound & beside, f"{path} binds the names of modules: {bound & beside}"
