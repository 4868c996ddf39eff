from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from tagger_cases import tickets

import longtail as lt
from longtail.tagger.explanation import occlusion
from longtail.tagger.highlight import spans

TEXTS, LABELS = tickets()


@pytest.fixture(scope="module", params=["one-vs-all", "xr-linear", "ensemble", "nearest-neighbors"])
def tagger(request: pytest.FixtureRequest) -> lt.Tagger:
    return lt.Tagger(model=request.param).fit(TEXTS, LABELS)


def test_the_words_of_a_label_speak_for_it(tagger: lt.Tagger) -> None:
    text = "My PAPER is stuck: a jam! The router is slow."
    explanation = tagger.explain(text, "printer")
    assert {term for term, weight in explanation.terms if weight > 0} >= {"paper", "jam"}
    shown = {text[start:end] for start, end, weight in explanation.spans if weight > 0}
    assert {"PAPER", "jam"} <= shown and "router" not in shown
    assert explanation.score == pytest.approx(
        dict(tagger.predict([text], 5)[0])["printer"], rel=1e-4
    )


def test_several_labels_at_once_and_the_best_by_default(tagger: lt.Tagger) -> None:
    text = "paper jam and wifi router"
    both = tagger.explain(text, ["network", "printer"])
    assert [explanation.label for explanation in both] == ["network", "printer"]
    assert both[1] == tagger.explain(text, "printer")
    assert tagger.explain(text).label == tagger.predict([text], 1)[0][0][0]
    with pytest.raises(ValueError, match="unknown label 'scanner'"):
        tagger.explain(text, "scanner")


def test_a_text_without_known_words(tagger: lt.Tagger) -> None:
    explanation = tagger.explain("zzz qqq", "mail")
    assert explanation.terms == () and explanation.spans == ()


def test_renderings(tagger: lt.Tagger) -> None:
    explanation = tagger.explain("<b>paper</b> & router", "printer", n_terms=1)
    assert len(explanation.terms) == 1
    assert "printer" in str(explanation)
    page = explanation._repr_html_()
    assert "&lt;b&gt;" in page and "<mark" in page
    assert explanation.to_dict()["spans"][0][:2] == [3, 8]


def test_occlusion_is_the_score_lost() -> None:
    class Sum:
        """Scores label j by the value of feature j."""

        def __call__(self, X: sp.csr_matrix, k: int) -> lt.TopK:
            return lt.TopK.from_scores(X.toarray(), k)

    x = sp.csr_matrix(np.array([[0.5, 0.0, 2.0, 1.0]], np.float32))
    scores, columns, given_ = occlusion(Sum(), x, [2, 0], 4)
    assert scores.tolist() == [2.0, 0.5] and columns.tolist() == [0, 2, 3]
    assert given_.tolist() == [[0, 2.0, 0], [0.5, 0, 0]]


@given(st.text(max_size=60))
def test_spans_lie_in_the_text_and_hold_their_terms(text: str) -> None:
    vectorizer = lt.Tfidf(ngram_range=(1, 2))
    terms = vectorizer.analyze(text)
    found = spans(vectorizer, text, dict.fromkeys(terms, 1.0))
    at = 0
    for start, end, weight in found:
        assert at <= start < end <= len(text) and weight > 0
        at = end


def test_parts_of_words_mark_the_word() -> None:
    vectorizer = lt.Tfidf(analyzer="char_wb", ngram_range=(3, 3))
    assert spans(vectorizer, "a Printer", {"int": 1.0, " pr": 0.5}) == [(2, 9, 1.5)]
    accents = lt.Tfidf(strip_accents="unicode")
    assert spans(accents, "déjà vu", {"deja": 1.0}) == [(0, 4, 1.0)]


def test_words_of_one_character_and_characters_are_marked() -> None:
    assert spans(lt.Tfidf(min_word_length=1), "vitamin C", {"c": 1.0}) == [(8, 9, 1.0)]
    assert spans(lt.Tfidf(), "vitamin C", {"c": 1.0}) == []
    pairs = lt.Tfidf(ngram_range=(1, 2), min_word_length=1)
    assert spans(pairs, "Type 2 it is", {"type 2": 0.5}) == [(0, 4, 0.5), (5, 6, 0.5)]
    assert spans(lt.Tfidf(ngram_range=(1, 2)), "a b ccc", {"ccc": 1.0}) == [(4, 7, 1.0)]
    runs = lt.Tfidf(analyzer="char_wb", ngram_range=(1, 3))
    assert spans(runs, "我的打印机 HP", {"打印机": 1.0, "hp ": 2.0}) == [
        (2, 3, 1.0),
        (3, 4, 1.0),
        (4, 5, 1.0),
        (6, 8, 2.0),
    ]
    thai = "เครื่องพิมพ์"  # marks belong to the letters, though they are no \\w
    assert [thai[a:b] for a, b, _ in spans(runs, thai, {thai[2:5]: 1.0})] == list(thai[2:5])


@given(st.text("aB \n東京เค่é.", max_size=30), st.sampled_from(["char", "char_wb"]))
def test_every_character_term_has_its_place(text: str, analyzer: str) -> None:
    vectorizer = lt.Tfidf(analyzer=analyzer, ngram_range=(1, 3))
    for term in set(vectorizer.analyze(text)):
        found = spans(vectorizer, text, {term: 1.0})
        assert bool(found) == any(c.isalnum() or c in "เค่" for c in term), term
