"""Training rows made of label texts: Gandalf and its variants, for models of every kind.

``gandalf`` makes the rows; ``co_occurrence`` and ``random_walk`` are the graphs over labels that
tell what else a label's text is about, ``tail_first`` and ``uniform`` choose some of the labels,
``append_rows`` puts rows below others of the same kind.
"""

from longtail.augment.appending import append_rows
from longtail.augment.co_occurrence_graph import co_occurrence
from longtail.augment.gandalf_rows import gandalf
from longtail.augment.random_walk_graph import random_walk
from longtail.augment.subsets import tail_first, uniform

__all__ = [
    "append_rows",
    "co_occurrence",
    "gandalf",
    "random_walk",
    "tail_first",
    "uniform",
]
