"""How much may be explained in one request.

An explanation costs about as much as the words it looks at, for every label. So words times labels
are bounded, before any work is done; a text of few words counts as ``LEAST`` of them, since a label
has a cost of its own.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

__all__ = ["MOST_CHARACTERS", "MOST_PAIRS", "MOST_TEXTS", "too_much"]

MOST_TEXTS = 16
MOST_PAIRS = 10_000  # words times labels
MOST_CHARACTERS = 250_000
LEAST = 100
_WORD = re.compile(r"\w\w+")


def too_much(texts: list[Any], n_labels: int) -> str | None:
    """Return why explaining so many labels of each of these texts is refused; None where it is
    not.
    """
    if len(texts) > MOST_TEXTS:
        return f"explain is for at most {MOST_TEXTS} texts at a time"
    parts = [list(text.values()) if isinstance(text, dict) else [text] for text in texts]
    if sum(len(part) for fields in parts for part in fields) > MOST_CHARACTERS:
        return f"explain is for at most {MOST_CHARACTERS:,} characters at a time"
    left = MOST_PAIRS // n_labels
    for fields in parts:
        words = (word for part in fields for word in _WORD.finditer(part))
        left -= max(LEAST, sum(1 for _ in islice(words, max(left, 0) + 1)))
        if left < 0:
            return (
                f"too much to explain: words times labels may be at most {MOST_PAIRS:,} "
                f"(a text of fewer than {LEAST} words counts as {LEAST}); "
                "ask for fewer labels, or for one of them at /explain"
            )
    return None
