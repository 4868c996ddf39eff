"""Trade-off curves: ends, front, measured values, the drawing."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import longtail as lt
from longtail import metrics


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    eta = (rng.random((400, 40)) ** 6 * np.linspace(1, 0.1, 40)).astype(np.float32)
    return eta, (rng.random(eta.shape) < eta).astype(np.float32)


def test_ends_and_front(problem) -> None:
    eta, Y = problem
    curve = lt.tradeoff(eta, k=3, Y_true=Y, random_state=0)
    by_name = {point.name: point for point in curve.points}
    top = lt.decide.TopKRule(k=3).select(eta)
    assert by_name["mixture w=1"].expected == pytest.approx(by_name["top k"].expected)
    assert by_name["top k"].measured[0] == pytest.approx(metrics.precision_at_k(Y, top, 3))
    assert by_name["top k"].measured[1] == pytest.approx(metrics.macro_f1_at_k(Y, top, 3))
    rule = lt.BlockCoordinateAscent("macro_f1", k=3, random_state=0)
    rule.select(eta)
    assert by_name["mixture w=0"].expected[1] == pytest.approx(rule.utility_)
    for point in curve.points:
        others = [o.values for o in curve.points]
        dominated = any(
            o[0] >= point.values[0] and o[1] >= point.values[1] and o != point.values
            for o in others
        )
        assert point.on_front != dominated
    firsts = [point.values[0] for point in curve.front]
    assert firsts == sorted(firsts, reverse=True)


def test_the_curve_bends_the_right_way(problem) -> None:
    """Expected values: more weight on precision, more precision and less macro-F1."""
    eta, _ = problem
    curve = lt.tradeoff(eta, k=3, weights=[0, 0.5, 0.9, 1], compare=False)
    mixed = [point.expected for point in curve.points if point.weight is not None]
    assert len(curve.points) == 5
    assert all(a[0] <= b[0] + 1e-3 for a, b in itertools.pairwise(mixed))
    assert all(a[1] >= b[1] - 1e-3 for a, b in itertools.pairwise(mixed))
    chosen = curve.choose(keep=0.9)
    assert chosen.expected[0] >= 0.9 * mixed[-1][0]
    again = curve.rule(chosen)
    again.select(eta)
    w = chosen.weight
    assert again.utility_ == pytest.approx((1 - w) * chosen.expected[1] + w * chosen.expected[0])


def test_other_order_coverage_and_text(problem) -> None:
    eta, Y = problem
    curve = lt.tradeoff(eta, ("coverage", "precision"), 2, Y_true=Y, weights=[0, 1])
    top = lt.decide.TopKRule(k=2).select(eta)
    plain = next(point for point in curve.points if point.name == "top k")
    assert plain.measured[0] == pytest.approx(metrics.coverage_at_k(Y, top, 2))
    assert "coverage@2" in str(curve) and "measured" in str(curve)


def test_plot(problem, tmp_path) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    curve = lt.tradeoff(problem[0], k=3, weights=[0, 0.9, 1])
    curve.plot(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes()[:4] == b"\x89PNG"
    axes = curve.plot()
    assert axes.get_xlabel() == "precision@3, per cent"
    assert axes.get_ylabel() == "macro_f1@3, per cent"
    best = max(point.values[0] for point in curve.points)
    assert axes.dataLim.x1 == pytest.approx(100 * best)
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert "power law 1/4 to 3/4" in names and len(names) < 7


def test_refusals(problem) -> None:
    eta, Y = problem
    for arguments, message in [
        ({"metrics": ("macro_f1", "coverage")}, "precision"),
        ({"metrics": ("precision", "micro_f1")}, "unknown metric"),
        ({"weights": [2]}, "weights"),
        ({"Y_true": Y[:3]}, "rows"),
    ]:
        with pytest.raises(ValueError, match=message):
            lt.tradeoff(eta, **{"k": 2, **arguments})
    with pytest.raises(ValueError, match="eta"):
        lt.tradeoff(np.zeros((0, 3)))
    curve = lt.tradeoff(eta, k=2, weights=[1])
    with pytest.raises(ValueError, match=re.escape(curve.points[-1].name)):
        curve.rule(curve.points[-1])
    with pytest.raises(ValueError, match=r"keep.* 2"):
        curve.choose(keep=2)


def test_other_answers_and_dictionary(problem) -> None:
    eta, Y = problem
    narrow = lt.decide.TopKRule(k=2).select(eta)
    wide = lt.decide.TopKRule(k=6).select(eta)
    curve = lt.tradeoff(
        eta, k=3, Y_true=Y, weights=[0, 1], compare=False, others={"two": narrow, "six": wide}
    )
    by_name = {point.name: point for point in curve.points}
    assert by_name["six"].expected == pytest.approx(by_name["top k"].expected)  # its first three
    assert by_name["six"].measured == pytest.approx(by_name["top k"].measured)
    assert by_name["two"].measured[0] < by_name["six"].measured[0]
    plain = curve.to_dict()
    assert plain["metrics"] == ["precision@3", "macro_f1@3"]
    assert [point["name"] for point in plain["points"]] == list(by_name)
    assert curve.table(curve.front).count("*") == 1 + len(curve.front)  # one in the heading
    with pytest.raises(ValueError, match="rows"):
        lt.tradeoff(eta, k=3, others={"short": narrow[:5]})
    with pytest.raises(TypeError, match="TopK"):
        lt.tradeoff(eta, k=3, others={"matrix": eta})
    with pytest.raises(ValueError, match=r"'gains'.*probabilities"):
        lt.tradeoff(eta, k=3, others={"gains": lt.TopK(narrow.indices, 3 * narrow.scores + 1)})
