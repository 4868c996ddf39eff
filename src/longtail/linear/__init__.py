"""Linear models: one classifier per label, flat or over a label tree.

``OneVsAll`` and ``XRLinear`` are the models, ``ranker`` is what they share. Their parts are in four
folders: ``train`` (rows to weights), ``search`` (rows to answers), ``explain`` and ``grow``.
"""

from longtail.linear.compaction import compact
from longtail.linear.one_vs_all import OneVsAll
from longtail.linear.train.solver_options import SolverOptions
from longtail.linear.xr_linear import XRLinear

__all__ = ["OneVsAll", "SolverOptions", "XRLinear", "compact"]
