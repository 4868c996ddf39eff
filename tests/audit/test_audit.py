"""Audits on data whose missing labels are known, because they were removed on purpose."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail.audit import drop_labels, injection, missing_probability


@pytest.fixture(scope="module")
def problem():
    """Twelve labels that follow from x with known probabilities, observed with p = 0.4 or 0.8."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 12)).astype(np.float32)
    relevant = rng.random(X.shape) < 1 / (1 + np.exp(-(6 * X - 4)))
    Y = sp.csr_matrix(relevant.astype(np.float32))
    p = np.where(np.arange(12) < 6, 0.8, 0.4)
    return X, Y, drop_labels(Y, p, random_state=1), p


@pytest.fixture(scope="module")
def found(problem):
    X, _, observed, p = problem
    return lt.audit.find_missing(
        lt.OneVsAll(loss="logistic"),
        X,
        observed,
        propensity={"true": p, "too low": p / 2},
        folds=3,
        n_candidates=12,
    )


def test_formula_against_enumeration() -> None:
    for eta in (0.1, 0.5, 0.99):
        for p in (0.2, 0.7, 1.0):
            absent = (1 - eta) + eta * (1 - p)  # not relevant, or relevant and lost
            assert missing_probability([eta * p], [p])[0] == pytest.approx(eta * (1 - p) / absent)
    assert missing_probability([1.0, 1.0], [1.0, 0.5]).tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match="propensities"):
        missing_probability([0.5], [0.0])


def test_suspects_are_absent_and_their_probabilities_keep_their_word(problem, found) -> None:
    _, Y, observed, _ = problem
    rows = np.array([s.row for s in found.missing])
    labels = np.array([s.label for s in found.missing])
    probability = np.array([s.probability for s in found.missing])
    assert len(rows) == 1000 and (np.diff(probability) <= 0).all()
    assert not np.asarray(observed[rows, labels]).any()
    truly = np.asarray(Y[rows, labels]).ravel()
    assert truly.mean() == pytest.approx(probability.mean(), abs=0.05)
    assert truly.mean() > 5 * (Y.nnz - observed.nnz) / (Y.shape[0] * Y.shape[1] - observed.nnz)
    assert found.expected_missing == pytest.approx(Y.nnz - observed.nnz, rel=0.1)


def test_the_true_propensities_stand_and_wrong_ones_fall(found) -> None:
    true, low = found.fits
    assert not true.is_refuted and low.is_refuted
    assert low.above > true.above
    assert any(text.startswith("too low: of the 200") for text in found.warnings)
    assert not any(text.startswith("true:") for text in found.warnings)
    for group in true.groups:
        assert group.found == pytest.approx(group.implied, rel=0.2)


def test_answers_may_come_from_elsewhere(problem) -> None:
    _, Y, observed, p = problem
    scores = np.where(Y.toarray() > 0, 0.9, 0.1) + np.linspace(0, 0.01, 12)
    order = np.argsort(-scores, axis=1)[:, :6].astype(np.int32)
    top = lt.TopK(order, np.take_along_axis(scores, order, axis=1), n_labels=12)
    got = lt.audit.find_missing(top, None, observed, propensity=p, n_listed=5)
    assert len(got.missing) == 5 and got.settings["folds"] is None
    assert all(Y[s.row, s.label] for s in got.missing)


def test_same_seed_same_audit(problem, found) -> None:
    X, _, observed, p = problem
    again = lt.audit.find_missing(
        lt.OneVsAll(loss="logistic", n_jobs=1),
        X,
        observed,
        propensity={"true": p, "too low": p / 2},
        folds=3,
        n_candidates=12,
    )
    assert again.to_dict() == found.to_dict()


class _Nesting(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_renderings(problem, found, tmp_path) -> None:
    json.dumps(found.to_dict(), allow_nan=False)
    text = str(found)
    assert f"{found.expected_missing:,.0f}" in text and " !" in text
    X, _, observed, _ = problem
    names = ["<b>bold</b>", "\x1b[31m", *(f"name {j}" for j in range(10))]
    named = lt.audit.find_missing(
        lt.baselines.NearestNeighbors(),
        X[:300],
        observed[:300],
        folds=2,
        label_names=names,
        title="<i>",
    )
    html = named.to_html(tmp_path / "audit.html")
    assert (tmp_path / "audit.html").read_text("utf-8") == html
    parser = _Nesting()
    parser.feed(html)
    assert not parser.open and "b" not in parser.tags and "i" not in parser.tags
    assert "\x1b" not in html + str(named) and "http" not in html
    assert named._repr_html_().startswith('<div class="lt-report">')


def test_refusals(problem) -> None:
    X, _, observed, _ = problem
    with pytest.raises(ValueError, match=r"\bY\b"):
        lt.audit.find_missing(lt.OneVsAll(), X, sp.csr_matrix(observed.shape))
    with pytest.raises(TypeError, match="predict_topk"):
        lt.audit.find_missing(lt.JainPropensity(), X, observed)
    with pytest.raises(ValueError, match="rows"):
        lt.audit.find_missing(lt.OneVsAll(), X[:10], observed)
    with pytest.raises(ValueError, match="folds"):
        lt.audit.find_missing(lt.OneVsAll(), X, observed, folds=1)
    with pytest.raises(ValueError, match="propensity"):
        lt.audit.find_missing(lt.OneVsAll(), X, observed, propensity={})
    with pytest.raises(ValueError, match="label_names"):
        lt.audit.find_missing(lt.OneVsAll(), X, observed, label_names=["a"])


def test_dropped_labels_follow_their_propensities() -> None:
    Y = sp.csr_matrix(np.ones((5000, 3), np.float32))
    p = np.array([1.0, 0.5, 0.05])
    kept = drop_labels(Y, p, random_state=0)
    assert np.abs(np.asarray(kept.mean(axis=0)).ravel() - p).max() < 0.02
    assert (drop_labels(Y, p, random_state=0) != kept).nnz == 0
    assert (drop_labels(Y, np.ones(3)) != Y).nnz == 0


def test_injection_measures_what_it_says(problem) -> None:
    X, Y, _, p = problem
    train, test = slice(0, 2000), slice(2000, 3000)
    done = injection(
        lt.OneVsAll(loss="logistic"),
        X[train],
        Y[train],
        X[test],
        Y[test],
        p,
        {"another model": lt.baselines.NearestNeighbors(), "weak": {"C": 1e-4}},
        n_repeats=2,
    )
    own = lt.OneVsAll(loss="logistic").fit(X[train], Y[train]).predict_topk(X[test], 5)
    complete = done["complete labels"]
    assert complete.values["P@5"] == pytest.approx(lt.metrics.precision_at_k(Y[test], own, 5))
    assert done["no correction"].share["macro-F1@5"] == 0
    assert complete.share["macro-F1@5"] == 1
    weights = np.bincount(Y[train].indices, minlength=12)
    assert done.kept == pytest.approx((weights * p).sum() / weights.sum(), abs=0.02)
    assert "weak" in str(done) and json.dumps(done.to_dict())
    with pytest.raises(KeyError, match=r"nothing.*no correction"):
        done["nothing"]
    with pytest.raises(ValueError, match="no correction"):
        injection(lt.OneVsAll(), X, Y, X, Y, p, {"no correction": {}})
