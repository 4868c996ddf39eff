"""What comes from a model or the data is text on every page, card and terminal, never markup."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import longtail as lt
from longtail.cli.card import model_card
from longtail.cli.compare import Entry
from longtail.cli.compare_page import page
from longtail.cli.trial import Trial
from longtail.report import Report

EVIL = "\"'><script>alert(1)</script> [a](javascript:alert(1)) ![b](//c/d) `e` | f\n\n# g\x1b[2J"
TEXTS = ["paper jam", "log in", "wifi down"] * 10
LABELS = [["printer"], ["login"], ["network"]] * 10


def poisoned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: poisoned(item) for key, item in value.items()}
    if isinstance(value, list):
        return [poisoned(item) for item in value]
    return EVIL if isinstance(value, str) else value


@pytest.fixture(scope="module")
def honest() -> lt.Tagger:
    tagger = lt.Tagger(model="one-vs-all").fit(TEXTS, LABELS)
    report = tagger.evaluate(TEXTS, LABELS, n_resamples=20)
    tagger.keep_report(replace(report, measured_on="the test split"))
    tagger.provenance_ |= {"command": "longtail train", "data": {"path": "x", "sha256": "y"}}
    return tagger


@pytest.fixture(scope="module")
def hostile(honest: lt.Tagger) -> lt.Tagger:
    tagger = copy.copy(honest)
    values = json.loads(json.dumps(poisoned(honest.report_.to_dict(labels=True))))
    values["settings"]["bins_from"] = "train"
    tagger.report_ = Report.from_dict(values)
    tagger.provenance_ = poisoned(honest.provenance_)
    tagger.choice_ = EVIL
    return tagger


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append(tag)


def test_a_kept_report_is_made_anew_from_numbers(honest, hostile, tmp_path: Path) -> None:
    honest.save(tmp_path / "honest")
    for file in (tmp_path / "honest").rglob("*"):
        assert file.is_dir() or b"<svg" not in file.read_bytes()  # no page is kept
    hostile.save(tmp_path / "hostile")
    html = lt.load(tmp_path / "hostile").report_page()
    assert sorted(Tags(html).found) == sorted(Tags(honest.report_page()).found)
    assert "\x1b" not in html


def test_a_report_that_is_none_is_refused(honest, tmp_path: Path) -> None:
    values = honest.report_.to_dict(labels=True)
    state = honest._get_state()
    for change in ({"k": []}, {"bins": [{}]}, {"metrics": {"P@1": 1}}):
        state.meta["report"] = {**values, **change}
        with pytest.raises(lt.ModelFormatError, match="report"):
            lt.Tagger._from_state(state)


def kinds(card: str) -> Iterator[str]:
    markdown = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    for token in markdown.parse(card):
        yield token.type
        yield from (child.type for child in token.children or () if child.type != "text")


def test_names_cannot_break_a_card(honest, hostile) -> None:
    folder = Path("a `b` | <i>\n# c")
    card = model_card(hostile, folder, 1)
    assert list(kinds(card)) == list(kinds(model_card(honest, Path("plain"), 1)))
    assert "\x1b" not in card


def test_names_cannot_break_a_comparison(honest, hostile) -> None:
    def made(tagger: lt.Tagger, name: str) -> str:
        trial = Trial(tagger.report_, 1.0, 2.0, None, 3.0)
        return page(name, [Entry(name, trial), Entry(f"{name} 2", trial)])

    found, plain = Tags(made(hostile, EVIL)).found, Tags(made(honest, "plain")).found
    assert sorted(found) == sorted(plain)
    assert "\x1b" not in made(hostile, EVIL)


def test_inspect_prints_no_control_characters(hostile, tmp_path: Path, capsys) -> None:
    from longtail.cli.inspect import command

    hostile.save(tmp_path / "m")
    command(tmp_path / "m")
    told = capsys.readouterr().out
    assert "alert(1)" in told and "\x1b" not in told and "\n# g" not in told
