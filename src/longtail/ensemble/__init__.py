"""Several rankers, one answer.

::

                       ┌─► part 0: features of a vectoriser ─► TopK ─┐
    rows ─► part_rows ─┼─► part 1: the texts themselves ─────► TopK ─┼─► fusion ─► TopK
                       └─► part 2: vectors of part 1 ────────► TopK ─┘

A part (``part``) is a ranker and what it reads: rows as they come, features of a vectoriser, or the
vectors of an earlier part. ``fusion`` combines by a rule; ``learned_fusion`` by boosted trees
(``boosted_trees``), which ``learning`` fits on rows that no part was trained on; ``widened`` adds
answers behind them where more are asked for. ``growing``, ``compacting`` and ``saving`` do for
every member what their names say.
"""

from longtail.ensemble.ensemble import Ensemble
from longtail.ensemble.fusion import combine
from longtail.ensemble.part import Part

__all__ = ["Ensemble", "Part", "combine"]
