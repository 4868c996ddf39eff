"""The estimators that must keep the contract. Adding a model is one line in ``CASES``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import longtail as lt
from longtail.testing.problems import (
    Problem,
    as_texts,
    assert_close,
    features,
    make_problem,
    params_of,
    shown,
)

__all__ = [
    "CASES",
    "WITH_TEXTS",
    "WITH_TORCH",
    "Case",
    "Problem",
    "as_texts",
    "assert_close",
    "features",
    "make_problem",
    "params_of",
    "shown",
]


@dataclass(frozen=True)
class Case:
    """``make(**params)`` builds an unfitted estimator, small enough to fit in milliseconds.

    ``texts``: it takes texts where others take features; tests marked ``features`` skip it.
    """

    name: str
    make: Callable[..., Any]
    texts: bool = False


TEXTS = {"encoder": "average", "epochs": 4, "batch_size": 16, "learning_rate": 0.02}
TEXTS |= {"output_learning_rate": 0.05, "device": "cpu", "n_jobs": 1, "onnx": False}
NETWORK = {"hidden": 8, "epochs": 3, "batch_size": 64, "learning_rate": 0.1, "dropout": 0.0}
LEAN = {"output_precision": "float8", "output_options": {"reduction": "sum"}}
WITH_TORCH = [
    Case("Network", lambda **p: lt.Network(**{**NETWORK, **p})),
    Case("Network(float8)", lambda **p: lt.Network(**{**NETWORK, **LEAN, **p})),
    Case("Network(fan_in)", lambda **p: lt.Network(**{**NETWORK, "fan_in": 5, **p})),
    Case(
        "MACH(network)",
        lambda **p: lt.MACH(
            **{"estimator": lt.Network(**NETWORK), "n_buckets": 8, "n_repetitions": 2, **p}
        ),
    ),
    Case(
        "DECLARE(network)",
        lambda **p: lt.DECLARE(**{"estimator": lt.Network(**NETWORK), "n_components": 8, **p}),
    ),
]
DUAL = {"encoder": "average", "epochs": 6, "batch_size": 16, "learning_rate": 0.02}
DUAL |= {"head_learning_rate": 0.01, "device": "cpu", "n_jobs": 1, "onnx": False, "period": 2}
FEW = {"fan_in": 64}
XR = {"encoder": "average", "steps": 40, "batch_size": 16, "learning_rate": 0.02, "leaf": 4}
XR |= {"branching": 2, "min_codes": 2, "refined_leaf": 4, "refined_branching": 2, "man_beam": 2}
XR |= {"device": "cpu", "n_jobs": 1, "onnx": False, "vectorizer": lt.Tfidf(min_df=1)}
WITH_TEXTS = [
    Case("DualEncoder", lambda **p: lt.DualEncoder(**{**DUAL, **p}), texts=True),
    Case("UniDEC", lambda **p: lt.UniDEC(**{**DUAL, **p}), texts=True),
    Case("XRTransformer", lambda **p: lt.XRTransformer(**{**XR, **p}), texts=True),
    Case("TextNetwork", lambda **p: lt.TextNetwork(**{**TEXTS, **p}), texts=True),
    Case("TextNetwork(fan_in)", lambda **p: lt.TextNetwork(**{**TEXTS, **FEW, **p}), texts=True),
    Case(
        "Ensemble(texts)",
        lambda **p: lt.Ensemble(
            **{"models": [lt.TextNetwork(**TEXTS), lt.XRTransformer(**XR)], "rule": "softmax", **p}
        ),
        texts=True,
    ),
    Case(
        "Ensemble(learned, texts)",
        lambda **p: lt.Ensemble(
            **{
                "models": [
                    (lt.Tfidf(min_df=1), lt.OneVsAll()),
                    lt.TextNetwork(**TEXTS),
                    (1, lt.baselines.NearestNeighbors(weights="softmax")),
                ],
                "rule": "learned",
                "folds": 2,
                **p,
            }
        ),
        texts=True,
    ),
    Case(
        "MACH(texts)",
        lambda **p: lt.MACH(
            **{"estimator": lt.TextNetwork(**TEXTS), "n_buckets": 8, "n_repetitions": 2, **p}
        ),
        texts=True,
    ),
]
CASES = [
    Case("OneVsAll", lt.OneVsAll),
    Case(
        "XRLinear", lambda **p: lt.XRLinear(**{"tree": lt.tree.LabelTree(leaf=4, branching=2), **p})
    ),
    Case(
        "OneVsAll(missing labels)",
        lambda **p: lt.OneVsAll(**{"missing_labels": lt.JainPropensity(), **p}),
    ),
    Case(
        "Ensemble",
        lambda **p: lt.Ensemble(models=[lt.OneVsAll(), lt.baselines.NearestNeighbors()], **p),
    ),
    Case(
        "Ensemble(learned)",
        lambda **p: lt.Ensemble(
            **{
                "models": [lt.OneVsAll(), lt.baselines.NearestNeighbors()],
                "rule": "learned",
                **p,
            }
        ),
    ),
    Case("MACH", lambda **p: lt.MACH(**{"estimator": "linear", **p})),
    Case(
        "DECLARE",
        lambda **p: lt.DECLARE(**{"n_components": 8, "n_pairs": 10, "n_steps": 3, **p}),
    ),
    Case(
        "DECLARE(svd)",
        lambda **p: lt.DECLARE(
            **{"n_components": 8, "compression": "svd", "targets": "codes", **p}
        ),
    ),
    Case("Popularity", lt.baselines.Popularity),
    Case("NearestNeighbors", lambda **p: lt.baselines.NearestNeighbors(**{"n_neighbors": 5, **p})),
    Case(
        "NearestNeighbors(uniform)",
        lambda **p: lt.baselines.NearestNeighbors(weights="uniform", **p),
    ),
    Case(
        "NearestNeighbors(softmax)",
        lambda **p: lt.baselines.NearestNeighbors(weights="softmax", **p),
    ),
    Case("NearestNeighbors(dot)", lambda **p: lt.baselines.NearestNeighbors(normalize=False, **p)),
    *(WITH_TORCH if find_spec("torch") else []),
    *(WITH_TEXTS if find_spec("torch") and find_spec("tokenizers") else []),
]
