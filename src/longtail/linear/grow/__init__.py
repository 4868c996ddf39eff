"""Models that live on: labels come, go and change without training the others again.

::

    new rows, new labels ──► new_labels: which parent each label goes to, its classifier
                                 │
                                 ▼
                             inner_nodes: parents learn to send rows there; a full one is halved
                                 │
                                 ▼
                             arranging: the layers with the new children in their places

``kept_rows`` are rows of the training that a model keeps to be the negatives of new labels;
``growing`` is what rankers inherit.
"""
