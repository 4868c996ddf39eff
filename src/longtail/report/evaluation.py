"""``evaluate``: one call from answers to a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from longtail import __version__, metrics
from longtail._forms import answers_of
from longtail._validation import as_k, as_labels, as_seed
from longtail.answers.topk import TopK
from longtail.metrics.named import number_names
from longtail.metrics.propensity_scored import inverse_propensities
from longtail.propensity.base import model_name
from longtail.report.alternatives import by_rule, match_rules
from longtail.report.calibration import measure_calibration
from longtail.report.facts import gather
from longtail.report.measure import as_ks, measure
from longtail.report.slices import by_bin, single_labels
from longtail.report.summary import Report
from longtail.report.trust import notes

__all__ = ["evaluate"]


def evaluate(
    Y_true: Any,
    top: Any,
    *,
    propensity: Any = None,
    train_Y: Any = None,
    k: int | Sequence[int] = (1, 3, 5),
    filters: Any = None,
    probabilities: bool = False,
    rules: Mapping[str, Any] | None = None,
    label_names: Sequence[str] | None = None,
    label_texts: Sequence[str] | None = None,
    title: str = "Evaluation",
    n_bins: int = 5,
    n_listed: int = 500,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Report:
    """Measure answers against the truth and say which of the numbers to trust.

    docs/metrics.md has the rules that tell the forms of labels and answers apart.

    Parameters
    ----------
    Y_true : matrix of shape (n, L), or list of lists of int or str
        True labels, in any form that ``longtail`` accepts; names are those of ``label_names`` or,
        without it, those that occur.
    top : TopK, array of int, lists of int or str, or matrix of shape (n, L)
        A ``TopK`` at least ``max(k)`` wide; ranked label ids or names, best first; or scores.
    propensity : propensity model or array of shape (L,), default=None
        A fitted model (any object with ``inverse_``) or a vector of propensities; without it there
        are no propensity-scored metrics.
    train_Y : matrix of shape (n, L), default=None
        The training labels; for head-to-tail bins by training frequency and for warnings about
        labels never seen. Without it the bins go by test frequency, and the report says so.
    k : int or sequence of int, default=(1, 3, 5)
        One or several cut-offs.
    filters : array of shape (m, 2), default=None
        Pairs of row and label that are removed from the answers before they are
        ranked; give more than ``max(k)`` answers per row then.
    probabilities : bool, default=False
        Whether the scores of ``top`` are probabilities (``predict_proba_topk``); the report then
        has their calibration error and a reliability plot, over the first ``max(k)`` answers.
    rules : mapping of str to answers, default=None
        Answers of other decision rules to the same rows, by name (in any form of ``top``): the
        report shows every rule from head to tail, and says in a sentence what each changes for
        rare labels and what it costs on frequent ones.
    label_names : sequence of str, default=None
        L names in the order of ids, for the lists of single labels and for labels given by name.
    label_texts : sequence of str, default=None
        What they are called in words, in the same order, shown with the names.
    title : str, default="Evaluation"
        What the report is called.
    n_bins : int, default=5
        Bins from head to tail.
    n_listed : int
        Most labels in the table of single labels.
    n_resamples, confidence : int; float
        Of the bootstrap; 0 resamples for no intervals. Very large data gets fewer resamples
        (``settings`` records how many), and metrics over labels get none where not even 50 are
        affordable.
    random_state, n_jobs : int, Generator, RandomState or None; int or None
        Seed of the resamples; threads, which change no result.

    Refuses what the metrics refuse: other numbers of rows or labels, ids out of range, rankings
    that are too short, forms that could mean two things.

    >>> evaluate([[0], [1]], [[0, 1], [1, 0]], k=1, n_resamples=0)["P@1"]  # ranked ids
    1.0
    >>> report = evaluate([[0], [1]], np.array([[0.9, 0.2], [0.8, 0.3]]), k=1, n_resamples=0)
    >>> report["P@1"]
    0.5
    >>> report.warnings[0].code
    'few-rows'
    """
    ks = as_ks(k)
    if not isinstance(top, metrics.Matches):
        label_names, Y_true, (top,) = number_names(Y_true, [top], label_names)
        # Lists do not say how many labels there are; the other arguments may.
        width = _width(top, train_Y, propensity, label_names)
        if width is not None and len(getattr(Y_true, "shape", ())) != 2:
            Y_true = as_labels(Y_true, n_labels=width, name="Y_true")
    if filters is not None:
        top = metrics.filter_predictions(top, filters, max(ks))
    matches = metrics.match(Y_true, top, max(ks), n_jobs=n_jobs)
    n_labels = matches.n_labels
    if not matches.n_rows or not n_labels:
        raise ValueError(
            f"Y_true has {matches.n_rows} rows and {n_labels} labels: there is nothing to evaluate"
        )
    train_counts, n_train = _train_counts(train_Y, n_labels)
    for name, given in (("label_names", label_names), ("label_texts", label_texts)):
        if given is not None and len(given) != n_labels:
            what = name.removeprefix("label_")
            raise ValueError(f"{name} has {len(given)} {what}, but there are {n_labels} labels")
    inverse = None if propensity is None else inverse_propensities(propensity, n_labels)
    positives = matches.label_counts(ks[0]).positives
    bins = metrics.frequency_bins(positives if train_counts is None else train_counts, n_bins)
    constants = None if inverse is None else _describe(propensity, inverse)
    others = match_rules(rules, matches, max(ks), filters, n_jobs, label_names)
    measured, resamples = measure(
        matches, ks, propensity, n_resamples, confidence, as_seed(random_state), n_jobs
    )
    said = (label_names, label_texts, train_counts)
    missed, overpredicted, listed = single_labels(
        matches, list(others.values()), max(ks), as_k(n_listed, "n_listed"), *said
    )
    report = Report(
        title=str(title),
        ks=ks,
        facts=gather(matches, ks, train_counts, n_train, filters),
        metrics=measured,
        bins=by_bin(matches, bins, ks),
        missed=missed,
        overpredicted=overpredicted,
        propensity=constants,
        warnings=(),
        settings={
            "bins_from": "test" if train_counts is None else "train",
            "confidence": float(confidence),
            **resamples,
            "random_state": int(random_state) if isinstance(random_state, Integral) else None,
            "longtail": __version__,
        },
        calibration=measure_calibration(matches, max(ks), bins) if probabilities else None,
        rules=by_rule(others, matches, bins, max(ks)),
        labels=listed,
    )
    return replace(report, warnings=notes(report, positives, inverse))


def _width(top: Any, train_Y: Any, propensity: Any, label_names: Any) -> int | None:
    """Return the number of labels, from the first argument that knows it."""
    if isinstance(top, TopK) and top.n_labels is not None:
        return top.n_labels
    form, answers = ("ids", None) if isinstance(top, TopK) else answers_of(top)
    matrices: list[Any] = [answers, train_Y] if form == "scores" else [train_Y]
    for matrix in matrices:
        if len(getattr(matrix, "shape", ())) == 2:
            return int(matrix.shape[1])
    for vector in (getattr(propensity, "inverse_", propensity), label_names):
        if vector is not None:
            return len(vector)
    return None


def _train_counts(train_Y: Any, n_labels: int) -> tuple[np.ndarray | None, int | None]:
    if train_Y is None:
        return None, None
    train = as_labels(train_Y, n_labels=n_labels, name="train_Y")
    return np.bincount(train.indices, weights=train.data, minlength=n_labels), train.shape[0]


def _describe(propensity: Any, inverse: np.ndarray) -> dict[str, Any]:
    if hasattr(propensity, "describe"):
        return dict(propensity.describe())
    high, low = float(inverse.max()), float(inverse.min())
    return {
        "model": model_name(propensity),
        "n_labels": len(inverse),
        "min": 1.0 / high if high else None,
        "max": 1.0 / low if low else None,
    }
