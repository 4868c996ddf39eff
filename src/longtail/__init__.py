"""Longtail: extreme multi-label classification, honest about rare labels.

The names that most programs need are listed once, below, and loaded on first use, so that
``import longtail`` is quick and never pulls in torch or a web framework. Everything else is in its
room: ``longtail.data.make_longtail``, ``longtail.decide.Threshold``. ``__init__.pyi`` tells the
same to editors and type checkers.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "BlockCoordinateAscent": "decide",
    "DECLARE": "codes",
    "DataFormatError": "exceptions",
    "DualEncoder": "text",
    "Ensemble": "ensemble",
    "FrankWolfe": "decide",
    "JainPropensity": "propensity",
    "MACH": "codes",
    "MissingDependencyError": "exceptions",
    "ModelFormatError": "exceptions",
    "Network": "deep",
    "OneVsAll": "linear",
    "Tagger": "tagger",
    "TextNetwork": "text",
    "Tfidf": "features",
    "TopK": "answers",
    "UniDEC": "text",
    "XRLinear": "linear",
    "XRTransformer": "text",
    "evaluate": "report",
    "load": "_models",
    "load_dataset": "data",
    "native_info": "_native",
    "read_xc": "data",
    "register_ranker": "_models",
    "tradeoff": "report",
    "write_xc": "data",
}
_ROOMS = {
    "answers",
    "audit",
    "augment",
    "base",
    "baselines",
    "calibrate",
    "codes",
    "data",
    "decide",
    "deep",
    "distributed",
    "ensemble",
    "exceptions",
    "features",
    "linear",
    "losses",
    "metrics",
    "persist",
    "propensity",
    "report",
    "tagger",
    "testing",
    "text",
    "tree",
}
_MOVED = {  # names that were here in 0.1 and are in their rooms; they go in 0.2
    "Dataset": "data",
    "DirectPropensity": "propensity",
    "JointPropensity": "propensity",
    "LabelTree": "tree",
    "NearestNeighbors": "baselines",
    "OnlineRule": "decide",
    "Popularity": "baselines",
    "RichardsPropensity": "propensity",
    "Split": "data",
    "Threshold": "decide",
    "Tokens": "data",
    "TopKRule": "decide",
    "Vocabulary": "answers",
    "WeightedTopK": "decide",
    "beside": "features",
    "compact": "linear",
    "list_datasets": "data",
    "load_matrix": "features",
    "make_longtail": "data",
    "register_dataset": "data",
    "save_matrix": "features",
    "train_validation_split": "data",
}
_MOVED_ROOMS = {"models", "solvers"}  # modules that warn themselves

__all__ = [*_HOME, "__version__", *sorted(_ROOMS)]


def __getattr__(name: str) -> Any:
    if name in _MOVED:
        home = _MOVED[name]
        warnings.warn(
            f"longtail.{name} has moved to longtail.{home}.{name}; the old name goes in 0.2",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(importlib.import_module(f"longtail.{home}"), name)  # not kept: warns again
    if name in _HOME:
        value = getattr(importlib.import_module(f"longtail.{_HOME[name]}"), name)
    elif name in _ROOMS | _MOVED_ROOMS:
        value = importlib.import_module(f"longtail.{name}")
    else:
        raise AttributeError(f"module 'longtail' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
