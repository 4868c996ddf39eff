"""The online rule: one step of block ascent a row, running counts, feedback, forgetting."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from decide_cases import as_binary, expected, f1

import longtail as lt
from longtail import BlockCoordinateAscent
from longtail._models import from_state
from longtail.decide import OnlineRule, TopKRule


def replay(eta, k):
    """Row by row from the definition, macro-F1, in counts."""
    eta = np.asarray(eta, np.float32).astype(np.float64)
    t, q, p = np.zeros((3, eta.shape[1]))
    out = []
    for row in eta:
        p = p + row
        now = f1(t, q - t, p - t, 0)
        then = f1(t + row, q + 1 - t - row, p - t - row, 0)
        best = np.lexsort((np.arange(len(row)), -row, -(then - now)))[:k]
        t[best] += row[best]
        q[best] += 1
        out.append(sorted(best.tolist()))
    return out, t, q, p


def test_agrees_with_the_definition_and_in_any_pieces() -> None:
    rng = np.random.default_rng(0)
    eta = rng.random((80, 12)) ** 2
    expected_sets, t, q, p = replay(eta, 3)
    whole = OnlineRule("macro_f1", k=3)
    answer = whole.select(eta)
    assert [sorted(row) for row in answer.indices.tolist()] == expected_sets
    for have, want in ((whole.t_, t), (whole.q_, q), (whole.p_, p)):
        np.testing.assert_allclose(have, want, rtol=1e-12)
    pieces = OnlineRule("macro_f1", k=3, n_labels=12)
    rows = [pieces.select(eta[i : i + 1]) for i in range(80)]
    assert [sorted(r.indices[0].tolist()) for r in rows] == expected_sets
    assert pieces.n_rows_ == 80


def test_better_than_plain_top_k_and_below_the_batch() -> None:
    rng = np.random.default_rng(1)
    eta = rng.random((500, 40)) ** 4 * np.linspace(1, 0.1, 40)
    values = {}
    batch = BlockCoordinateAscent("macro_f1", k=3, random_state=0)
    for name, rule in {"top": TopKRule(k=3), "online": OnlineRule(k=3), "batch": batch}.items():
        values[name] = expected("macro_f1", eta, as_binary(rule.select(eta), 40))
    assert values["top"] + 0.02 < values["online"] <= values["batch"]


def test_truth_replaces_expectation() -> None:
    eta = np.array([[0.9, 0.5, 0.2], [0.8, 0.1, 0.6]])
    rule = OnlineRule("macro_f1", k=1)
    chosen = rule.select(eta)
    Y = np.array([[0, 1, 0], [1, 0, 1]])
    rule.correct(eta, chosen, Y)
    np.testing.assert_allclose(rule.p_, [1, 1, 1], atol=1e-6)
    hits = [(as_binary(chosen, 3) * Y)[:, j].sum() for j in range(3)]
    np.testing.assert_allclose(rule.t_, hits, atol=1e-6)


def test_older_rows_fade() -> None:
    eta = np.full((2000, 2), [[0.9, 0.3]])
    rule = OnlineRule("macro_f1", k=1, half_life=10)
    rule.select(eta)
    total = rule.n_rows_ / (rule.weight_ / 2 ** (1 / 10))
    assert total == pytest.approx(1 / (1 - 2 ** (-1 / 10)), rel=1e-6)
    assert np.isfinite([*rule.t_, *rule.q_]).all()
    for bad in (0.5, np.nan):
        with pytest.raises(ValueError, match="half_life"):
            OnlineRule(half_life=bad).select(eta)


def test_state_travels(tmp_path) -> None:
    rng = np.random.default_rng(2)
    eta = rng.random((30, 6))
    rule = OnlineRule("macro_f1", k=2)
    rule.select(eta[:20])
    rule.save(tmp_path / "rule")
    copies = [lt.load(tmp_path / "rule"), pickle.loads(pickle.dumps(rule))]
    expected_answer = rule.select(eta[20:])
    for copy in copies:
        assert copy.select(eta[20:]) == expected_answer
    state = rule._get_state()
    state.meta["weight"] = 0.0
    with pytest.raises(lt.ModelFormatError, match="weight"):
        from_state(state)
    rule.reset()
    assert rule.n_rows_ == 0 and not rule.t_.any()
    assert from_state(rule._get_state()).n_rows_ == 0
