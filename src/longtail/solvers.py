"""The old place of ``longtail.linear.SolverOptions``, until 0.2."""

import warnings

from longtail.linear.train.solver_options import LOSSES, SOLVERS, STARTS, SolverOptions

__all__ = ["LOSSES", "SOLVERS", "STARTS", "SolverOptions"]

warnings.warn(
    "longtail.solvers is private now, use longtail.linear.SolverOptions; the old name goes in 0.2",
    DeprecationWarning,
    stacklevel=2,
)
