"""The tutorial, followed to the letter: its commands, and what they print."""

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
BLOCK = re.compile(r"```(sh|text)\n(.*?)```", re.DOTALL)


@pytest.mark.skipif(shutil.which("bash") is None, reason="the commands are for a shell")
def test_every_command_prints_what_the_page_shows(tmp_path: Path) -> None:
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    ours = f"{shlex.quote(sys.executable)} -m longtail "
    n_shown = 0
    said = ""
    for i, (kind, text) in enumerate(blocks):
        if kind == "sh":
            command = re.sub(r"\blongtail (?=[a-z])", lambda _: ours, text)
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                env=environment(),
            )
            assert done.returncode == 0, f"{text}\n{done.stderr}"
            assert "trained on" not in done.stdout + done.stderr  # it measures on other rows
            said = done.stdout
        elif i and blocks[i - 1][0] == "sh" and "sample" not in blocks[i - 1][1]:
            n_shown += 1
            assert_shown(text, said)
    assert n_shown == 6 and len([kind for kind, _ in blocks if kind == "sh"]) == 8
    assert (tmp_path / "report.html").exists() and (tmp_path / "model").is_dir()


def assert_shown(shown: str, said: str) -> None:
    """The lines shown are printed, one after the other; numbers may differ a little, seconds a lot:
    another processor rounds in another way.
    """
    number = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?")
    said = re.sub(r"after [\d.]+ s", "after 4.9 s", said)
    kinds = [" ".join(number.sub("#", line).split()) for line in said.splitlines()]
    for line in shown.splitlines():
        kind = " ".join(number.sub("#", line).split())
        assert kind in kinds, f"{line!r} is not in\n{said}"
        place = kinds.index(kind)
        for a, b in zip(
            number.findall(line), number.findall(said.splitlines()[place]), strict=True
        ):
            theirs, ours = float(a.replace(",", "")), float(b.replace(",", ""))
            assert abs(theirs - ours) <= max(0.02 * abs(theirs), 2e-3), (line, said)
        del kinds[: place + 1]
        said = "\n".join(said.splitlines()[place + 1 :])


def test_the_pictures_are_there_and_small() -> None:
    root = PAGE.parents[1]
    found = 0
    for page in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        for name in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            picture = page.parent / name
            assert picture.is_file(), f"{page.name}: {name}"
            assert picture.stat().st_size < 100_000, name
            found += "pictures" in name
    assert found >= 5


def test_the_sample_is_whole_and_never_overwrites(tmp_path: Path) -> None:
    from longtail.cli import main
    from longtail.data import load_dataset

    assert main(["sample", str(tmp_path / "here")]) == 0
    data = load_dataset(tmp_path / "here" / "diagnoses.csv", label_separator=";")
    new = load_dataset(tmp_path / "here" / "new-diagnoses.csv", label_separator=";")
    assert len(data.train.texts) == 735 and data.n_labels == 481 and len(new.train.texts) == 57
    assert set(new.label_names) <= set(data.label_names)
    assert not set(new.train.texts) & set(data.train.texts)
    (tmp_path / "here" / "codes.tsv").write_text("mine")
    assert main(["sample", str(tmp_path / "here")]) == 2
    assert (tmp_path / "here" / "codes.tsv").read_text() == "mine"
