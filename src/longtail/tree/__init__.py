"""Trees over labels: what the labels look like, how they are grouped, and who is whose child.

    label_features   a vector per label: from its positive instances (PIFA), its text, or both
    clustering       balanced 2-means: an order of the labels in which neighbours are alike
    shape            how many nodes on each level, and where the order is cut (depends on the number
                     of labels alone)
    hierarchy        a tree someone else made: parent array, nested groups, chain of matrices
    huffman          frequent labels near the root
    label_tree       ``LabelTree``: all of these behind one estimator

A tree is stored as plain arrays. Levels are numbered from 0 just below the root; the last level is
the labels themselves, in an order in which the descendants of every node are consecutive:

    level_sizes_     [K_0, ..., L]
    child_ptr_[t]    (K_{t-1} + 1) offsets: the children of node c are the nodes
                     child_ptr_[t][c] .. child_ptr_[t][c + 1] of level t (K_{-1} = 1, the root)
    label_of_leaf_   (L) which label stands at each position of the last level
"""

from longtail.tree.clustering import balanced_clusters
from longtail.tree.label_features import pifa
from longtail.tree.label_tree import LabelTree
from longtail.tree.shape import default_level_sizes

__all__ = ["LabelTree", "balanced_clusters", "default_level_sizes", "pifa"]
