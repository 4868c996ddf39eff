"""Messages of the library in the words of the command line: flags instead of Python arguments."""

from __future__ import annotations

import re

__all__ = ["in_flags"]

# Arguments of Python whose flag is not their own name with dashes.
_OTHER = {"n_jobs": "--jobs", "random_state": "--seed", "models": "--models"}
_FLAGS = (
    "calibrate",
    "delimiter",
    "field_weights",
    "label_column",
    "label_separator",
    "label_text_field",
    "label_texts",
    "layout",
    "learn_label_texts",
    "max_df",
    "max_features",
    "memory_limit",
    "min_df",
    "min_word_length",
    "missing_labels",
    "n_features",
    "ngram_range",
    "overwrite",
    "stop_words",
    "strip_accents",
    "text_column",
)
_NAMES = {**{name: f"--{name.replace('_', '-')}" for name in _FLAGS}, **_OTHER}
_GIVEN = re.compile(rf"(?<![\w-])({'|'.join(_NAMES)})=('[^']*'|\"[^\"]*\"|[\w.-]+)")
_NAMED = re.compile(rf"(?<![\w'\"-])({'|'.join(n for n in _NAMES if '_' in n)})(?![\w'\"=])")


def in_flags(message: str) -> str:
    """Return a message with ``name=value`` and names of arguments written as flags.

    >>> in_flags("pass label_separator=';' or see text_column; model exists: pass overwrite=True")
    "pass --label-separator ';' or see --text-column; model exists: pass --overwrite"
    """

    def given(found: re.Match[str]) -> str:
        flag, value = _NAMES[found[1]], found[2]
        if value == "True":
            return flag
        return f"--no-{flag[2:]}" if value == "False" else f"{flag} {value}"

    return _NAMED.sub(lambda found: _NAMES[found[1]], _GIVEN.sub(given, message))
