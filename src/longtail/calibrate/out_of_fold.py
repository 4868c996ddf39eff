"""``cross_fit``: answers for every row by a copy of the model that was fitted without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._protocols import has_parameters
from longtail._validation import as_k
from longtail.answers.topk import TopK
from longtail.base import unfitted
from longtail.distributed.tasks import workers

__all__ = ["cross_fit"]

_PER_ROW = ("sample_weight", "extra_rows")  # options of fit that belong to rows


def cross_fit(
    model: Any, X: Any, Y: Any, k: int, folds: int, random_state: Any = 0, **fit_options: Any
) -> TopK:
    """Return the k best answers for each row of ``X`` (n, d), out of fold.

    Rows are cut into ``folds`` parts at random; for each part a fresh copy of ``model`` (same class
    and parameters) is fitted on the rest of (``X``, ``Y``), both canonical, and asked about it.
    ``fit_options`` go to ``fit``; ``sample_weight`` and ``extra_rows`` are cut to the rows of each
    copy. Inside ``joblib.parallel_config`` its workers fit the copies. Refuses fewer than two
    folds, or more than rows.

    Parameters
    ----------
    model : ranker
        The model; it stays as it is.
    X : matrix of shape (n, d)
        Rows of features.
    Y : matrix of shape (n, L), or list of lists of int
        Labels of the rows.
    k : int
        Answers per row.
    folds : int
        Number of parts.
    random_state : int, Generator or None, default=0
        Seed.
    **fit_options : object
        Options of ``fit``; those that belong to rows are divided with them.

    >>> import longtail as lt
    >>> data = lt.data.make_longtail(n=200, d=50, L=20, random_state=0).train
    >>> cross_fit(lt.baselines.NearestNeighbors(), data.X, data.Y, k=3, folds=4).indices.shape
    (200, 3)
    """
    from joblib import Parallel, delayed

    n, n_labels, folds = X.shape[0], Y.shape[1], as_k(folds, "folds")
    if not 2 <= folds <= n:
        raise ValueError(f"folds must lie between 2 and the number of rows, {n}, got {folds}")
    fold = np.random.default_rng(random_state).permutation(n) % folds
    out = TopK.nothing(n, k, n_labels)
    parts = [(np.flatnonzero(fold == f), np.flatnonzero(fold != f)) for f in range(folds)]
    copy, n_workers = _unfitted(model), workers()
    if n_workers is not None and copy.get_params(deep=False).get("n_jobs", 1) is None:
        copy.set_params(n_jobs=1)  # engines count cores by tasks
    tops = Parallel(n_jobs=1 if n_workers is None else n_workers)(
        delayed(_answers)(
            copy, X[outside], Y[outside], X[inside], k, _options(fit_options, outside)
        )
        for inside, outside in parts
    )
    for (inside, _), top in zip(parts, tops, strict=True):
        out.indices[inside], out.scores[inside] = top.indices, top.scores
    return out


def _answers(model: Any, X: Any, Y: Any, asked: Any, k: int, options: dict[str, Any]) -> TopK:
    """Fit a copy of ``model`` on (``X``, ``Y``), and ask it about other rows."""
    found: TopK = _unfitted(model).fit(X, Y, **options).predict_topk(asked, k)
    return found


def _options(fit_options: dict[str, Any], rows: np.ndarray) -> dict[str, Any]:
    return {
        name: _take(value, rows) if name in _PER_ROW else value
        for name, value in fit_options.items()
    }


def _unfitted(model: Any) -> Any:
    """Return a copy with the same parameters, but for the folder of a checkpoint (its own, or that
    of an estimator inside): what lies there belongs to the training of the model itself.
    """
    changes: dict[str, Any] = {}
    for name, value in model.get_params(deep=False).items():
        if name == "checkpoint":
            changes[name] = None
        elif has_parameters(value) and "checkpoint" in value.get_params(deep=False):
            changes[name] = _unfitted(value)
    return unfitted(model, **changes)


def _take(value: Any, rows: np.ndarray) -> Any:
    if value is None:
        return None
    return value.tocsr()[rows] if sp.issparse(value) else np.asarray(value)[rows]
