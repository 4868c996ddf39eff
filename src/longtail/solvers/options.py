"""``SolverOptions``: what to minimise, how precisely, and what to keep."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from longtail._validation import as_k

__all__ = ["LOSSES", "SOLVERS", "SolverOptions"]

LOSSES = {"squared_hinge": 0, "hinge": 1, "logistic": 2, "huber_hinge": 3}
SOLVERS = ("auto", "dual", "newton")


@dataclass(frozen=True)
class SolverOptions:
    """Options of one binary problem, ``min_w 1/2 |w|^2 + sum_i C_i loss(y_i w.x_i)``.

    ``loss`` and ``solver`` by name; ``tolerance``: the dual solver stops when the projected
    gradients of all rows lie within it; ``max_iter`` passes or Newton steps; ``bias`` is the value
    of the constant feature (0: none); weights below ``threshold`` in absolute value are dropped.
    """

    loss: str = "squared_hinge"
    solver: str = "auto"
    tolerance: float = 0.5
    max_iter: int = 100
    bias: float = 1.0
    threshold: float = 0.1

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(LOSSES)}, got {self.loss!r}")
        if self.solver not in SOLVERS:
            raise ValueError(f"solver must be one of {', '.join(SOLVERS)}, got {self.solver!r}")
        if not self.tolerance > 0:
            raise ValueError(f"tolerance must be positive, got {self.tolerance}")
        as_k(self.max_iter, "max_iter")
        for name in ("bias", "threshold"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be finite and not negative, got {value}")

    def native(self) -> dict[str, Any]:
        """Keyword arguments of the native ``train_level``."""
        return {
            "loss": LOSSES[self.loss],
            "dual": self.solver != "newton",
            "tolerance": float(self.tolerance),
            "max_iter": min(int(self.max_iter), 2**31 - 1),
            "bias": float(self.bias),
            "threshold": float(self.threshold),
        }
