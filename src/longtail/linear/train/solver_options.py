"""``SolverOptions``: what to minimise, how precisely, and what to keep."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from longtail._validation import as_k

__all__ = ["LOSSES", "SOLVERS", "STARTS", "SolverOptions"]

LOSSES = {"squared_hinge": 0, "hinge": 1, "logistic": 2, "huber_hinge": 3}
SOLVERS = ("auto", "dual", "newton")
STARTS = {"zero": 0, "mean_separating": 1, "negative_bias": 2, "negative_mean": 3}
DUAL_LOSSES = ("squared_hinge", "hinge")
DEFAULT_TOLERANCE = {"dual": 0.5, "newton": 0.01}


@dataclass(frozen=True)
class SolverOptions:
    """Options of one binary problem,
    ``min_w l2 / 2 |w|^2 + l1 sum_f huber(w_f) + sum_i C_i loss(y_i w.x_i)``.

    Two solvers reach the same optimum. Dual coordinate descent (``"dual"``) is the faster one, and
    minimises the squared hinge and the hinge with ``l2 = 1``, ``l1 = 0`` and a regularised bias.
    Newton's method with conjugate gradients (``"newton"``) does everything but the hinge, which is
    not smooth. ``"auto"`` takes the dual where it can.

    Parameters
    ----------
    loss : str
        "squared_hinge", "hinge", "logistic", or "huber_hinge": a hinge rounded off over
        ``smoothing``.
    solver : str
        "dual" (coordinate descent), "newton", or "auto": the dual where it can.
    tolerance : float or None
        The dual solver stops when the projected gradients of all rows lie within it; Newton's when
        the gradient is at most ``tolerance * max(1, min(positives, negatives)) / rows`` of the
        gradient at zero. None: 0.5 and 0.01.
    max_iter : int
        Passes of the dual solver, or Newton steps.
    bias : float
        Value of the constant feature, 0 for none.
    regularize_bias : bool
        Whether its weight is part of the penalty.
    l2, l1, smoothing : float
        Weights of the penalties; the absolute value in the second is rounded off, quadratic for
        weights below ``smoothing``.
    start : str
        Where Newton starts; the optimum does not depend on it.
    threshold : float
        Weights below it in absolute value are dropped, the bias included.
    prune_budget : float or None
        Instead of ``threshold``: weights are dropped, smallest first, as long as the objective of
        their label rises by at most this fraction of itself.
    """

    loss: str = "squared_hinge"
    solver: str = "auto"
    tolerance: float | None = None
    max_iter: int = 100
    bias: float = 1.0
    threshold: float = 0.1
    regularize_bias: bool = True
    l2: float = 1.0
    l1: float = 0.0
    smoothing: float = 0.1
    start: str = "mean_separating"
    prune_budget: float | None = None

    def __post_init__(self) -> None:
        for name, names in (("loss", LOSSES), ("solver", SOLVERS), ("start", STARTS)):
            value = getattr(self, name)
            if value not in names:
                raise ValueError(f"{name} must be one of {', '.join(names)}, got {value!r}")
        if self.tolerance is not None and not 0 < self.tolerance < math.inf:
            raise ValueError(f"tolerance must be positive, got {self.tolerance}")
        as_k(self.max_iter, "max_iter")
        for name in ("bias", "threshold", "l2", "l1", "prune_budget"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be finite and not negative, got {value}")
        if not 0 < self.smoothing < math.inf:
            raise ValueError(f"smoothing must be positive and finite, got {self.smoothing}")
        if self.l2 + self.l1 == 0:
            raise ValueError("l2 and l1 are both 0: without a penalty the weights have no bound")
        if self.solver == "dual" and not self._dual_can():
            raise ValueError(
                "the dual solver minimises the squared hinge or the hinge with l2=1, l1=0 and a "
                f"regularised bias; for loss={self.loss!r}, l2={self.l2}, l1={self.l1}, "
                f"regularize_bias={self.regularize_bias} use solver='newton'"
            )
        if self.loss == "hinge" and self.chosen_solver == "newton":
            raise ValueError(
                "the hinge is not smooth, and Newton's method needs a smooth loss: use "
                "loss='huber_hinge', or the dual solver with l2=1, l1=0 and a regularised bias"
            )

    def _dual_can(self) -> bool:
        plain = self.l2 == 1 and self.l1 == 0 and bool(self.regularize_bias)
        return plain and self.loss in DUAL_LOSSES

    @property
    def chosen_solver(self) -> str:
        """The solver that will run: "dual" or "newton"."""
        if self.solver != "auto":
            return self.solver
        return "dual" if self._dual_can() else "newton"

    def native(self) -> dict[str, Any]:
        """Return fields of the core's ``LevelParams`` that say what is solved, and how."""
        solver = self.chosen_solver
        tolerance = DEFAULT_TOLERANCE[solver] if self.tolerance is None else self.tolerance
        budget = self.prune_budget
        return {
            "loss": LOSSES[self.loss],
            "dual": solver == "dual",
            "tolerance": float(tolerance),
            "max_iter": min(int(self.max_iter), 2**31 - 1),
            "bias": float(self.bias),
            "threshold": float(self.threshold),
            "regularize_bias": bool(self.regularize_bias),
            "l2": float(self.l2),
            "l1": float(self.l1),
            "smoothing": float(self.smoothing),
            "start": STARTS[self.start],
            "prune_budget": None if budget is None else float(budget),
        }
