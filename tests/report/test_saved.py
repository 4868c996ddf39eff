"""Reports as JSON and back: what is kept is numbers, and nothing in them becomes markup."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import longtail as lt
from longtail.report import Report
from longtail.report.alternatives import measure_parts

EVIL = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[2J\u202e{{ 7 * 7 }}{% raw %}"


def make(**options: Any) -> Report:
    rng = np.random.default_rng(0)
    eta = (rng.random((150, 20)) ** 4 * np.linspace(1, 0.1, 20)).astype(np.float32)
    Y = (rng.random(eta.shape) < eta).astype(np.float32)
    train = (rng.random((300, 20)) < eta.mean(axis=0)).astype(np.float32)
    p = lt.JainPropensity().fit(train)
    top = lt.TopK.from_scores(eta, 5)
    defaults = {
        "propensity": p,
        "train_Y": train,
        "k": (1, 5),
        "n_resamples": 20,
        "probabilities": True,
        "rules": {"psp": lt.decide.WeightedTopK("psp", 5, propensity=p).select(eta)},
        "label_names": [f"name {j}" for j in range(20)],
        "label_texts": [f"text {j}" if j % 2 else "" for j in range(20)],
    }
    return lt.evaluate(Y, top, **{**defaults, **options})


@pytest.fixture(scope="module")
def full() -> Report:
    """A report with every section that there can be."""
    from dataclasses import replace

    report = make()
    top = lt.TopK.from_scores(np.eye(20, dtype=np.float32), 5)
    parts = measure_parts(np.eye(20), top, {"a": top}, {"a": top}, np.ones(20), seconds={"a": 1.0})
    return replace(
        report,
        parts=parts,
        lean_curve=({"tail": 0.5, "P@5": 0.25},),
        measured_on="the test split",
        provenance={"created": "now", "command": "longtail evaluate", "data": {"path": "x"}},
    )


def stored(report: Report) -> Any:
    return json.loads(json.dumps(report.to_dict(labels=True), allow_nan=False))


def test_a_report_comes_back_whole(full: Report) -> None:
    others = [
        make(k=1, n_resamples=0, rules=None, probabilities=False, propensity=None, train_Y=None),
        make(filters=[[0, 1], [2, 3]], label_texts=None, n_listed=4),
    ]
    for report in (full, *others):
        again = Report.from_dict(stored(report))
        assert again == report
        assert str(again) == str(report) and again.to_html() == report.to_html()


def test_the_order_of_names_does_not_matter(full: Report) -> None:
    text = json.dumps(full.to_dict(labels=True), sort_keys=True)
    again = Report.from_dict(json.loads(text))
    assert again == full and list(again) == list(full)
    assert again.to_html() == full.to_html()


def test_without_the_table_of_labels(full: Report) -> None:
    again = Report.from_dict(full.to_dict())
    assert again.labels == () and again.missed == full.missed
    assert "Label by label" not in again.to_html()


def test_metrics_and_fields_of_other_versions_are_left_out(full: Report) -> None:
    values = stored(full)
    values["metrics"]["novelty@1"] = {"value": 0.5, "ci": None}
    values["facets"] = [1, 2]
    assert Report.from_dict(values) == full


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.attributes: set[str] = set()
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.attributes |= {name for name, _ in attrs}


def poisoned(value: Any, keys: bool = False) -> Any:
    """The same values with something hostile in every text."""
    if isinstance(value, dict):
        return {key: poisoned(item) for key, item in value.items()}
    if isinstance(value, list):
        return [poisoned(item) for item in value]
    return EVIL if isinstance(value, str) else value


def test_hostile_values_stay_text(full: Report) -> None:
    values = poisoned(stored(full))
    values["settings"]["bins_from"] = "train"
    made = Report.from_dict(values)
    for html in (made.to_html(), made._repr_html_()):
        tags, own = Tags(html), Tags(full.to_html())
        assert tags.found.count("script") == 1 and "img" not in tags.found
        assert tags.attributes <= own.attributes
        assert "&lt;script&gt;alert(1)" in html and "{{ 7 * 7 }}" in html
        assert not {"\x1b", "\u202e"} & set(html)
    assert not {"\x1b", "\u202e"} & set(str(made))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in inner:
        yield (*path, key)
        if isinstance(item, (dict, list)):
            yield from places(item, (*path, key))


STRANGE = [None, -1, 0, 1e308, float("nan"), 10**400, True, "x", EVIL, [], {}, [[]], {"a": 1}]


def test_damaged_values_are_refused_or_can_be_shown(full: Report) -> None:
    whole = stored(full)
    everywhere = list(places(whole))
    draw = random.Random(0)
    refused = 0
    for path in draw.sample(everywhere, 400):
        values = copy.deepcopy(whole)
        inner = values
        for key in path[:-1]:
            inner = inner[key]
        change = draw.choice(["drop", "strange", "strange", "twice"])
        if change == "drop":
            del inner[path[-1]]
        elif change == "twice" and isinstance(inner, list):
            inner.append(copy.deepcopy(inner[path[-1]]))
        else:
            inner[path[-1]] = draw.choice(STRANGE)
        try:
            made = Report.from_dict(values)
        except ValueError:
            refused += 1
            continue
        assert str(made)
        assert Tags(made.to_html()).found.count("script") <= 1
        assert made.to_dict(labels=True)
    assert 100 < refused < 400


@pytest.mark.parametrize("values", [None, 3, [], {}, {"title": "x"}, {"k": [1], "labels": 0}])
def test_other_values_are_refused(values: Any) -> None:
    with pytest.raises(ValueError, match="report"):
        Report.from_dict(values)


def test_the_page_names_the_version_that_measured(full: Report) -> None:
    values = stored(full)
    values["settings"]["longtail"] = "0.0.7"
    assert re.search(r"Made by</dt>\s*<dd>longtail 0\.0\.7<", Report.from_dict(values).to_html())
