"""What a tagger takes as its vectoriser, and what it makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longtail._protocols import vectorizes
from longtail.features import Tfidf
from longtail.features.from_sklearn import is_sklearn_text_vectorizer, tfidf_from_sklearn
from longtail.features.tfidf_params import TfidfParams
from longtail.tagger.fitting import copied
from longtail.tagger.saving import check_savable

__all__ = ["is_fitted", "maker_of", "own_vectorizer"]


def is_fitted(given: Any) -> bool:
    """Return whether this is a ``Tfidf`` that has learned its terms."""
    return isinstance(given, Tfidf) and hasattr(given, "n_columns_")


def maker_of(X: Any, vectorizer: Tfidf) -> Tfidf:
    """Return the fitted vectoriser; raise ValueError if it cannot have made these rows."""
    if X.shape[1] != vectorizer.n_columns_:
        raise ValueError(
            f"the rows have {X.shape[1]:,} features, and the vectorizer makes "
            f"{vectorizer.n_columns_:,}: give the one that made them, or none"
        )
    return vectorizer


def own_vectorizer(given: Any, savable: bool) -> Any:
    """Return None, a mapping of parameters of ``Tfidf``, or a vectoriser that is not fitted.

    A text vectoriser of scikit-learn becomes the equal ``Tfidf``. Raises TypeError for an object
    without ``fit_transform`` and ``transform``, and, if ``savable``, for one that cannot be saved.
    """
    if given is None:
        return None
    if isinstance(given, Mapping):
        params = Tfidf(**given)  # refuses unknown names
        TfidfParams.check(params.get_params(deep=False))
        return dict(given)
    if not vectorizes(given):
        raise TypeError(
            "vectorizer must have fit_transform and transform, be a mapping of parameters of "
            f"Tfidf, or None, got {given!r}"
        )
    reason = None
    if is_sklearn_text_vectorizer(given):
        try:
            return tfidf_from_sklearn(given)
        except (TypeError, ValueError) as error:
            reason = str(error)
    if savable:
        check_savable("vectorizer", given, reason)
    return copied(given)
