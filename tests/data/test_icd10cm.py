"""The embedded data set: sane, fair, and the same every time."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

from longtail.data import icd10cm
from longtail.data.icd10cm import load_icd10cm
from longtail.data.load import load_dataset
from longtail.exceptions import MissingDependencyError

pytest.importorskip("simple_icd_10_cm", reason="the extra icd10cm is not installed")


@pytest.fixture(scope="module")
def ds():
    return load_dataset("icd10cm")


def labels_of(split, row, names):
    return {names[i] for i in split.Y[row].indices}


def words(text):
    """Written anew, so that a slip in the module's own rule is noticed."""
    kept = re.sub(r"\W+", " ", text.lower()).split()
    return tuple(word for word in kept if word != "nos")


def test_sizes(ds):
    assert 40_000 < ds.n_labels < 60_000  # of April 2026: 47,149
    assert 50_000 < len(ds.train) < 70_000
    assert 2_000 < len(ds.test) < 4_000
    assert ds.label_names is not None and len(ds.label_texts) == ds.n_labels
    assert ds.train.X is None and len(ds.train.texts) == ds.train.Y.shape[0]
    assert (ds.name, ds.a, ds.b) == ("icd10cm", 0.55, 1.5)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("Dermatophytosis, unspecified", {"B35.9", "B35", "B35-B49", "1"}),
        ("Type 2 diabetes mellitus without complications", {"E11.9", "E11", "E08-E13", "4"}),
        ("Human immunodeficiency virus [HIV] disease", {"B20", "1"}),  # its block is called B20 too
        ("Intestinal infectious diseases", {"A00-A09", "1"}),
        ("Certain infectious and parasitic diseases", {"1"}),
    ],
)
def test_known_descriptions(ds, text, codes):
    assert labels_of(ds.train, ds.train.texts.index(text), ds.label_names) == codes


@pytest.mark.parametrize(
    ("text", "code"),
    [("Ringworm NOS", "B35.9"), ("Ollier's disease", "Q78.4"), ("Heart attack", None)],
)
def test_known_terms(ds, text, code):
    where = [split for split in (ds.train, ds.test) if text in split.texts]
    assert len(where) == (0 if code is None else 1)
    for split in where:
        assert code in labels_of(split, split.texts.index(text), ds.label_names)


def test_no_phrase_on_both_sides(ds):
    train, test = ({words(text) for text in split.texts} for split in (ds.train, ds.test))
    assert not train & test
    facts = ds.describe().splits
    assert facts["test"].also_in_train == facts["train"].duplicates == facts["test"].duplicates == 0


def test_every_test_label_is_learnable(ds):
    seen = np.bincount(ds.train.Y.indices, minlength=ds.n_labels)
    assert seen.min() >= 1
    described = set(ds.train.texts)
    assert described.issuperset(ds.label_texts)  # each label's own description is a training text
    assert ds.describe().splits["test"].labels_unseen_in_training == 0


def test_labels_are_closed_under_ancestors(ds):
    import simple_icd_10_cm as icd

    rng = np.random.default_rng(0)
    for split in (ds.train, ds.test):
        for row in rng.integers(0, len(split), 200):
            codes = labels_of(split, row, ds.label_names)
            assert codes and all(codes.issuperset(icd.get_ancestors(code)) for code in codes)
            assert any(icd.is_chapter(code) for code in codes)


def test_nothing_left_in_that_does_not_belong(ds):
    import simple_icd_10_cm as icd

    assert not any(icd.is_extended_subcategory(code) for code in ds.label_names)
    for text in ds.test.texts:
        assert "classifiable to" not in text and not text.startswith("This category")
        assert text == " ".join(text.split()) and text


def test_the_side_depends_on_the_words_alone():
    assert icd10cm._is_test("Ringworm NOS") == icd10cm._is_test("RINGWORM, nos.")
    sides = [icd10cm._is_test(f"term {i}") for i in range(5000)]
    assert np.mean(sides) == pytest.approx(0.2, abs=0.02)
    # Known answers: a change of the rule would move terms between published results.
    known = [i for i in range(20) if icd10cm._is_test(f"term {i}")]
    assert known == KNOWN


KNOWN = [7, 12]


def test_same_every_time(ds):
    assert load_icd10cm() is load_icd10cm()
    again = load_icd10cm.__wrapped__()
    assert again.train.texts == ds.train.texts and again.test.texts == ds.test.texts
    assert again.label_names == ds.label_names
    assert (again.train.Y != ds.train.Y).nnz == (again.test.Y != ds.test.Y).nnz == 0


def test_options_and_missing_package(monkeypatch):
    with pytest.raises(TypeError, match="layout= has no meaning"):
        load_dataset("icd10cm", layout="pecos")
    with pytest.raises(TypeError, match="text_column= has no meaning"):
        load_dataset("ICD-10-CM", text_column="a")
    monkeypatch.setitem(sys.modules, "simple_icd_10_cm", None)
    with pytest.raises(MissingDependencyError, match=r"longtail\[icd10cm\]"):
        load_icd10cm.__wrapped__()
