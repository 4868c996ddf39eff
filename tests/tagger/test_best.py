"""``Tagger(quality="best")``: which parts, what is said, and that all around works with it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import longtail as lt
from longtail.ensemble import Ensemble
from longtail.exceptions import MissingDependencyError
from longtail.tagger import best
from longtail.tagger.best import best_parts
from longtail.tagger.expected import expected_minutes
from longtail.testing.problems import as_texts, make_problem

NAMES = [f"label {i}" for i in range(12)]
WORDS = [f"feature{i}" for i in range(12)]


@pytest.fixture(scope="module")
def rows() -> tuple[list[str], Any]:
    problem = make_problem(n=400)
    return list(as_texts(problem.X)), problem.Y


@pytest.fixture(scope="module")
def tagger(rows: Any) -> lt.Tagger:
    texts, Y = rows
    made = lt.Tagger(quality="best")
    return made.fit(texts[:300], Y[:300], label_names=NAMES, label_texts=WORDS)


def titles(**how: Any) -> list[str]:
    settings = {"n_texts": 9000, "n_labels": 5000, "label_texts": True}
    return [part.title for part in best_parts(**{**settings, **how})]


def test_parts_suit_the_data_and_the_machine() -> None:
    assert titles() == ["trees", "trees, label texts", "neighbours by words"]
    assert titles(label_texts=False) == ["trees", "neighbours by words"]
    assert titles(n_labels=50)[0] == "one per label"
    assert titles(n_texts=10**7, label_texts=False) == ["trees"]
    assert titles(encoder="folder")[3:] == ["classifier", "UniDEC", "neighbours by vectors"]
    assert "UniDEC" not in titles(encoder="folder", label_texts=False)
    parts = best_parts(n_texts=9000, n_labels=5000, label_texts=True, encoder="folder")
    assert parts[-1].representation == 4, "the vote is by the vectors of UniDEC"
    assert isinstance(parts[0].ranker, Ensemble) and len(parts[0].ranker.models) == 3
    one = best_parts(n_texts=10**7, n_labels=10**6, label_texts=False)[0].ranker
    assert isinstance(one, lt.XRLinear)


def test_texts_in_names_out(tagger: lt.Tagger, rows: Any, tmp_path: Path) -> None:
    texts, Y = rows
    assert "fused" in tagger.choice_ and tagger.has_probabilities
    assert tagger.score(texts[300:], Y[300:], label_names=NAMES) > 0.9
    tagger.save(tmp_path / "t")
    found = lt.load(tmp_path / "t", verify=True)
    assert found.predict(texts[:5], k=3) == tagger.predict(texts[:5], k=3)
    assert found.quality == "best" and found.model is None
    only = found.predict(texts[:3], k=2, include=["label 1", "label 7"])
    assert {name for answer in only for name, _ in answer} == {"label 1", "label 7"}
    again = lt.Tagger(quality="best")
    again.fit(texts[:300], Y[:300], label_names=NAMES, label_texts=WORDS)
    assert again.predict(texts[:5]) == tagger.predict(texts[:5])


def test_the_report_says_what_each_part_adds(tagger: lt.Tagger, rows: Any, tmp_path: Path) -> None:
    texts, Y = rows
    report = tagger.evaluate(texts[300:], Y[300:], label_names=NAMES)
    whole, *parts = report.parts
    assert whole.alone["P@1"] == pytest.approx(report["P@1"])
    assert [part.name for part in parts] == tagger.model_.part_names
    for part in parts:
        assert set(part.alone) == set(part.without) == {"P@1", "P@5", "PSP@5"}
    assert "whole without it" in str(report) and "Parts of the model" in report.to_html()
    assert report.to_dict()["parts"][1]["name"] == "one per label"
    tagger.save(tmp_path / "t")
    loaded = lt.load(tmp_path / "t").evaluate(texts[300:], Y[300:], label_names=NAMES)
    assert loaded.parts == () and "Parts of the model" not in str(loaded)


def test_the_plan_is_told_before_it_starts(rows: Any, caplog: Any) -> None:
    texts, Y = rows
    with caplog.at_level(logging.INFO, logger="longtail"):
        lt.Tagger(quality="best").fit(texts[:100], Y[:100], label_names=NAMES, label_texts=WORDS)
    said = [record.message for record in caplog.records]
    expected = next(i for i, text in enumerate(said) if text.startswith("expected: "))
    first = next(i for i, text in enumerate(said) if "fitted in" in text)
    assert expected < first and "one per label, label texts" in said[expected]


def test_expected_minutes_of_text_models(rows: Any) -> None:
    pytest.importorskip("torch")
    texts, Y = rows
    model = lt.Ensemble(
        models=[lt.TextNetwork(encoder="average", epochs=3, device="cpu", n_jobs=1)],
        rule="learned",
    )
    minutes = expected_minutes(model, texts, Y)
    assert minutes["TextNetwork"] > 0


def test_probabilities_need_no_second_training(tagger: lt.Tagger, rows: Any) -> None:
    texts, Y = rows
    assert tagger.model_.calibrator_ is None
    proba = tagger.predict_topk(texts[300:], k=3)
    assert lt.metrics.expected_calibration_error(Y[300:], proba, k=3) < 0.1


def test_rules_decide_on_fused_probabilities(rows: Any) -> None:
    texts, Y = rows
    ruled = lt.Tagger(quality="best", rule=lt.BlockCoordinateAscent("macro_f1", k=3))
    ruled.fit(texts[:300], Y[:300], label_names=NAMES)
    assert len(ruled.predict(texts[:4], k=3)[0]) == 3


def test_a_fusion_serves_the_model_of_all_rows(tagger: lt.Tagger, rows: Any) -> None:
    from longtail.tagger.held_out import Curve

    texts, Y = rows
    again = lt.Tagger(quality="best")
    plan = again.plan(texts, Y, label_names=NAMES, label_texts=WORDS)
    again.fit_rows(again.rows(plan), curve=Curve.of(tagger.model_))
    taken, own = again.model_.fusion_, tagger.model_.fusion_
    pairs = zip(taken.trees.native(), own.trees.native(), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)
    assert np.allclose(np.expm1(taken.log_counts), Y.sum(axis=0), atol=1e-2)
    assert again.n_rows_ == 400


def test_explanations_name_the_sources_and_the_words_of_the_surest(
    tagger: lt.Tagger, rows: Any
) -> None:
    texts, _ = rows
    (best, proba), *_ = tagger.predict(texts[300:301], k=1)[0]
    why = tagger.explain(texts[300], best)
    assert why.score == pytest.approx(proba) and why.terms and why.spans
    assert [name for name, _, _ in why.sources] == tagger.model_.part_names
    assert all(rank is not None and 0 < p <= 1 for _, p, rank in why.sources)
    surest = max(range(3), key=lambda i: why.sources[i][1])
    member, vectorizer = tagger.model_.fitted_part(surest)
    own = lt.Tagger(model=type(member)())  # the words of that part, from a tagger of its own
    own.vectorizer_, own.model_, own.rule_, own.fields_ = vectorizer, member, None, None
    own.vocabulary_, own.label_counts_ = tagger.vocabulary_, tagger.label_counts_
    assert own.explain(texts[300], best).terms == why.terms
    assert "by one per label" in str(why) and why.to_dict()["sources"][0][0] == "one per label"
    plain = lt.Ensemble(models=[lt.baselines.Popularity()]).fit(np.eye(2), [[0], [1]])
    with pytest.raises(ValueError, match="learned"):
        plain.sources_of(np.eye(2)[:1], 0)


def test_one_pass_of_every_encoder_per_answer(rows: Any, tmp_path: Path, monkeypatch: Any) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("onnxruntime")
    from longtail.text.encoding import OnnxEncoding, TorchEncoding

    texts, Y = rows
    how = {"encoder": "average", "epochs": 1, "device": "cpu", "n_jobs": 1, "onnx": True}
    vote = lt.baselines.NearestNeighbors(weights="softmax", n_jobs=1)
    parts = [lt.TextNetwork(**how), lt.UniDEC(**how), (1, vote)]
    made = lt.Tagger(model=Ensemble(models=parts, rule="learned", candidates=5, refit=False))
    made.fit(texts[:60], Y[:60], label_names=NAMES, label_texts=WORDS)
    made.save(tmp_path / "t")
    for tagger, way in ((made, TorchEncoding), (lt.load(tmp_path / "t"), OnnxEncoding)):
        passes: list[int] = []
        plain = way.__call__
        monkeypatch.setattr(
            way, "__call__", lambda s, x, f=plain, n=passes: n.append(len(x)) or f(s, x)
        )
        tagger.predict(texts[:1], k=3)
        assert passes == [1, 1], "the classifier's, and that of UniDEC and the vote"
        tagger.predict(texts[:7], k=9)  # more than candidates
        tagger.predict(texts[:7], k=3, include=NAMES[:4])
        assert passes[2:] == [7, 7, 7, 7]


def test_validation_texts_are_learned_on(rows: Any, caplog: Any) -> None:
    texts, Y = rows
    made = lt.Tagger(quality="best")
    with caplog.at_level(logging.INFO, logger="longtail"):
        made.fit(texts[:200], Y[:200], label_names=NAMES, validation=(texts[200:], Y[200:]))
    assert made.model_.fusion_.held_out["rows"] == 200 and made.n_rows_ == 200
    assert len([r for r in caplog.records if "fitted in" in r.message]) == 2, "each part once"
    lists = [[NAMES[j] for j in Y[i].indices] + ["strange"] for i in range(200, 400)]
    same = lt.Tagger(quality="best")
    same.fit(texts[:200], Y[:200], label_names=NAMES, validation=(texts[200:], lists))
    assert same.predict(texts[:5]) == made.predict(texts[:5])
    with pytest.raises(ValueError, match="goes with"):
        lt.Tagger().fit(texts[:20], Y[:20], label_names=NAMES, validation=(texts[:5], Y[:5]))
    with pytest.raises(TypeError, match="pair"):
        made.fit(texts[:20], Y[:20], label_names=NAMES, validation=texts[:5])


def test_features_instead_of_texts() -> None:
    problem = make_problem(n=300)
    made = lt.Tagger(quality="best").fit(problem.X, problem.Y, label_names=NAMES)
    assert made.model_.part_names == ["one per label", "neighbours by words"]
    assert made.score(problem.X, problem.Y, label_names=NAMES) > 0.9


def test_fields_and_new_labels(rows: Any) -> None:
    texts, Y = rows
    fields = {"title": texts[:200], "body": texts[:200]}
    made = lt.Tagger(quality="best").fit(fields, Y[:200], label_names=NAMES)
    assert made.predict({"title": texts[:1], "body": [""]}, k=1)[0]
    new = ["an entirely new subject", "a new subject, entirely"]
    made.add_labels({"title": new, "body": new}, [["new"], ["new"]])
    assert made.predict({"title": ["entirely new"], "body": ["subject"]}, k=1)[0][0][0] == "new"


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"quality": "good"}, "quality must be one of fast, best"),
        ({"encoder": "folder"}, "encoder goes with"),
        ({"device": "cuda"}, "device goes with"),
        ({"quality": "best", "model": "xr-linear"}, "leave out model"),
        ({"quality": "best", "learn_label_texts": True}, "as it is"),
    ],
)
def test_what_does_not_go_together(rows: Any, how: dict[str, Any], message: str) -> None:
    texts, Y = rows
    with pytest.raises(ValueError, match=message):
        lt.Tagger(**how).fit(texts[:20], Y[:20], label_names=NAMES)


def test_an_encoder_needs_torch(rows: Any, monkeypatch: Any) -> None:
    texts, Y = rows
    monkeypatch.setattr(best, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match="text"):
        lt.Tagger(quality="best", encoder="folder").fit(texts[:20], Y[:20], label_names=NAMES)


def test_with_an_encoder_and_a_checkpoint(rows: Any, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    texts, Y = rows

    def fit() -> lt.Tagger:
        made = lt.Tagger(quality="best", encoder="average", device="cpu", n_jobs=1)
        plan = made.plan(texts[:120], Y[:120], label_names=NAMES, label_texts=WORDS)
        for part in plan.model.models:
            if hasattr(part.ranker, "epochs"):
                part.ranker.set_params(epochs=2, onnx=False)
        plan.model.set_params(folds=2)
        return made.fit_rows(made.rows(plan), checkpoint=tmp_path)

    first = fit()
    assert first.model_.part_names[-3:] == ["classifier", "UniDEC", "neighbours by vectors"]
    assert {path.name for path in (tmp_path / "model").iterdir()} >= {"fold0", "fold1"}
    assert fit().predict(texts[:5]) == first.predict(texts[:5])
