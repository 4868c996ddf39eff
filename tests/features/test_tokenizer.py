"""``Tokenizer``: texts to tokens."""

from __future__ import annotations

import json
import pickle

import pytest

pytest.importorskip("tokenizers", reason="tokenizers is not installed")

import longtail as lt
from longtail.features.tokenizer import Tokenizer, as_texts

TEXTS = ["A red fox.", "a blue fox", "RED cabbage, red wine", "naïve"]


def test_words_are_learned_the_same_way_whatever_the_order_of_texts() -> None:
    one, two = Tokenizer.trained(TEXTS, least=1), Tokenizer.trained(TEXTS[::-1], least=1)
    assert one == two and one.json == two.json
    rows = [row.tolist() for row in one.encode(["red Fox", "naive", "naïve", "unheard"])]
    assert len(rows[0]) == 2 and rows[1] == rows[2]
    assert rows[3] == [1]  # a word it does not know
    assert Tokenizer.trained(TEXTS, least=2).size == 2 + 3  # a, fox, red


def test_truncation_is_counted() -> None:
    tokenizer = Tokenizer.trained(TEXTS, least=1)
    tokens = tokenizer.encode([*TEXTS, ""], max_length=3)
    assert tokens.lengths.tolist() == [3, 3, 3, 1, 0] and tokens.n_truncated == 2
    assert tokenizer.encode(TEXTS).n_truncated == 0  # the limit does not stay
    assert tokens.source is tokenizer and tokens[1:].source is tokenizer


def test_pickled_and_read_again() -> None:
    tokenizer = Tokenizer.trained(TEXTS, least=1)
    again = pickle.loads(pickle.dumps(tokenizer))
    assert again == tokenizer and again.encode(TEXTS).ids.tolist() == (
        tokenizer.encode(TEXTS).ids.tolist()
    )
    with pytest.raises(lt.exceptions.ModelFormatError, match="cannot be read"):
        Tokenizer("{}")


@pytest.mark.parametrize("texts", ["a text", b"bytes", 5, [1], [None], [["a"]]])
def test_what_is_no_list_of_texts(texts: object) -> None:
    with pytest.raises(TypeError):
        as_texts(texts)


def test_lone_surrogates_are_read_as_question_marks() -> None:
    """JSON may hold them, and the library takes UTF-8 alone."""
    tokenizer = Tokenizer.trained(["red \ud800 fox", "red fox?"], least=1)
    odd, plain = tokenizer.encode(["red \udfff", "red ?"])
    assert odd.tolist() == plain.tolist() and len(odd) == 2


def test_a_tokenizer_that_makes_the_library_panic(capfd: pytest.CaptureFixture[str]) -> None:
    """Its template names a special token that it does not have. A panic is no ``Exception``."""
    document = json.loads(Tokenizer.trained(TEXTS, least=1).json)
    document["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "[GONE]", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}],
        "special_tokens": {},
    }
    tokenizer = Tokenizer(json.dumps(document))
    with pytest.raises(lt.exceptions.ModelFormatError, match="does not work"):
        tokenizer.encode(["red fox"])
    capfd.readouterr()  # what the library says of it


def test_a_tokenizer_without_its_unknown_word() -> None:
    document = json.loads(Tokenizer.trained(TEXTS, least=1).json)
    document["model"]["vocab"].pop("[UNK]")
    with pytest.raises(lt.exceptions.ModelFormatError, match="UNK"):
        Tokenizer(json.dumps(document)).encode(["unheard"])
