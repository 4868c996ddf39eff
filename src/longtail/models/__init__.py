"""From a saved model to an estimator: the table of type tags, and ``load``.

A file names a tag, never a class or a module. Adding a model is one line here.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from longtail import persist
from longtail.exceptions import ModelFormatError

__all__ = ["TABLE", "from_state", "load"]

TABLE = {
    "block-coordinate-ascent": "longtail.decide:BlockCoordinateAscent",
    "declare": "longtail.coded:DECLARE",
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
    "mach": "longtail.coded:MACH",
    "nearest-neighbors": "longtail.baselines:NearestNeighbors",
    "neighbor-code": "longtail.codes:NeighborCode",
    "network": "longtail.deep:Network",
    "one-vs-all": "longtail.linear:OneVsAll",
    "online-rule": "longtail.decide:OnlineRule",
    "plain-texts": "longtail.tagger:PlainTexts",
    "popularity": "longtail.baselines:Popularity",
    "richards-propensity": "longtail.propensity:RichardsPropensity",
    "ridge": "longtail.coded:Ridge",
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


def load(path: str | os.PathLike[str], *, mmap: bool = True, verify: bool = False) -> Any:
    """The estimator saved in the directory ``path``, ready to predict.

    With ``mmap`` (the default) arrays stay in their files and are read page by page when used, so
    loading takes milliseconds and processes share them; ``mmap=False`` reads them into memory.
    Sizes and bounds are always checked; ``verify=True`` also compares the checksum of every file.

    Raises ``FileNotFoundError`` if nothing is there, and ``ModelFormatError``, saying which file
    and why, for what is truncated, altered, newer than this version, or not a model.
    """
    state = persist.load(path, mmap=mmap, verify=verify)
    try:
        return from_state(state)
    except ModelFormatError as error:
        raise ModelFormatError(f"cannot load {os.fspath(path)}: {error}") from error.__cause__


def from_state(state: persist.State) -> Any:
    """The estimator of a state, as for the parts of a composed model."""
    try:
        module, _, name = TABLE[state.type].partition(":")
    except KeyError:
        raise ModelFormatError(
            f"unknown type of model {state.type!r}: a newer version of longtail may know it"
        ) from None
    cls = getattr(importlib.import_module(module), name)
    try:
        return cls._from_state(state)
    except ModelFormatError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelFormatError(f"not the state of a {name}: {error}") from error
