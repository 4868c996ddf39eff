"""The character table says what Python says, about every character there is."""

from __future__ import annotations

import re
import sys
import unicodedata

import numpy as np
import pytest
from sklearn.feature_extraction import text as sk

from longtail.features import characters
from longtail.features.characters import character_table

EVERY = [chr(code) for code in range(sys.maxunicode + 1)]


def fold(character: str, table: tuple[np.ndarray, np.ndarray, np.ndarray]) -> list[int]:
    pages, entries, pool = table
    code = ord(character)
    entry = int(entries[256 * int(pages[code >> 8]) + (code & 255)])
    mask = characters._MASK
    if entry & characters.EXPANDS:
        start = entry & mask
        return [int(item) for item in pool[start + 1 : start + 1 + int(pool[start])]]
    return [((code + entry) & mask) | (entry & (characters.WORD | characters.SPACE))]


@pytest.mark.parametrize(
    ("lowercase", "strip"), [(False, None), (True, None), (True, "unicode"), (True, "ascii")]
)
def test_every_character_becomes_what_python_makes_of_it(lowercase, strip):
    table = character_table(lowercase, strip)
    word, space = re.compile(r"\w"), re.compile(r"\s")
    flags = {
        character: (characters.WORD if word.match(character) else 0)
        | (characters.SPACE if space.match(character) else 0)
        for character in EVERY
        if not characters._QUIET <= ord(character) < 0x10FF00  # the last page stands for the rest
    }
    reference = {
        None: lambda text: text,
        "unicode": sk.strip_accents_unicode,
        "ascii": sk.strip_accents_ascii,
    }
    for character in flags:
        expected = reference[strip](character.lower() if lowercase else character)
        assert fold(character, table) == [ord(c) | flags[c] for c in expected], hex(ord(character))


def test_nothing_happens_in_the_quiet_planes():
    quiet = "".join(EVERY[characters._QUIET :])
    assert re.search(r"\w|\s", quiet) is None
    assert quiet.lower() == quiet
    assert unicodedata.normalize("NFKD", quiet) == quiet
    assert not any(unicodedata.combining(c) for c in quiet)
    pages = character_table(True, None)[0]
    assert len(set(pages[characters._QUIET >> 8 :].tolist())) == 1


def test_lower_is_idempotent_so_texts_may_pass_through_it_twice():
    lowered = "".join(EVERY).lower()
    assert lowered.lower() == lowered


def test_sigma_is_the_only_character_whose_lower_case_has_context():
    for before, after in (("a", ""), ("a", "a"), ("", "a"), (".", ".")):
        for character in EVERY[: characters._QUIET]:
            if character != "Σ" and (before + character + after).lower() != (
                before.lower() + character.lower() + after.lower()
            ):
                pytest.fail(f"{character!r} between {before!r} and {after!r}")
