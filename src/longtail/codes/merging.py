"""``merged``: one ``MACH`` model of repetitions that were trained apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.base import unfitted

if TYPE_CHECKING:
    from longtail.codes.mach import MACH

__all__ = ["merged"]


def merged(cls: type[MACH], models: list[MACH]) -> MACH:
    """See ``MACH.merge``. Refuses models of other hashes, sizes, parameters or label names, and a
    repetition that two of them trained to different weights.
    """
    if not models:
        raise ValueError("nothing to merge")
    for model in models:
        if not isinstance(model, cls):
            raise TypeError(f"only {cls.__name__} models can be merged, got {type(model).__name__}")
        model._check_fitted()
    first = models[0]
    out = unfitted(first)
    repetitions: dict[int, Any] = {}
    names = None
    for model in models:
        _check_fits(model, first)
        if names is not None and model.label_names_ not in (None, names):
            raise ValueError("these models have other names for their labels")
        names = model.label_names_ if names is None else names
        for r, classifier in model.repetitions_.items():
            if r in repetitions and not _same_state(repetitions[r], classifier):
                raise ValueError(
                    f"repetition {r} was trained twice, and not on the same data: leave one out"
                )
            repetitions[r] = classifier
    out.code_, out.feature_seeds_ = first.code_, first.feature_seeds_
    out.feature_width_ = first.feature_width_
    out.one_label_ = all(model.one_label_ for model in models)
    out.repetitions_ = dict(sorted(repetitions.items()))
    out.n_features_in_, out.n_labels_ = first.n_features_in_, first.n_labels_
    out.label_names_ = names
    return out


def _check_fits(model: MACH, first: MACH) -> None:
    """Refuse to merge what was fitted with other hashes, sizes or estimators."""
    same = (
        model.n_features_in_ == first.n_features_in_
        and model.code_.n_buckets_ == first.code_.n_buckets_
        and np.array_equal(model.code_.table_, first.code_.table_)
        and np.array_equal(model.feature_seeds_, first.feature_seeds_)
    )
    if not same:
        raise ValueError("these models were fitted with other hashes or on other data")
    one, other = (_how(m) for m in (first, model))
    if one != other:
        differ = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
        raise ValueError(f"these models were fitted with other parameters: {', '.join(differ)}")


def _how(model: MACH) -> dict[str, Any]:
    """Return what the classifiers of a model were trained with."""
    classifier = next(iter(model.repetitions_.values()))
    params = {f"estimator__{k}": repr(v) for k, v in classifier.get_params(deep=False).items()}
    for name in ("random_state", "n_jobs", "checkpoint", "device"):  # these may differ
        params.pop(f"estimator__{name}", None)
    return {
        **params,
        "estimator": classifier.type_tag,
        "hashed_features": model.feature_width_,
    }


def _same_state(one: Any, other: Any) -> bool:
    """Return whether two classifiers have the same weights."""
    a, b = one._get_state().arrays, other._get_state().arrays
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)
