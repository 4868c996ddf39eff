"""Decision rules side by side: numbers, sentence, and the table of single labels."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import longtail as lt
from longtail import metrics


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    eta = (rng.random((600, 60)) ** 5 * np.linspace(1, 0.05, 60)).astype(np.float32)
    Y = (rng.random(eta.shape) < eta).astype(np.float32)
    train = (rng.random((900, 60)) < eta.mean(axis=0)).astype(np.float32)
    plain = lt.decide.TopKRule(k=3).select(eta)
    chosen = lt.BlockCoordinateAscent("macro_f1", k=3, random_state=0).select(eta)
    return Y, train, plain, chosen


@pytest.fixture(scope="module")
def report(problem):
    Y, train, plain, chosen = problem
    return lt.evaluate(Y, plain, train_Y=train, k=(1, 3), rules={"macro-F1": chosen}, n_resamples=0)


def test_rules_have_the_numbers_of_a_report_of_their_own(problem, report) -> None:
    Y, train, _, chosen = problem
    own = lt.evaluate(Y, chosen, train_Y=train, k=3, n_resamples=0)
    these, macro = report.rules
    assert these.name == "these answers" and these.sentence == ""
    for name in ("P@3", "R@3", "macro-F1@3", "coverage@3"):
        assert macro.metrics[name] == pytest.approx(own[name])
        assert these.metrics[name] == pytest.approx(report[name])
    for mine, other in zip(macro.bins, own.bins, strict=True):
        assert mine == other
    assert macro.metrics["macro-F1@3"] > these.metrics["macro-F1@3"]


def test_the_sentence_says_what_the_numbers_say(report) -> None:
    these, macro = report.rules
    numbers = [int(n.replace(",", "")) for n in re.findall(r"(\d[\d,]*) of ", macro.sentence)]
    rare, frequent = macro.bins[-1], macro.bins[0]
    expected = [
        round(100 * rare.recall[3]),
        round(rare.coverage[3] * rare.n_present),
        round(100 * frequent.recall[3]),
        round(100 * macro.metrics["answers right"]),
    ]
    assert numbers == expected
    assert macro.sentence.startswith("With macro-F1, ")
    before = [int(n.replace(",", "")) for n in re.findall(r"instead of (\d[\d,]*)", macro.sentence)]
    assert before[0] == round(100 * these.bins[-1].recall[3]) < numbers[0]
    assert macro.sentence.split()[3] in str(report) and macro.sentence in report.to_html()


def test_every_label_is_in_the_table(problem, report) -> None:
    Y, train, plain, chosen = problem
    counts = metrics.confusion_at_k(Y, plain, 3)
    others = metrics.confusion_at_k(Y, chosen, 3)
    frequency = [label.train_count for label in report.labels]
    assert frequency == sorted(frequency, reverse=True)
    for label in report.labels:
        j = label.id
        assert label.positives == counts.positives[j] and label.hits == counts.true_positives[j]
        assert label.train_count == train[:, j].sum()
        assert label.rules == ((others.predicted[j], others.true_positives[j]),)
        total = counts.positives[j] + counts.predicted[j]
        assert label.f1 == pytest.approx(2 * counts.true_positives[j] / total)
    html = report.to_html()
    assert '<table class="sortable">' in html and "right, macro-F1" in html


def test_a_long_table_keeps_head_and_tail(problem) -> None:
    Y, train, plain, _ = problem
    full = lt.evaluate(Y, plain, train_Y=train, k=3, n_resamples=0)
    part = lt.evaluate(Y, plain, train_Y=train, k=3, n_resamples=0, n_listed=10)
    ids = [label.id for label in full.labels]
    shown = [label.id for label in part.labels]
    assert len(shown) == 10 and shown[:5] == ids[:5] and shown[-1] == ids[-1]
    assert shown == [j for j in ids if j in set(shown)]


def test_dictionary_and_refusals(problem, report) -> None:
    Y, _, plain, chosen = problem
    plain_dict = report.to_dict()
    assert "table" not in plain_dict["labels"]
    full = json.loads(json.dumps(report.to_dict(labels=True), allow_nan=False))
    assert len(full["labels"]["table"]) == len(report.labels)
    assert full["rules"][1]["sentence"] == report.rules[1].sentence
    with pytest.raises(ValueError, match="these answers"):
        lt.evaluate(Y, plain, k=3, rules={"these answers": chosen}, n_resamples=0)
    with pytest.raises(ValueError, match=r"rules\['short'\]: .*rows"):
        lt.evaluate(Y, plain, k=3, rules={"short": chosen[:5]}, n_resamples=0)
    with pytest.raises(TypeError, match=r"rules .*list"):
        lt.evaluate(Y, plain, k=3, rules=[chosen], n_resamples=0)
    assert lt.evaluate(Y, plain, k=3, n_resamples=0).rules == ()
