"""Longtail: extreme multi-label classification, honest about rare labels.

Public names are listed once, below, and loaded on first use, so that ``import longtail`` is quick
and never pulls in torch or a web framework.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "BlockCoordinateAscent": "decide",
    "DECLARE": "coded",
    "DataFormatError": "exceptions",
    "Dataset": "data",
    "DirectPropensity": "propensity",
    "Ensemble": "ensemble",
    "FrankWolfe": "decide",
    "JainPropensity": "propensity",
    "JointPropensity": "propensity",
    "LabelTree": "tree",
    "MACH": "coded",
    "MissingDependencyError": "exceptions",
    "ModelFormatError": "exceptions",
    "NearestNeighbors": "baselines",
    "Network": "deep",
    "OneVsAll": "linear",
    "compact": "linear",
    "OnlineRule": "decide",
    "Popularity": "baselines",
    "RichardsPropensity": "propensity",
    "Split": "data",
    "Tagger": "tagger",
    "DualEncoder": "text",
    "TextNetwork": "text",
    "UniDEC": "text",
    "XRTransformer": "text",
    "Tfidf": "features",
    "Tokens": "data",
    "Threshold": "decide",
    "TopK": "data",
    "TopKRule": "decide",
    "Vocabulary": "data",
    "WeightedTopK": "decide",
    "XRLinear": "linear",
    "beside": "features",
    "evaluate": "report",
    "list_datasets": "data",
    "load": "models",
    "load_dataset": "data",
    "load_matrix": "features",
    "load_vectorized": "features",
    "make_longtail": "data",
    "native_info": "_native",
    "read_xc": "data",
    "register_dataset": "data",
    "register_ranker": "models",
    "save_matrix": "features",
    "tradeoff": "report",
    "train_validation_split": "data",
    "vectorize_files": "features",
    "write_xc": "data",
}
_ROOMS = {
    "audit",
    "augment",
    "baselines",
    "coded",
    "codes",
    "calibrate",
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
    "models",
    "persist",
    "propensity",
    "report",
    "solvers",
    "tagger",
    "testing",
    "text",
    "tree",
}

__all__ = [*_HOME, "__version__", *sorted(_ROOMS)]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"longtail.{_HOME[name]}"), name)
    elif name in _ROOMS:
        value = importlib.import_module(f"longtail.{name}")
    else:
        raise AttributeError(f"module 'longtail' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
