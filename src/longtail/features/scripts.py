"""Scripts that are written without spaces between words, and how much of some texts is in them.

Chinese, Japanese, Thai, Lao, Khmer, Burmese and Tibetan put no spaces between words: split at
spaces, a whole sentence is one word that no other text has. Characters and short runs of them tell
what such texts are about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["UNSPACED", "unspaced_share"]

#: The characters of these scripts, marks included, for use inside ``[]`` of a regular expression.
UNSPACED = "".join(
    (
        "\u0e00-\u0eff",  # Thai, Lao
        "\u0f00-\u0fff",  # Tibetan
        "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f",  # Burmese
        "\u1780-\u17ff\u19e0-\u19ff",  # Khmer
        "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff",  # Han
        "\uf900-\ufaff\U00020000-\U0003fffd",  # Han
        "\u3041-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff\uff66-\uff9f",  # kana, bopomofo
    )
)
_UNSPACED = re.compile(f"[{UNSPACED}]")
_NO_LETTERS = re.compile(rf"[^\w{UNSPACED}]+")


def unspaced_share(texts: Iterable[str]) -> float:
    """Return the share of letters and digits that belong to scripts without spaces.

    It is 0 where there are no letters at all.

    >>> unspaced_share(["自然言語処理", "deep learning"])
    0.3333333333333333
    """
    unspaced = letters = 0
    for text in texts:
        letters += len(_NO_LETTERS.sub("", text))
        unspaced += 0 if text.isascii() else len(_UNSPACED.findall(text))
    return unspaced / letters if letters else 0.0
