"""Linear models: one classifier per label, flat or over a label tree.

::

    X, Y ──► tree ──► train/ ──► layers: the weights of ──► search/ ──► TopK
                                 each level, root first
                      grow/ ────►          │
                      labels come and go   ├──► explain/    which features spoke for a label
                                           ├──► compaction  the same in fewer bytes
                                           └──► shards      some labels each, on several servers
                                                            (sharded, remote_shard)

``OneVsAll`` (a tree of one level) and ``XRLinear`` are the models, ``ranker`` is what they share.
Each folder opens with a page of its own.
"""

from longtail.linear.compaction import compact
from longtail.linear.one_vs_all import OneVsAll
from longtail.linear.train.solver_options import SolverOptions
from longtail.linear.xr_linear import XRLinear

__all__ = ["OneVsAll", "SolverOptions", "XRLinear", "compact"]
