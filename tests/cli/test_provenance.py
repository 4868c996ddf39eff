"""A model and a report tell where they come from, and a card tells people."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pytest
from cli_cases import run, write_tickets

import longtail as lt


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("provenance")
    write_tickets(folder / "tickets.jsonl")
    report = folder / "report.html"
    run("train", folder / "tickets.jsonl", "-o", folder / "model", "--seed", 3, "--report", report)
    return folder


def test_a_model_knows_where_it_comes_from(folder: Path) -> None:
    made = lt.load(folder / "model").provenance_
    data = (folder / "tickets.jsonl").read_bytes()
    assert made["data"] == {"path": "tickets.jsonl", "sha256": hashlib.sha256(data).hexdigest()}
    age = datetime.now(timezone.utc) - datetime.fromisoformat(made["created"])
    assert 0 <= age.total_seconds() < 3600
    assert made["longtail"] == lt.__version__ and made["numpy"] == np.__version__
    assert made["command"].startswith("longtail train ") and "--seed 3" in made["command"]
    assert made["rows"] == 150 and made["seconds"] > 0
    told = run("inspect", folder / "model").stdout
    assert made["data"]["sha256"] in told and "created: 20" in told
    assert json.loads(run("inspect", folder / "model", "--json").stdout)["made"]["rows"] == 150


def test_reports_tell_too(folder: Path) -> None:
    made = lt.load(folder / "model").provenance_
    run("inspect", folder / "model", "--report", folder / "again.html")
    for name in ("report.html", "again.html"):
        page = (folder / name).read_text()
        assert page.count(made["data"]["sha256"]) == 1 and page.count(made["created"]) == 1
    done = run("evaluate", folder / "model", folder / "tickets.jsonl", "--json")
    origin = json.loads(done.stdout)["provenance"]
    assert origin["data"] == made["data"] and origin["command"].startswith("longtail evaluate")


def test_a_card_for_people(folder: Path) -> None:
    card = run("inspect", folder / "model", "--card").stdout
    made = lt.load(folder / "model").provenance_
    for text in (
        made["data"]["sha256"],
        made["created"],
        made["command"],
        "| P@1 |",
        "| texts | 150",
    ):
        assert text in card
    titles = re.findall(r"^## (.*)$", card, re.MULTILINE)
    assert titles[:3] == ["How to use it", "What it learned from", "How good it is"]
    code = re.search(r"```python\n(.*?)```", card, re.DOTALL)
    assert code
    exec(code[1].replace("'model'", repr(str(folder / "model"))), {})


def test_names_cannot_break_a_card(tmp_path: Path) -> None:
    rows = [{"text": f"a|b {i % 2}", "labels": [f"x|{i % 2}\n<b>"]} for i in range(40)]
    (tmp_path / "a|<i>.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run("train", tmp_path / "a|<i>.jsonl", "-o", tmp_path / "model")
    card = run("inspect", tmp_path / "model", "--card").stdout
    assert "<i>" not in card.replace("`", "") or "&lt;i>" in card
    for line in card.splitlines():
        if line.startswith("| data "):
            assert line == "| data | a\\|&lt;i>.jsonl |"


def test_python_models_tell_date_and_versions(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    tagger = lt.Tagger().fit(["paper", "wifi"] * 5, [["printer"], ["network"]] * 5)
    assert tagger.provenance_["created"] == "1970-01-02T00:00:00+00:00"
    tagger.save(tmp_path / "m")
    assert lt.load(tmp_path / "m").provenance_ == tagger.provenance_
    assert "1970-01-02" in run("inspect", tmp_path / "m", "--card").stdout


def test_models_of_older_versions_have_none() -> None:
    golden = Path(__file__).parents[1] / "tagger" / "golden" / "before-min-word-length"
    old = lt.load(golden)
    assert old.provenance_ is None and old.examples_ == []
    assert "not measured" in run("inspect", golden, "--card").stdout


def test_examples_are_kept_unless_not_wanted(folder: Path, tmp_path: Path) -> None:
    examples = lt.load(folder / "model").examples_
    with open(folder / "tickets.jsonl") as file:
        texts = {json.loads(line)["text"] for line in file}
    assert 1 <= len(examples) <= 3 and set(examples) <= texts
    run("train", folder / "tickets.jsonl", "-o", tmp_path / "m", "--no-examples", "--test-size", 0)
    assert lt.load(tmp_path / "m").examples_ == []


def test_tune_and_audit_tell_too(folder: Path, tmp_path: Path) -> None:
    data = folder / "tickets.jsonl"
    run("tune", data, "-o", tmp_path / "tuned", "--trials", 1, "-m", "one-vs-all")
    made = lt.load(tmp_path / "tuned").provenance_
    assert made["command"].startswith("longtail tune") and made["data"]["path"] == "tickets.jsonl"
    (tmp_path / "names.tsv").write_text("printer\tPaper & ink\nlogin\tAccounts\nnetwork\tNets\n")
    page = tmp_path / "audit.html"
    run("audit", data, "--report", page, "--label-texts", tmp_path / "names.tsv")
    assert re.search(
        r"(Paper &amp; ink|Accounts|Nets) \((printer|login|network)\)", page.read_text()
    )
