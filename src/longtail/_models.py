"""From a saved model to an estimator: the table of type tags, and ``load``.

A file names a tag, never a class or a module. Adding a model is one line here; a class outside this
library is added with ``register_ranker``.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
from collections.abc import Callable
from typing import Any, TypeVar

from longtail import persist
from longtail.base import Ranker
from longtail.exceptions import ModelFormatError
from longtail.persist.mark import Mark, mark_of

__all__ = ["TABLE", "from_state", "is_known", "load", "register_ranker"]

SomeRanker = TypeVar("SomeRanker", bound=type[Ranker])

TABLE = {
    "block-coordinate-ascent": "longtail.decide:BlockCoordinateAscent",
    "declare": "longtail.codes:DECLARE",
    "direct-propensity": "longtail.propensity:DirectPropensity",
    "dual-encoder": "longtail.text:DualEncoder",
    "ensemble": "longtail.ensemble:Ensemble",
    "fixed-propensity": "longtail.propensity:FixedPropensity",
    "frank-wolfe": "longtail.decide:FrankWolfe",
    "given-features": "longtail.tagger:GivenFeatures",
    "hash-code": "longtail.codes:HashCode",
    "jain-propensity": "longtail.propensity:JainPropensity",
    "joint-propensity": "longtail.propensity:JointPropensity",
    "label-tree": "longtail.tree:LabelTree",
    "mach": "longtail.codes:MACH",
    "nearest-neighbors": "longtail.baselines:NearestNeighbors",
    "neighbor-code": "longtail.codes:NeighborCode",
    "network": "longtail.deep:Network",
    "one-vs-all": "longtail.linear:OneVsAll",
    "online-rule": "longtail.decide:OnlineRule",
    "plain-texts": "longtail.tagger:PlainTexts",
    "popularity": "longtail.baselines:Popularity",
    "richards-propensity": "longtail.propensity:RichardsPropensity",
    "ridge": "longtail.codes:Ridge",
    "sharded": "longtail.linear.sharded:ShardedRanker",
    "svd-code": "longtail.codes:SVDCode",
    "tagger": "longtail.tagger:Tagger",
    "text-network": "longtail.text:TextNetwork",
    "tfidf": "longtail.features:Tfidf",
    "threshold-rule": "longtail.decide:Threshold",
    "top-k-rule": "longtail.decide:TopKRule",
    "unidec": "longtail.text:UniDEC",
    "weighted-top-k": "longtail.decide:WeightedTopK",
    "xr-linear": "longtail.linear:XRLinear",
    "xr-transformer": "longtail.text:XRTransformer",
}

_REGISTERED: dict[str, type[Ranker]] = {}
_TAG = re.compile(r"[a-z0-9_-]{1,80}", re.ASCII)


def register_ranker(tag: str) -> Callable[[SomeRanker], SomeRanker]:
    """Make a ranker of your own one that can be saved, loaded and put into a ``Tagger``.

    A class decorator. Saved files hold the tag and data, never code: a program that loads such a
    model imports the module of the class first. Put a name of your own into the tag, as in
    "acme-centroids"; those of this library are taken. The class derives from
    ``longtail.base.Ranker`` and has

    - ``__init__``: parameters by name, stored and nothing else;
    - ``_fit(X, Y)``: learns from CSR or dense features and CSR labels, and sets attributes that end
      in ``_``, last;
    - ``_predict_topk(X, k)``: a ``TopK`` of exactly k labels of each row;
    - ``_get_state()`` and ``_set_state(state)``: what was learned, as arrays, there and back.

    ``longtail.testing`` runs the contract of this library's rankers on it; docs/own-models.md has
    an example.

    Parameters
    ----------
    tag : str
        Name in saved files: lower-case letters, digits, dashes and underscores.

    Raises ValueError for a tag that is malformed or taken by another class, and TypeError for a
    class that is no ``Ranker``.

    >>> import numpy as np
    >>> import longtail as lt
    >>> from longtail.base import Ranker
    >>> @lt.register_ranker("acme-first-labels")
    ... class FirstLabels(Ranker):
    ...     def _fit(self, X, Y):
    ...         pass
    ...     def _predict_topk(self, X, k):
    ...         ids = np.tile(np.arange(k, dtype=np.int32), (X.shape[0], 1))
    ...         return lt.TopK(ids, np.zeros(ids.shape), self.n_labels_)
    >>> FirstLabels().fit(np.eye(2), [[0], [1]]).predict_topk(np.eye(2), k=2).indices.tolist()
    [[0, 1], [0, 1]]
    """
    if not isinstance(tag, str) or not _TAG.fullmatch(tag):
        raise ValueError(
            f"tag must be 1 to 80 lower-case letters, digits, dashes and underscores, got {tag!r}"
        )
    if tag in TABLE:
        raise ValueError(f"the tag {tag!r} is longtail's own: put a name of yours in front of it")

    def register(cls: SomeRanker) -> SomeRanker:
        if not (isinstance(cls, type) and issubclass(cls, Ranker)):
            raise TypeError(f"{cls!r} must be a class derived from longtail.base.Ranker")
        known = _REGISTERED.get(tag)
        here = (cls.__module__, cls.__qualname__)
        if known is not None and (known.__module__, known.__qualname__) != here:
            raise ValueError(f"the tag {tag!r} is taken by {known.__module__}.{known.__qualname__}")
        cls.type_tag = tag
        _REGISTERED[tag] = cls  # a cell of a notebook may be run again
        return cls

    return register


def is_known(estimator: Any) -> bool:
    """Return whether an estimator can be saved and loaded: its type is in the table, or
    registered.
    """
    tag = getattr(estimator, "type_tag", None)
    return tag in TABLE or tag in _REGISTERED


def load(
    path: str | os.PathLike[str], *, mmap: bool = True, verify: bool = False, once: bool = False
) -> Any:
    """Return the estimator saved in the directory ``path``, ready to predict.

    Parameters
    ----------
    path : str or path
        What ``save`` was given.
    mmap : bool
        Whether arrays stay in their files and are read page by page when used: loading takes
        milliseconds, and processes share them. False reads them into memory.
    verify : bool
        Whether to compare the checksum of every file. Sizes and bounds are always checked.
    once : bool
        Whether to return the same object again in this process as long as the files are the same,
        for functions that engines call with one block of rows after the other. The last four models
        are kept; treat them as read-only.

    Raises ``FileNotFoundError`` if nothing is there, and ``ModelFormatError``, saying which file
    and why, for what is truncated, altered, newer than this version, or not a model.
    """
    if once:
        place = os.path.abspath(path)
        return _kept(place, mark_of(place), mmap, verify)
    state = persist.load(path, mmap=mmap, verify=verify)
    try:
        return from_state(state)
    except ModelFormatError as error:
        raise ModelFormatError(f"cannot load {os.fspath(path)}: {error}") from error.__cause__


@functools.lru_cache(maxsize=4)
def _kept(path: str, mark: Mark | None, mmap: bool, verify: bool) -> Any:
    return load(path, mmap=mmap, verify=verify)


def from_state(state: persist.State) -> Any:
    """Return the estimator of a state, as for the parts of a composed model."""
    cls = _class_of(state.type)
    name = cls.__name__
    try:
        return cls._from_state(state)
    except ModelFormatError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelFormatError(f"not the state of a {name}: {error}") from error


def _class_of(tag: str) -> Any:
    if tag in _REGISTERED:
        return _REGISTERED[tag]
    try:
        module, _, name = TABLE[tag].partition(":")
    except KeyError:
        raise ModelFormatError(
            f"unknown type of model {tag!r}: a newer version of longtail may know it, or the "
            "module that registers it has to be imported first (longtail.register_ranker)"
        ) from None
    return getattr(importlib.import_module(module), name)
