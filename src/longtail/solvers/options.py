"""``SolverOptions``: what to minimise, how precisely, and what to keep."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from longtail._validation import as_k

__all__ = ["LOSSES", "SOLVERS", "STARTS", "SolverOptions"]

LOSSES = {"squared_hinge": 0, "hinge": 1, "logistic": 2, "huber_hinge": 3}
SOLVERS = ("auto", "dual", "newton")
STARTS = {"zero": 0, "mean_separating": 1, "bias": 2, "minus_mean": 3}
_DUAL_LOSSES = ("squared_hinge", "hinge")
_TOLERANCE = {"dual": 0.5, "newton": 0.01}


@dataclass(frozen=True)
class SolverOptions:
    """Options of one binary problem, ``min_w 1/2 |w|^2 + sum_i C_i loss(y_i w.x_i)``.

    ``loss`` and ``solver`` by name; "auto" takes the dual solver for the losses it knows (squared
    hinge and hinge), Newton for the others. ``tolerance``: the dual solver stops when the projected
    gradients of all rows lie within it (default 0.5), Newton when the gradient has fallen to this
    share of its norm at zero, times the share of the rarer class (default 0.01). ``max_iter``
    passes or Newton steps; ``bias`` is the value of the constant feature (0: none); weights below
    ``threshold`` in absolute value are dropped, or as many as raise the objective by at most the
    share ``prune_budget``. Newton's alone: a bias without regulariser, a smoothed L1 term of weight
    ``l1``, and ``start``, the point it begins at.
    """

    loss: str = "squared_hinge"
    solver: str = "auto"
    tolerance: float | None = None
    max_iter: int = 100
    bias: float = 1.0
    threshold: float = 0.1
    prune_budget: float | None = None
    regularize_bias: bool = True
    l1: float = 0.0
    start: str = "mean_separating"

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(LOSSES)}, got {self.loss!r}")
        if self.solver not in SOLVERS:
            raise ValueError(f"solver must be one of {', '.join(SOLVERS)}, got {self.solver!r}")
        if self.start not in STARTS:
            raise ValueError(f"start must be one of {', '.join(STARTS)}, got {self.start!r}")
        if self.method == "dual" and self.loss not in _DUAL_LOSSES:
            raise ValueError(
                f"the dual solver knows {' and '.join(_DUAL_LOSSES)}, got {self.loss!r}"
            )
        if self.method == "dual" and not self.regularize_bias:
            raise ValueError("regularize_bias=False needs solver='newton'")
        if self.method == "dual" and self.l1 != 0:
            raise ValueError("l1 needs solver='newton'")
        if self.method == "newton" and self.loss == "hinge":
            raise ValueError("Newton needs a smooth loss: use 'huber_hinge', or solver='dual'")
        if self.prune_budget is not None and not 0 <= self.prune_budget < 1e6:
            raise ValueError(f"prune_budget must be a share from 0 on, got {self.prune_budget}")
        if self.tolerance is not None and not self.tolerance > 0:
            raise ValueError(f"tolerance must be positive, got {self.tolerance}")
        as_k(self.max_iter, "max_iter")
        for name in ("bias", "threshold", "l1"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be finite and not negative, got {value}")

    @property
    def method(self) -> str:
        """The solver that runs: "dual" or "newton"."""
        if self.solver != "auto":
            return self.solver
        asks_newton = not self.regularize_bias or self.l1 != 0
        return "newton" if asks_newton or self.loss not in _DUAL_LOSSES else "dual"

    def native(self) -> dict[str, Any]:
        """Keyword arguments of the native ``train_level``."""
        return {
            "loss": LOSSES[self.loss],
            "dual": self.method == "dual",
            "tolerance": float(self.tolerance or _TOLERANCE[self.method]),
            "max_iter": min(int(self.max_iter), 2**31 - 1),
            "bias": float(self.bias),
            "threshold": float(self.threshold),
            "prune_budget": self.prune_budget,
            "regularize_bias": bool(self.regularize_bias),
            "l1": float(self.l1),
            "start": STARTS[self.start],
        }
