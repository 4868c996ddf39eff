"""ICD-10-CM coding: a data set that needs no download, built from the package simple-icd-10-cm.

ICD-10-CM is the classification of diagnoses used in the United States, in the public domain. The
task is that of a medical coder: from a short phrase to its code.

Texts     The description of every code, chapter and block, and the inclusion terms, which are other
          ways to say the same ("Ringworm NOS" under B35.9, "Dermatophytosis, unspecified").
Labels    The code that a text belongs to and all its ancestors: B35.9, B35, B35-B49 (the block) and
          1 (the chapter). A phrase that stands under several codes has the labels of all of them.
Left out  Codes with a seventh character (initial encounter, sequela, …), half of all codes: they
          say which visit it is, not what the diagnosis is, and have no inclusion terms. Headings
          without codes under them. Inclusion terms that are instructions or that need a table of
          codes to be read ("this category is to be used when …", "conditions classifiable to C50").

The split is over inclusion terms. Training has every description and about four fifths of the
terms, test the rest. It is fair in these ways:

*   No phrase is on both sides. Phrases count as the same whatever their case and punctuation, and
    with or without "NOS" (not otherwise specified): a term that says what a description says is for
    training, and terms that say the same go to the same side.
*   Every label of a test row has a training row, the description of the code itself.
*   Which side a term goes to is decided by a hash of its words alone, not by chance or by position.
    It is the same on every machine, and a new release of the classification moves a term only if it
    becomes a description.
*   Test terms are new phrases for known codes, many in other words than the description ("Ollier's
    disease" under Q78.4, "Enchondromatosis"), as in the work itself.

What it is not: clinical notes. Phrases have six words on average and one code each, as a rule; and
descriptions of neighbouring codes resemble each other, as do some terms. Chapters and blocks are
easy; judge a model by whether it finds the code.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

from longtail.answers.vocabulary import Vocabulary
from longtail.data.dataset import Dataset, Split
from longtail.exceptions import MissingDependencyError

__all__ = ["load_icd10cm"]

TEST_SHARE = 5  # one in so many inclusion terms is for testing
_CODE_RANGE = re.compile(r"\s*\([A-Z0-9]{3}(-[A-Z0-9]{3})?\)$")
_INSTRUCTION = re.compile(
    r"\bclassifi(?:able|ed) to\b|\b(?:should|to) be (?:coded|used)\b|\bfor use\b|\bcode to\b"
    r"|^(?:this|these) (?:code|categor)|^screening is the testing"
)


@functools.lru_cache(maxsize=1)
def load_icd10cm() -> Dataset:
    """Return the ICD-10-CM coding data set; see the module's description for what it holds and why.

    ``texts``, ``Y`` (ones), ``label_names`` (codes), ``label_texts`` (descriptions); no features.
    It takes a few seconds to build and is kept in memory: treat it as read-only. The numbers of
    rows and labels depend on the release that the installed package brings. Needs the extra
    "icd10cm".

    >>> ds = load_icd10cm()
    >>> row = ds.train.texts.index("Dermatophytosis, unspecified")
    >>> ds.vocabulary.decode(ds.train.Y[row])
    [['1', 'B35-B49', 'B35', 'B35.9']]
    """
    tree = _Tree()
    described: dict[str, set[str]] = {}
    included: dict[str, set[str]] = {}
    for code in tree.codes:
        described.setdefault(tree.description(code), set()).add(code)
        for term in tree.terms(code):
            included.setdefault(term, set()).add(code)
    known = {_words(text) for text in described}
    test = {term for term in included if _words(term) not in known and _is_test(term)}
    for term, codes in included.items():
        if term not in test:
            described.setdefault(term, set()).update(codes)
    names = Vocabulary(tree.codes)

    def split(rows: Iterable[tuple[str, set[str]]]) -> Split:
        texts, lists = zip(*((text, tree.labels(codes)) for text, codes in rows), strict=True)
        return Split(texts=list(texts), Y=names.encode(lists))

    return Dataset(
        train=split(described.items()),
        test=split((term, included[term]) for term in included if term in test),
        label_names=list(names),
        label_texts=[tree.description(code) for code in tree.codes],
        name="icd10cm",
        a=0.55,
        b=1.5,
    )


def _words(text: str) -> str:
    """Return what decides whether two texts say the same: their words, without case and "NOS"."""
    return " ".join(word for word in re.findall(r"\w+", text.casefold()) if word != "nos")


def _is_test(term: str) -> bool:
    digest = hashlib.sha256(_words(term).encode("utf-8")).digest()
    return int.from_bytes(digest[:8], "big") % TEST_SHARE == 0


class _Tree:
    """The classification, cut down to the codes that are labels here."""

    def __init__(self) -> None:
        try:
            import simple_icd_10_cm
        except ImportError:
            raise MissingDependencyError(
                "simple-icd-10-cm", "icd10cm", 'load_dataset("icd10cm")'
            ) from None
        self.icd: Any = simple_icd_10_cm
        # A block of a single category bears its name (B20): one label, listed once.
        self.codes = [
            code for code in dict.fromkeys(self.icd.get_all_codes(True)) if self._keep(code)
        ]

    def _keep(self, code: str) -> bool:
        if self.icd.is_extended_subcategory(code):
            return False
        empty_heading = self.icd.is_leaf(code) and self.icd.is_chapter_or_block(code)
        return not empty_heading or bool(self.icd.is_category(code))

    def description(self, code: str) -> str:
        """Return the description, without the range of codes at the end of chapters and blocks."""
        return _CODE_RANGE.sub("", " ".join(self.icd.get_description(code).split()))

    def terms(self, code: str) -> Iterator[str]:
        for term in self.icd.get_inclusion_term(code):
            plain = " ".join(term.split())
            if _words(plain) and not _INSTRUCTION.search(plain.casefold()):
                yield plain

    def labels(self, codes: set[str]) -> set[str]:
        """Return the codes and their ancestors."""
        return codes.union(*(self.icd.get_ancestors(code) for code in codes))
