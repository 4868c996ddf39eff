"""What the command line says: in flags, within 80 columns, before the work and not after it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from cli_cases import environment, longtail_command, run, write_tickets

from longtail.cli import main
from longtail.cli.app import app
from longtail.cli.flags import in_flags

COMMANDS = [command.name for command in app.registered_commands]


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_fits_80_columns(command: str | None) -> None:
    ask = longtail_command(*([] if command is None else [command]), "--help")
    done = subprocess.run(ask, capture_output=True, env={**environment(), "COLUMNS": "80"})
    text = done.stdout.decode()
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in re.sub(r", …", "", text)  # no word is cut off
    assert "\\[" not in text and "Usage" in text
    assert not re.search(r"\w-\n", text.split("Options:")[-1])  # nor a flag broken at its hyphen
    # Sentences are filled, not cut where the source has its line ends.
    first = text.split("\n\n")[1].strip().splitlines()
    assert all(len(line) > 55 for line in first[:-1])


def test_options_stand_under_their_headings() -> None:
    text = run("train", "--help").stdout
    places = [text.index(t) for t in ("Arguments:", "Options:", "Where the data comes from:")]
    assert places == sorted(places) and places[2] < text.index("--text-column")
    assert "Everyday:" in run("--help").stdout


def test_train_tells_four_things_in_short(tmp_path: Path) -> None:
    data = write_tickets(tmp_path / "tickets.jsonl")
    done = run("train", data, "-o", tmp_path / "model")
    assert max(map(len, done.stdout.splitlines())) < 80 or len(str(tmp_path)) > 60
    said = re.sub(r"\n  ", " ", done.stdout).splitlines()
    assert [line.partition(" ")[0] for line in said] == ["Model:", "On", "Rare", "Next:"]
    assert "3 labels, learned from 150 rows" in said[0]
    assert re.search(r"On 15 rows it had not seen: \d+\.\d % \(\d+\.\d to 100\.0\)", said[1])
    assert "longtail serve" in said[3]
    full = run("train", data, "-o", tmp_path / "model", "--overwrite", "--full").stdout
    assert full.index("Next:") < full.index("Head to tail")
    unmeasured = run("train", data, "-o", tmp_path / "other", "--test-size", 0).stdout
    assert "Not measured" in unmeasured


def test_rows_with_nothing_in_them_are_counted(tmp_path: Path) -> None:
    rows = [{"text": "paper jam", "labels": ["printer"]}, {"text": "log in", "labels": ["login"]}]
    rows = [*rows * 10, {"text": " ", "labels": ["login"]}, {"text": "wifi", "labels": []}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = run("train", tmp_path / "a.jsonl", "-o", tmp_path / "m").stderr
    assert "1 of 22 texts are empty" in said and "1 of 22 rows have no label" in said


def test_messages_name_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "semicolons.csv").write_text("text;labels\n" + "paper jam;a\n" * 12)
    (tmp_path / "marks.csv").write_text("text,labels\n" + "paper jam,a;b\n" * 12)
    (tmp_path / "plain.csv").write_text("text,labels\n" + "paper jam,a\nlog in,b\n" * 12)
    assert main(["train", str(tmp_path / "semicolons.csv"), "-o", str(tmp_path / "m")]) == 2
    said = capsys.readouterr().err
    assert "pass --delimiter ';'" in said and "--text-column and --label-column" in said
    assert "_" not in said.rpartition("semicolons.csv")[2]
    said = run("datasets", tmp_path / "marks.csv").stderr
    assert "pass --label-separator ';'" in said
    done = run("train", tmp_path / "plain.csv", "-o", tmp_path / "m", "--label-separator", ";")
    assert "warning: --label-separator ';' stands in no cell of 'labels'" in done.stderr


def test_flags_of_arguments() -> None:
    assert in_flags("n_jobs=3, random_state=0, overwrite=True, calibrate=False") == (
        "--jobs 3, --seed 0, --overwrite, --no-calibrate"
    )
    assert in_flags("no column 'text_column'") == "no column 'text_column'"
    assert in_flags("my_text_column=3, text_columns") == "my_text_column=3, text_columns"


def test_datasets_takes_the_options_of_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("body\tx\nthe cat\tred|blue\n")
    ask = ("datasets", tmp_path / "a.csv", "--delimiter", "\\t", "--text-column", "body")
    found = json.loads(run(*ask, "--label-column", "x", "--label-separator", "|", "--json").stdout)
    assert found["n_labels"] == 2
    assert "needs the name" in run("datasets", "--label-column", "x", code=2).stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "DATA", "-o", "m", "--report", "nowhere/r.html"],
        ["evaluate", "m", "DATA", "--report", "."],
        ["compare", "DATA", "--report", "nowhere/r.html"],
        ["tradeoff", "m", "DATA", "--plot", "nowhere/p.svg"],
        ["inspect", "m", "--report", "nowhere/r.html"],
        ["audit", "DATA", "-o", "nowhere/missing.csv"],
        ["audit", "DATA", "-o", "missing.xls"],
        ["tune", "DATA", "--journal", "nowhere/j.jsonl"],
        ["train", "DATA", "-o", "FILE/m"],
    ],
)
def test_output_paths_are_checked_before_the_work(
    arguments: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The data is not there, and yet the path is what is complained about."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FILE").write_text("")
    assert main([part.replace("DATA", "no-such-data.csv") for part in arguments]) == 2
    said = capsys.readouterr().err
    assert "no-such-data" not in said and said.count("\n") == 1
    assert re.search("no folder|is a folder|end the name|no folder to write to", said)
