"""The estimators that must keep the contract. Adding a model is one line in ``CASES``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp

import longtail as lt
from longtail import TopK
from longtail.data.text_rows import TextRows


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
        "MACH(texts)",
        lambda **p: lt.MACH(
            **{"estimator": lt.TextNetwork(**TEXTS), "n_buckets": 8, "n_repetitions": 2, **p}
        ),
        texts=True,
    ),
]
CASES = [
    Case("OneVsAll", lt.OneVsAll),
    Case("XRLinear", lambda **p: lt.XRLinear(**{"tree": lt.LabelTree(leaf=4, branching=2), **p})),
    Case(
        "OneVsAll(missing labels)",
        lambda **p: lt.OneVsAll(**{"missing_labels": lt.JainPropensity(), **p}),
    ),
    Case("Ensemble", lambda **p: lt.Ensemble(models=[lt.OneVsAll(), lt.NearestNeighbors()], **p)),
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
    Case("Popularity", lt.Popularity),
    Case("NearestNeighbors", lambda **p: lt.NearestNeighbors(**{"n_neighbors": 5, **p})),
    Case("NearestNeighbors(uniform)", lambda **p: lt.NearestNeighbors(weights="uniform", **p)),
    Case("NearestNeighbors(softmax)", lambda **p: lt.NearestNeighbors(weights="softmax", **p)),
    Case("NearestNeighbors(dot)", lambda **p: lt.NearestNeighbors(normalize=False, **p)),
    *(WITH_TORCH if find_spec("torch") else []),
    *(WITH_TEXTS if find_spec("torch") and find_spec("tokenizers") else []),
]


def as_texts(X: Any) -> TextRows:
    """Rows of features as texts: a word for every feature, as often as its value has sixteenths."""
    return TextRows(
        " ".join(
            word
            for j, v in zip(row.indices.tolist(), row.data.tolist(), strict=True)
            for word in [f"feature{j}"] * max(1, int(16 * v))
        )
        for row in sp.csr_matrix(X)
    )


@dataclass
class Problem:
    """``X`` (n, d), ``Y`` (n, L), canonical CSR; every label occurs, every row has features."""

    X: sp.csr_matrix
    Y: sp.csr_matrix

    @property
    def lists(self) -> list[list[int]]:
        """The labels as lists of ids."""
        return [row.tolist() for row in np.split(self.Y.indices, self.Y.indptr[1:-1])]


def make_problem(n: int = 90, d: int = 40, n_labels: int = 12, seed: int = 0) -> Problem:
    """Rows of a label share its features, plus noise: the answer is there to be found.

    Values are multiples of 1/16, so that float64, float32 and lists hold the same numbers.
    """
    rng = np.random.default_rng(seed)
    Y = np.zeros((n, n_labels), np.float32)
    Y[np.arange(n), np.arange(n) % n_labels] = 1
    Y[rng.random(Y.shape) < 0.08] = 1
    signal = (rng.random((n_labels, d)) < 0.15) * rng.integers(8, 48, (n_labels, d))
    noise = (rng.random((n, d)) < 0.2) * rng.integers(1, 16, (n, d))
    X = (Y @ signal + noise) / 16
    X[:, 0] += 0.0625  # no row is empty
    return Problem(sp.csr_matrix(X.astype(np.float32)), sp.csr_matrix(Y))


def shown(model: Any) -> dict[str, str]:
    """Parameters as text, so that nested estimators compare by what they are."""
    return {name: repr(value) for name, value in model.get_params().items()}


def params_of(make: Callable[..., Any]) -> set[str]:
    return set(make().get_params())


def assert_close(a: TopK, b: TopK, tolerance: float = 1e-5) -> None:
    """Equal to rounding: scores agree, and ids differ only where scores tie."""
    assert a.indices.shape == b.indices.shape
    np.testing.assert_allclose(a.scores, b.scores, rtol=tolerance, atol=tolerance)
    for row in np.flatnonzero((a.indices != b.indices).any(axis=1)):
        scores = dict(zip(a.indices[row].tolist(), a.scores[row].tolist(), strict=True))
        for slot, label in enumerate(b.indices[row].tolist()):
            worst = a.scores[row, -1]  # a label of b that a lacks can only have tied for last place
            assert abs(scores.get(label, worst) - b.scores[row, slot]) <= tolerance
