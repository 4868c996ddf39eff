"""A transformer's weights under the names that ``transformers`` has for them; needs no torch."""

from __future__ import annotations

from typing import Any

__all__ = ["plain_names"]

WITHIN = "model."  # of ``Transformer``, which holds the model as a part


def plain_names(tensors: dict[str, Any]) -> dict[str, Any]:
    """Return the weights of a ``Transformer`` as a model by itself names them.

    >>> plain_names({"model.embeddings.weight": 1})
    {'embeddings.weight': 1}
    """
    return {name.removeprefix(WITHIN): tensor for name, tensor in tensors.items()}
