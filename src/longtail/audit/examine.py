"""``find_missing``: one call from a model and its data to what is probably missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from longtail._validation import as_features, as_k, as_labels, as_seed, check_same_rows
from longtail.answers.topk import TopK
from longtail.audit.ceiling import by_frequency
from longtail.audit.missing import Pairs, Suspect, examined_pairs, missing_probability
from longtail.audit.summary import Audit, PropensityFit
from longtail.calibrate import cross_fit
from longtail.metrics import frequency_bins
from longtail.metrics.propensity_scored import inverse_propensities
from longtail.propensity import JainPropensity
from longtail.propensity.base import label_counts, model_name
from longtail.report import psp_diagnostic
from longtail.report.measure import as_ks

__all__ = ["find_missing"]


def find_missing(
    model: Any,
    X: Any,
    Y: Any,
    *,
    propensity: Any = None,
    folds: int = 5,
    k: int | Sequence[int] = (1, 3, 5),
    n_candidates: int = 50,
    n_listed: int = 1000,
    n_bins: int = 5,
    n_confident: int = 200,
    label_names: Sequence[str] | None = None,
    title: str = "Missing labels",
    random_state: Any = 0,
) -> Audit:
    """List labels that are probably missing from ``Y``, and signs that the propensities are wrong.

    Copies of the model are fitted without each fold in turn and asked about it. Their scores are
    calibrated against the observed labels, which gives q = P(observed | x) for the
    ``n_candidates`` best answers of every row; with p_j = P(observed | relevant)::

        P(relevant | absent, x) = (1 / p_j - 1) q / (1 - q)

    How sure one can be of that depends on p_j, so the propensities are examined too: what
    unnormalised PSP makes of them, and whether labels are observed more often among confident
    answers than p_j allows.

    Parameters
    ----------
    model : estimator
        Any estimator with ``fit``, ``predict_topk`` and ``get_params``, fitted or not; or a
        ``TopK`` of out-of-fold scores for every row (``X`` may then be None).
    X, Y : matrices of shape (n, d) and (n, L)
        The rows (n, d) and their observed labels (n, L).
    propensity : propensity model or array of shape (L,)
        A fitted model or a vector, or a mapping of names to several, the first of which ranks the
        missing labels; None takes ``JainPropensity``, whose constants are a convention.
    folds : int
        Copies to fit.
    k : int or sequence of int
        Cut-offs for PSP.
    n_candidates : int
        Answers per row to examine.
    n_listed : int
        Most suspects to keep; the counts are over all.
    n_bins, n_confident : int
        Groups of labels by frequency, and pairs in each that test the ceiling.
    label_names : sequence of str or None
        L names.
    title : str
        What the audit is called.
    random_state : int, Generator, RandomState or None
        Seed of the folds.

    Refuses data without rows, labels or positives, and answers for other rows.

    >>> import longtail as lt
    >>> data = lt.data.make_longtail(n=800, d=100, L=40, random_state=0).train
    >>> model = lt.baselines.NearestNeighbors()
    >>> found = lt.audit.find_missing(model, data.X, data.Y, propensity=np.full(40, 0.6))
    >>> first = found.missing[0]
    >>> float(data.Y[first.row, first.label]), first.propensity
    (0.0, 0.6)
    >>> found.missing[0].probability >= found.missing[1].probability
    True

    The model of missing labels is that of Jain et al. (KDD 2016); its critique, and the bound on
    what may be observed, follow E. Schultheis, doctoral thesis, Aalto University 2025, chapter 3.
    """
    Y = as_labels(Y)
    n_rows, counts = label_counts(Y)
    if not counts.any():
        raise ValueError("Y has no positive: nothing tells which labels are missing")
    ks, seed = as_ks(k), as_seed(random_state)
    if label_names is not None and len(label_names) != Y.shape[1]:
        raise ValueError(f"label_names has {len(label_names)} names, for {Y.shape[1]} labels")
    models = _propensities(propensity, Y)
    inverses = {name: inverse_propensities(p, Y.shape[1]) for name, p in models.items()}
    width = min(max(as_k(n_candidates, "n_candidates"), max(ks)), Y.shape[1])
    top = _answers(model, X, Y, width, folds, seed)
    bins = frequency_bins(counts, n_bins)
    pairs = examined_pairs(top, Y, bins.bin_of_label, seed)
    fits = tuple(
        PropensityFit(
            name,
            by_frequency(pairs, counts, inverse, bins, as_k(n_confident, "n_confident")),
            above=float((pairs.proba > 1 / np.maximum(inverse, 1)[pairs.label]).mean()),
        )
        for name, inverse in inverses.items()
    )
    used = next(iter(models))
    listed, expected = _suspects(pairs, inverses[used], as_k(n_listed, "n_listed"), label_names)
    return Audit(
        title=str(title),
        n_rows=n_rows,
        n_labels=Y.shape[1],
        n_positives=float(counts.sum()),
        n_examined=len(pairs),
        propensity=used,
        expected_missing=expected,
        missing=listed,
        psp=psp_diagnostic(Y, top, models, k=ks),
        fits=fits,
        settings={
            "folds": None if isinstance(model, TopK) else folds,
            "n_candidates": top.k,
            "random_state": seed,
        },
    )


def _propensities(propensity: Any, Y: Any) -> dict[str, Any]:
    if propensity is None:
        return {"JainPropensity": JainPropensity().fit(Y)}
    if isinstance(propensity, Mapping):
        if not propensity:
            raise ValueError("propensity is an empty mapping: give at least one model")
        return {str(name): p for name, p in propensity.items()}
    return {model_name(propensity): propensity}


def _answers(model: Any, X: Any, Y: Any, k: int, folds: int, seed: int) -> TopK:
    if isinstance(model, TopK):
        check_same_rows(len(model), Y.shape[0], "the answers")
        return TopK(model.indices[:, :k], model.scores[:, :k], n_labels=Y.shape[1])
    missing = [m for m in ("fit", "predict_topk", "get_params") if not hasattr(model, m)]
    if missing:
        raise TypeError(
            f"{type(model).__name__} has no {', '.join(missing)}: give a model of this library, or "
            "a TopK of out-of-fold scores"
        )
    X = as_features(X)
    check_same_rows(X.shape[0], Y.shape[0])
    return cross_fit(model, X, Y, k, folds, seed)


def _suspects(
    pairs: Pairs, inverse: np.ndarray, n_listed: int, names: Sequence[str] | None
) -> tuple[tuple[Suspect, ...], float]:
    """Return the most probable ones, ties to the larger q, smaller row; and how many to expect in
    all.
    """
    p = 1 / np.maximum(inverse, 1.0)
    absent = np.flatnonzero(pairs.absent)
    probability = missing_probability(pairs.proba[absent], p[pairs.label[absent]])
    order = np.lexsort(
        (pairs.label[absent], pairs.row[absent], -pairs.proba[absent], -probability)
    )[:n_listed]
    listed = []
    for at, chance in zip(absent[order], probability[order], strict=True):
        if chance <= 0:
            break
        label = int(pairs.label[at])
        name = None if names is None else str(names[label])
        listed.append(
            Suspect(
                int(pairs.row[at]),
                label,
                name,
                float(chance),
                float(pairs.proba[at]),
                float(p[label]),
            )
        )
    return tuple(listed), float(probability.sum())
