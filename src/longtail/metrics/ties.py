"""scikit-learn's treatment of ties in DCG: tied labels share the mean of their gains."""

from __future__ import annotations

import numpy as np

from longtail.metrics.matches import Matches, discounts

__all__ = ["tie_averaged_dcg"]


def tie_averaged_dcg(matches: Matches, k: int) -> np.ndarray:
    """Return DCG@k of each row (n,), averaged over all orders of labels with equal scores.

    A run of equal scores may reach beyond rank k, and its mean is taken over the whole run, so the
    ranking must show where the run ends: refused where it is cut off inside it. Score matrices are
    ranked in full; a ``TopK`` needs more than k slots.

    McSherry and Najork, "Computing information retrieval performance measures efficiently in the
    presence of tied scores", 2008.
    """
    ids, scores = matches.top.indices, matches.top.scores
    n, slots = ids.shape
    if not n or not slots:
        return np.zeros(n)
    depth = min(k, slots)
    complete = slots >= matches.n_labels
    cut_off = (scores[:, depth - 1] == scores[:, -1]) & (ids[:, -1] >= 0)
    if not complete and cut_off.any():
        row = int(np.argmax(cut_off))
        raise ValueError(
            f"the ranking of row {row} ends inside a run of equal scores at rank {depth}: "
            "compat='sklearn' averages over such runs: give scores of all labels or a deeper TopK"
        )
    # Runs of equal scores as segments of the flattened array; the first slot of a row starts one.
    starts = np.ones((n, slots), dtype=bool)
    starts[:, 1:] = scores[:, 1:] != scores[:, :-1]
    first = np.flatnonzero(starts)
    lengths = np.diff(np.append(first, n * slots))
    means = np.add.reduceat(matches.gains.ravel(), first, dtype=np.float64) / lengths
    averaged = np.repeat(means, lengths).reshape(n, slots)
    dcg: np.ndarray = averaged[:, :depth] @ discounts(depth)
    return dcg
