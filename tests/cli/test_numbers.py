"""Numbers a newcomer can trust: what is measured, on which rows, and that all commands agree."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_cases import TOPICS, environment, longtail_command, run, write_tickets

import longtail as lt
from longtail.cli import main
from longtail.cli.compare import compare_models
from longtail.cli.models import make_models
from longtail.cli.reading import DataOptions, read
from longtail.cli.search import Search
from longtail.cli.story import example_texts
from longtail.cli.train import train_and_measure
from longtail.cli.training import measured_on, plans, set_aside


def write_rare(path: Path, n: int = 240) -> Path:
    """Half of the rows have a label that no other row has: a split that spares them is easier."""
    words = [w for topic in TOPICS.values() for w in topic.split()]
    rng = np.random.default_rng(0)
    with open(path, "w") as file:
        for i in range(n):
            name = list(TOPICS)[i % 3]
            text = [*rng.choice(TOPICS[name].split(), 3), *rng.choice(words, 2), f"number{i}"]
            labels = [name] if i % 2 else [f"case {i}"]
            file.write(json.dumps({"text": " ".join(text), "labels": labels}) + "\n")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows with rare labels, a model of all of them, and what training printed."""
    folder = tmp_path_factory.mktemp("numbers")
    data = write_rare(folder / "rare.jsonl")
    done = run("train", data, "-o", folder / "model", "--json", "--model", "one-vs-all")
    (folder / "train.json").write_text(done.stdout)
    (folder / "train.txt").write_text(done.stderr)
    return folder


def trained(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "train.json").read_text())


def drawn(n: int) -> np.ndarray:
    rows = np.zeros(n, bool)
    rows[np.random.default_rng(0).permutation(n)[: n // 10]] = True
    return rows


def test_train_measures_on_a_plain_random_tenth(folder: Path) -> None:
    rows = [json.loads(line) for line in (folder / "rare.jsonl").read_text().splitlines()]
    aside = drawn(len(rows))
    held = [row for row, out in zip(rows, aside, strict=True) if out]
    rest = [row for row, out in zip(rows, aside, strict=True) if not out]
    assert sum(row["labels"][0].startswith("case") for row in held) >= 8  # rare ones among them
    tagger = lt.Tagger(model="one-vs-all").fit(
        [row["text"] for row in rest], [row["labels"] for row in rest]
    )
    top = tagger.predict([row["text"] for row in held], k=1)
    right = [answer[0][0] in row["labels"] for answer, row in zip(top, held, strict=True)]
    report = trained(folder)["report"]
    assert report["data"]["n_rows"] == 24
    assert report["metrics"]["P@1"]["value"] == pytest.approx(np.mean(right))
    # Labels that only the rows set aside have count as missed, and are not left out.
    assert report["data"]["n_labels"] == 123 and report["data"]["unseen_labels"] >= 8
    assert report["metrics"]["R@5"]["value"] <= 1 - report["data"]["unseen_labels"] / 24


def test_the_saved_model_learned_from_all_rows(folder: Path, tmp_path: Path) -> None:
    tagger = lt.load(folder / "model")
    assert tagger.n_rows_ == 240 == trained(folder)["rows"]
    assert len(tagger.label_names) == 123 == trained(folder)["labels"]
    lines = (folder / "rare.jsonl").read_text().splitlines()
    assert tagger.trained_on([json.loads(line)["text"] for line in lines]).hits.all()
    said = (folder / "train.txt").read_text()
    assert "24 of 240 rows, set aside at random" in said and "--no-refit" in said
    assert "fitting again, on all rows" in said
    options = ("--model", "one-vs-all", "--no-refit", "--json")
    done = run("train", folder / "rare.jsonl", "-o", tmp_path / "part", *options)
    part = lt.load(tmp_path / "part")
    assert part.n_rows_ == 216 and len(part.label_names) < 123
    assert "fitting again" not in done.stderr
    answer = json.loads(done.stdout)
    assert answer["rows"] == 216
    assert answer["report"]["metrics"] == trained(folder)["report"]["metrics"]  # what was measured
    assert "the saved model is the one measured" in answer["report"]["measured_on"]


def test_probabilities_come_from_the_curve_that_was_measured(folder: Path) -> None:
    source = set_aside(read(str(folder / "rare.jsonl"), DataOptions()), 0.1, 0)
    measured, *_ = train_and_measure(source, {"model": "one-vs-all"}, refit=False)
    saved = lt.load(folder / "model")
    assert saved.has_probabilities
    scores = np.linspace(-2, 2, 50)
    before, after = (t.model_.calibrator_.transform(scores) for t in (measured, saved))
    assert np.array_equal(before, after)
    assert saved.model_.calibration_ == measured.model_.calibration_


def test_train_compare_inspect_and_the_service_agree(folder: Path) -> None:
    from longtail.serve.answers import model_facts
    from longtail.serve.settings import Settings

    report = trained(folder)["report"]
    said = report["measured_on"]
    assert said.startswith("24 of 240 rows, set aside at random; the saved model then learned from")
    models = ("popularity", "one-vs-all")
    done = json.loads(
        run("compare", folder / "rare.jsonl", "-m", ",".join(models), "--json").stdout
    )
    assert done["one-vs-all"]["report"]["metrics"] == report["metrics"]
    assert said.startswith(done["one-vs-all"]["report"]["measured_on"])
    facts = json.loads(run("inspect", folder / "model", "--json").stdout)
    values = {name: m["value"] for name, m in report["metrics"].items()}
    assert facts["measured"] == {name: round(value, 4) for name, value in values.items()}
    assert facts["measured on"] == said
    shown = model_facts(lt.load(folder / "model"), Settings(model=str(folder / "model")))
    assert shown["metrics"] == {name: values[name] for name in shown["metrics"]}
    assert shown["measured_on"] == said
    for text in (
        run("inspect", folder / "model").stdout,
        lt.load(folder / "model").report_page(),
        run("compare", folder / "rare.jsonl", "-m", "popularity").stdout,
    ):
        assert "24 of 240 rows, set aside at random" in text


def test_compare_leaves_out_labels_without_texts_as_train_does(tmp_path: Path) -> None:
    data = lt.data.make_longtail(n=300, d=100, L=40, random_state=0)
    Y = data.train.Y.tolil()
    Y[:, 30:] = 0  # ten labels that no row has
    lt.write_xc(tmp_path / "rows.txt", data.train.X, Y.tocsr())
    done = run("compare", tmp_path / "rows.txt", "-m", "xr-linear", "--json")
    compared = json.loads(done.stdout)["xr-linear"]["report"]
    done = run(
        "train", tmp_path / "rows.txt", "-o", tmp_path / "m", "--model", "xr-linear", "--json"
    )
    report = json.loads(done.stdout)["report"]
    assert compared["data"]["n_labels"] == report["data"]["n_labels"] <= 30
    assert compared["metrics"] == report["metrics"]


def test_an_own_test_split_is_never_learned_from(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name, n in (("train", 100), ("test", 30)):
        write_tickets(tmp_path / "data" / f"{name}.jsonl", n)
    done = run("train", tmp_path / "data", "-o", tmp_path / "model", "--json")
    answer = json.loads(done.stdout)
    assert answer["rows"] == 100 == lt.load(tmp_path / "model").n_rows_
    assert answer["report"]["measured_on"] == "the test split, 30 rows"
    assert "fitting again" not in done.stderr


@pytest.mark.parametrize("n", [1, 9])
def test_few_rows_are_all_learned_from(n: int, tmp_path: Path) -> None:
    data = write_tickets(tmp_path / "few.jsonl", n)
    done = run("train", data, "-o", tmp_path / "model", "--json")
    assert json.loads(done.stdout)["report"] is None and "too few to set some aside" in done.stderr
    assert lt.load(tmp_path / "model").n_rows_ == n


def test_labels_that_are_all_set_aside(tmp_path: Path) -> None:
    first = int(np.flatnonzero(drawn(10))[0])
    rows = [{"text": f"paper {i}", "labels": ["a"] if i == first else []} for i in range(10)]
    (tmp_path / "one.jsonl").write_text("\n".join(map(json.dumps, rows)))
    done = run("train", tmp_path / "one.jsonl", "-o", tmp_path / "model", "--json")
    assert "nothing is measured" in done.stderr and lt.load(tmp_path / "model").n_rows_ == 10


def test_evaluate_tradeoff_and_compare_say_what_was_trained_on(folder: Path) -> None:
    data, model = folder / "rare.jsonl", folder / "model"
    report = json.loads(run("evaluate", model, data, "--json").stdout)
    assert report["data"]["trained_rows"] == 240 and report["warnings"][0]["code"] == "trained-on"
    assert "All 240 test rows are among the rows" in run("evaluate", model, data).stdout
    curve = run("tradeoff", model, data, "--steps", 2, "--json")
    assert json.loads(curve.stdout)["trained_rows"] == 240
    assert "All 240 test rows are among the rows this model was trained on" in curve.stderr
    with open(folder / "new.jsonl", "w") as file:
        for i in range(120):
            record = {"text": f"router question{i}", "labels": ["network"]}
            file.write(json.dumps(record) + "\n")
    report = json.loads(run("evaluate", model, folder / "new.jsonl", "--json").stdout)
    assert report["data"]["trained_rows"] == 0
    assert "trained-on" not in [warning["code"] for warning in report["warnings"]]
    curve = run("tradeoff", model, folder / "new.jsonl", "--steps", 2, "--json")
    assert json.loads(curve.stdout)["trained_rows"] == 0 and "trained on" not in curve.stderr
    twice = folder / "twice.jsonl"  # every row two times: most of a random tenth is trained on
    twice.write_text(2 * data.read_text())
    shown = run("compare", twice, "-m", "popularity").stdout
    assert "of 48 test rows have the text of a training row" in shown
    assert "training row" not in run("compare", data, "-m", "popularity").stdout


def test_rows_set_aside_keep_their_fields(tmp_path: Path) -> None:
    data = write_tickets(tmp_path / "tickets.jsonl", 30)
    options = DataOptions(field_weights={"title": 2.0, "text": 1.0})
    dataset = set_aside(read(str(data), options), 0.1, 0)
    assert (len(dataset.train), len(dataset.test), len(dataset.whole)) == (27, 3, 30)
    assert list(dataset.test.inputs) == ["title", "text"]
    rows = [json.loads(line) for line in data.read_text().splitlines()]
    held = [row for row, out in zip(rows, drawn(30), strict=True) if out]
    assert dataset.test.fields == {f: [row[f] for row in held] for f in ("title", "text")}
    assert set(example_texts(dataset)[0]) == {"title", "text"}
    assert measured_on(dataset) == "3 of 30 rows, set aside at random"


def test_tune_begins_with_what_train_trains(folder: Path) -> None:
    source = set_aside(read(str(folder / "rare.jsonl"), DataOptions()), 0.1, 0)
    search = Search(["xr-linear", "one-vs-all", "ensemble"])
    _, whole = plans(source, search.params)
    tried = list(search.settings(whole, 100))
    assert [s["model"] for s in tried[:3]] == ["one-vs-all", "xr-linear", "ensemble"]
    default = lt.Tagger().plan(source.whole.texts, source.whole.Y, label_names=source.label_names)
    first = search.planned(whole, tried[0])
    assert repr(first.model) == repr(default.model)
    assert repr(first.vectorizer) == repr(default.vectorizer)
    assert tried[0]["C"] == lt.OneVsAll().C and len({str(s) for s in tried}) == len(tried)
    done = run("tune", folder / "rare.jsonl", "--trials", 1, "--metric", "P@1", "--json")
    trial = json.loads(done.stdout)
    plain = compare_models(source, make_models(["one-vs-all"]), {"calibrate": False})[0].report
    assert trial["score"] == plain["P@1"] and trial["best"] == tried[0]


@pytest.mark.parametrize("name", ["network", "mach", "declare"])
def test_coded_models_and_the_network_can_be_named(name: str, tmp_path: Path) -> None:
    if name == "network":
        pytest.importorskip("torch")
    data = write_tickets(tmp_path / "tickets.jsonl", 120)
    options = ("--model", name, "--no-calibrate", "--json")
    done = run("train", data, "-o", tmp_path / "model", *options)
    assert json.loads(done.stdout)["choice"].startswith(f"{name}, as asked, over words")
    tagger = lt.load(tmp_path / "model")
    assert tagger.model_.type_tag == name
    names = [label for label, _ in tagger.predict(["paper jam"], k=3)[0]]
    assert (
        "printer" in names
    )  # DECLARE answers with labels of neighbours, which may be fewer than k
    assert json.loads(done.stdout)["report"]["metrics"]["P@1"]["value"] > 0.5
    compared = json.loads(run("compare", data, "-m", name, "--no-calibrate", "--json").stdout)
    assert compared[name]["report"]["metrics"] == json.loads(done.stdout)["report"]["metrics"]
    tuned = json.loads(run("tune", data, "-m", name, "--trials", 2, "--json").stdout)
    first, other = (trial["setting"] for trial in tuned["trials"])
    assert first["model"] == name and first != other


def test_help_names_every_model() -> None:
    from longtail.tagger import MODELS

    said = " ".join(run("train", "--help").stdout.replace("│", " ").split()).replace("- ", "-")
    assert all(name in said for name in MODELS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "{data}", "-o", "x", "--model", "network"), "longtail[deep]"),
        (("compare", "{data}", "-m", "popularity,network"), "longtail[deep]"),
        (("tune", "{data}", "-m", "network"), "longtail[deep]"),
        (("train", "{data}", "-o", "x", "--model", "mach", "--device", "cuda"), "longtail[deep]"),
    ],
)
def test_a_missing_torch_is_said_before_any_work(
    folder: Path,
    arguments: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from longtail.tagger import named_models

    monkeypatch.setattr(named_models, "find_spec", lambda _: None)
    refused(folder, arguments, message, capsys, monkeypatch)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "{data}", "-o", "x", "--device", "cuda"), "--model network"),
        (
            ("train", "{data}", "-o", "x", "--model", "ensemble", "--device", "cuda"),
            "ensemble takes no device: network, text-network, xr-transformer, dual-encoder, unidec",
        ),
        (
            ("train", "{data}", "-o", "x", "--model", "declare", "--memory-limit", "1GB"),
            "declare takes no --memory-limit",
        ),
        (("compare", "{data}", "-m", "popularity", "--device", "cuda"), "--device: none of"),
        (("tune", "{data}", "-m", "xr-linear", "--device", "cuda"), "--device: none of"),
        (("tune", "{data}", "-m", "gpt"), "unknown model 'gpt'"),
    ],
)
def test_options_that_a_model_does_not_take(
    folder: Path,
    arguments: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused(folder, arguments, message, capsys, monkeypatch)


def refused(
    folder: Path,
    arguments: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main sets its own
    assert main([a.format(data=folder / "rare.jsonl") for a in arguments]) == 2
    told = capsys.readouterr()
    assert told.out == "" and len(told.err.strip().splitlines()) == 1 and message in told.err


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX systems")
@pytest.mark.parametrize("phase", ["measuring", "all rows"])
def test_training_goes_on_in_either_phase(phase: str, tmp_path: Path) -> None:
    made = lt.data.make_longtail(n=1500, d=1200, L=1500, random_state=3)
    data = tmp_path / "rows.txt"
    lt.write_xc(data, made.train.X, made.train.Y)
    options = ("--model", "ensemble", "--jobs", 1, "--no-calibrate")
    run("train", data, "-o", tmp_path / "whole", *options)
    output, parts = tmp_path / "model", tmp_path / "model.unfinished"
    where = parts / "measuring" / "model" if phase == "measuring" else parts / "model"
    process = subprocess.Popen(
        longtail_command("train", data, "-o", output, *options),
        stderr=subprocess.DEVNULL,
        env=environment(),
    )
    deadline = time.monotonic() + 90
    while not any(where.glob("member1/tree/manifest.json")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    assert parts.is_dir() and not output.exists()
    again = run("train", data, "-o", output, *options)
    assert "going on with" in again.stderr and not parts.exists()
    whole = (tmp_path / "whole" / "arrays.bin").read_bytes()
    assert whole and (output / "arrays.bin").read_bytes() == whole
