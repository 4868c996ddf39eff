"""Answers that join back to the texts, and answers of other systems, by name."""

from __future__ import annotations

import csv
import gzip
import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from cli_cases import TOPICS, run

import longtail as lt
from longtail.cli import main

NAMES = sorted(TOPICS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A semicolon table with odd names, a model of it, and later rows."""
    folder = tmp_path_factory.mktemp("joining")
    for name, n in (("tickets.csv", 120), ("later.csv", 40)):
        with open(folder / name, "w", newline="") as file:
            table = csv.writer(file, delimiter=";")
            table.writerow(["id", "body", "tags", "team"])
            for i in range(n):
                names = [NAMES[i % 3], NAMES[(i // 3) % 3]]
                words = " ".join(TOPICS[one] for one in names)
                row = f"T{n + i}", words, "|".join(dict.fromkeys(names)), f"team {i % 2}, {i}"
                table.writerow(row)
    options = ["--text-column", "body", "--label-column", "tags", "--label-separator", "|"]
    run("train", folder / "tickets.csv", "-o", folder / "model", *options, "--delimiter", ";")
    return folder


def predict(folder: Path, output: str, *options: object, code: int = 0) -> Any:
    ask = ("predict", folder / "model", folder / "later.csv", "-k", 2, "-o", folder / output)
    return run(*ask, *options, code=code)


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a file in any format, labels as lists of names."""
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    if ".jsonl" in path.name:
        found = [json.loads(line) for line in text.splitlines()]
        return [
            {**row, "labels": [item["label"] for item in row["labels"]]}
            | {"scores": [item["score"] for item in row["labels"]]}
            for row in found
        ]
    mark = "\t" if ".tsv" in path.name else ","
    return [
        {**row, "labels": row["labels"].split("|")}
        | {"scores": [float(score) for score in row["scores"].split("|")]}
        for row in csv.DictReader(text.splitlines(), delimiter=mark)
    ]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet", "a.csv.gz"])
def test_answers_join_back_in_every_format(folder: Path, name: str) -> None:
    predict(folder, name, "--id-column", "id", "--keep", "team", "--overwrite")
    found = rows_of(folder / name)
    with open(folder / "later.csv") as file:
        asked = list(csv.DictReader(file, delimiter=";"))
    assert [(row["id"], row["team"]) for row in found] == [(r["id"], r["team"]) for r in asked]
    tagger = lt.load(folder / "model")
    for row, answer in zip(found, tagger.predict([r["body"] for r in asked], k=2), strict=True):
        assert row["labels"] == [label for label, _ in answer]
        assert row["scores"] == pytest.approx([score for _, score in answer], abs=1e-5)


def test_one_row_per_answer(folder: Path) -> None:
    predict(folder, "long.csv", "--id-column", "id", "--per-label")
    long = pd.read_csv(folder / "long.csv")
    assert list(long.columns) == ["id", "rank", "label", "score"] and len(long) == 80
    assert list(long["rank"][:4]) == [1, 2, 1, 2]
    predict(folder, "numbered.csv")
    assert pd.read_csv(folder / "numbered.csv")["row"].tolist() == list(range(40))


def test_a_kept_column_keeps_its_name(folder: Path) -> None:
    predict(folder, "truth.jsonl", "--keep", "tags,id")
    with open(folder / "later.csv") as file:
        table = file.read().replace("tags", "labels").replace("team", "scores", 1)
    (folder / "renamed.csv").write_text(table)
    ask = ("predict", folder / "model", folder / "renamed.csv", "-k", 1)
    done = run(*ask, "--keep", "labels,scores", "-f", "csv", "--delimiter", ";")
    first = next(csv.DictReader(done.stdout.splitlines()))
    assert first["labels"] == "login" and first["scores"] == "team 0, 0"
    assert first["predicted_labels"] == "login" and 0 < float(first["predicted_scores"]) <= 1


def test_nothing_is_overwritten_in_silence(folder: Path) -> None:
    predict(folder, "once.csv")
    before = (folder / "once.csv").read_bytes()
    assert "--overwrite" in predict(folder, "once.csv", code=2).stderr
    assert (folder / "once.csv").read_bytes() == before
    predict(folder, "once.csv", "--overwrite")
    told = predict(folder, "later.csv", "--overwrite", code=2).stderr
    assert "holds the texts" in told and (folder / "later.csv").stat().st_size > 1000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "answers.txt"], "does not tell the format"),
        (["-o", "nowhere/answers.csv"], "there is no folder"),
        (["-f", "parquet"], "--output"),
        (["--id-column", "number"], "no column 'number'"),
        (["-f", "csv", "--label-separator", "o"], "'login' has 'o' in its name"),
    ],
)
def test_what_cannot_be_written_is_refused(
    folder: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["predict", str(folder / "model"), str(folder / "later.csv"), *options]
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def test_the_model_remembers_how_its_data_was_read(folder: Path) -> None:
    """No column, separator or delimiter is repeated; what is said counts."""
    done = run("evaluate", folder / "model", folder / "later.csv", "--json")
    assert json.loads(done.stdout)["data"]["n_positives"] == 67 and "warning" not in done.stderr
    run("tradeoff", folder / "model", folder / "later.csv", "--steps", 2)
    with open(folder / "later.csv") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    (folder / "later.jsonl").write_text(
        "".join(json.dumps({"body": r["body"], "tags": r["tags"]}) + "\n" for r in rows)
    )
    again = run("evaluate", folder / "model", folder / "later.jsonl", "--json")
    assert json.loads(again.stdout)["metrics"] == json.loads(done.stdout)["metrics"]
    refused = run("evaluate", folder / "model", folder / "later.csv", "--label-column", "x", code=2)
    assert "no column 'x'" in refused.stderr


@pytest.mark.parametrize(
    "name", ["p.csv", "p.tsv", "p.jsonl", "p.parquet", "long.csv", "l.parquet"]
)
def test_scoring_answers_by_name_agrees_with_the_model(folder: Path, name: str) -> None:
    long = ["--per-label"] if name.startswith("l") else []
    predict(folder, f"by-{name}", "--id-column", "id", "-k", 5, "--label-separator", ";", *long)
    own = json.loads(run("evaluate", folder / "model", folder / "later.csv", "--json").stdout)
    # In another order, and with an answer to a text that is not asked about.
    with open(folder / "later.csv") as file:
        table = list(csv.DictReader(file, delimiter=";"))
    truth = folder / "truth.csv"
    with open(truth, "w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["labels", "id"])
        lines.writerows((row["tags"].replace("|", ";"), row["id"]) for row in table[1:][::-1])
    ask = ("evaluate", "--predictions", folder / f"by-{name}", truth, "--id-column", "id")
    done = run(*ask, "--json")
    assert "1 answers are for other texts" in done.stderr
    found = json.loads(done.stdout)
    assert found["data"]["n_rows"] == 39
    assert found["metrics"]["P@1"]["value"] == pytest.approx(
        own["metrics"]["P@1"]["value"], abs=0.03
    )
    assert found["metrics"]["R@3"]["value"] == 1.0


def test_scoring_row_by_row_and_from_head_to_tail(folder: Path, tmp_path: Path) -> None:
    truth, answers, train = (tmp_path / name for name in ("t.jsonl", "p.jsonl", "train.jsonl"))
    truth.write_text('{"labels": ["a", "b"]}\n{"labels": ["c"]}\n{"labels": []}\n')
    answers.write_text(
        '{"labels": ["a", "x"]}\n{"labels": [["b", 0.9], ["c", 0.1]]}\n{"labels": []}\n'
    )
    train.write_text('{"labels": ["a"]}\n{"labels": ["a", "c"]}\n')
    report = tmp_path / "r.html"
    ask = ("evaluate", "--predictions", answers, truth, "-k", "1,2", "--train", train)
    found = json.loads(run(*ask, "--report", report, "--json").stdout)
    assert found["metrics"]["P@1"]["value"] == pytest.approx(1 / 3)
    assert found["metrics"]["R@2"]["value"] == pytest.approx((1 / 2 + 1) / 3)
    assert found["data"]["n_labels"] == 4 and found["data"]["n_train_rows"] == 2
    assert "PSP@1" in found["metrics"] and "p.jsonl" in report.read_text()


@pytest.mark.parametrize(
    ("answers", "options", "message"),
    [
        ('{"labels": ["a"]}\n', [], "answers 1 texts and"),
        ('{"id": 9, "labels": ["a"]}\n', ["--id-column", "id"], "answers none of the 2 texts"),
        ('{"id": 1, "labels": []}\n' * 2, ["--id-column", "id"], "the id '1' occurs twice"),
        ('{"labels": ["a", "a"]}\n' * 2, [], "answered twice"),
        ('{"labels": [1.5]}\n' * 2, [], "labels: expected"),
        ('{"answer": ["a"]}\n' * 2, [], "expected a column labels"),
        ('{"label": "a"}\n' * 2, [], "--id-column"),
        ('{"row": 0, "label": "a", "score": "x"}\n', [], "score: expected a number"),
    ],
)
def test_odd_predictions_are_refused(
    tmp_path: Path,
    answers: str,
    options: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "t.jsonl").write_text('{"id": 1, "labels": ["a"]}\n{"id": 2, "labels": ["b"]}\n')
    (tmp_path / "p.jsonl").write_text(answers)
    ask = ["evaluate", "--predictions", str(tmp_path / "p.jsonl"), str(tmp_path / "t.jsonl")]
    assert main([*ask, *options]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def test_a_model_and_predictions_are_not_mixed(folder: Path) -> None:
    told = run("evaluate", folder / "model", "x.csv", "--predictions", "y.csv", code=2).stderr
    assert "give DATA alone" in told
    assert "--predictions" in run("evaluate", folder / "model", code=2).stderr


def test_audit_lists_what_was_dropped(tmp_path: Path) -> None:
    """A third of the texts lose a label that their words still tell."""
    rows, dropped = [], set()
    for i in range(240):
        names = [NAMES[i % 3], NAMES[(i + 1) % 3]]
        text = " ".join(TOPICS[name] for name in names)
        if i % 6 == 0:
            dropped.add((f"T{i}", names.pop(0)))
        rows.append({"id": f"T{i}", "text": text, "labels": names})
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ask = ("audit", tmp_path / "data.jsonl", "--id-column", "id")
    output, page = tmp_path / "missing.csv", tmp_path / "audit.html"
    done = run(*ask, "-o", output, "--report", page, "-n", 40)
    assert "labels are missing" in done.stdout and "Next:" in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 80
    found = pd.read_csv(output)
    assert len(found) == 40 and "<html" in page.read_text()
    right = {(row.row, row.label) in dropped for row in found.itertuples()}
    assert right == {True} and found["missing"].is_monotonic_decreasing
    assert "--overwrite" in run(*ask, "-o", output, code=2).stderr
    assert json.loads(run(*ask, "--json").stdout)["missing"][0]["probability"] > 0


def test_frames_in_python() -> None:
    texts = ["paper jam", "log in"] * 5
    tagger = lt.Tagger().fit(texts, [["printer"], ["login"]] * 5)
    asked = pd.Series(["paper", "log", ""], index=[7, 7, 3])
    found = tagger.predict(asked, k=2, threshold=0.4, as_frame=True)
    plain = tagger.predict(asked, k=2, threshold=0.4)
    assert list(found.columns) == ["row", "rank", "label", "score"]
    assert len(found) == sum(map(len, plain)) and set(found["row"]) <= {7, 3}
    assert found["label"].tolist() == [label for answer in plain for label, _ in answer]
    assert tagger.predict(["paper"], k=1, as_frame=True)["row"].tolist() == [0]


def test_answers_as_a_frame() -> None:
    top = lt.TopK([[2, 0], [1, -1], [-1, -1]], [[0.9, 0.5], [0.3, -math.inf], [-math.inf] * 2], 3)
    long = top.to_frame(["a", "b", "c"], rows=["x", "y", "z"])
    assert long.values.tolist()[2][:3] == ["y", 1, "b"] and len(long) == 3
    wide = top.to_frame(["a", "b", "c"], per_text=True)
    assert wide["labels"].tolist() == [["c", "a"], ["b"], []] and wide.index.name == "row"
    assert top.to_frame()["label"].tolist() == [2, 0, 1]
    empty = lt.TopK([[]], [[]]).to_frame()
    assert list(empty.columns) == ["row", "rank", "label", "score"] and len(empty) == 0
    with pytest.raises(ValueError, match="names has 2 names"):
        top.to_frame(["a", "b"])
    with pytest.raises(ValueError, match="rows has 1 entries"):
        top.to_frame(rows=["x"])
