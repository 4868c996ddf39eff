"""``injection``: labels dropped on purpose, and how well each correction makes up for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import metrics
from longtail._protocols import has_parameters
from longtail._validation import as_features, as_k, as_labels, as_seed, check_same_rows
from longtail.base import unfitted
from longtail.metrics.propensity_scored import inverse_propensities
from longtail.report.formatting import align, per_cent
from longtail.report.measure import as_ks, values_of
from longtail.report.plain import to_plain

__all__ = ["Injection", "Recovery", "drop_labels", "injection"]

COMPLETE, NONE = "complete labels", "no correction"


def drop_labels(Y: Any, propensity: Any, random_state: Any = 0) -> sp.csr_matrix:
    """Return ``Y`` (n, L) with every positive of label j kept with probability p_j, independently.

    Parameters
    ----------
    Y : matrix of shape (n, L), or list of lists of int
        Labels of the rows.
    propensity : float or array of shape (L,)
        Probability that a positive is kept.
    random_state : int, Generator or None, default=0
        Seed.

    >>> kept = drop_labels([{0, 1}] * 1000, [1.0, 0.25], random_state=0)
    >>> [int(n) for n in kept.getnnz(axis=0)]
    [1000, 258]
    """
    Y = as_labels(Y)
    p = 1 / np.maximum(inverse_propensities(propensity, Y.shape[1]), 1.0)
    kept = np.random.default_rng(as_seed(random_state)).random(Y.nnz) < p[Y.indices]
    ends = np.concatenate([[0], np.cumsum(kept, dtype=np.int64)])
    return sp.csr_matrix((Y.data[kept], Y.indices[kept], ends[Y.indptr]), shape=Y.shape)


@dataclass(frozen=True)
class Recovery:
    """One way to train: ``values`` of each metric on complete test labels, mean over the repeats;
    ``spread``, their standard deviation; ``share``, how much of what dropping cost is recovered
    (0: as without correction, 1: as on complete labels; None where dropping cost nothing).
    """

    name: str
    values: dict[str, float]
    spread: dict[str, float]
    share: dict[str, float | None]


@dataclass(frozen=True, repr=False)
class Injection:
    """The result of ``injection``; printing it gives a table, in per cent."""

    rows: tuple[Recovery, ...]
    kept: float
    n_repeats: int

    def __getitem__(self, name: str) -> Recovery:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"there is no {name!r}; there are {', '.join(r.name for r in self.rows)}")

    def __str__(self) -> str:
        names = list(self.rows[0].values)
        table = [["trained with", *names]]
        for row in self.rows:
            table.append([row.name, *(_cell(row, name) for name in names)])
        repeats = f", mean of {self.n_repeats} draws" if self.n_repeats > 1 else ""
        lines = [
            f"On complete test labels, in per cent{repeats}; "
            f"{per_cent(self.kept)}% of the training labels kept",
            "In brackets: how much of the loss is recovered",
            align(table),
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return to_plain(self)


def injection(
    model: Any,
    X: Any,
    Y: Any,
    X_test: Any,
    Y_test: Any,
    propensity: Any,
    corrections: Mapping[str, Any],
    *,
    k: int | Sequence[int] = (1, 5),
    n_repeats: int = 1,
    random_state: Any = 0,
) -> Injection:
    """Drop training labels with known propensities and train with each correction.

    Copies of ``model`` are trained on the complete labels and, as they are and with each
    correction, on what ``drop_labels`` leaves. All are measured on complete test labels; a
    correction that works brings the model near the one that saw everything.

    Parameters
    ----------
    model : estimator
        An estimator with ``fit``, ``predict_topk`` and ``get_params``.
    X, Y, X_test, Y_test : matrices of shape (n, d) and (n, L)
        Rows with labels that are as complete as can be had.
    propensity : propensity model or array of shape (L,)
        p_j with which positives of label j are kept: a fitted model or a vector (L,).
    corrections : mapping
        Names to parameters that are set on a copy of the model, such as ``{"surrogate":
        {"missing_labels": p, "correction": "surrogate"}}``, or to estimators.
    k : int or sequence of int
        Cut-offs; label-wise metrics are taken at the largest.
    n_repeats : int
        Draws of what is dropped.
    random_state : int, Generator, RandomState or None
        Seed of the draws.

    >>> import longtail as lt
    >>> data = lt.data.make_longtail(n=600, d=100, L=30, n_test=300, random_state=0)
    >>> p = np.linspace(0.9, 0.2, 30)
    >>> done = injection(lt.OneVsAll(), data.train.X, data.train.Y, data.test.X, data.test.Y, p,
    ...                  {"weaker": {"C": 0.1}})
    >>> [row.name for row in done.rows]
    ['complete labels', 'no correction', 'weaker']
    >>> done["complete labels"].values["P@1"] > done["no correction"].values["P@1"]
    True

    After E. Schultheis and R. Babbar, "Unbiased loss functions for multilabel classification with
    missing labels", section 7.
    """
    Y, Y_test = as_labels(Y), as_labels(Y_test)
    X, X_test = as_features(X), as_features(X_test, name="X_test")
    check_same_rows(X.shape[0], Y.shape[0])
    check_same_rows(X_test.shape[0], Y_test.shape[0], "X_test", "Y_test")
    taken = {COMPLETE, NONE} & set(corrections)
    if taken:
        raise ValueError(f"{taken.pop()!r} is always trained: give corrections other names")
    ks, seed = as_ks(k), as_seed(random_state)
    ways = {NONE: {}, **corrections}
    found: dict[str, list[dict[str, float]]] = {
        COMPLETE: [_trained(model, {}, X, Y, X_test, Y_test, ks)],
        **{name: [] for name in ways},
    }
    kept = 0
    for repeat in range(as_k(n_repeats, "n_repeats")):
        observed = drop_labels(Y, propensity, np.random.default_rng([seed, repeat]))
        kept += observed.nnz
        for name, way in ways.items():
            found[name].append(_trained(model, way, X, observed, X_test, Y_test, ks))
    return Injection(_recoveries(found), kept / max(Y.nnz * n_repeats, 1), n_repeats)


def _trained(
    model: Any, way: Any, X: Any, Y: Any, X_test: Any, Y_test: Any, ks: tuple[int, ...]
) -> dict[str, float]:
    base, changes = (way, {}) if has_parameters(way) else (model, dict(way))
    copy: Any = unfitted(base, **changes)
    top = copy.fit(X, Y).predict_topk(X_test, min(max(ks), Y.shape[1]))
    k = max(ks)
    names = [*(f"P@{each}" for each in ks), f"nDCG@{k}", f"macro-F1@{k}", f"coverage@{k}"]
    return values_of(names, metrics.match(Y_test, top, k))


def _recoveries(found: dict[str, list[dict[str, float]]]) -> tuple[Recovery, ...]:
    means = {
        name: {metric: float(np.mean([run[metric] for run in runs])) for metric in runs[0]}
        for name, runs in found.items()
    }
    out = []
    for name, runs in found.items():
        share: dict[str, float | None] = {}
        for metric, value in means[name].items():
            lost = means[COMPLETE][metric] - means[NONE][metric]
            share[metric] = (value - means[NONE][metric]) / lost if lost > 0 else None
        spread = {metric: float(np.std([run[metric] for run in runs])) for metric in runs[0]}
        out.append(Recovery(name, means[name], spread, share))
    return tuple(out)


def _cell(row: Recovery, name: str) -> str:
    share = row.share[name]
    if row.name in (COMPLETE, NONE) or share is None:
        return per_cent(row.values[name])
    return f"{per_cent(row.values[name])} ({share:+.2f})"
