"""What a tagger counts: words of one character, and characters where there are no spaces."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from short_word_cases import OLD_MODEL, diagnoses
from unspaced_cases import WORDS, mixed_tickets, tickets

import longtail as lt
from longtail.features.scripts import unspaced_share
from longtail.tagger import choose
from longtail.tagger.choose_terms import choose_terms


def best(tagger: lt.Tagger, text: str) -> str:
    return tagger.predict([text], k=1)[0][0][0]


@pytest.mark.parametrize("rounds", [20, 60])  # few texts, and enough for pairs of words
def test_one_character_tells_labels_apart(rounds: int) -> None:
    tagger = lt.Tagger(calibrate=False).fit(*diagnoses(rounds))
    assert best(tagger, "type 2 diabetes") == "E11"
    assert best(tagger, "type 1 diabetes") == "E10"
    assert best(tagger, "vitamin C deficiency") == "E54"
    assert best(tagger, "hepatitis B") == "B16"
    without = lt.Tagger(calibrate=False, vectorizer={"min_word_length": 2})
    without.fit(*diagnoses(rounds))
    assert without.predict(["type 1 diabetes"]) == without.predict(["type 2 diabetes"])


def test_a_model_of_before_answers_as_it_did() -> None:
    old = lt.load(OLD_MODEL, verify=True)
    known = json.loads((OLD_MODEL.parent / "answers.json").read_text())
    answers = [[list(pair) for pair in row] for row in old.predict(known["texts"], k=3)]
    for ours, theirs in zip(answers, known["answers"], strict=True):
        assert [name for name, _ in ours] == [name for name, _ in theirs]
        assert [s for _, s in ours] == pytest.approx([s for _, s in theirs], abs=1e-5)
    assert old.vectorizer_.min_word_length == 2
    assert old.predict(["type 1 diabetes"]) == old.predict(["type 2 diabetes"])


def test_icd_codes_of_texts_that_differ_in_one_character() -> None:
    pytest.importorskip("simple_icd_10_cm")
    data = lt.load_dataset("icd10cm")
    pairs = [
        {"type 1 diabetes": "E10", "type 2 diabetes": "E11"},
        {"vitamin C deficiency": "E54", "vitamin D deficiency": "E55"},
        {"acute hepatitis B": "B16", "acute hepatitis C": "B17.1"},
    ]
    # Fewer labels than the demo has, for speed: the codes near these, with all their texts.
    near = ("B15", "B16", "B17", "B18", "B19", "E08", "E09", "E10", "E11", "E13", "E5")
    names = data.label_names
    wanted = [i for i, name in enumerate(names) if name.startswith(near) and "-" not in name]
    Y = data.train.Y[:, wanted]
    rows = [i for i, size in enumerate(Y.getnnz(axis=1)) if size]
    texts = [data.train.texts[i] for i in rows]
    tagger = lt.Tagger(calibrate=False, model="ensemble")
    tagger.fit(texts, Y[rows], label_names=[names[i] for i in wanted])
    assert tagger.vectorizer_.min_word_length == 1
    for pair in pairs:
        for text, code in pair.items():
            answer = tagger.predict([text], k=1, include=list(pair.values()))[0]
            assert answer[0][0] == code, text
    answers = [name for name, _ in tagger.predict(["type 2 diabetes"], k=10)[0]]
    assert "E11" in answers and "E10" not in answers[: answers.index("E11")]


@pytest.mark.parametrize("language", sorted(WORDS))
def test_scripts_without_spaces(language: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="longtail.tagger"):
        tagger = lt.Tagger(calibrate=False).fit(*tickets(language))
    assert "characters and runs of up to" in tagger.choice_
    assert "in scripts without spaces" in tagger.choice_ and tagger.choice_ in caplog.text
    texts, labels = tickets(language, seed=1)
    assert tagger.score(texts, labels) > 0.95
    asked = lt.Tagger(calibrate=False, model="one-vs-all").fit(*tickets(language))
    assert "scripts without spaces" in asked.choice_  # said for a model that is asked for, too
    why = tagger.explain(texts[0], labels[0][0])
    marked = "".join(texts[0][start:end] for start, end, weight in why.spans if weight > 0)
    assert marked and len(marked) < len(texts[0])  # characters, not the whole run


def test_words_do_not_do_there() -> None:
    texts, labels = tickets("Chinese")
    words = lt.Tagger(calibrate=False, vectorizer={"analyzer": "word"})
    try:
        score = words.fit(texts, labels).score(*tickets("Chinese", seed=1))
    except ValueError as error:  # no two texts have a word in common
        assert "none is left" in str(error)
    else:
        assert score < 0.6


def test_mixed_texts_are_found_by_both_scripts() -> None:
    tagger = lt.Tagger(calibrate=False).fit(*mixed_tickets())
    assert tagger.vectorizer_.analyzer == "char_wb"
    texts, labels = mixed_tickets(seed=1)
    assert tagger.score(texts[::2], labels[::2]) > 0.95  # told in English
    assert tagger.score(texts[1::2], labels[1::2]) > 0.95  # told in Chinese


def test_a_few_foreign_words_change_nothing() -> None:
    texts = ["the capital of Japan is Tokyo (東京), a city of many people and trains"] * 300
    assert unspaced_share(texts) < 0.05
    assert choose_terms(texts).vectorizer.analyzer == "word"
    assert choose_terms(["서울은 대한민국의 수도이다"] * 300).vectorizer.analyzer == "word"
    assert unspaced_share([]) == unspaced_share(["…"]) == 0.0


def test_what_is_given_is_not_chosen() -> None:
    short, chinese = ["vitamin C"] * 300, ["维生素缺乏症"] * 300
    chosen = choose_terms(short, {"ngram_range": (1, 3), "binary": True}).vectorizer
    assert (chosen.ngram_range, chosen.binary, chosen.min_word_length) == ((1, 3), True, 1)
    assert choose_terms(short, {"analyzer": "char"}).vectorizer.ngram_range == (2, 5)
    assert choose_terms(chinese, {"analyzer": "word"}).vectorizer.analyzer == "word"
    assert choose_terms(chinese, {"stop_words": ["x"]}).vectorizer.analyzer == "word"
    assert choose_terms(chinese, {"ngram_range": (1, 2)}).vectorizer.analyzer == "char_wb"
    given = choose(short, 10, vectorizer=lt.Tfidf(binary=True))
    assert "the rows of Tfidf(binary=True), as asked" in given.why
    assert "over runs of 2 to 3 words" in choose(short, 10, vectorizer={"ngram_range": (2, 3)}).why


def test_a_mapping_names_parameters_and_is_saved(tmp_path: Path) -> None:
    texts, labels = diagnoses()
    params = {"stop_words": {"in", "with"}, "ngram_range": (1, 3), "min_df": 3}
    tagger = lt.Tagger(vectorizer=params, calibrate=False).fit(texts, labels)
    made = tagger.vectorizer_
    assert (made.ngram_range, made.min_df, made.min_word_length) == ((1, 3), 3, 1)
    tagger.save(tmp_path / "model")
    again = lt.load(tmp_path / "model")
    assert again.vectorizer == {**params, "stop_words": ["in", "with"]}
    assert again.predict(texts[:9]) == tagger.predict(texts[:9])
    refitted = lt.Tagger(**again.get_params(deep=False)).fit(texts, labels)
    assert refitted.predict(texts[:9]) == tagger.predict(texts[:9])
    for wrong, error in (({"min_dff": 2}, "did you mean 'min_df'"), ({"min_df": 0}, "at least 1")):
        with pytest.raises((TypeError, ValueError), match=error):
            lt.Tagger(vectorizer=wrong).fit(texts, labels)
