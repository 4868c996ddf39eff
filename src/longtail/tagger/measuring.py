"""How good answers are: the report, and what leaning towards rare labels costs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from longtail import metrics
from longtail._validation import check_same_rows
from longtail.answers import TopK
from longtail.data.row_filter import Overlap
from longtail.ensemble import Ensemble
from longtail.propensity import JainPropensity
from longtail.report import Report, evaluate
from longtail.report.alternatives import PartResult, measure_parts
from longtail.tagger.abilities import searching
from longtail.tagger.answering import answers_from
from longtail.tagger.held_out import CANDIDATES
from longtail.tagger.seen import trained_note
from longtail.tagger.truth import Truth, unknown_note

if TYPE_CHECKING:
    from longtail.tagger.tagger import Tagger

__all__ = ["lean_curve", "part_results", "report_on"]

STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)


def report_on(
    tagger: Tagger, truth: Truth, top: TopK, seen: Overlap | None = None, **options: Any
) -> Report:
    """Return the report of ``longtail.evaluate`` with what the tagger knows of its training labels
    and rows.
    """
    check_same_rows(len(top), truth.Y.shape[0], "texts", "labels")
    counts, names, texts = tagger.label_counts_, tagger.label_names, tagger.label_texts_
    if truth.vocabulary is not None:
        top, counts = _placed(tagger, truth, top)
        if texts is not None:
            known = dict(zip(names, texts, strict=True))
            texts = [known.get(name, "") for name in truth.vocabulary.names]
        names = truth.vocabulary.names
    report = evaluate(
        truth.Y,
        top,
        propensity=JainPropensity().fit_counts(counts, tagger.n_rows_),
        train_Y=_with_counts(counts, tagger.n_rows_),
        label_names=names,
        label_texts=texts,
        **options,
    )
    notes = (
        trained_note(seen, truth.Y, top, report.ks[0]),
        unknown_note(truth, top, max(report.ks)),
    )
    said = tuple(note for note in notes if note is not None)
    facts = replace(report.facts, trained_rows=None if seen is None else seen.n_rows)
    return replace(report, facts=facts, warnings=(*said, *report.warnings))


def part_results(tagger: Tagger, texts: Any, truth: Truth, top: TopK) -> tuple[PartResult, ...]:
    """Return what every part of a fused model adds; empty for other models, and for one that was
    loaded, which no longer knows.
    """
    model = tagger.model_
    if not (isinstance(model, Ensemble) and model.knows_parts):
        return ()
    X = tagger.transform(texts)
    counts = tagger.label_counts_

    def placed(top: TopK) -> TopK:
        return top if truth.vocabulary is None else _placed(tagger, truth, top)[0]

    if truth.vocabulary is not None:
        counts = _placed(tagger, truth, top)[1]
    alone = {name: placed(found) for name, found in model.answers_of_parts(X, top.k).items()}
    left = {name: placed(found) for name, found in model.answers_without_parts(X, top.k).items()}
    propensity = JainPropensity().fit_counts(counts, tagger.n_rows_)
    return measure_parts(truth.Y, placed(top), alone, left, propensity, seconds=model.part_seconds)


def _placed(tagger: Tagger, truth: Truth, top: TopK) -> tuple[TopK, np.ndarray]:
    """Return answers in the label ids of the truth, and the training counts of its labels."""
    assert truth.vocabulary is not None
    ids = np.array([truth.vocabulary.id(name) for name in tagger.label_names], np.int32)
    indices = np.where(top.indices >= 0, ids[top.indices], -1).astype(np.int32)
    counts = np.zeros(len(truth.vocabulary), np.int64)
    counts[ids] = tagger.label_counts_
    return TopK._trusted(indices, top.scores, len(counts)), counts


def lean_curve(
    tagger: Tagger, texts: Any, truth: Truth, *, k: int = 5, plain: TopK | None = None
) -> list[dict[str, float]]:
    """Return precision, recall and coverage of the labels present, at k, for some values of
    ``tail``.

    ``plain``: the answers without a lean, where they are there already.
    """
    X = tagger.transform(texts)
    check_same_rows(X.shape[0], truth.Y.shape[0], "texts", "labels")
    candidates = searching(tagger.model_)(X, max(k, CANDIDATES))
    out = []
    for tail in STEPS:
        if tail:
            top = answers_from(tagger, candidates, k, tail)
        else:
            top = tagger.rank(X, k) if plain is None else plain.head(k)
        if truth.vocabulary is not None:
            top, _ = _placed(tagger, truth, top)
        out.append(
            {
                "tail": float(tail),
                f"P@{k}": metrics.precision_at_k(truth.Y, top, k=k),
                f"R@{k}": metrics.recall_at_k(truth.Y, top, k=k),
                f"coverage present@{k}": metrics.coverage_at_k(truth.Y, top, k=k, labels="present"),
            }
        )
    return [{name: float(value) for name, value in point.items()} for point in out]


def _with_counts(counts: np.ndarray, n_rows: int) -> sp.csc_matrix:
    """Return a label matrix with these counts: all that an evaluation asks of the training
    labels.
    """
    counts = np.minimum(counts, n_rows)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    rows = np.arange(indptr[-1]) - np.repeat(indptr[:-1], counts)
    ones = np.ones(len(rows), np.float32)
    return sp.csc_matrix((ones, rows, indptr), shape=(n_rows, len(counts)))
