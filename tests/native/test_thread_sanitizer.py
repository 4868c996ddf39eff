"""The threaded kernels, without Python, under the thread sanitizer: ``make tsan``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from driver_output import differing

ROOT = Path(__file__).parents[2]
DRIVER = ROOT / "build" / "tsan" / "threads"
COMPILER = os.environ.get("CXX", "c++")

RACE = """
#include <thread>
int shared = 0;
int main() {
  std::thread first([] { for (int i = 0; i < 1000; ++i) ++shared; });
  std::thread second([] { for (int i = 0; i < 1000; ++i) ++shared; });
  first.join();
  second.join();
}
"""


@pytest.fixture(scope="module")
def sanitizer(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skips unless programs can be built with the sanitizer here, and it finds a plain race."""
    if sys.platform != "linux" or not shutil.which(COMPILER) or not shutil.which("make"):
        pytest.skip("needs Linux, make and a C++ compiler")
    if "LD_PRELOAD" in os.environ:
        pytest.skip("another sanitizer is loaded")
    folder = tmp_path_factory.mktemp("race")
    (folder / "race.cpp").write_text(RACE)
    command = [COMPILER, "-fsanitize=thread", "-pthread", "race.cpp", "-o", "race"]
    if subprocess.run(command, cwd=folder, capture_output=True).returncode:
        pytest.skip(f"{COMPILER} has no thread sanitizer")
    fixed = ["setarch", "-R"] if shutil.which("setarch") else []
    found = subprocess.run([*fixed, folder / "race"], capture_output=True, text=True)
    if "data race" not in found.stderr:
        pytest.skip(f"the thread sanitizer does not work here: {found.stderr[:200]}")


def test_no_kernel_races(sanitizer: None) -> None:
    if not DRIVER.exists():
        pytest.skip("the driver is not built, which takes minutes: run `make tsan` once")
    done = subprocess.run([ROOT / "tests/native/run.sh"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-8000:]
    assert "0 failed" in done.stdout and "WARNING: ThreadSanitizer" not in done.stderr
    assert not differing(done.stdout)


# Called by kernels that have a case: by fit_tfidf, transform_tfidf, train_level and beam_search.
INNER = {"merge", "order_terms", "write_csr", "numa_nodes", "search_block", "Team"}


def test_every_threaded_kernel_has_a_case() -> None:
    """Every function of a kernel header that is told a number of threads is called by a case."""
    cases = "".join(path.read_text() for path in (ROOT / "tests/native").glob("*.cpp"))
    threaded = {
        name
        for path in (ROOT / "cpp/kernels").glob("*/*.h")
        for name in re.findall(
            r"(\w+)\([^()]*\bint n_threads\b", re.sub("//.*", "", path.read_text())
        )
    }
    missing = {name for name in threaded - INNER if not re.search(rf"\b{name}(?: \w+)?\(", cases)}
    assert len(threaded) > 40 and not missing, missing


def test_no_threads_are_started_outside_the_kernels() -> None:
    """Where no case could drive them."""
    for path in (ROOT / "cpp/bindings").iterdir():
        assert not re.search(r"parallel_(for|blocks)\(|\bTeam\b|std::thread", path.read_text()), (
            path
        )
