"""Models estimated from data: direct ratios, the Richards curve, joint learning."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import approx_fprime

from longtail.propensity import (
    DirectPropensity,
    JointPropensity,
    PropensityWarning,
    RichardsPropensity,
)
from longtail.propensity.joint import observed_loss


class TestDirect:
    def test_ratio_of_rates(self):
        observed = np.zeros((100, 2))
        observed[:10, 0] = observed[:20, 1] = 1
        queried = np.zeros((40, 2))
        queried[:10, 0] = queried[:8, 1] = 1
        model = DirectPropensity().fit(observed, Y_queried=queried)
        np.testing.assert_allclose(model.propensity_, [0.1 / 0.25, 1.0])

    def test_only_queried_pairs_enter_the_true_rate(self):
        observed = np.zeros((10, 2))
        observed[:2] = 1
        truth = np.array([[1, 0], [0, 1], [0, 0], [0, 0]])
        asked = np.array([[1, 0], [1, 1], [0, 1], [0, 0]])
        model = DirectPropensity().fit(observed, Y_queried=truth, queried=sp.csr_matrix(asked))
        np.testing.assert_allclose(model.propensity_, [0.2 / 0.5, 0.2 / 0.5])

    def test_recovers_known_propensities(self):
        rng = np.random.default_rng(0)
        p, rate = np.array([0.1, 0.3, 0.6, 1.0]), np.array([0.2, 0.3, 0.1, 0.4])
        observed = rng.random((40_000, 4)) < rate * p
        queried = rng.random((20_000, 4)) < rate
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PropensityWarning)  # the last ratio may exceed 1
            model = DirectPropensity().fit(observed, Y_queried=queried)
        np.testing.assert_allclose(model.propensity_, p, atol=0.04)

    def test_each_rule_is_applied_and_told(self):
        observed = np.zeros((10, 3))
        observed[:6, 0] = observed[:2, 1] = 1
        queried = np.zeros((10, 3))
        queried[:3, 0] = queried[:5, 2] = 1
        with pytest.warns(PropensityWarning) as told:
            model = DirectPropensity().fit(observed, Y_queried=queried)
        text = str(told[0].message)
        assert "1 ratio(s) above 1" in text and "never observed" in text and "pooled" in text
        np.testing.assert_allclose(model.propensity_, [1.0, 1.0, 0.05 / 0.5])
        np.testing.assert_allclose(model.ratio_, [2.0, np.nan, 0.0])
        with warnings.catch_warnings():
            warnings.simplefilter("error", PropensityWarning)  # a ratio of 1 is not above it
            DirectPropensity().fit(np.eye(2), Y_queried=np.eye(2))

    def test_refusals(self):
        ones = np.ones((4, 2))
        with pytest.raises(ValueError, match="no positive"):
            DirectPropensity().fit(ones, Y_queried=np.zeros((4, 2)))
        with pytest.raises(ValueError, match="expected 2"):
            DirectPropensity().fit(ones, Y_queried=np.ones((4, 3)))
        with pytest.raises(ValueError, match="must be asked about"):
            DirectPropensity().fit(ones, Y_queried=ones, queried=np.eye(4, 2))
        with pytest.raises(ValueError, match="shape"):
            DirectPropensity().fit(ones, Y_queried=ones, queried=np.ones((3, 2)))


def nested_labels(counts):
    return (np.arange(int(np.max(counts)) + 10)[:, None] < counts).astype(np.float32)


class TestRichards:
    counts = np.array([0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610])

    @pytest.mark.parametrize("scale", ["log", "count"])
    @pytest.mark.parametrize("nu", [0.5, 1.0, 3.0])
    def test_recovers_a_curve_of_its_own_family(self, scale, nu):
        t = np.log1p(self.counts) if scale == "log" else self.counts
        known = 0.1 + 0.8 * (1 + 20 * np.exp(-8 * t / t.max())) ** (-1 / nu)
        model = RichardsPropensity(scale=scale).fit(nested_labels(self.counts), propensity=known)
        np.testing.assert_allclose(model.propensity_, known, atol=2e-3)
        assert model.rmse_ < 2e-3

    @settings(max_examples=12, deadline=None)
    @given(hnp.arrays(np.float64, 15, elements=st.floats(0.0, 1.5)))
    def test_any_targets_give_a_monotone_curve_in_range(self, targets):
        model = RichardsPropensity().fit(nested_labels(self.counts), propensity=targets)
        curve = model.curve(np.arange(0, 5000, 7))
        assert (np.diff(curve) >= -1e-12).all()
        assert ((curve > 0) & (curve <= 1)).all()
        # never worse than the best constant, which is a member of the family
        clipped = np.minimum(targets, 1.0)
        assert model.rmse_ <= np.std(clipped) + 1e-4

    def test_no_better_fit_is_found_from_random_starts(self):
        rng = np.random.default_rng(5)
        known = np.clip(0.2 + 0.1 * np.log1p(self.counts) + rng.normal(0, 0.05, 15), 0.01, 1)
        model = RichardsPropensity().fit(nested_labels(self.counts), propensity=known)
        t = np.log1p(self.counts)

        def rmse(v):
            low, high = np.sort(v[:2])
            return np.sqrt(
                np.mean(
                    (low + (high - low) * (1 + v[2] * np.exp(-v[3] * t)) ** (-1 / v[4]) - known)
                    ** 2
                )
            )

        tries = rng.random((20_000, 5)) * [0.5, 1, 50, 4, 4] + [0, 0, 0, 0, 0.02]
        assert model.rmse_ <= min(rmse(v) for v in tries) + 1e-6

    def test_takes_a_direct_model_and_skips_its_unknown_labels(self):
        observed = nested_labels(np.array([2, 4, 8, 16, 32, 40]))
        queried = (np.arange(20)[:, None] < [4, 6, 8, 0, 14, 16]).astype(float)
        with pytest.warns(PropensityWarning, match="pooled"):
            direct = DirectPropensity().fit(observed, Y_queried=queried)
        from_model = RichardsPropensity().fit(observed, propensity=direct)
        from_vector = RichardsPropensity().fit(observed, propensity=direct.ratio_)
        np.testing.assert_array_equal(from_model.propensity_, from_vector.propensity_)

    def test_refusals_and_warning(self):
        Y = nested_labels(np.array([1, 2, 3]))
        with pytest.warns(PropensityWarning, match="only 3 distinct"):
            RichardsPropensity().fit(Y, propensity=[0.1, 0.2, 0.3])
        with warnings.catch_warnings():
            warnings.simplefilter("error", PropensityWarning)
            five = nested_labels(np.arange(1, 6))
            RichardsPropensity().fit(five, propensity=[0.1, 0.2, 0.3, 0.4, 0.5])
        with pytest.raises(ValueError, match="scale"):
            RichardsPropensity(scale="linear").fit(Y, propensity=[0.1, 0.2, 0.3])
        with pytest.raises(ValueError, match="has 3 labels"):
            RichardsPropensity().fit(Y, propensity=[0.1, 0.2])
        with pytest.raises(ValueError, match="every entry is NaN"):
            RichardsPropensity().fit(Y, propensity=[np.nan] * 3)
        with pytest.raises(ValueError, match="infinite or negative"):
            RichardsPropensity().fit(Y, propensity=[0.1, -1.0, 0.2])


class TestJoint:
    @settings(max_examples=30, deadline=None)
    @given(st.integers(0, 10**6), st.floats(0.01, 8.0))
    def test_gradient(self, seed, spread):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(12, 3)), (rng.random(12) < 0.4) * rng.choice([1.0, 0.5], 12)
        v = spread * rng.normal(size=5)
        gradient = observed_loss(v, X, y, 0.3, 0.7, 0.1)[1]
        numeric = approx_fprime(v, lambda u: observed_loss(u, X, y, 0.3, 0.7, 0.1)[0], 1e-6)
        np.testing.assert_allclose(gradient, numeric, rtol=1e-3, atol=2e-4)

    def test_loss_is_the_plain_formula(self):
        rng = np.random.default_rng(1)
        X, y, v = rng.normal(size=(9, 2)), (rng.random(9) < 0.5).astype(float), rng.normal(size=4)
        q = 1 / (1 + np.exp(-v[3])) / (1 + np.exp(-(X @ v[:2] + v[2])))
        plain = -(y * np.log(q) + (1 - y) * np.log(1 - q)).sum()
        plain += 0.5 * 0.3 * (v[:2] ** 2).sum() + 0.5 * 0.7 * (v[3] - 0.1) ** 2
        assert observed_loss(v, X, y, 0.3, 0.7, 0.1)[0] == pytest.approx(plain, rel=1e-12)

    def test_extreme_scores_stay_finite(self):
        X, y = np.array([[1e4], [-1e4], [0.0]]), np.array([0.0, 1.0, 1.0])
        for theta in (-700.0, 700.0):
            value, gradient = observed_loss(np.array([1.0, 0.0, theta]), X, y, 0.0, 1.0, 0.0)
            assert np.isfinite(value) and np.isfinite(gradient).all()

    def test_recovers_known_propensities_on_sparse_features(self):
        rng = np.random.default_rng(0)
        p = np.array([0.2, 0.4, 0.7, 0.95])
        X = rng.normal(size=(4000, 4)) * (rng.random((4000, 4)) < 0.7)
        relevant = 5 * X @ rng.normal(size=(4, 4)) > rng.logistic(size=(4000, 4))
        observed = sp.csr_matrix(relevant & (rng.random((4000, 4)) < p))
        sparse = JointPropensity().fit(observed, X=sp.csr_matrix(X)).propensity_
        np.testing.assert_allclose(sparse, p, atol=0.06)
        dense = JointPropensity().fit(observed, X=X).propensity_
        np.testing.assert_allclose(dense, sparse, atol=1e-3)

    def test_prior_rules_where_the_data_is_silent(self):
        X = np.zeros((50, 1))  # nothing to tell relevance from missingness
        Y = np.zeros((50, 2))
        Y[:10, 0] = 1
        with pytest.warns(PropensityWarning, match=r"1 label\(s\) have no observed positive"):
            model = JointPropensity(prior=0.3).fit(Y, X=X)
        np.testing.assert_allclose(model.propensity_, [0.3, 0.3], atol=0.02)
        assert model.propensity_[1] == 0.3

    def test_tells_when_iterations_run_out(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 5))
        with pytest.warns(PropensityWarning, match="did not converge"):
            JointPropensity(max_iter=1).fit(X[:, :1] > 0, X=X)
        with warnings.catch_warnings():
            warnings.simplefilter("error", PropensityWarning)  # nothing to tell
            JointPropensity().fit(X[:, :1] + rng.normal(size=(200, 1)) > 0, X=X)

    def test_refusals(self):
        X, Y = np.ones((4, 2)), np.ones((4, 1))
        for params in ({"prior": 0.0}, {"prior": 1.0}, {"l2": -1.0}, {"prior_strength": 0.0}):
            with pytest.raises(ValueError, match="prior"):
                JointPropensity(**params).fit(Y, X=X)
        with pytest.raises(ValueError, match="same rows"):
            JointPropensity().fit(np.ones((3, 1)), X=X)
        with pytest.raises(ValueError, match="at least one"):
            JointPropensity().fit(np.ones((0, 1)), X=np.ones((0, 2)))
        with pytest.raises(ValueError, match="at least one"):
            JointPropensity().fit(np.ones((4, 0)), X=X)

    def test_one_row_one_label_and_no_penalty_will_do(self):
        model = JointPropensity(l2=0.0).fit([[1.0]], X=[[1.0]])
        assert model.propensity_.shape == (1,)
