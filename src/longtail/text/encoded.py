"""``EncodedTokens``: tokens that several rankers are asked about, encoded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from longtail.data.tokens import Tokens

__all__ = ["EncodedTokens"]


class EncodedTokens(Tokens):
    """``Tokens`` that keep what an encoder made of them, for the length of one answer.

    A ranker and those that stand on its vectors then share one pass of the encoder.
    """

    def __init__(self, tokens: Tokens) -> None:
        super().__init__(tokens.offsets, tokens.ids, tokens.n_truncated, tokens.source)
        object.__setattr__(self, "_made", {})

    def by(self, encoder: Any, encode: Callable[[Tokens], np.ndarray]) -> np.ndarray:
        """Return the vectors by this encoder, made with ``encode`` when first asked for."""
        made: dict[int, tuple[Any, np.ndarray]] = self.__dict__["_made"]
        if id(encoder) not in made:
            made[id(encoder)] = encoder, encode(self)  # kept, so that its id stays its own
        return made[id(encoder)][1]
