"""Every decision rule in a tagger: it chooses, learns where it can, is saved, obeys filters."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

import longtail as lt

WORDS = {f"label {i}": f"word{i} term{i} thing{i} stuff{i}" for i in range(8)}


@pytest.fixture(scope="module")
def rows() -> tuple[list[str], list[list[str]]]:
    rng = np.random.default_rng(0)
    names = list(WORDS)
    share = 1 / np.arange(1, len(names) + 1)
    texts, labels = [], []
    for _ in range(300):
        some = rng.choice(names, size=2, replace=False, p=share / share.sum()).tolist()
        texts.append(" ".join(rng.choice(WORDS[name].split()) for name in some))
        labels.append(some)
    return texts, labels


RULES = [
    lt.decide.TopKRule(k=2),
    lt.decide.WeightedTopK("macro_recall", k=2),
    lt.decide.WeightedTopK("psp", k=2, propensity=np.full(8, 0.5)),
    lt.BlockCoordinateAscent("macro_f1", k=2, random_state=0),
    lt.FrankWolfe("macro_f1", k=2, random_state=0),
    lt.decide.OnlineRule("macro_f1", k=2),
    lt.decide.Threshold("macro_f1", k=2),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_any_rule(rule: object, rows: tuple[list[str], list[list[str]]], tmp_path: Path) -> None:
    texts, labels = rows
    before = repr(rule)
    tagger = lt.Tagger(model="xr-linear", rule=rule).fit(texts, labels)
    assert repr(rule) == before and tagger.rule_ is not rule
    tagger.save(tmp_path / "tagger")
    answers = tagger.predict(texts[:50], k=2)
    right = [
        name in true
        for answer, true in zip(answers, labels, strict=False)
        for name, probability in answer
        if probability > 0.5
    ]
    assert len(right) > 40 and np.mean(right) > 0.8
    assert all(0 <= score <= 1 for answer in answers for _, score in answer)  # probabilities
    again = lt.load(tmp_path / "tagger", verify=True)
    assert type(again.rule) is type(rule)
    assert again.predict(texts[:50], k=2) == answers
    only = again.predict(texts[:20], k=2, include=["label 0", "label 3"])
    assert {name for answer in only for name, _ in answer} <= {"label 0", "label 3"}
    never = again.predict(texts[:20], k=2, exclude=["label 0"])
    assert "label 0" not in {name for answer in never for name, _ in answer}


def test_it_is_the_rule_itself(rows: tuple[list[str], list[list[str]]]) -> None:
    texts, labels = rows
    plain = lt.Tagger(model="xr-linear").fit(texts, labels)
    ruled = lt.Tagger(
        model="xr-linear", rule=lt.decide.WeightedTopK("macro_recall", k=3, prior=[0.1] * 8)
    )
    ruled.fit(texts, labels)
    eta = plain.predict_topk(texts[:40], 100)
    chosen = ruled.rule_.select(eta)
    assert ruled.predict_topk(texts[:40], 3).indices.tolist() == chosen.indices.tolist()


def test_rules_that_name_fewer_labels_than_asked_for(
    rows: tuple[list[str], list[list[str]]],
) -> None:
    texts, labels = rows
    ruled = lt.Tagger(model="one-vs-all", rule=lt.decide.Threshold("macro_f1", k=2)).fit(
        texts, labels
    )
    top = ruled.predict_topk(texts[:50], 5)
    assert top.indices.shape == (50, 5) and (top.indices[:, 2:] == -1).all()
    metrics = ruled.evaluate(texts[:50], labels[:50], n_resamples=0).to_dict()["metrics"]
    assert metrics["R@5"]["value"] > 0.8 and metrics["P@5"]["value"] <= 0.4
    curve = ruled.lean_curve(texts[:50], ruled.truth(labels[:50]))
    assert [point["tail"] for point in curve] == [0, 0.25, 0.5, 0.75, 1]

    class Silent:
        def select(self, top: lt.TopK) -> lt.TopK:
            return lt.TopK(np.full((len(top), 1), -1), np.full((len(top), 1), -np.inf), 8)

    silent = lt.Tagger(model="one-vs-all", rule=Silent(), savable=False).fit(texts, labels)
    assert silent.predict(texts[:1]) == [[]]
    with pytest.raises(ValueError, match="gets no label"):
        silent.explain(texts[0])
    assert silent.explain(texts[0], "label 0").label == "label 0"


def test_refusals(rows: tuple[list[str], list[list[str]]]) -> None:
    texts, labels = rows
    with pytest.raises(TypeError, match="rule must have select"):
        lt.Tagger(rule="macro_f1").fit(texts, labels)
    with pytest.raises(TypeError, match="expected an estimator"):
        lt.Tagger(rule=lt.decide.TopKRule).fit(texts, labels)
    with pytest.raises(ValueError, match="too few can be held out"):
        lt.Tagger(rule=lt.decide.Threshold()).fit(texts[:20], labels[:20])
    with pytest.raises(TypeError, match="needs probabilities"):
        lt.Tagger(rule=lt.decide.Threshold(), calibrate=False, model="xr-linear").fit(texts, labels)
    learned = lt.Tagger(rule=lt.decide.Threshold(), model="one-vs-all").fit(texts, labels)
    with pytest.raises(ValueError, match="was learned for the labels there are"):
        learned.add_labels(["new words"], [["new"]])


def test_labels_without_a_text_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    texts, Y = ["paper jam", "wifi router"] * 20, lt.answers.Vocabulary(["a", "b", "c"])
    lists = [["a"], ["c"]] * 20
    with caplog.at_level("INFO", logger="longtail.tagger"):
        tagger = lt.Tagger(model="xr-linear").fit(
            texts, Y.encode(lists), label_names=Y.names, label_texts=["A", "B", "C"]
        )
    assert tagger.label_names == ("a", "c") and tagger.label_texts_ == ["A", "C"]
    assert "1 labels have no text" in caplog.text
    tagger.add_labels(["jam router", "paper jam", "wifi router"], [["b"], ["a"], ["c"]])
    assert "b" in dict(tagger.predict(["router jam"], k=3)[0])
    taught = lt.Tagger(model="xr-linear", learn_label_texts=True).fit(
        texts, lists, label_names=Y.names, label_texts=["paper", "toner jam", ""]
    )
    assert taught.label_names == ("a", "b", "c")


def test_a_fit_that_was_cut_short_goes_on(
    rows: tuple[list[str], list[list[str]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, labels = rows
    whole = lt.Tagger(model="ensemble").fit(texts, labels, label_names=list(WORDS))
    seen: list[int] = []
    fit = lt.XRLinear.fit

    @functools.wraps(fit)
    def stops(self: lt.XRLinear, *args: object, **how: object) -> object:
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(self.random_state)
        return fit(self, *args, **how)

    folder = tmp_path / "parts"
    with monkeypatch.context() as patched:
        patched.setattr(lt.XRLinear, "fit", stops)
        with pytest.raises(KeyboardInterrupt):
            lt.Tagger(model="ensemble").fit(
                texts, labels, label_names=list(WORDS), checkpoint=folder
            )
    assert sorted(entry.name for entry in (folder / "model").iterdir()) == ["member0", "member1"]
    again = lt.Tagger(model="ensemble").fit(
        texts, labels, label_names=list(WORDS), checkpoint=folder
    )
    assert again.predict(texts, k=3) == whole.predict(texts, k=3)
