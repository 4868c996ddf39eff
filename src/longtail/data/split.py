"""A validation set that costs no label its last training row."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import numpy as np

from longtail._validation import as_labels, as_seed
from longtail.data.dataset import Split

__all__ = ["train_validation_indices", "train_validation_split"]


def train_validation_split(
    X: Any,
    Y: Any = None,
    texts: list[str] | None = None,
    *,
    validation_size: float | int = 0.1,
    min_train: int = 1,
    random_state: Any = 0,
) -> tuple[Split, Split]:
    """Split rows into training and validation; labels that are rare stay in training.

    A random split takes the only training row of a label away from it as easily as any other, and
    in a label set with a long tail that leaves a good part of the labels untrained. Here every
    label with a positive keeps at least ``min_train`` training rows, or all of them where it has
    fewer. See ``train_validation_indices`` for how rows are chosen and what that does to the
    validation set.

    ``X`` is a ``Split`` (then ``Y`` and ``texts`` are its own), or features, or None with
    ``texts``; ``Y`` the labels, (n, L). ``validation_size`` is a fraction of the rows or a number
    of rows. Returns two ``Split`` s; rows keep their order.

    Parameters
    ----------
    X : Split, or matrix of shape (n, d)
        A split, or features.
    Y : matrix of shape (n, L), or list of lists of int, default=None
        Labels of the rows.
    texts : list of str, default=None
        One text per row.
    validation_size : float or int, default=0.1
        A fraction of the rows, or their number.
    min_train : int, default=1
        Training rows that every label keeps, if it has them.
    random_state : int, Generator or None, default=0
        Seed.

    >>> train, validation = train_validation_split(None, [[0], [0], [0, 1]], texts=["a", "b", "c"],
    ...                                            validation_size=1)
    >>> train.texts[-1], len(validation)
    ('c', 1)
    """
    if isinstance(X, Split):
        if Y is not None or texts is not None:
            raise TypeError("pass a Split alone: it brings its own labels and texts")
        rows = X
    else:
        rows = Split(X=X, Y=Y, texts=texts)
    if rows.Y is None:
        raise ValueError("labels are needed: the split depends on them")
    train, validation = train_validation_indices(
        rows.Y, validation_size=validation_size, min_train=min_train, random_state=random_state
    )
    return rows.take(train), rows.take(validation)


def train_validation_indices(
    Y: Any,
    *,
    validation_size: float | int = 0.1,
    min_train: int = 1,
    random_state: Any = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the row numbers of the training and the validation set, both ascending, int64.

    Rows are visited in random order. A row moves to validation if each of its labels then still has
    ``min_train`` training rows; the visit ends when validation has the size that was asked for.
    Rows without labels may always move. The same seed gives the same split.

    Where most rows carry a label that is on no other row, fewer rows can move than asked for: those
    that can are returned, with a warning. And in any case the validation set is short of rare
    labels, so use it to compare settings, not to estimate how the tail will fare.

    Parameters
    ----------
    Y : matrix of shape (n, L), or list of lists of int
        Labels of the rows.
    validation_size : float or int, default=0.1
        A fraction of the rows, or their number.
    min_train : int, default=1
        Training rows that every label keeps, if it has them.
    random_state : int, Generator or None, default=0
        Seed.

    >>> train, validation = train_validation_indices([[0], [0, 1], [1], [2]], validation_size=1)
    >>> train, validation
    (array([0, 1, 3]), array([2]))
    """
    Y = as_labels(Y)
    n = Y.shape[0]
    target = _target(validation_size, n)
    if isinstance(min_train, bool) or not isinstance(min_train, numbers.Integral):
        raise TypeError(f"min_train must be a whole number, got {min_train!r}")
    if min_train < 0:
        raise ValueError(f"min_train must not be negative, got {min_train}")
    left = np.bincount(Y.indices, minlength=Y.shape[1])
    starts = Y.indptr.tolist()
    moved: list[int] = []
    for row in np.random.default_rng(as_seed(random_state)).permutation(n).tolist():
        if len(moved) == target:
            break
        labels = Y.indices[starts[row] : starts[row + 1]]
        if len(labels) and left[labels].min() <= min_train:
            continue
        left[labels] -= 1
        moved.append(row)
    if len(moved) < target:
        warnings.warn(
            f"only {len(moved)} of the {target} validation rows asked for could be taken: the "
            f"other rows have a label with {min_train} or fewer training rows left",
            stacklevel=2,
        )
    in_validation = np.zeros(n, bool)
    in_validation[moved] = True
    return np.flatnonzero(~in_validation), np.flatnonzero(in_validation)


def _target(size: Any, n: int) -> int:
    if isinstance(size, bool) or not isinstance(size, numbers.Real):
        raise TypeError(f"validation_size must be a number, got {size!r}")
    if isinstance(size, numbers.Integral):
        if not 0 <= int(size) <= n:
            raise ValueError(f"validation_size is {size}, but there are {n} rows")
        return int(size)
    fraction = float(size)
    if not 0 <= fraction < 1:
        raise ValueError(
            f"validation_size must be a fraction below 1 or a whole number of rows, got {size}"
        )
    return math.floor(fraction * n + 0.5)
