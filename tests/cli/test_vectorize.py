"""``longtail vectorize``, and training from what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_cases import run, write_tickets

import longtail as lt


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    lines = write_tickets(tmp_path / "all.jsonl").read_text().splitlines(keepends=True)
    for i in range(3):
        (tmp_path / f"part-{i}.jsonl").write_text("".join(lines[50 * i : 50 * i + 50]))
    return [tmp_path / f"part-{i}.jsonl" for i in range(3)]


def test_train_from_shards_is_train_from_the_file(files: list[Path], tmp_path: Path) -> None:
    done = run("vectorize", *files, "-o", tmp_path / "rows", "--json")
    assert json.loads(done.stdout)["rows"] == 150
    how = ("--test-size", 0, "--memory-limit", "2GB")
    run("train", tmp_path / "rows", "-o", tmp_path / "a", *how)
    run("train", tmp_path / "all.jsonl", "-o", tmp_path / "b", *how)
    asked = ["paper jam", "wifi password", ""]
    one, other = lt.load(tmp_path / "a"), lt.load(tmp_path / "b")
    assert one.predict(asked) == other.predict(asked)
    assert one.vectorizer_.get_params() == other.vectorizer_.get_params()


def test_rows_are_set_aside_and_measured(files: list[Path], tmp_path: Path) -> None:
    run("vectorize", *files, "-o", tmp_path / "rows", "--ngram-range", "1,2")
    done = run("train", tmp_path / "rows", "-o", tmp_path / "model")
    assert "On 15 rows it had not seen" in done.stdout
    assert lt.load(tmp_path / "model").vectorizer_.ngram_range == (1, 2)
    evaluated = run("evaluate", tmp_path / "model", tmp_path / "all.jsonl", "--json")
    assert json.loads(evaluated.stdout)["metrics"]["P@1"]["value"] > 0.9


def test_messages(files: list[Path], tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    assert "No such file" in run("vectorize", "none.jsonl", "-o", rows, code=2).stderr
    assert (
        "no field 'title2'"
        in run("vectorize", *files, "-o", rows, "--text-column", "title2", code=2).stderr
    )
    run("vectorize", *files, "-o", rows)
    assert "--overwrite" in run("vectorize", *files, "-o", rows, code=2).stderr
    refused = run("train", rows, "-o", tmp_path / "m", "--text-column", "title", code=2)
    assert "--text-column has no meaning" in refused.stderr
    refused = run("train", rows, "-o", tmp_path / "m", "--min-df", 1, code=2)
    assert "--min-df is for texts" in refused.stderr
