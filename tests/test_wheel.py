"""The wheel that ``make dist`` makes: its tag, and its use where nothing can be compiled.

It is built in ``build/wheel``, which keeps the objects: only the first time takes minutes.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from importlib import metadata, util
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
SCRIPTS = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])

USE = """
import sys
import longtail as lt

texts = ["paper jam in tray", "cannot log in", "toner and paper", "password and log in"] * 5
labels = [["printer"], ["account"], ["printer"], ["account"]] * 5
tagger = lt.Tagger().fit(texts, labels)
assert tagger.predict(["the paper jam"], k=1)[0][0][0] == "printer"
tagger.save(sys.argv[1])
assert lt.load(sys.argv[1]).predict(["log in"], k=1)[0][0][0] == "account"
print(lt.__file__)
"""


def missing_tools() -> list[str]:
    modules = ("auditwheel", "nanobind", "pip", "scikit_build_core")
    programs = ("cmake", "ninja", "patchelf", os.environ.get("CXX", "c++"))
    return [name for name in modules if not util.find_spec(name)] + [
        name for name in programs if not shutil.which(name, path=SCRIPTS)
    ]


def run(*command: object, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PATH": SCRIPTS, **environment},
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if platform.system() != "Linux":
        pytest.skip("auditwheel is a tool for Linux")
    if "LD_PRELOAD" in os.environ:
        pytest.skip("a sanitizer is loaded")
    if missing := missing_tools():
        pytest.skip(f"needs {', '.join(missing)}")
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    options = ("--no-deps", "--no-index", "--no-build-isolation")
    build = f"--config-settings=build-dir={ROOT / 'build' / 'wheel'}"
    run(*pip, "wheel", *options, build, "-w", folder, ROOT)
    (built,) = folder.glob("*.whl")
    run(sys.executable, "-m", "auditwheel", "repair", "-w", folder / "repaired", built)
    (repaired,) = (folder / "repaired").glob("*.whl")
    return repaired


def test_it_runs_with_this_c_library_and_older_ones(wheel: Path) -> None:
    tags = re.findall(r"manylinux_2_(\d+)_", wheel.name)
    major, minor = platform.libc_ver()[1].split(".")[:2]
    assert tags and major == "2" and min(map(int, tags)) <= int(minor), wheel.name


def test_it_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"longtail"}
    assert len([name for name in names if name.endswith(".so")]) == 1
    assert "longtail/py.typed" in names and "longtail/serve/static/page.html" in names
    templates = {path.name for path in (ROOT / "src" / "longtail" / "templates").iterdir()}
    assert {f"longtail/templates/{name}" for name in templates} <= set(names)
    assert not [name for name in names if name.endswith((".cpp", ".h", ".a", ".pyc"))]


def link_dependencies(wheel: Path, site: Path) -> None:
    """Links the packages that the wheel requires, as pip would install them, but offline."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        required = Parser().parsestr(archive.read(name).decode()).get_all("Requires-Dist") or []
    seen: set[str] = set()
    while required:
        requirement = Requirement(required.pop())
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        package = metadata.distribution(requirement.name)
        if package.name in seen:
            continue
        seen.add(package.name)
        required += package.requires or []
        for top in {file.parts[0] for file in package.files or []} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(package.locate_file(top))


def test_it_works_where_nothing_can_be_compiled(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "empty")
    python = tmp_path / "empty" / "bin" / "python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(run(python, "-I", "-c", code).strip())
    run(
        sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel
    )
    link_dependencies(wheel, site)
    bare = {"PATH": str(python.parent), "CC": "false", "CXX": "false", "PYTHONPATH": ""}
    assert not shutil.which("c++", path=bare["PATH"])
    where = run(python, "-c", USE, tmp_path / "model", **bare)
    assert Path(where.strip()).is_relative_to(site)
    assert run(python.with_name("longtail"), "--version", **bare).startswith("longtail ")
