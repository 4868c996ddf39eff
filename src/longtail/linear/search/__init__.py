r"""Search: from a row to its best labels, by a beam through the layers.

::

    root     o                    every layer holds the weights of one tree level (layer.py):
            / \                   the children of a parent are a chunk, feature by feature, so
    beam   o   x                  that a non-zero of the row is one look-up for all of them
          / \
         o   x                    scores along a path are put together by a post-processor
                                  (post_processing.py); the core does the walk (searching.py)
"""
