"""Which calibrator: the one with the least log-loss on rows it has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail._validation import as_k
from longtail.calibrate.beta import Beta
from longtail.calibrate.calibrator import Calibrator, as_pairs, log_loss
from longtail.calibrate.isotonic import Isotonic
from longtail.calibrate.platt import Platt

__all__ = ["METHODS", "Choice", "choose"]

METHODS: dict[str, type[Calibrator]] = {kind.name: kind for kind in (Platt, Beta, Isotonic)}


@dataclass(frozen=True)
class Choice:
    """A fitted calibrator and the held-out log-loss of every method that was tried."""

    calibrator: Calibrator
    losses: dict[str, float]


def choose(
    scores: Any,
    hits: Any,
    groups: Any = None,
    *,
    method: str = "auto",
    n_folds: int = 5,
    random_state: int = 0,
) -> Choice:
    """Fit the best of all methods, or the one that is named, on pairs of score and hit.

    Pairs of one group (``groups`` (m,), usually the row they come from) stay in one fold: answers
    of a row are right or wrong together. The chosen method is fitted again on all pairs. Equal
    losses go to the method with fewer parameters; with fewer groups than folds that is Platt's.

    Parameters
    ----------
    scores : array of shape (m,)
        Scores.
    hits : array of shape (m,)
        1 where the answer was right, else 0.
    groups : array of shape (m,), default=None
        Row of each pair; pairs of a row stay in one fold.
    method : str, default="auto"
        Name of a curve, or "auto" for the one with the least held-out loss.
    n_folds : int, default=5
        Number of folds.
    random_state : int, default=0
        Seed.

    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(2000)
    >>> choice = choose(scores, rng.random(2000) < scores**2)
    >>> choice.calibrator.name
    'beta'
    """
    if method != "auto" and method not in METHODS:
        known = ", ".join(["auto", *METHODS])
        raise ValueError(f"method must be one of {known}, got {method!r}")
    n_folds = as_k(n_folds, "n_folds")
    scores, hits = as_pairs(scores, hits)
    place = np.arange(len(scores))
    if groups is not None:
        place = np.unique(np.asarray(groups), return_inverse=True)[1].reshape(-1)
    if len(place) != len(scores):
        raise ValueError(f"there are {len(scores)} scores, but {len(place)} groups")
    n_groups = int(place.max()) + 1
    fold = (np.random.default_rng(random_state).permutation(n_groups) % n_folds)[place]
    losses: dict[str, float] = {}
    if 1 < n_folds <= n_groups:
        tried = METHODS if method == "auto" else {method: METHODS[method]}
        for name, kind in tried.items():
            held_out = np.empty(len(scores))
            for f in range(n_folds):
                rest = fold != f
                held_out[~rest] = kind.fit(scores[rest], hits[rest]).transform(scores[~rest])
            losses[name] = log_loss(held_out, hits)
    best = method if method != "auto" else min(losses or METHODS, key=lambda m: losses.get(m, 0))
    return Choice(METHODS[best].fit(scores, hits), losses)
