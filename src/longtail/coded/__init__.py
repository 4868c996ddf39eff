"""Coded models, with fewer outputs than labels.

A code (``longtail.label_codes``) stands in front of an estimator::

            Y ──► code.encode ──► targets ─┐
                                           ├─► estimator (linear, Network, TextNetwork, Ridge)
            X ─────────────────────────────┘        │
            labels ◄── code.decode ◄── scores or codes of new rows

``MACH`` has an estimator for each repetition of a ``HashCode``, ``DECLARE`` one regressor for the
codes of ``SVDCode`` or ``NeighborCode``.
"""

from longtail.coded.declare import DECLARE
from longtail.coded.mach import MACH
from longtail.coded.ridge import Ridge

__all__ = ["DECLARE", "MACH", "Ridge"]
