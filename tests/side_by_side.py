"""The whole suite in several processes, for ``make sanitize``: ``python tests/side_by_side.py``.

Every folder of tests is a process of its own, as are the files of large folders; two run at a time,
or as many as ``LONGTAIL_TEST_JOBS`` says. A line tells how each ended, with all that it printed
where tests failed. Arguments are paths to run instead; other options go to pytest.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

ROOT = Path(__file__).parents[1]
BY_FILE = ("contract", "text", "serve", "fuzz")  # folders of which some files take minutes
NOTHING_COLLECTED = 5
LIMIT = 3600  # seconds: a process that takes longer hangs


def parts() -> list[list[str]]:
    """Return the paths of each process, those that take long first."""
    files = sorted(ROOT.glob("tests/*/test_*.py"))
    alone = [[str(file)] for file in files if file.parent.name in BY_FILE]
    folders = sorted({str(file.parent) for file in files if file.parent.name not in BY_FILE})
    single = [str(file) for file in sorted(ROOT.glob("tests/test_*.py"))]
    examples = [["src"], ["README.md", "docs"]]
    return [*alone, *examples, *([folder] for folder in folders), single]


def run(paths: list[str], options: list[str]) -> tuple[int, str, float]:
    begin = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, *paths],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:  # what it has started ends too, and lets go of the pipe
            os.killpg(process.pid, signal.SIGKILL)
            output = process.communicate()[0] + f"\nnot done after {LIMIT} s"
    return process.returncode, output, time.perf_counter() - begin


def main(arguments: list[str]) -> int:
    options = [argument for argument in arguments if argument.startswith("-")]
    paths = [[argument] for argument in arguments if not argument.startswith("-")]
    jobs = int(os.environ.get("LONGTAIL_TEST_JOBS", "2"))
    failed = []
    with ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(run, each, options): each for each in paths or parts()}
        for task in as_completed(running):
            name = " ".join(os.path.relpath(path, ROOT) for path in running[task][:2])
            code, output, seconds = task.result()
            last = output.strip().splitlines()[-1:] or ["nothing printed"]
            print(f"{name}: {last[0]} ({seconds:.0f} s, code {code})", flush=True)
            if code not in (0, NOTHING_COLLECTED):
                failed.append(name)
                print(output, flush=True)
    print(f"{len(running) - len(failed)} of {len(running)} parts passed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
