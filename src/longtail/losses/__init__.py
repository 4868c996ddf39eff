"""Losses under missing labels."""

from longtail.losses.weights import as_propensity, class_balance, surrogate_weights

__all__ = ["as_propensity", "class_balance", "surrogate_weights"]
