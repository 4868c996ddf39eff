"""``Popularity``: the prior, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail.exceptions import ModelFormatError
from longtail.persist import State, save


def test_scores_are_priors() -> None:
    Y = sp.csr_matrix(np.array([[1, 0, 0.5, 0], [1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 1, 0]]))
    model = lt.baselines.Popularity().fit(np.zeros((4, 2)), Y)
    np.testing.assert_allclose(model.prior_, [0.5, 0, 0.625, 0])
    top = model.predict_topk(np.zeros((3, 2)), k=4)
    assert top.indices.tolist() == [[2, 0, 1, 3]] * 3
    assert top.scores.tolist() == [[0.625, 0.5, 0, 0]] * 3
    assert model.predict_proba_topk(np.zeros((3, 2)), k=4) == top


@pytest.mark.parametrize("prior", [[0.5, np.nan], [-0.1, 0], [0, 1.5]])
def test_a_prior_that_is_none_is_refused(tmp_path, prior: list[float]) -> None:  # type: ignore[no-untyped-def]
    meta = {"n_features": 1, "n_labels": 2}
    save(tmp_path / "m", State("popularity", {}, {"prior": np.array(prior, np.float32)}, meta))
    with pytest.raises(ModelFormatError, match="prior"):
        lt.load(tmp_path / "m")
