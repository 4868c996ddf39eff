"""What ``longtail`` holds, for editors and type checkers: ``__init__.py`` loads it on first use."""

from longtail import (
    answers,
    audit,
    augment,
    base,
    baselines,
    calibrate,
    codes,
    data,
    decide,
    deep,
    distributed,
    ensemble,
    exceptions,
    features,
    linear,
    losses,
    metrics,
    persist,
    propensity,
    report,
    tagger,
    testing,
    text,
    tree,
)
from longtail._models import load, register_ranker
from longtail._native import native_info
from longtail.answers import TopK
from longtail.codes import DECLARE, MACH
from longtail.data import load_dataset, read_xc, write_xc
from longtail.decide import BlockCoordinateAscent, FrankWolfe
from longtail.deep import Network
from longtail.ensemble import Ensemble
from longtail.exceptions import DataFormatError, MissingDependencyError, ModelFormatError
from longtail.features import Tfidf
from longtail.linear import OneVsAll, XRLinear
from longtail.propensity import JainPropensity
from longtail.report import evaluate, tradeoff
from longtail.tagger import Tagger
from longtail.text import DualEncoder, TextNetwork, UniDEC, XRTransformer

__version__: str

__all__ = [
    "BlockCoordinateAscent",
    "DECLARE",
    "DataFormatError",
    "DualEncoder",
    "Ensemble",
    "FrankWolfe",
    "JainPropensity",
    "MACH",
    "MissingDependencyError",
    "ModelFormatError",
    "Network",
    "OneVsAll",
    "Tagger",
    "TextNetwork",
    "Tfidf",
    "TopK",
    "UniDEC",
    "XRLinear",
    "XRTransformer",
    "evaluate",
    "load",
    "load_dataset",
    "native_info",
    "read_xc",
    "register_ranker",
    "tradeoff",
    "write_xc",
    "__version__",
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
]
