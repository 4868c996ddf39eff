"""How binary problems are solved: the options, and their way to the native solvers.

The solvers themselves work on 16 labels at once and live in ``cpp/kernels/linear`` (its README
draws the memory layout): dual coordinate descent, and Newton with conjugate gradients.
"""

from longtail.solvers.options import LOSSES, SOLVERS, STARTS, SolverOptions

__all__ = ["LOSSES", "SOLVERS", "STARTS", "SolverOptions"]
