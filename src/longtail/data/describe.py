"""``describe``: the statistics by which this field tells one data set from another."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from longtail.data.dataset import Dataset, Split
from longtail.data.description import Bin, Description, SplitFacts
from longtail.data.fingerprints import feature_fingerprints, text_fingerprints

__all__ = ["Description", "describe"]


def describe(dataset: Dataset, *, tail: int = 5, head: int = 100) -> Description:
    """Compute the field's statistics of a data set.

    Labels are divided by their number of training rows n_l: **tail** 1 … ``tail``, **torso** above
    that up to ``head``, **head** above that, **unseen** 0. Fixed numbers rather than shares: they
    say what a classifier has to learn from, and mean the same for every data set.

    labels per point      positives / rows
    points per label      positives / L, of the split; publications count training rows or all rows
    labels unseen         labels with positives in the split, but none in training
    duplicates            rows whose text (case and white space aside) an earlier row has; where
                          there are no texts, whose features it has
    also in train         rows whose text, or else features, a training row has: the answer may be
                          looked up rather than learned

    Features are compared by 64-bit fingerprints, rows without any features are left out.

    Refuses a data set without rows, and ``tail`` below 1 or not below ``head``.

    >>> train = Split(Y=np.array([[1, 0, 0], [1, 1, 0]]), texts=["a cat", "a dog"])
    >>> ds = Dataset(train, test=Split(Y=np.array([[0, 0, 1]]), texts=["A dog"]))
    >>> facts = describe(ds).splits["test"]
    >>> facts.labels_unseen_in_training, facts.also_in_train
    (1, 1)
    """
    if not dataset.splits:
        raise ValueError("the data set has no rows: nothing to describe")
    if not 1 <= tail < head:
        raise ValueError(f"tail must be at least 1 and below head, got {tail} and {head}")
    frequencies = _frequencies(dataset.train, dataset.n_labels)
    with_text = all(split.texts is not None for split in dataset.splits.values())
    keys = {name: _keys(split, with_text) for name, split in dataset.splits.items()}
    return Description(
        name=dataset.name,
        n_features=dataset.n_features,
        n_labels=dataset.n_labels,
        splits={
            name: _facts(name, split, frequencies, keys) for name, split in dataset.splits.items()
        },
        bins=_bins(frequencies, tail, head),
        frequencies=frequencies,
        pos80=_pos80(frequencies),
        compared_by="text" if with_text else "features" if dataset.n_features else None,
    )


def _frequencies(split: Split, n_labels: int) -> np.ndarray:
    if split.Y is None:
        return np.zeros(n_labels, np.int64)
    return np.bincount(split.Y.indices, minlength=n_labels)


def _facts(
    name: str, split: Split, frequencies: np.ndarray, keys: dict[str, np.ndarray | None]
) -> SplitFacts:
    n, X, Y = len(split), split.X, split.Y
    own, train = keys[name], keys.get("train")
    positives = _frequencies(split, len(frequencies))
    texts = split.texts
    features = None if X is None else np.diff(X.indptr) if sp.issparse(X) else (X != 0).sum(axis=1)
    return SplitFacts(
        rows=n,
        labels_per_point=None if Y is None or not n else Y.nnz / n,
        points_per_label=None if Y is None or not Y.shape[1] else Y.nnz / Y.shape[1],
        labels_with_positives=None if Y is None else int((positives > 0).sum()),
        labels_unseen_in_training=(
            None
            if Y is None or name == "train"
            else int(((positives > 0) & (frequencies == 0)).sum())
        ),
        features_per_point=None if features is None or not n else float(features.mean()),
        words_per_text=None if not texts else sum(len(t.split()) for t in texts) / n,
        rows_without_labels=None if Y is None else int((np.diff(Y.indptr) == 0).sum()),
        rows_without_features=None if features is None else int((features == 0).sum()),
        duplicates=None if own is None else len(own) - len(np.unique(own)),
        also_in_train=(
            None
            if own is None or train is None or name == "train"
            else int(np.isin(own, train).sum())
        ),
    )


def _bins(frequencies: np.ndarray, tail: int, head: int) -> tuple[Bin, ...]:
    positives, n_labels = max(int(frequencies.sum()), 1), max(len(frequencies), 1)
    bins = []
    for name, least, most in (
        ("head", head + 1, None),
        ("torso", tail + 1, head),
        ("tail", 1, tail),
        ("unseen", 0, 0),
    ):
        inside = frequencies[
            (frequencies >= least) & (frequencies <= (most if most is not None else np.inf))
        ]
        bins.append(
            Bin(
                name,
                least,
                most,
                len(inside),
                len(inside) / n_labels,
                int(inside.sum()) / positives,
            )
        )
    return tuple(bins)


def _pos80(frequencies: np.ndarray) -> float | None:
    held = np.cumsum(np.sort(frequencies)[::-1])
    if not len(held) or not held[-1]:
        return None
    return float((np.searchsorted(held, 0.8 * held[-1]) + 1) / len(held))


def _keys(split: Split, with_text: bool) -> np.ndarray | None:
    if with_text and split.texts is not None:
        return text_fingerprints(split.texts)
    return None if split.X is None else feature_fingerprints(split.X)
