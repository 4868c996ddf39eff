"""Networks: a small substrate on torch, which is imported only when something is trained.

A trained network is four arrays; answering needs no torch.
"""

from longtail.deep.network import Network

__all__ = ["Network"]
