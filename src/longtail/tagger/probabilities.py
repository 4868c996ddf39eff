"""Probabilities for a model whose scores are none.

A model must be asked about texts that it has not seen. With few texts, it is fitted again without
each of five parts in turn and asked about that part. With many, a copy is fitted without a tenth of
them (at most ``MOST_HELD_OUT``) and asked about those; the curve from its scores to probabilities
then serves the model that learned from all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._validation import as_seed

__all__ = ["calibrate"]

FEWEST = 30  # rows below which nothing can be said
FEW = 2000  # rows up to which five more trainings are nothing
MOST_HELD_OUT = 10_000


def calibrate(
    model: Any, X: Any, Y: sp.csr_matrix, *, extra: tuple[Any, Any], random_state: Any
) -> bool:
    """Calibrates the fitted model, if it can be and needs to; whether it did.

    ``X``, ``Y``: the rows it was fitted on; ``extra``: further rows of the same training that are
    no texts of the kind it will be asked about, and are never held out.
    """
    n = X.shape[0]
    able = hasattr(model, "calibrate") and not hasattr(model, "predict_proba_topk")
    if not able or n < FEWEST:
        return False
    seed = as_seed(random_state) % 2**31
    if n <= FEW and not extra[0].shape[0]:
        model.calibrate(X, Y, folds=5, random_state=seed)
        return True
    held_out = np.zeros(n, bool)
    size = min(max(n // 10, FEWEST // 3), MOST_HELD_OUT)
    held_out[np.random.default_rng(seed).permutation(n)[:size]] = True
    copy = type(model)(**model.get_params(deep=False))
    X_rest, Y_rest = X[~held_out], Y[~held_out]
    if extra[0].shape[0]:
        X_rest, Y_rest = (
            sp.vstack([X_rest, extra[0]]).tocsr(),
            sp.vstack([Y_rest, extra[1]]).tocsr(),
        )
    copy.fit(X_rest, Y_rest)
    copy.calibrate(X[held_out], Y[held_out], random_state=seed)
    model.calibrator_, model.calibration_ = copy.calibrator_, copy.calibration_
    return True
