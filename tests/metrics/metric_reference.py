"""Metrics written down once more from their definitions: dense, slow, a few lines each."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from longtail import TopK

LABEL_MEASURES = ("precision", "recall", "f1", "balanced_accuracy", "g_mean", "fowlkes_mallows")


@st.composite
def rankings(draw, graded=None, max_rows=12, max_labels=9):
    """(Y dense, TopK): any number of rows, empty rows, labels without support, padding, ties."""
    n, n_labels = draw(st.integers(0, max_rows)), draw(st.integers(1, max_labels))
    slots = draw(st.integers(1, n_labels + 1))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    graded = draw(st.booleans()) if graded is None else graded
    Y = (rng.random((n, n_labels)) < draw(st.sampled_from([0.1, 0.4, 0.9]))).astype(np.float32)
    if graded:
        Y *= rng.choice([0.25, 0.5, 1.0], size=Y.shape).astype(np.float32)
    scores = rng.integers(1, 5, size=Y.shape).astype(np.float32)  # ties
    kept = rng.random(Y.shape) < draw(st.sampled_from([0.3, 1.0]))  # padding
    return Y, TopK.from_scores(sp.csr_matrix(scores * kept), slots)


@st.composite
def rankings_and_k(draw, **options):
    Y, top = draw(rankings(**options))
    return Y, top, draw(st.integers(1, top.k))


def gains(Y, top, k):
    """(n, k) truth values of the first k predictions."""
    ids = top.indices[:, :k]
    return np.array(
        [[Y[i, j] if j >= 0 else 0.0 for j in row] for i, row in enumerate(ids)], np.float64
    ).reshape(len(Y), k)


def chosen(Y, top, k):
    """(n, L) indicator of the first k predictions."""
    out = np.zeros(Y.shape)
    for i, row in enumerate(top.indices[:, :k]):
        out[i, row[row >= 0]] = 1
    return out


def mean(values):
    return float(np.mean(values)) if len(values) else 0.0


def quotient(a, b):
    return np.array([x / y if y else 0.0 for x, y in zip(np.ravel(a), np.ravel(b), strict=True)])


def discount(k):
    return 1 / np.log2(np.arange(1, k + 1) + 1)


def best(Y, k, q=1.0):
    """(n, k) gains of the best ranking."""
    ordered = -np.sort(-(Y * q), axis=1)[:, :k]
    return np.pad(ordered, ((0, 0), (0, k - ordered.shape[1])))


def precision(Y, top, k):
    return mean(gains(Y, top, k).sum(1) / k)


def recall(Y, top, k):
    return mean(quotient(gains(Y, top, k).sum(1), Y.sum(1)))


def f1(Y, top, k):
    return mean(quotient(2 * gains(Y, top, k).sum(1), chosen(Y, top, k).sum(1) + Y.sum(1)))


def dcg(Y, top, k):
    return mean(gains(Y, top, k) @ discount(k))


def ndcg(Y, top, k):
    return mean(quotient(gains(Y, top, k) @ discount(k), best(Y, k) @ discount(k)))


def hit_rate(Y, top, k):
    return mean(gains(Y, top, k).sum(1) > 0)


def hamming_loss(Y, top, k):
    return mean(np.abs(Y - chosen(Y, top, k)).ravel())


def propensity_scored(Y, top, q, k, kind, normalize):
    padded = np.append(q, 0.0)
    found = gains(Y, top, k) * padded[top.indices[:, :k]]
    ideal = best(Y, k, q)
    steps = discount(k) if "dcg" in kind else np.ones(k)
    scale = {
        "precision": np.full(len(Y), float(k)),
        "recall": Y.sum(1),
        "dcg": np.ones(len(Y)),
        "ndcg": best(Y, k) @ discount(k),
    }[kind]
    above, below = mean(quotient(found @ steps, scale)), mean(quotient(ideal @ steps, scale))
    return above if not normalize else (above / below if below else 0.0)


def label_measure(name, tp, predicted, positives, n):
    """One label's measure from its counts, 0/0 = 0."""

    def div(a, b):
        return a / b if b else 0.0

    p, r = div(tp, predicted), div(tp, positives)
    specificity = div(n - predicted - positives + tp, n - positives)
    return {
        "precision": p,
        "recall": r,
        "f1": div(2 * tp, predicted + positives),
        "balanced_accuracy": (r + specificity) / 2,
        "g_mean": (r * specificity) ** 0.5,
        "fowlkes_mallows": (p * r) ** 0.5,
    }[name]


def counts(Y, top, k):
    picked = chosen(Y, top, k)
    return (Y * picked).sum(0), picked.sum(0), Y.sum(0)


def macro(name, Y, top, k, labels="all"):
    tp, predicted, positives = counts(Y, top, k)
    return mean(
        [
            label_measure(name, *c, len(Y))
            for c in zip(tp, predicted, positives, strict=True)
            if labels == "all" or c[2] > 0
        ]
    )


def micro(name, Y, top, k):
    tp, predicted, positives = (c.sum() for c in counts(Y, top, k))
    return label_measure(name, tp, predicted, positives, Y.size)


def coverage(Y, top, k):
    return mean(counts(Y, top, k)[0] > 0)
