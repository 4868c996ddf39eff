"""The old place of ``longtail.linear.solver_options``, until 0.2."""

import warnings

from longtail.linear.solver_options import LOSSES, SOLVERS, STARTS, SolverOptions

__all__ = ["LOSSES", "SOLVERS", "STARTS", "SolverOptions"]

warnings.warn(
    "longtail.solvers has moved to longtail.linear.solver_options; the old name goes in 0.2",
    DeprecationWarning,
    stacklevel=2,
)
