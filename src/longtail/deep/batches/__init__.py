"""Batches: rows on a device, taken some at a time.

``SparseRows`` and ``TokenRows`` hold inputs, ``LabelRows`` and ``DenseRows`` targets; ``Feed`` puts
an order on both and hands out pairs. Whatever a training should see differently (mined negatives,
shortlists, added rows) is another feed: ``PairFeed`` hands out rows with pools of labels.
"""
