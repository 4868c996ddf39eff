"""``evaluate``: the numbers are the metrics' own, and the result is plain data."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail import metrics
from longtail.report import compare
from longtail.report.catalogue import CATALOGUE


def make(n=300, n_labels=40, seed=0):
    """Training labels, test labels and scores that find about half of them, by a skewed law."""
    rng = np.random.default_rng(seed)
    rates = 0.3 / np.arange(1, n_labels + 1) ** 0.8
    train = (rng.random((2 * n, n_labels)) < rates).astype(np.float32)
    truth = (rng.random((n, n_labels)) < rates).astype(np.float32)
    scores = rng.random((n, n_labels)) * 0.5 + truth * rng.random((n, n_labels))
    return sp.csr_matrix(train), sp.csr_matrix(truth), scores


@pytest.fixture(scope="module")
def data():
    return make()


@pytest.fixture(scope="module")
def report(data):
    train, truth, scores = data
    p = lt.JainPropensity().fit(train)
    return lt.evaluate(truth, scores, propensity=p, train_Y=train, n_resamples=60, title="Test")


def test_values_equal_the_metric_functions(data, report):
    train, truth, scores = data
    p = lt.JainPropensity().fit(train)
    for k in (1, 3, 5):
        for entry in CATALOGUE:
            arguments = {"p": p} if entry.needs_propensity else {}
            expected = entry.function(truth, scores, k=k, **arguments)
            assert report[f"{entry.symbol}@{k}"] == pytest.approx(expected, abs=1e-12)
    assert report["P@3"] == metrics.precision_at_k(truth, scores, k=3)
    assert report["PSP@3"] == metrics.ps_precision_at_k(truth, scores, p, k=3)
    assert report["PSP unnormalised@3"] == metrics.ps_precision_at_k(
        truth, scores, p, k=3, normalize=False
    )
    assert report["macro-F1 present@5"] == metrics.macro_f1_at_k(
        truth, scores, k=5, labels="present"
    )


def test_intervals_hold_the_value(report):
    for m in report.metrics.values():
        assert m.low is not None and m.high is not None
        assert m.low <= m.value <= m.high


def test_intervals_equal_the_bootstrap(data, report):
    _, truth, scores = data
    alone = metrics.bootstrap_interval(metrics.precision_at_k, truth, scores, k=3, n_resamples=60)
    assert (report.metrics["P@3"].low, report.metrics["P@3"].high) == (alone.low, alone.high)


def test_to_dict_is_json_and_complete(report):
    plain = report.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["metrics"]["P@1"] == {
        "value": report["P@1"],
        "ci": [report.metrics["P@1"].low, report.metrics["P@1"].high],
    }
    assert plain["propensity"]["a"] == 0.55 and plain["propensity"]["b"] == 1.5
    assert plain["propensity"]["n_rows"] == 600
    assert plain["settings"]["n_resamples"] == 60
    assert plain["data"]["n_rows"] == 300


def test_same_for_any_form_of_truth_answers_and_threads(data, report):
    train, truth, scores = data
    p = lt.JainPropensity().fit(train)
    lists = [truth[i].indices.tolist() for i in range(truth.shape[0])]
    options = {"propensity": p, "train_Y": train, "n_resamples": 60, "title": "Test"}
    top = lt.TopK.from_scores(scores, 5)
    bare = lt.TopK(top.indices, top.scores)  # does not know how many labels there are
    expected = report.to_dict()
    for y, answers in (
        (truth.toarray(), top),
        (lists, scores),
        (lists, bare),
        (truth.tocsc(), top),
    ):
        assert lt.evaluate(y, answers, n_jobs=1, **options).to_dict() == expected
    assert lt.evaluate(truth, scores.tolist(), n_jobs=3, **options).to_dict() == expected


def test_bins_add_up(data, report):
    train, truth, _ = data
    for k in (1, 3, 5):
        assert sum(b.contribution[k] for b in report.bins) == pytest.approx(report[f"P@{k}"])
        found = sum(b.coverage[k] * b.n_present for b in report.bins)
        assert found == pytest.approx(report[f"coverage present@{k}"] * report.facts.present_labels)
        hits = sum(b.recall[k] * b.n_positives for b in report.bins)
        assert hits / truth.nnz == pytest.approx(report[f"micro-R@{k}"])
    assert sum(b.n_labels for b in report.bins) == truth.shape[1]
    assert sum(b.n_positives for b in report.bins) == truth.nnz
    counts = np.asarray(train.sum(axis=0)).ravel()
    assert report.bins[0].max_count == counts.max() and report.bins[-1].min_count == counts.min()


def test_single_labels(data):
    train, truth, scores = data
    names = [f"name {j}" for j in range(truth.shape[1])]
    report = lt.evaluate(truth, scores, train_Y=train, label_names=names, n_resamples=0)
    counts = metrics.confusion_at_k(truth, scores, k=5)
    worst = int(np.argmax(counts.false_negatives))
    assert report.missed[0].id == worst and report.missed[0].name == f"name {worst}"
    assert report.missed[0].positives - report.missed[0].hits == counts.false_negatives.max()
    assert report.overpredicted[0].id == int(np.argmax(counts.false_positives))
    assert len(report.missed) == len(report.overpredicted) == 10


def test_one_k_and_no_resamples(data):
    _, truth, scores = data
    report = lt.evaluate(truth, scores, k=2, n_resamples=0)
    assert report.ks == (2,) and next(iter(report)) == "P@2"
    assert all(m.low is None for m in report.metrics.values())
    assert report.settings["bins_from"] == "test"
    with pytest.raises(KeyError, match=r"P@5.*P@2"):
        report["P@5"]


def test_filters_are_applied_before_ranking(data):
    _, truth, scores = data
    best = scores.argmax(axis=1)
    pairs = np.column_stack([np.arange(len(best)), best])
    report = lt.evaluate(truth, scores, filters=pairs, k=1, n_resamples=0)
    without = scores.copy()
    without[np.arange(len(best)), best] = -1.0
    assert report["P@1"] == metrics.precision_at_k(truth, without, k=1)
    assert report.facts.n_filters == 300
    empty = lt.evaluate(truth, scores, filters=np.empty((0, 2), int), k=1, n_resamples=0)
    assert empty["P@1"] == metrics.precision_at_k(truth, scores, k=1)


def test_without_labels_to_find(data):
    _, truth, scores = data
    report = lt.evaluate(sp.csr_matrix(truth.shape), scores, n_resamples=20)
    assert report["P@1"] == report["macro-F1 present@5"] == 0.0
    assert "rows-without-labels" in {note.code for note in report.warnings}
    assert report.to_html() and str(report)


def test_on_official_labels_and_propensities():
    root = os.environ.get("LONGTAIL_DATA")
    if not root:
        pytest.skip("LONGTAIL_DATA is not set")
    folder = Path(root) / "EURLex-4K-labels-only"

    def read(name):
        rows = (folder / name).read_text().splitlines()
        n_labels = int(rows[0].split()[1])
        ids = [[int(pair.partition(":")[0]) for pair in row.split()] for row in rows[1:]]
        indptr = np.cumsum([0, *map(len, ids)])
        flat = np.concatenate([np.asarray(row, int) for row in ids])
        return sp.csr_matrix((np.ones(len(flat)), flat, indptr), shape=(len(ids), n_labels))

    train, truth = read("trn_X_Y.txt"), read("tst_X_Y.txt")
    p = lt.propensity.FixedPropensity.read_inverse(folder / "inv_prop.txt")
    report = lt.evaluate(truth, truth, propensity=p, train_Y=train, k=1, n_resamples=0)
    unlabelled = int((np.diff(truth.indptr) == 0).sum())
    assert report["P@1"] == pytest.approx(1 - unlabelled / truth.shape[0])
    assert report["PSP unnormalised@1"] > 2
    codes = {note.code for note in report.warnings}
    assert codes >= {"psp-above-one", "unseen-labels", "tiny-support", "rows-without-labels"}


@pytest.mark.parametrize(
    ("options", "error", "facts"),
    [
        ({"k": ()}, ValueError, r"\bk\b"),
        ({"k": 0}, ValueError, r"\bk\b.* 0"),
        ({"k": 2.5}, TypeError, r"\bk\b.* 2\.5"),
        ({"k": "5"}, TypeError, r"\bk\b.* '5'"),
        ({"label_names": ["a"]}, ValueError, r"label_names .*\b1\b.*\b40\b"),
        ({"propensity": [0.5]}, ValueError, "40 labels"),
        ({"propensity": lt.JainPropensity()}, ValueError, "JainPropensity"),
        ({"train_Y": np.ones((3, 4))}, ValueError, r"\b40\b"),
        ({"n_resamples": -1}, ValueError, "n_resamples.* -1"),
        ({"n_resamples": 1.5}, TypeError, r"n_resamples.* 1\.5"),
        ({"confidence": 95}, ValueError, "confidence.* 95"),
        ({"filters": [[999, 0]]}, ValueError, "row 999"),
        ({"n_bins": 0}, ValueError, "n_bins"),
        ({"unknown": 1}, TypeError, "unknown"),
    ],
)
def test_refusals(data, options, error, facts):
    _, truth, scores = data
    with pytest.raises(error, match=facts):
        lt.evaluate(truth, scores, **options)


def test_refuses_what_does_not_fit_together(data):
    _, truth, scores = data
    with pytest.raises(ValueError, match="rows"):
        lt.evaluate(truth[:-1], scores)
    with pytest.raises(ValueError, match=r"\b3\b.*k=5|k=5.*\b3\b"):
        lt.evaluate(truth, lt.TopK.from_scores(scores, 3))
    with pytest.raises(ValueError, match=r"Y_true.* 0 rows"):
        lt.evaluate(np.zeros((0, 3)), np.zeros((0, 3)))


def test_every_mean_over_labels_says_over_which():
    """All labels, or those present in the test rows: text, page, comparison and dictionary."""
    rng = np.random.default_rng(0)
    truth = np.zeros((120, 40))
    truth[np.arange(120), rng.integers(0, 10, 120)] = 1  # 30 labels never occur
    report = lt.evaluate(truth, truth + 0.01 * rng.random(truth.shape), k=5, n_resamples=0)
    assert report["coverage present@5"] == 1.0 and report["coverage@5"] == 0.25
    lines = str(report).splitlines()
    heads = {
        symbol: next(line for line in reversed(lines[:at]) if not line.startswith("  "))
        for at, line in enumerate(lines)
        for symbol in ("macro-F1", "coverage", "macro-F1 present", "coverage present")
        if line.startswith(f"  {symbol}  ")
    }
    assert (
        all(
            ("all labels" in head) != symbol.endswith("present")
            and ("labels present in the test rows" in head) == symbol.endswith("present")
            for symbol, head in heads.items()
        )
        and len(heads) == 4
    )
    assert any("coverage present@5" in line and "part of P@5" in line for line in lines)  # of a bin
    meanings = report.to_dict()["meanings"]
    assert set(meanings) == {m.symbol for m in report.metrics.values()}
    for symbol, meaning in meanings.items():
        if symbol.startswith(("macro-", "coverage")):
            present = symbol.endswith("present")
            assert ("all labels" in meaning) != present
            assert ("labels present in the test rows" in meaning) == present
    html = report.to_html()
    tile = html.partition("<dt>coverage@5</dt>")[2].partition("</div>")[0]
    assert "over all labels" in tile
    shown = str(compare({"a": report}))
    assert "over all labels" in shown and "over the labels present in the test rows" in shown
