"""What is known of test set, training labels and answers before any metric is computed."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.answers import TopK
from longtail.metrics import Matches, filter_truth, precision_at_k

__all__ = ["RARE", "Facts", "gather"]

RARE = 5  # a label with fewer test positives than this has hardly a recall of its own


@dataclass(frozen=True)
class Facts:
    """Counts behind a report. Dictionaries are keyed by k.

    ``ceiling``: P@k of a perfect ranking, below 1 where rows have fewer than k labels.
    ``short_rows``: labelled rows with fewer than k labels. ``short_answers``: rows with fewer than
    k answers. ``present_labels``: labels with a test positive, of which ``rare_labels`` have fewer
    than five. ``unseen_labels`` and ``unseen_positives``: those without a training positive; None
    where the training labels are not known. ``fingerprint`` tells test sets apart.
    ``trained_rows``: test rows that the model was trained on; None where that is not known.
    """

    n_rows: int
    n_labels: int
    n_positives: float
    graded: bool
    unlabelled_rows: int
    ceiling: dict[int, float]
    short_rows: dict[int, int]
    short_answers: dict[int, int]
    present_labels: int
    rare_labels: int
    n_train_rows: int | None
    unseen_labels: int | None
    unseen_positives: float | None
    n_filters: int | None
    filtered_positives: int
    fingerprint: str
    trained_rows: int | None = None

    @property
    def labels_per_row(self) -> float:
        """Mean number of true labels per row."""
        return self.n_positives / self.n_rows if self.n_rows else 0.0


def gather(
    matches: Matches,
    ks: tuple[int, ...],
    train_counts: np.ndarray | None,
    n_train_rows: int | None,
    filters: Any,
) -> Facts:
    """Count what a reader must know to judge the numbers.

    ``train_counts`` (L,) and ``n_train_rows``, where known; ``filters`` (m, 2): pairs of row and
    label that were removed from the answers, or None.
    """
    truth = matches.truth
    per_row = np.diff(truth.indptr)
    positives = matches.label_counts(ks[0]).positives
    present = positives > 0
    perfect = TopK.from_scores(truth, max(ks)) if truth.nnz else None
    unseen = None if train_counts is None else present & (train_counts == 0)
    return Facts(
        n_rows=matches.n_rows,
        n_labels=matches.n_labels,
        n_positives=float(positives.sum()),
        graded=bool(truth.nnz and truth.data.min() < 1),
        unlabelled_rows=int((per_row == 0).sum()),
        ceiling={k: precision_at_k(truth, perfect, k=k) if perfect else 0.0 for k in ks},
        short_rows={k: int(((per_row > 0) & (per_row < k)).sum()) for k in ks},
        short_answers={k: int((matches.predicted(k) < k).sum()) for k in ks},
        present_labels=int(present.sum()),
        rare_labels=int((present & (positives < RARE)).sum()),
        n_train_rows=n_train_rows,
        unseen_labels=None if unseen is None else int(unseen.sum()),
        unseen_positives=None if unseen is None else float(positives[unseen].sum()),
        n_filters=None if filters is None else len(filters),
        filtered_positives=0 if filters is None else truth.nnz - filter_truth(truth, filters).nnz,
        fingerprint=_fingerprint(truth),
    )


def _fingerprint(truth: Any) -> str:
    """Return the checksum of the truth: two reports can be compared only if it is the same."""
    code = 0
    for array, dtype in ((truth.indptr, "<i8"), (truth.indices, "<i4"), (truth.data, "<f4")):
        code = zlib.crc32(np.ascontiguousarray(array, dtype=dtype).data, code)
    return f"{truth.shape[0]}x{truth.shape[1]}-{code:08x}"
