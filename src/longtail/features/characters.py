"""What every character is and becomes, asked of ``str``, ``re`` and ``unicodedata`` themselves.

The tokeniser in the core must see characters exactly as Python does: ``\\w`` and ``\\s`` of ``re``,
``str.lower``, and the accent stripping of scikit-learn. Rather than carry a second Unicode
database, which would disagree with the running interpreter sooner or later, the table is read off
the interpreter once (in some milliseconds) and kept.

    entry = entries[256 * pages[code >> 8] + (code & 255)]
    bits 0-20    what the character becomes, as a distance: (code + distance) mod 2^21;
                 or, with EXPANDS, a position in ``pool``: a count, then so many characters
    WORD, SPACE  whether the result matches ``\\w``, ``\\s`` (in ``pool`` as well)

One rule of ``str.lower`` needs context: capital sigma becomes ``ς`` at the end of a word. The
binding passes texts that hold one through ``str.lower``; here sigma is mapped as if it stood alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

__all__ = ["character_table", "strip_accents_ascii", "strip_accents_unicode"]

EXPANDS, WORD, SPACE = 1 << 21, 1 << 22, 1 << 23
_MASK = (1 << 21) - 1
_PAGE = 256
_N_CODES = 0x110000
# Nothing from here on is a letter, a digit or a space, has a case or is decomposed: unassigned
# planes, tags, variation selectors, private use. A test asks the running interpreter.
_QUIET = 0x40000


def strip_accents_unicode(text: str) -> str:
    """Return the compatibility decomposition (NFKD) without combining marks: ``"ﬁancé"`` to
    ``"fiance"``.
    """
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def strip_accents_ascii(text: str) -> str:
    """Return what is ASCII in the compatibility decomposition (NFKD): ``"naïve 東京"`` to ``"naive
    "``.
    """
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")


_STRIP: dict[str | None, Callable[[str], str]] = {
    None: lambda text: text,
    "unicode": strip_accents_unicode,
    "ascii": strip_accents_ascii,
}


@lru_cache(maxsize=6)
def character_table(
    lowercase: bool, strip_accents: str | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ``(pages uint16 (4352,), entries uint32 (256 * n_pages,), pool uint32)``, as above."""
    strip = _STRIP[strip_accents]

    def fold(text: str) -> str:
        return strip(text.lower() if lowercase else text)

    codes = np.arange(_QUIET, dtype=np.uint32)
    text = codes.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    flags = np.zeros(_QUIET, np.uint32)
    for pattern, flag in ((r"\w+|\W+", WORD), (r"\s+|\S+", SPACE)):
        yes = re.compile(pattern[:2])
        for run in re.finditer(pattern, text):
            if yes.match(text, run.start()):
                flags[run.start() : run.end()] |= flag

    entries = flags.copy()
    pool = [0]  # position 0: what becomes nothing
    for start, stop, folded in _changes(text, fold):
        if not folded:
            entries[start:stop] = EXPANDS
        elif len(folded) == 1:
            entries[start] = ((ord(folded) - start) & _MASK) | int(flags[ord(folded)])
        else:
            entries[start] = EXPANDS | len(pool)
            pool += [len(folded), *(ord(c) | int(flags[ord(c)]) for c in folded)]
    quiet = EXPANDS if strip_accents == "ascii" else 0

    numbers: dict[bytes, int] = {}
    pages = [
        numbers.setdefault(page.tobytes(), len(numbers)) for page in entries.reshape(-1, _PAGE)
    ]
    above = numbers.setdefault(np.full(_PAGE, quiet, np.uint32).tobytes(), len(numbers))
    pages += [above] * ((_N_CODES - _QUIET) // _PAGE)
    return (
        np.asarray(pages, np.uint16),
        np.frombuffer(b"".join(numbers), np.uint32),
        np.asarray(pool, np.uint32),
    )


def _changes(text: str, fold: Callable[[str], str]) -> Iterator[tuple[int, int, str]]:
    """``(start, stop, folded)`` of what ``fold`` changes: characters, or whole pages that vanish.

    Pages that stay as they are, most of them, cost one call.
    """
    for start in range(0, len(text), _PAGE):
        page = text[start : start + _PAGE]
        folded = fold(page)
        if not folded:
            yield start, start + _PAGE, ""
        elif folded != page:
            for code, character in enumerate(page, start):
                folded = fold(character)
                if folded != character:
                    yield code, code + 1, folded
