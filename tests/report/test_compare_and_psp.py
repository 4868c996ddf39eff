"""Reports side by side, and what normalisation hides."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail import metrics
from longtail.propensity import FixedPropensity
from longtail.report import compare, psp_diagnostic

rng = np.random.default_rng(0)
TRUTH = sp.csr_matrix((rng.random((400, 30)) < 0.15).astype(float))
GOOD = TRUTH.toarray() * 0.8 + rng.random((400, 30))
POOR = rng.random((400, 30))


def evaluated(scores, **options):
    return lt.evaluate(TRUTH, scores, **{"k": (1, 5), "n_resamples": 100, **options})


class TestCompare:
    def test_best_is_marked(self):
        found = compare({"good": evaluated(GOOD), "poor": evaluated(POOR)})
        assert found.best["P@5"] == ("good",) == found.best["Hamming@5"]
        text = str(found)
        row = next(line for line in text.splitlines() if line.startswith("  P@5"))
        assert row.count("*") == 1 and row.index("*") < len(row) - 1
        plain = json.loads(json.dumps(found.to_dict()))
        assert plain["models"] == ["good", "poor"]
        assert plain["metrics"]["P@5"]["good"] == metrics.precision_at_k(TRUTH, GOOD, k=5)

    def test_a_lead_within_the_interval_is_no_lead(self):
        similar = GOOD.copy()
        similar[:2] = POOR[:2]
        found = compare({"good": evaluated(GOOD), "similar": evaluated(similar)})
        assert found.best["P@5"] == ("good", "similar")
        without = compare(
            {"good": evaluated(GOOD, n_resamples=0), "similar": evaluated(similar, n_resamples=0)}
        )
        assert without.best["P@5"] == ("good",)

    def test_only_shared_metrics(self):
        p = FixedPropensity().fit(propensity=np.full(30, 0.5))
        found = compare({"a": evaluated(GOOD, propensity=p, k=(1, 3)), "b": evaluated(POOR, k=1)})
        assert "P@1" in found.metrics and not {"P@3", "PSP@1"} & set(found.metrics)

    def test_refuses_what_does_not_compare(self):
        other = lt.evaluate(TRUTH[::-1], GOOD, k=1, n_resamples=0)
        with pytest.raises(ValueError, match=r"'b'.* test set"):
            compare({"a": evaluated(GOOD), "b": other})
        one, two = (FixedPropensity().fit(propensity=np.full(30, v)) for v in (0.5, 0.6))
        with pytest.raises(ValueError, match=r"'b'.* propensities"):
            compare({"a": evaluated(GOOD, propensity=one), "b": evaluated(GOOD, propensity=two)})
        with pytest.raises(ValueError, match="reports"):
            compare({})


class TestPSP:
    def test_normalised_is_the_ratio_and_matches_the_metric(self):
        p = FixedPropensity().fit(propensity=np.linspace(0.2, 1.0, 30))
        for row in psp_diagnostic(TRUTH, GOOD, p).rows:
            assert row.model == "FixedPropensity"
            assert row.normalised == pytest.approx(row.unnormalised / row.ideal)
            assert row.normalised == metrics.ps_precision_at_k(TRUTH, GOOD, p, k=row.k)

    def test_published_case(self):
        """Inverse propensities (1, 2, 4, 10): 1.5 of 7 and 3.25 of 4.25."""
        scores = np.array([[0.9, 0.8, 0.7, 0.1], [0.1, 0.9, 0.2, 0.3]])
        p = FixedPropensity.from_inverse([1, 2, 4, 10])
        one, two = psp_diagnostic([[0, 2], [1, 3]], scores, p, k=(1, 2)).rows
        assert (one.unnormalised, one.ideal, two.unnormalised, two.ideal) == (1.5, 7.0, 3.25, 4.25)
        assert one.normalised == pytest.approx(0.2142857, abs=1e-7)
        assert two.normalised == pytest.approx(0.7647059, abs=1e-7)

    def test_right_propensities_estimate_precision_on_complete_labels(self):
        """What the models are for: under the true p the estimate is unbiased, under others not."""
        complete = (rng.random((30_000, 12)) < 0.3).astype(float)
        p = np.linspace(0.2, 0.9, 12)
        observed = complete * (rng.random(complete.shape) < p)
        scores = complete * 0.5 + rng.random(complete.shape)
        models = {"true": p, "none": np.ones(12), "too small": p / 3}
        found = psp_diagnostic(observed, scores, models, k=3, Y_complete=complete)
        by_model = {row.model: row for row in found.rows}
        exact = metrics.precision_at_k(complete, scores, k=3)
        assert by_model["true"].complete == exact
        assert by_model["true"].unnormalised == pytest.approx(exact, abs=0.01)
        assert by_model["none"].unnormalised < exact - 0.2
        assert by_model["too small"].unnormalised > 1
        # normalised, the wrong model cannot be told from the right one
        assert by_model["too small"].normalised == pytest.approx(by_model["true"].normalised)
        assert len(found.warnings) == 1 and found.warnings[0].startswith("too small: ")
        assert found.implied_labels["true"] == pytest.approx(12 * 0.3, abs=0.05)
        assert found.observed_labels == pytest.approx(observed.sum(axis=1).mean())
        assert "P, complete labels" in str(found)
        json.dumps(found.to_dict())

    def test_refusals(self):
        with pytest.raises(ValueError, match="propensity"):
            psp_diagnostic(TRUTH, GOOD, {})
        with pytest.raises(ValueError, match=r"\bk\b"):
            psp_diagnostic(TRUTH, GOOD, np.ones(30), k=[])
        with pytest.raises(ValueError, match="30 labels"):
            psp_diagnostic(TRUTH, GOOD, np.ones(3))
