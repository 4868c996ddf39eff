"""The tutorial, followed to the letter: its script, then its commands."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli_cases import environment

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"


@pytest.mark.skipif(shutil.which("bash") is None, reason="the commands are for a shell")
def test_every_command_works(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    script = re.search(r"```python\n(import csv.*?)```", text, re.DOTALL)
    assert script
    subprocess.run([sys.executable, "-c", script[1]], cwd=tmp_path, check=True)
    commands = [
        line
        for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
        for line in block.splitlines()
    ]
    assert len(commands) == 6
    ours = f"{shlex.quote(sys.executable)} -m longtail "
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", re.sub(r"\blongtail (?=[a-z])", lambda _: ours, command)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env=environment(),
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert done.stdout.strip()
        assert "trained on" not in done.stdout + done.stderr  # the page measures on other rows
    assert (tmp_path / "report.html").exists() and (tmp_path / "model").is_dir()
