"""The way of a newcomer, end to end."""

from __future__ import annotations

import csv
import gzip
import json
import resource
import shutil
import warnings
from pathlib import Path

import pytest
from cli_cases import run, write_tickets

import longtail as lt
from longtail.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data and a model trained on it by the command line."""
    folder = tmp_path_factory.mktemp("cli")
    write_tickets(folder / "tickets.jsonl")
    done = run(
        "train", folder / "tickets.jsonl", "-o", folder / "model", "--report", folder / "r.html"
    )
    assert "one linear classifier per label" in done.stderr
    assert "Head to tail" not in done.stdout  # that is behind --full
    return folder


def test_train_wrote_a_tagger_and_a_report(folder: Path) -> None:
    tagger = lt.load(folder / "model", verify=True)
    assert tagger.predict(["paper jam"], k=1)[0][0][0] == "printer"
    assert tagger.report_["P@1"] > 0.9
    assert "<html" in (folder / "r.html").read_text()


def test_predict_reads_lines_and_json_lines(folder: Path) -> None:
    plain = run("predict", folder / "model", "-k", 1, stdin="paper jam\nwifi cable\n")
    rows = [json.loads(line) for line in plain.stdout.splitlines()]
    assert [row["labels"][0]["label"] for row in rows] == ["printer", "network"]
    asked = "\n".join(json.dumps({"body": row["text"], "id": 3}) for row in rows)
    as_json = run("predict", folder / "model", "-", "-k", 1, "--text-column", "body", stdin=asked)
    assert as_json.stdout == plain.stdout
    marked = b'\xef\xbb\xbf{"text": "paper jam"}\n'  # as some editors begin a file
    assert run("predict", folder / "model", "-k", 1, stdin=marked).stdout in plain.stdout
    half = run("predict", folder / "model", stdin=b'{"text": "\\ud800"}\n', code=2)
    assert "<standard input>:1: a string holds half of a surrogate pair" in half.stderr


def test_predict_writes_csv_and_tables(folder: Path) -> None:
    ask = ("predict", folder / "model", "-k", 2, "-f", "csv", "--per-label")
    done = run(*ask, stdin="paper jam\npassword\n")
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert [(row["row"], row["rank"]) for row in rows] == [
        ("0", "1"),
        ("0", "2"),
        ("1", "1"),
        ("1", "2"),
    ]
    assert rows[2]["label"] == "login"
    table = run("predict", folder / "model", "-k", 1, "-f", "table", stdin="paper jam\n")
    assert table.stdout.splitlines()[1].endswith("printer")


def test_predict_reads_tables_also_gzip(folder: Path) -> None:
    with (
        open(folder / "tickets.jsonl", "rb") as plain,
        gzip.open(folder / "t.jsonl.gz", "wb") as zipped,
    ):
        shutil.copyfileobj(plain, zipped)
    run("predict", folder / "model", folder / "t.jsonl.gz", "-o", folder / "out.jsonl")
    assert len((folder / "out.jsonl").read_text().splitlines()) == 150
    # An interrupted run is gone on with: half a line is made anew, whole ones are kept.
    whole = (folder / "out.jsonl").read_bytes()
    (folder / "out.jsonl").write_bytes(whole[: len(whole) // 2])
    done = run(
        "predict", folder / "model", folder / "t.jsonl.gz", "-o", folder / "out.jsonl", "--resume"
    )
    assert "going on after" in done.stderr
    assert (folder / "out.jsonl").read_bytes() == whole


def test_evaluate_counts_unknown_labels(folder: Path) -> None:
    (folder / "new.csv").write_text('text,labels\npaper jam,"printer;fax"\nwifi,network\n')
    done = run(
        "evaluate",
        folder / "model",
        folder / "new.csv",
        "--label-separator",
        ";",
        "--json",
        "-k",
        "1",
    )
    report = json.loads(done.stdout)
    assert report["metrics"]["P@1"]["value"] == 1.0
    assert "1 of 3 true labels" in report["warnings"][0]["text"]


def test_explain_and_inspect(folder: Path) -> None:
    done = run("explain", folder / "model", "the paper is slow", "-l", "printer", "--json")
    (explanation,) = json.loads(done.stdout)
    assert explanation["terms"][0][0] == "paper"
    facts = json.loads(run("inspect", folder / "model", "--verify", "--json").stdout)
    assert facts["type"] == "tagger" and facts["labels"] == 3
    assert "choice: one linear" in run("inspect", folder / "model").stdout


def test_fields_with_weights(folder: Path) -> None:
    weights = "title=2,text=1"
    run(
        "train",
        folder / "tickets.jsonl",
        "-o",
        folder / "fields",
        "--field-weights",
        weights,
        "--test-size",
        0,
    )
    asked = json.dumps({"title": "paper", "text": "a jam"})
    done = run("predict", folder / "fields", "-k", 1, stdin=asked)
    assert json.loads(done.stdout)["labels"][0]["label"] == "printer"
    assert lt.load(folder / "fields").fields_ == ["title", "text"]


def test_train_from_standard_input(folder: Path) -> None:
    data = (folder / "tickets.jsonl").read_bytes()
    done = run("train", "-", "-o", folder / "piped", "--json", "--model", "xr-linear", stdin=data)
    answer = json.loads(done.stdout)
    assert answer["labels"] == 3 and answer["report"]["metrics"]["P@1"]["value"] > 0.9


def test_train_fuses_every_kind_of_model(folder: Path) -> None:
    data = write_tickets(folder / "many.jsonl", 400)
    made = folder / "best"
    done = run("train", data, "-o", made, "--quality", "best", "--full")
    assert "expected: one per label" in done.stderr and "fused, over" in done.stderr
    assert "What each part adds" in done.stdout and "whole without it" in done.stdout
    tagger = lt.load(made, verify=True)
    assert tagger.predict(["paper jam"], k=1)[0][0][0] == "printer"
    assert tagger.report_.parts[0].name == "whole"
    assert "Parts of the model" in tagger.report_page()
    why = run("explain", made, "paper jam in tray two")
    assert "paper" in why.stdout and "by one per label" in why.stdout
    mixed = run("train", data, "-o", folder / "no", "--quality", "best", "--model", "mach", code=2)
    assert "leave out --model" in mixed.stderr
    other = run("train", data, "-o", folder / "no", "--quality", "good", code=2)
    assert "quality must be one of fast, best" in other.stderr


def test_train_corrects_for_missing_labels(folder: Path) -> None:
    options = ("--missing-labels", "jain", "--correction", "surrogate+balance", "--test-size", 0)
    for name in ("one-vs-all", "ensemble"):
        run(
            "train", folder / "tickets.jsonl", "-o", folder / f"m-{name}", "--model", name, *options
        )
        model = lt.load(folder / f"m-{name}").model_
        for member in getattr(model, "members_", [model]):
            assert isinstance(member.missing_labels, lt.JainPropensity)
            assert member.correction == "surrogate+balance" and member.propensity_.max() < 1


def test_compare_tradeoff_and_tune(folder: Path) -> None:
    data = folder / "tickets.jsonl"
    done = run("compare", data, "-m", "popularity,one-vs-all", "--report", folder / "c.html")
    assert "training, s" in done.stdout and "one-vs-all" in done.stdout.splitlines()[0]
    assert "2 models compared" in (folder / "c.html").read_text()
    ask = ("tradeoff", folder / "model", data, "-k", 2, "--steps", 3)
    curve = json.loads(run(*ask, "--json", "--plot", folder / "curve.svg").stdout)
    assert curve["metrics"] == ["precision@2", "macro_f1@2"]
    assert "<svg" in (folder / "curve.svg").read_text()
    names = {point["name"] for point in curve["points"]}
    assert {"mixture w=0", "mixture w=1", "top k", "--tail 0.5"} <= names
    best = max(point["measured"][0] for point in curve["points"])
    assert curve["chosen"]["measured"][0] >= 0.95 * best > 0
    shown = run(*ask)
    front = [point["name"] for point in curve["points"] if point["on_front"]]
    assert all(name in shown.stdout for name in front)
    lines = shown.stdout.splitlines()
    plain = next(point for point in curve["points"] if point["name"] == "top k")
    assert lines[0].startswith("In per cent") and lines[2].split()[:2] == ["top", "k"]
    assert lines[2].split()[2] == f"{100 * plain['measured'][0]:.2f}"
    assert "lt." not in shown.stderr  # what is recommended is a flag
    assert curve["recommended"]["name"] == "top k" or "--tail" in curve["recommended"]["name"]
    refused = run(*ask, "--metric", "nothing", code=2)
    assert refused.stderr.count("\n") == 1 and "macro_f1" in refused.stderr
    journal = folder / "journal.jsonl"
    options = (
        "--trials",
        2,
        "--models",
        "one-vs-all",
        "--journal",
        journal,
        "--json",
        "--metric",
        "P@1",
    )
    first = json.loads(run("tune", data, *options, "-o", folder / "tuned").stdout)
    assert first["best"]["model"] == "one-vs-all" and len(first["trials"]) == 2
    assert lt.load(folder / "tuned").predict(["paper"], k=1)[0][0][0] == "printer"
    again = run("tune", data, *options)
    assert json.loads(again.stdout) == first and again.stderr == ""  # nothing was tried anew
    other = run("tune", data, *options[:-1], "P@5")
    assert other.stderr.count("P@5") == 2 and journal.read_text().count("\n") == 4


def test_texts_of_labels(folder: Path) -> None:
    texts = folder / "texts.tsv"
    texts.write_text("printer\tpaper jam quokka\nlogin\tpassword\nother\tof another data set\n")
    found = {}
    for name, options in {
        "plain": (),
        "own": ("--learn-label-texts",),
        "self": ("--label-targets", "self"),
        "together": ("--label-targets", "co-occurrence"),
    }.items():
        how = ["--model", "one-vs-all", "--no-calibrate", "--test-size", 0, "--min-df", 1]
        model = folder / f"label-texts-{name}"
        said = run(
            "train", folder / "tickets.jsonl", "-o", model, "--label-texts", texts, *how, *options
        )
        assert "label texts: of 2 of 3 labels" in said.stderr
        tagger = lt.load(model)
        assert list(tagger.label_texts_) == ["password", "", "paper jam quokka"]
        found[name] = tagger.predict_topk(["quokka paper", "password wifi"], 3)
    assert found["own"] == found["self"] != found["plain"]
    assert found["together"] != found["own"]
    how = ["--models", "one-vs-all", "--no-calibrate", "--label-targets", "co-occurrence"]
    run("compare", folder / "tickets.jsonl", "--label-texts", texts, *how)
    how = ["--models", "one-vs-all", "--trials", 1, "--learn-label-texts"]
    run("tune", folder / "tickets.jsonl", "--label-texts", texts, *how)
    how = ["train", folder / "tickets.jsonl", "-o", folder / "none", "--label-texts"]
    texts.write_text("red\ta colour\n")
    assert "none of the 1 labels" in run(*how, texts, code=2).stderr
    names = folder / "names.txt"
    names.write_text("printer\n")
    assert "has names only" in run(*how, names, code=2).stderr
    wrong = run(*how, texts, "--label-targets", "friends", code=2).stderr
    assert "--label-targets must be one of co-occurrence" in wrong


def test_features_instead_of_texts(folder: Path) -> None:
    data = lt.data.make_longtail(n=120, d=60, L=10)
    lt.write_xc(folder / "rows.txt", data.train.X, data.train.Y)
    run("train", folder / "rows.txt", "-o", folder / "rows-model")
    done = run("evaluate", folder / "rows-model", folder / "rows.txt", "--json")
    assert json.loads(done.stdout)["metrics"]["P@1"]["value"] > 0.5


def test_datasets_are_listed() -> None:
    names = [entry["name"] for entry in json.loads(run("datasets", "--json").stdout)]
    assert "icd10cm" in names and "Amazon-670K" in names


def test_help_comes_in_half_a_second() -> None:
    run("--help")  # warms the disk
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run("--help")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Of the processor: half a second, with room for a machine whose caches others use.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.9
    assert "train" in done.stdout and "serve" in done.stdout
    assert run("--version").stdout.startswith("longtail ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predict", "no-such-model"), "no-such-model"),
        (("train", "no-such-file.csv", "-o", "x"), "no file or folder"),
        (("train", "{data}", "-o", "{folder}/model"), "--overwrite"),
        (("train", "{data}", "-o", "x", "--text-column", "body"), "no field 'body'"),
        (("train", "{data}", "-o", "x", "--model", "gpt"), "unknown model 'gpt'"),
        (("train", "{data}", "-o", "x", "--memory-limit", "2XB"), "--memory-limit"),
        (("train", "{data}", "-o", "x", "--missing-labels", "jain"), "not auto"),
        (("train", "{data}"), "--output"),
        (("predict", "{folder}/model", "-k", "0"), "'-k'"),
        (("predict", "{folder}/model", "-f", "xml"), "unknown format 'xml'"),
        (("predict", "{data}"), "a model is a directory"),
        (("evaluate", "{folder}/model", "{data}", "--split", "final"), "no split 'final'"),
        (("explain", "{folder}/model", "text", "-l", "fax"), "unknown label 'fax'"),
        (("compare", "{data}", "-m", "popularity,gpt"), "unknown model 'gpt'"),
        (("compare", "{data}", "-m", "popularity,"), "unknown model ''"),
        (("tune", "{data}", "--metric", "luck"), "unknown metric"),
        (("tune", "{data}", "-o", "{folder}/model"), "--overwrite"),
        (("serve", "no-such-model"), "no-such-model"),
        (("fly",), "fly"),
    ],
)
def test_errors_are_one_line_and_code_2(
    folder: Path,
    arguments: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main sets its own
    filled = [a.format(data=folder / "tickets.jsonl", folder=folder) for a in arguments]
    assert main(filled) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.strip().splitlines()) == 1 and message in told.err


def test_errors_as_json(folder: Path) -> None:
    done = run("inspect", folder / "nothing", "--json", code=2)
    assert json.loads(done.stderr)["code"] == 2
