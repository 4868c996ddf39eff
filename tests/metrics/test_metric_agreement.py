"""Agreement with other evaluators: by default where definitions agree, by compat= elsewhere."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from longtail import TopK, metrics

N, L, K = 200, 60, 5


@pytest.fixture(scope="module")
def napkinxc():
    return pytest.importorskip("napkinxc.metrics", reason="napkinxc has wheels for Linux only")


@pytest.fixture(scope="module")
def xcolumns():
    return pytest.importorskip("xcolumns.metrics")


@pytest.fixture(scope="module")
def sklearn_metrics():
    return pytest.importorskip("sklearn.metrics")


def problem(seed, graded=False, short=False):
    """Truth with empty rows and labels without support; scores without ties, some rows short."""
    rng = np.random.default_rng(seed)
    weight = rng.power(0.3, size=L)
    weight[-4:] = 0  # labels that never occur
    Y = (rng.random((N, L)) < 0.3 * weight).astype(np.float32)
    Y[:3] = 0
    if graded:
        Y *= rng.choice([0.25, 0.5, 1.0], size=Y.shape)
    scores = rng.permuted(np.tile(np.arange(1, L + 1), (N, 1)), axis=1).astype(np.float32) / L
    scores += (Y > 0) * rng.random(Y.shape).astype(np.float32)
    scores[:, -4:] = 0  # and are never predicted
    if short:
        scores *= rng.random(Y.shape) < 0.1
        scores[5] = 0
    q = 1 + 9 * rng.random(L)
    top = TopK.from_scores(sp.csr_matrix(scores), K)
    return Y, top, q


def as_lists(top):
    return [[int(j) for j in row if j >= 0] for row in top.indices]


def truth_lists(Y):
    return [list(np.flatnonzero(row)) for row in Y]


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("ours", ["precision", "recall", "dcg", "ndcg", "hit_rate"])
def test_napkinxc_ranking_metrics(napkinxc, ours, short):
    Y, top, _ = problem(1, short=short)
    name = "abandonment" if ours == "hit_rate" else ours
    theirs = getattr(napkinxc, f"{name}_at_k")(truth_lists(Y), as_lists(top), k=K)
    for k in range(1, K + 1):
        assert getattr(metrics, f"{ours}_at_k")(Y, top, k) == pytest.approx(theirs[k - 1], abs=1e-6)


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("kind", ["precision", "recall", "dcg", "ndcg"])
def test_napkinxc_propensity_scored_metrics(napkinxc, kind, normalize, short):
    Y, top, q = problem(2, short=short)
    theirs = getattr(napkinxc, f"ps{kind}_at_k")(
        truth_lists(Y), as_lists(top), q, k=K, normalize=normalize
    )
    # Its unnormalised PSDCG has a prefactor 1/k.
    compat = "napkinxc" if kind == "dcg" else None
    ours = getattr(metrics, f"ps_{kind}_at_k")
    for k in range(1, K + 1):
        value = ours(Y, top, 1 / q, k, normalize=normalize, compat=compat)
        assert value == pytest.approx(theirs[k - 1], rel=1e-6)
    if kind == "dcg" and not normalize:
        assert ours(Y, top, 1 / q, K, normalize=False) == pytest.approx(K * theirs[K - 1])


@pytest.mark.parametrize("graded", [False, True])
def test_napkinxc_compat_of_sets_and_labels(napkinxc, graded):
    Y, top, _ = problem(3, graded=graded, short=True)
    truth, predicted = truth_lists(Y), as_lists(top)
    options = {"k": K, "compat": "napkinxc"}
    for ours, theirs in [
        (
            metrics.coverage_at_k(Y, top, **options),
            napkinxc.coverage_at_k(truth, predicted, k=K)[-1],
        ),
        (metrics.hamming_loss_at_k(Y, top, **options), napkinxc.hamming_loss(truth, predicted)),
        (metrics.f1_at_k(Y, top, **options), napkinxc.samples_f1_measure(truth, predicted)),
        (metrics.micro_f1_at_k(Y, top, **options), napkinxc.micro_f1_measure(truth, predicted)),
        (metrics.macro_f1_at_k(Y, top, **options), napkinxc.macro_f1_measure(truth, predicted)),
        (metrics.precision_at_k(Y, top, **options), napkinxc.precision_at_k(truth, predicted)[-1]),
        (metrics.ndcg_at_k(Y, top, **options), napkinxc.ndcg_at_k(truth, predicted)[-1]),
    ]:
        assert ours == pytest.approx(theirs, abs=1e-6)
    # and without compat they differ, or the switch would have nothing to do
    assert metrics.coverage_at_k(Y, top, K) != metrics.coverage_at_k(Y, top, **options)
    assert metrics.macro_f1_at_k(Y, top, K) != metrics.macro_f1_at_k(Y, top, **options)
    assert metrics.hamming_loss_at_k(Y, top, K) != metrics.hamming_loss_at_k(Y, top, **options)


@pytest.mark.parametrize("ours", ["macro_precision", "macro_recall", "macro_f1_measure"])
def test_napkinxc_macro_at_k(napkinxc, ours):
    Y, top, _ = problem(4)
    theirs = getattr(napkinxc, f"{ours}_at_k")(truth_lists(Y), as_lists(top), k=K)
    metric = getattr(metrics, f"{ours.removesuffix('_measure')}_at_k")
    for k in range(1, K + 1):
        assert metric(Y, top, k, compat="napkinxc") == pytest.approx(theirs[k - 1], abs=1e-6)


def test_pecos_counts_graded_labels_as_labels():
    Y, top, _ = problem(5, graded=True)
    plain = (Y > 0).astype(np.float32)
    for metric in (metrics.precision_at_k, metrics.recall_at_k):
        assert metric(Y, top, K, compat="pecos") == metric(plain, top, K)
        assert metric(Y, top, K) != metric(plain, top, K)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("macro_precision", "macro_precision"),
        ("macro_recall", "macro_recall"),
        ("macro_f1", "macro_f1_score"),
        ("macro_balanced_accuracy", "macro_balanced_accuracy"),
        ("macro_g_mean", "macro_gmean"),
        ("micro_precision", "micro_precision"),
        ("micro_recall", "micro_recall"),
        ("micro_f1", "micro_f1_score"),
        ("micro_balanced_accuracy", "micro_balanced_accuracy"),
        ("micro_g_mean", "micro_gmean"),
        ("coverage", "coverage"),
        ("hamming_loss", "hamming_loss"),
    ],
)
def test_xcolumns(xcolumns, ours, theirs):
    Y, top, _ = problem(6, short=True)
    sparse, predicted = sp.csr_matrix(Y), top.to_csr(binary=True)
    metric = getattr(metrics, f"{ours}_at_k")
    expected = float(getattr(xcolumns, theirs)(sparse, predicted))
    assert metric(Y, top, K, compat="xcolumns") == pytest.approx(expected, abs=1e-6)
    # Its epsilon is 1e-6 of the rows: without compat we agree as far as that reaches.
    assert metric(Y, top, K) == pytest.approx(expected, abs=2e-4)


def test_xcolumns_precision_at_k(xcolumns):
    Y, top, _ = problem(7)
    theirs = xcolumns.precision_at_k(sp.csr_matrix(Y), top.to_csr(binary=True), k=K)
    assert metrics.precision_at_k(Y, top, K) == pytest.approx(float(theirs), abs=1e-6)


def test_xcolumns_epsilon_halves_the_precision_of_a_label_seen_once_in_a_million_rows():
    n = 1_000_000
    Y = sp.csr_matrix(([1.0], ([0], [0])), shape=(n, 1), dtype=np.float32)
    top = TopK._trusted(
        np.full((n, 1), -1, np.int32), np.full((n, 1), -np.inf, np.float32), n_labels=1
    )
    top.indices[0], top.scores[0] = 0, 1
    assert metrics.macro_precision_at_k(Y, top, 1) == 1
    assert metrics.macro_precision_at_k(Y, top, 1, compat="xcolumns") == pytest.approx(0.5)


@pytest.mark.parametrize("average", ["macro", "micro", "samples"])
@pytest.mark.parametrize("name", ["precision", "recall", "f1"])
def test_sklearn_sets(sklearn_metrics, name, average):
    Y, top, _ = problem(8, short=True)
    predicted = top.to_csr(binary=True).toarray()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = getattr(sklearn_metrics, f"{name}_score")(
            Y.astype(int), predicted.astype(int), average=average, zero_division=0
        )
    prefix = "" if average == "samples" else f"{average}_"
    ours = getattr(metrics, f"{prefix}{name}_at_k")
    assert ours(Y, top, K, compat="sklearn") == pytest.approx(theirs, abs=1e-6)
    if (name, average) == ("precision", "samples"):
        assert ours(Y, top, K) != pytest.approx(theirs, abs=1e-3)


def test_sklearn_hamming_loss(sklearn_metrics):
    Y, top, _ = problem(9)
    theirs = sklearn_metrics.hamming_loss(Y.astype(int), top.to_csr(binary=True).toarray())
    assert metrics.hamming_loss_at_k(Y, top, K) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("k", [1, 3, 7, L, L + 3])
def test_sklearn_ndcg_with_and_without_ties(sklearn_metrics, k, graded):
    Y, _, _ = problem(10, graded=graded)
    rng = np.random.default_rng(0)
    distinct = rng.permuted(np.tile(np.arange(L, dtype=np.float32), (N, 1)), axis=1)
    tied = rng.integers(0, 6, size=(N, L)).astype(np.float32)
    for name in ("dcg", "ndcg"):
        theirs, ours = getattr(sklearn_metrics, f"{name}_score"), getattr(metrics, f"{name}_at_k")
        assert ours(Y, distinct, k) == pytest.approx(theirs(Y, distinct, k=k), abs=1e-6)
        assert ours(Y, tied, k, compat="sklearn") == pytest.approx(theirs(Y, tied, k=k), abs=1e-6)
        m = metrics.match(Y, TopK.from_scores(tied, L))
        assert ours(None, m, k, compat="sklearn") == ours(Y, tied, k, compat="sklearn")


def test_a_tie_that_is_cut_off_cannot_be_averaged():
    scores = np.array([[2.0, 1.0, 1.0, 1.0]])
    with pytest.raises(ValueError, match=r"\b2\b.*sklearn"):
        metrics.ndcg_at_k([[1]], TopK.from_scores(scores, 3), k=2, compat="sklearn")
    value = metrics.dcg_at_k([[1]], TopK.from_scores(scores, 3), k=1, compat="sklearn")
    assert value == 0  # the run begins below rank 1
    full = metrics.dcg_at_k([[1]], scores, k=2, compat="sklearn")
    assert full == pytest.approx(1 / 3 / np.log2(3))
