"""Output layers: from vectors (b, e) to labels.

A layer owns its weights, their precision and the state of their optimiser:

- ``step(h, targets, objective, rate)`` updates it on one batch and returns the loss, where asked
  for, and the gradient of h, taken from the weights before they change;
- ``top(h, k)`` returns the k best labels of every row;
- ``arrays()`` and ``load(arrays)`` are its state, for checkpoints and for the model.

None of them holds (b, L) numbers. ``full`` has a row of weights for every label and looks at all of
them in every step, ``pool`` at those that a batch names::

    full     weights (L, e) float32, two moments of Adam                     12 e bytes per label
    lean     raw (L, e) float32, bfloat16 or E4M3; no copy, no gradient      4 e, 2 e or e
             momentum (L, e) float32 and compensation (c, e) by option
    fan_in   values (f, L) float32, index (f, L) 16 bits, two moments        14 f

``lean`` and ``fan_in`` learn as their chunks pass: gradient of h first, then the update.
``clustered`` puts a small layer over clusters of labels beside another; ``heads`` compares texts
of rows with those of labels, with or without a row of weights for each. The order of chunks and the
seed are part of the contract: the same bits on a CPU for any number of threads.
"""

from longtail.deep.outputs.fan_in import FanIn
from longtail.deep.outputs.full import Full
from longtail.deep.outputs.heads import HeadPlan, Heads
from longtail.deep.outputs.lean import Lean
from longtail.deep.outputs.pool import Pool

__all__ = ["FanIn", "Full", "HeadPlan", "Heads", "Lean", "Pool"]
