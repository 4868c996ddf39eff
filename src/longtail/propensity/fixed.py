"""``FixedPropensity``: a vector that somebody else estimated."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np

from longtail._validation import as_labels
from longtail.exceptions import DataFormatError
from longtail.propensity.base import Propensity

__all__ = ["FixedPropensity"]


class FixedPropensity(Propensity):
    """Known propensities, wrapped so that metrics and losses take them like a fitted model's.

    Refuses values outside (0, 1]; nothing is clipped.

    Parameters
    ----------
    source : str, default=None
        A word on where the numbers come from, recorded in reports.

    >>> FixedPropensity(source="survey").fit(propensity=[0.5, 1.0]).inverse_
    array([2., 1.])
    >>> FixedPropensity.from_inverse([4.0, 1.25]).propensity_
    array([0.25, 0.8 ])
    """

    type_tag = "fixed-propensity"

    def __init__(self, *, source: str | None = None) -> None:
        self.source = source

    def fit(self, Y: Any = None, *, propensity: Any = None) -> FixedPropensity:
        """Keep ``propensity`` (L,), one probability in (0, 1] per label.

        ``Y`` (n, L), the observed labels, may be left out: only their number is compared.

        Parameters
        ----------
        Y : matrix of shape (n, L), default=None
            Observed labels; only their number is compared.
        propensity : array of shape (L,), default=None
            The propensities.
        """
        if propensity is None:
            if Y is None:
                raise TypeError("give propensity=, one probability per label")
            warnings.warn(
                "FixedPropensity.fit takes propensity= by name now; the old order goes in 0.2",
                DeprecationWarning,
                stacklevel=2,
            )
            Y, propensity = None, Y
        if Y is not None:
            n_labels = as_labels(Y).shape[1]
            if np.shape(propensity) != (n_labels,):
                raise ValueError(
                    f"propensity has the shape {np.shape(propensity)}, for {n_labels} labels in Y"
                )
        self._store(propensity)
        return self

    @classmethod
    def from_inverse(cls, inverse: Any, *, source: str | None = None) -> FixedPropensity:
        """Make the model of inverse propensities (L,), each at least 1.

        Parameters
        ----------
        inverse : array of shape (L,)
            Inverse propensities.
        source : str, default=None
            Where the numbers come from.
        """
        inverse = np.asarray(inverse, dtype=np.float64)
        if inverse.ndim != 1 or not (np.isfinite(inverse) & (inverse >= 1.0)).all():
            raise ValueError(
                "inverse propensities must be one finite number of at least 1 per label: "
                "for propensities themselves use FixedPropensity().fit(propensity=…)"
            )
        return cls(source=source).fit(propensity=1.0 / inverse)

    @classmethod
    def read_inverse(cls, path: str | os.PathLike[str]) -> FixedPropensity:
        """Read the field's ``inv_prop.txt``: one inverse propensity per line, in label order, blank
        lines ignored.

        Parameters
        ----------
        path : str or path
            A file of inverse propensities, one per line.
        """
        values: list[float] = []
        with open(path, encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, start=1):
                text = line.strip()
                if not text:
                    continue
                try:
                    value = float(text)
                except ValueError:
                    value = float("nan")
                if not 1.0 <= value < float("inf"):
                    raise DataFormatError(
                        f"expected one inverse propensity of at least 1, got {text[:40]!r}",
                        path=path,
                        line=number,
                        column=1,
                    )
                values.append(value)
        if not values:
            raise DataFormatError("expected one inverse propensity per line, got none", path=path)
        return cls.from_inverse(values, source=os.path.basename(os.fspath(path)))
