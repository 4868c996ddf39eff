from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from tagger_cases import tickets

import longtail as lt
from longtail import persist
from longtail.exceptions import ModelFormatError
from longtail.tagger import choose
from longtail.tagger.tail import lean

TEXTS, LABELS = tickets()


@pytest.fixture(scope="module")
def tagger() -> lt.Tagger:
    return lt.Tagger().fit(TEXTS, LABELS)


def names(tagger: lt.Tagger, text: str, k: int, **options: object) -> list[str]:
    return [name for name, _ in tagger.predict([text], k, **options)[0]]


def test_names_come_out(tagger: lt.Tagger) -> None:
    assert names(tagger, "the tray has a paper jam", 1) == ["printer"]
    assert set(names(tagger, "password reset and wifi cable", 2)) == {"login", "network"}
    assert tagger.predict([], k=3) == []


def test_more_answers_than_labels_are_not_padded(tagger: lt.Tagger) -> None:
    assert len(tagger.predict(["paper"], k=50)[0]) == 5


def test_threshold_leaves_weak_answers_out(tagger: lt.Tagger) -> None:
    plain = tagger.predict(["paper jam in the tray"], k=5)[0]
    limit = plain[1][1]
    kept = tagger.predict(["paper jam in the tray"], k=5, threshold=limit)[0]
    assert kept == plain[:2]
    assert tagger.predict(["paper"], threshold=1e9) == [[]]
    with pytest.raises(ValueError, match="NaN"):
        tagger.predict(["paper"], threshold=float("nan"))
    with pytest.raises(TypeError, match="threshold must be a number"):
        tagger.predict(["paper"], threshold="high")


def test_tail_brings_rare_labels_forward_and_keeps_scores() -> None:
    texts, labels = tickets(300)
    texts += ["zebra paper"] * 3
    labels += [["zebra"]] * 3
    tagger = lt.Tagger(model="xr-linear").fit(texts, labels)
    text = "paper jam toner ink zebra"
    plain, leaning = (tagger.predict([text], 6, tail=tail)[0] for tail in (0.0, 1.0))
    assert sorted(plain) == sorted(leaning)  # the same labels with the same scores
    place = [[name for name, _ in answer].index("zebra") for answer in (plain, leaning)]
    assert place == [1, 0]
    for wrong, error in ((2.0, ValueError), (float("nan"), ValueError), ("much", TypeError)):
        with pytest.raises(error, match="tail"):
            tagger.predict([text], tail=wrong)


def test_tail_weighs_by_inverse_propensity() -> None:
    from longtail.tagger.tail import inverse_propensity, lean

    top = lt.TopK([[0, 1, 2]], [[0.6, 0.5, 0.2]], n_labels=3)
    inverse = inverse_propensity(np.array([90, 1, 50]), 100)
    chosen = lean(top, inverse, 1.0, k=2)
    assert chosen.indices.tolist() == [[1, 0]]
    np.testing.assert_allclose(chosen.scores, [[0.5, 0.6]], rtol=1e-6)
    assert lean(top, inverse, 0.0, k=3).indices.tolist() == top.indices.tolist()
    margins = lt.TopK([[0, 1]], [[-0.5, -0.9]], n_labels=3)
    assert lean(margins, inverse, 0.0, k=2).indices.tolist() == [[0, 1]]
    # The end of the scale is the closed form for propensity-scored precision.
    rng = np.random.default_rng(0)
    inverse = rng.uniform(1, 9, 40)
    eta = lt.TopK.from_scores(rng.random((20, 40), np.float32), 30)
    psp = lt.decide.WeightedTopK("psp", 5, propensity=1 / inverse, candidates_only=True)
    assert lean(eta, inverse, 1.0, k=5).indices.tolist() == psp.select(eta).indices.tolist()


def test_tail_of_margins_does_not_depend_on_other_texts() -> None:
    margins = lt.TopK([[0, 1], [0, 1]], [[0.9, 0.7], [0.9, -0.5]], 2)
    together = lean(margins, np.array([1.0, 1.25]), 1.0, 2)
    for i in range(2):
        assert lean(margins[i], np.array([1.0, 1.25]), 1.0, 2) == together[i]


def test_it_says_what_it_chose(tagger: lt.Tagger, caplog: pytest.LogCaptureFixture) -> None:
    assert tagger.choice_.startswith("one linear classifier per label, over words: 5 labels")
    with caplog.at_level(logging.INFO, logger="longtail.tagger"):
        lt.Tagger(model="popularity").fit(TEXTS, LABELS)
    assert "popularity, as asked" in caplog.text
    many = choose(["some words of a text that is long enough to tell"] * 10_000, 20_000)
    assert "three trees" in many.why and isinstance(many.model, lt.Ensemble)
    very_many = choose([""] * 500_000, 600_000)
    assert isinstance(very_many.model, lt.XRLinear)
    assert choose(["two words"] * 500, 10).vectorizer.ngram_range == (1, 2)
    assert choose(["two words"] * 5, 10).vectorizer.min_df == 1


@pytest.mark.parametrize("model", ["xr-linear", "ensemble", "nearest-neighbors", lt.OneVsAll(C=2)])
def test_any_model_saves_and_loads(model: object, tmp_path: object) -> None:
    tagger = lt.Tagger(model=model, vectorizer=lt.Tfidf(min_df=3)).fit(TEXTS, LABELS)
    tagger.save(tmp_path / "m")
    again = lt.load(tmp_path / "m", verify=True)
    assert repr(again) == repr(tagger)
    assert again.predict(TEXTS[:20], k=3) == tagger.predict(TEXTS[:20], k=3)
    assert again.choice_ == tagger.choice_
    assert again.fit(TEXTS, LABELS).predict(TEXTS[:5]) == tagger.predict(TEXTS[:5])


def test_report_is_saved_with_the_model(tagger: lt.Tagger, tmp_path: object) -> None:
    report = tagger.evaluate(TEXTS, LABELS, n_resamples=0)
    tagger.keep_report(report)
    tagger.save(tmp_path / "m")
    again = lt.load(tmp_path / "m")
    assert again.report_ == report
    assert again.report_page() == tagger.report_page()
    tagger.report_ = None


def test_matrix_labels_are_the_same_as_lists(tagger: lt.Tagger) -> None:
    vocabulary = lt.answers.Vocabulary.from_lists(LABELS)
    other = lt.Tagger().fit(TEXTS, vocabulary.encode(LABELS), label_names=list(vocabulary))
    assert other.predict(TEXTS[:10]) == tagger.predict(TEXTS[:10])
    with pytest.raises(TypeError, match="label_names"):
        lt.Tagger().fit(TEXTS, vocabulary.encode(LABELS))


def test_features_in_place_of_texts(tmp_path: object) -> None:
    data = lt.data.make_longtail(n=300, d=80, L=30, n_test=50)
    labels = [f"label {i}" for i in range(30)]
    tagger = lt.Tagger(calibrate=False).fit(data.train.X, data.train.Y, label_names=labels)
    tagger.save(tmp_path / "m")
    again = lt.load(tmp_path / "m")
    plain = lt.OneVsAll().fit(data.train.X, data.train.Y).predict_topk(data.test.X, k=3)
    assert again.predict_topk(data.test.X, k=3) == plain
    with pytest.raises(TypeError, match="fitted on features"):
        again.predict(["a text"])
    with pytest.raises(TypeError, match="fitted on texts"):
        lt.Tagger().fit(TEXTS, LABELS).predict(sp.csr_matrix((1, 5), dtype=np.float32))


def test_scores_are_probabilities_unless_told_otherwise(tmp_path: object) -> None:
    texts, labels = tickets(2400)  # enough for a held-out part; fewer are cross-fitted
    tagger = lt.Tagger().fit(texts, labels)
    plain = lt.Tagger(calibrate=False).fit(texts, labels)
    assert tagger.has_probabilities and not plain.has_probabilities
    tagger.save(tmp_path / "m")
    again = lt.load(tmp_path / "m")
    assert again.has_probabilities
    new, truth = tickets(400, seed=9)
    top = again.predict_topk(new, k=3)
    assert top.scores.min() >= 0 and top.scores.max() <= 1
    # Of the answers with a high probability most are right, of those with a low one few.
    right = again.truth(truth).Y[np.arange(400)[:, None], top.indices].toarray()
    assert right[top.scores > 0.8].mean() > 0.8 and right[top.scores < 0.2].mean() < 0.2
    for text, answer in zip(new[:50], plain.predict(new[:50], k=1), strict=True):
        assert (
            tagger.predict([text], k=5)[0][0][1] >= dict(tagger.predict([text], 5)[0])[answer[0][0]]
        )


def test_label_texts_teach_rare_labels() -> None:
    names = ["network", "printer", "zoo"]
    texts = ["paper jam", "toner paper", "wifi cable", "router wifi", "animals paper"] * 3
    labels = [["printer"], ["printer"], ["network"], ["network"], ["printer"]] * 3
    words = ["wifi", "paper", "animals"]
    scores = []
    for learn in (False, True):
        tagger = lt.Tagger(learn_label_texts=learn).fit(
            texts, labels, label_names=names, label_texts=words
        )
        scores.append(dict(tagger.predict(["animals"], k=3)[0]).get("zoo", -np.inf))
        assert tagger.label_counts_.tolist() == [6, 9, 0][: 2 + learn]
    assert scores[1] > scores[0] + 0.1


def test_filters_reach_the_model_or_are_refused(tagger: lt.Tagger) -> None:
    text = "paper jam in the tray"
    assert set(names(tagger, text, 5, include=["phone", "mail"])) == {"phone", "mail"}
    assert "printer" not in names(tagger, text, 5, exclude=["printer"])
    assert len(names(tagger, text, 4, exclude=["printer"], tail=0.5)) == 4
    with pytest.raises(ValueError, match="did you mean 'phone'"):
        tagger.predict(["x"], include=["phones"])
    with pytest.raises(TypeError, match="one string"):
        tagger.predict(["x"], include="phone")

    class Blunt(lt.OneVsAll):
        def predict_topk(self, X, k=5):
            return super().predict_topk(X, k)

    with pytest.raises(TypeError, match=r"does not support label filters \(exclude\)"):
        lt.Tagger(model=Blunt()).fit(TEXTS, LABELS).predict(["x"], exclude=["phone"])


def test_a_rule_chooses_among_candidates(tagger: lt.Tagger, tmp_path: Path) -> None:
    class SecondBest:
        def select(self, top: lt.TopK) -> lt.TopK:
            return lt.TopK(top.indices[:, 1:2], top.scores[:, 1:2], top.n_labels)

    text = "paper jam in the tray"
    ruled = lt.Tagger(rule=SecondBest(), savable=False).fit(TEXTS, LABELS)
    assert ruled.predict([text], k=3)[0] == tagger.predict([text], k=2)[0][1:]
    with pytest.raises(TypeError, match="rule cannot be saved"):
        lt.Tagger(rule=SecondBest()).fit(TEXTS, LABELS)
    with pytest.raises(TypeError, match="rule cannot be saved"):
        ruled.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_new_labels_need_a_model_that_can(tagger: lt.Tagger) -> None:
    class Fixed(lt.baselines.Popularity):
        add_labels = property()  # hidden: this one cannot

    fixed = lt.Tagger(model=Fixed()).fit(TEXTS, LABELS)
    with pytest.raises(TypeError, match="does not support new labels"):
        fixed.add_labels(["a fax"], [["fax"]])

    class Growing(lt.baselines.Popularity):
        def add_labels(self, X, Y, *, Y_old):
            self.added = X.shape[0], Y.shape, Y_old.shape[0]
            self.n_labels_ += Y.shape[1]

    growing = lt.Tagger(model=Growing()).fit(TEXTS, LABELS)
    growing.add_labels(["paper fax", "wifi"], [["fax", "printer"], ["network"]])
    assert growing.label_names[-1] == "fax"
    assert growing.model_.added == (2, (2, 1), 2)
    assert growing.label_counts_[-1] == 1
    with pytest.raises(ValueError, match="no label is new"):
        growing.add_labels(["paper"], [["printer"]])
    with pytest.raises(TypeError, match="list of label names"):
        growing.add_labels(["some paper"], ["fresh"])


@pytest.mark.parametrize("model", ["one-vs-all", "xr-linear", "ensemble"])
def test_new_labels(model: str) -> None:
    before = [[name for name in row if name != "printer"] for row in LABELS]
    tagger = lt.Tagger(model=model).fit(TEXTS, before)
    assert "printer" not in tagger.label_names
    tagger.add_labels(TEXTS, LABELS)
    assert tagger.label_names[-1] == "printer"
    text = next(text for text, row in zip(TEXTS, LABELS, strict=True) if row == ["printer"])
    assert tagger.predict([text], k=1)[0][0][0] == "printer"


@pytest.mark.parametrize(
    ("texts", "labels", "error", "match"),
    [
        ("one text", [["a"]], TypeError, "single string"),
        (["a b"], ["label"], TypeError, "list of label names"),
        (["a b", "c d"], [["x"]], ValueError, "texts has 2 rows but labels has 1"),
        ([], [], ValueError, "no labels"),
        (["a b"], [[]], ValueError, "no labels"),
        ([None], [["x"]], TypeError, "NoneType"),
        (["", "!"], [["x"], ["y"]], ValueError, "no terms"),
        (["a b"], [[3.5]], TypeError, "row 0 of labels: expected a label name, got 3.5"),
        (["a b"], [[True]], TypeError, "row 0 of labels"),
        (["a b"], [3], TypeError, "row 0 must be a list of label names, got 3: write"),
        (["a b"], np.array([3]), TypeError, "one number per row"),
        (["a b"], np.array([[3]]), TypeError, "label_names="),
        (["a b"], {"x": 1}, TypeError, "one list of names per row"),
    ],
)
def test_refusals(texts: object, labels: object, error: type, match: str) -> None:
    with pytest.raises(error, match=match):
        lt.Tagger().fit(texts, labels)


def test_a_failed_fit_leaves_nothing() -> None:
    tagger = lt.Tagger(model="no such model")
    with pytest.raises(ValueError, match="unknown model 'no such model'"):
        tagger.fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="not fitted"):
        tagger.predict(["x"])
    with pytest.raises(TypeError, match="ranker"):
        lt.Tagger(model=lt.Tfidf()).fit(TEXTS, LABELS)


def test_same_seed_same_bits_for_any_number_of_threads() -> None:
    texts, labels = tickets(300, seed=3)
    answers = [
        lt.Tagger(model="ensemble", n_jobs=jobs).fit(texts, labels).predict_topk(texts, k=3)
        for jobs in (1, 2)
    ]
    assert answers[0] == answers[1]


def test_label_names_are_on_disk_as_those_of_every_ranker(tmp_path):
    tagger = lt.Tagger(calibrate=False).fit(TEXTS, LABELS)
    tagger.save(tmp_path / "now")
    state = persist.load(tmp_path / "now")
    names = state.strings("label_name", len(tagger.label_names))
    assert tuple(names) == tagger.label_names == lt.load(tmp_path / "now").label_names
    assert "label_names" not in state.meta
    # Taggers of 0.1 list them in the manifest.
    del state.arrays["label_names"], state.arrays["label_name_ends"]
    for listed in (names, names[1:], None):
        state.meta["label_names"] = listed
        persist.save(tmp_path / "old", state, overwrite=True)
        if listed == names:
            assert lt.load(tmp_path / "old").label_names == tagger.label_names
        else:
            with pytest.raises(ModelFormatError, match=r"named|list its label names"):
                lt.load(tmp_path / "old")
