"""What an estimator may be able to do: small protocols, each with the question whether it can.

An object from elsewhere is as good as one of ours, and some of ours can do a thing only once they
are fitted, or only if all of their members can. So the questions are about methods, not classes.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeGuard

__all__ = [
    "Embeds",
    "Explains",
    "GivesProbabilities",
    "GrowsLabels",
    "HasParameters",
    "Vectorizes",
    "embeds",
    "explains",
    "gives_probabilities",
    "grows_labels",
    "has_parameters",
    "vectorizes",
]


class HasParameters(Protocol):
    """An estimator by scikit-learn's protocol of parameters."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return parameters by name."""


class Vectorizes(Protocol):
    """A representation: from texts, or other rows, to features."""

    def fit_transform(self, texts: Any) -> Any:
        """Learn from texts and return their features."""

    def transform(self, texts: Any) -> Any:
        """Return the features of texts."""


class GivesProbabilities(Protocol):
    """A ranker whose scores are probabilities, or have been calibrated."""

    def predict_proba_topk(self, X: Any, k: int = 5, **options: Any) -> Any:
        """Return the k most probable labels of each row."""


class GrowsLabels(Protocol):
    """A ranker that learns new labels without training the others again."""

    def add_labels(self, X: Any, Y: Any, **options: Any) -> Any:
        """Add the labels that the columns of ``Y`` are."""


class Explains(Protocol):
    """A ranker that tells which features speak for a label."""

    def explain(self, x: Any, label: int) -> Any:
        """Return the share of every feature of a row in the score of a label."""


class Embeds(Protocol):
    """A ranker that has a vector for every row."""

    def embed(self, X: Any) -> Any:
        """Return the vectors of rows."""


def has_parameters(value: Any) -> TypeGuard[HasParameters]:
    """Return whether this is an estimator with parameters, and not a class of such."""
    return hasattr(value, "get_params") and not isinstance(value, type)


def vectorizes(value: Any) -> TypeGuard[Vectorizes]:
    """Return whether this makes features of texts."""
    return hasattr(value, "fit_transform") and hasattr(value, "transform")


def gives_probabilities(model: Any) -> TypeGuard[GivesProbabilities]:
    """Return whether the scores of a fitted ranker are probabilities."""
    return hasattr(model, "predict_proba_topk")


def grows_labels(model: Any) -> TypeGuard[GrowsLabels]:
    """Return whether a fitted ranker takes new labels."""
    return hasattr(model, "add_labels")


def explains(model: Any) -> TypeGuard[Explains]:
    """Return whether a ranker explains its scores itself."""
    return hasattr(model, "explain")


def embeds(model: Any) -> TypeGuard[Embeds]:
    """Return whether a ranker has vectors of rows."""
    return hasattr(model, "embed")
