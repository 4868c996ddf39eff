"""The formula of Jain et al.: exact cases, identities, the official file, and the corners of its
domain.
"""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from longtail.propensity import FixedPropensity, JainPropensity, PropensityWarning

constants = st.tuples(st.floats(0.0, 3.0), st.floats(0.01, 50.0))


def labels_with_counts(n_rows: int, counts: list[int]) -> np.ndarray:
    return (np.arange(n_rows)[:, None] < np.asarray(counts)).astype(np.float32)


def test_exact_cases():
    p = JainPropensity(a=0.55, b=1.5).fit(labels_with_counts(50, [1, 25])).propensity_
    np.testing.assert_allclose(p, [0.2556222, 0.5571545], atol=5e-8)


@given(constants, st.integers(3, 10**9))
def test_one_positive_gives_one_over_log_n(ab, n_rows):
    a, b = ab
    p = JainPropensity(a=a, b=b).fit_counts([1], n_rows).propensity_
    np.testing.assert_allclose(p, 1.0 / np.log(n_rows), rtol=1e-12)


@given(constants, st.lists(st.integers(0, 1000), min_size=1, max_size=50))
def test_monotone_and_in_range(ab, counts):
    a, b = ab
    p = JainPropensity(a=a, b=b).fit_counts(np.sort(counts), 1000).propensity_
    assert (np.diff(p) >= 0).all()
    assert ((p > 0) & (p <= 1)).all()


def test_tends_to_one_when_rows_and_positives_grow_together():
    p = [JainPropensity().fit_counts([n // 100], n).propensity_[0] for n in (10**3, 10**6, 10**9)]
    assert p[0] < p[1] < p[2] and p[2] > 0.99


def test_inverse_is_the_reciprocal_and_finite_without_positives():
    model = JainPropensity().fit(labels_with_counts(20, [0, 3]))
    np.testing.assert_array_equal(model.inverse_, 1.0 / model.propensity_)
    assert np.isfinite(model.inverse_).all() and (model.inverse_ >= 1).all()


@pytest.mark.parametrize("n_rows", [1, 2])
def test_below_its_domain_all_are_one_and_it_says_so(n_rows):
    with pytest.warns(PropensityWarning, match="log n - 1 is negative"):
        model = JainPropensity().fit(labels_with_counts(n_rows, [0, 1]))
    np.testing.assert_array_equal(model.propensity_, [1.0, 1.0])


def test_three_rows_are_inside_its_domain():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert JainPropensity().fit(labels_with_counts(3, [1])).propensity_[0] == pytest.approx(
            1 / np.log(3)
        )


def test_agrees_with_the_official_file(tmp_path):
    root = os.environ.get("LONGTAIL_DATA")
    if not root:
        pytest.skip("LONGTAIL_DATA is not set")
    folder = Path(root) / "EURLex-4K-labels-only"
    official = FixedPropensity.read_inverse(folder / "inv_prop.txt")
    rows = (folder / "trn_X_Y.txt").read_text().splitlines()
    ids = [[int(pair.partition(":")[0]) for pair in row.split()] for row in rows[1:]]
    counts = np.bincount(np.concatenate([np.asarray(row, int) for row in ids]), minlength=3993)
    ours = JainPropensity(a=0.55, b=1.5).fit_counts(counts, len(ids)).inverse_
    assert (counts == 0).sum() == 207
    # the file prints five significant digits
    printed = np.array([float(f"{value:.5g}") for value in ours])
    np.testing.assert_array_equal(printed, official.inverse_.round(9))


def test_soft_labels_count_with_their_value():
    Y = sp.csr_matrix(np.array([[0.5, 1.0], [0.5, 0.0], [0.0, 0.0], [0.0, 0.0]]))
    p = JainPropensity().fit(Y).propensity_
    assert p[0] == p[1]


@pytest.mark.parametrize(
    "params", [{"a": -0.1}, {"b": 0.0}, {"b": -1.0}, {"a": np.nan}, {"b": np.inf}]
)
def test_refuses_constants_outside_their_domain(params):
    with pytest.raises(ValueError, match="must be"):
        JainPropensity(**params).fit(labels_with_counts(10, [1]))


def test_refuses_what_is_no_label_matrix():
    with pytest.raises(TypeError, match="must be a number"):
        JainPropensity(a="0.5").fit(labels_with_counts(10, [1]))
    with pytest.raises(ValueError, match="at least one row and one label"):
        JainPropensity().fit(np.zeros((0, 3)))
    with pytest.raises(ValueError, match="at least one row and one label"):
        JainPropensity().fit(np.zeros((3, 0)))
    with pytest.raises(ValueError, match="positives in 10 rows"):
        JainPropensity().fit_counts([11], 10)
    with pytest.raises(ValueError, match="finite and not negative"):
        JainPropensity().fit_counts([-1], 10)


@pytest.mark.parametrize(
    ("name", "constants"),
    [
        ("WikiLSHTC-325K", (0.5, 0.4)),
        ("Amazon-670K", (0.6, 2.6)),
        ("amazon-3m", (0.6, 2.6)),
        ("EURLex-4K", (0.55, 1.5)),
        ("Wiki10-31K", (0.55, 1.5)),
    ],
)
def test_constants_of_the_public_benchmarks(name, constants):
    model = JainPropensity.for_dataset(name)
    assert (model.a, model.b) == constants


def test_misspelt_benchmark_does_not_get_the_default():
    with pytest.raises(KeyError, match="did you mean"):
        JainPropensity.for_dataset("Amazzon-670K")
