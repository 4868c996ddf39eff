"""Models that read texts themselves are served like others."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from serve_cases import call

import longtail as lt

pytest.importorskip("fastapi", reason="the extra 'serve' is not installed")
pytest.importorskip("torch", reason="the extra 'text' is not installed")
pytest.importorskip("tokenizers", reason="the extra 'text' is not installed")

from longtail.serve.app import create_app
from longtail.serve.settings import Settings
from longtail.tagger import explanation

TEXTS = ["paper jam in the tray", "the wifi router is slow", "forgot the password"] * 8
LABELS = [["printer"], ["network"], ["login"]] * 8


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "model"
    network = lt.TextNetwork(
        encoder="average", epochs=30, learning_rate=1e-2, device="cpu", n_jobs=1, onnx=False
    )
    lt.Tagger(model=network, calibrate=False).fit(TEXTS, LABELS).save(path)
    return path


def ask(model: Path, path: str, body: dict[str, Any]) -> Any:
    app = create_app(Settings(str(model)))
    status, _, chunks = asyncio.run(call(app, path, body))
    assert status == 200, chunks
    return json.loads(b"".join(chunks))


def test_answers(model: Path) -> None:
    texts = ["paper jam", "my password", ""]
    found = ask(model, "/predict", {"texts": texts, "k": 2})["results"]
    assert [each["labels"][0]["label"] for each in found[:2]] == ["printer", "login"]
    assert all(len(each["labels"]) == 2 and each["known_terms"] is None for each in found)


def test_explanations(model: Path) -> None:
    body = {"text": "a paper jam", "label": "printer"}
    found = ask(model, "/explain", body)
    assert found["method"] == "occlusion" and {"paper", "jam"} & {t["term"] for t in found["terms"]}
    answer = ask(model, "/predict", {"texts": ["a paper jam"], "k": 2, "explain": True})
    assert all("explanation" in label for label in answer["results"][0]["labels"])


def test_a_fused_model(tmp_path: Path) -> None:
    fused = lt.Tagger(quality="best").fit(TEXTS, LABELS)
    fused.save(tmp_path / "model")
    texts = ["paper jam", "my password"]
    found = ask(tmp_path / "model", "/predict", {"texts": texts, "k": 2})["results"]
    expected = fused.predict(texts, k=2)
    for each, own in zip(found, expected, strict=True):
        assert [label["label"] for label in each["labels"]] == [name for name, _ in own]
    terms = ask(tmp_path / "model", "/explain", {"text": "a paper jam", "label": "printer"})[
        "terms"
    ]
    assert {"paper", "jam"} & {term["term"] for term in terms}
    why = fused.explain("a paper jam", "printer")
    told = [{"part": p, "probability": pytest.approx(v), "rank": r} for p, v, r in why.sources]
    body = {"text": "a paper jam", "k": 2, "explain": True}
    labels = ask(tmp_path / "model", "/predict", body)["results"][0]["labels"]
    assert labels[0]["label"] == "printer" and labels[0]["explanation"]["sources"] == told
    assert len(told) == 2 and told[0]["rank"] == 1
    assert [s["part"] for s in labels[1]["explanation"]["sources"]] == fused.model_.part_names
    only = ask(tmp_path / "model", "/predict", {"texts": texts, "k": 1, "include": ["login"]})
    assert [r["labels"][0]["label"] for r in only["results"]] == ["login"] * 2


def test_levels_of_a_tree(tmp_path: Path) -> None:
    levels = lt.XRTransformer(
        encoder="average", steps=60, device="cpu", n_jobs=1, onnx=False, vectorizer=lt.Tfidf()
    )
    lt.Tagger(model=levels, calibrate=False).fit(TEXTS, LABELS).save(tmp_path / "model")
    found = ask(tmp_path / "model", "/predict", {"texts": ["paper jam", ""], "k": 2})["results"]
    assert found[0]["labels"][0]["label"] == "printer" and found[0]["known_terms"] is None
    body = {"text": "a paper jam", "label": "printer"}
    terms = ask(tmp_path / "model", "/explain", body)["terms"]
    assert {"paper", "jam"} & {term["term"] for term in terms}


def test_a_step_is_one_long_text_or_few_short_ones(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tagger = lt.load(model)
    sizes: list[int] = []
    search = explanation.searching(tagger.model_)
    monkeypatch.setattr(
        explanation, "searching", lambda _: lambda X, k: sizes.append(len(X)) or search(X, k)
    )
    words = " ".join(f"word{i}" for i in range(300))
    tagger.explain(words, "printer")
    assert sizes == [1] * 301
    sizes.clear()
    tagger.explain("paper jam in the tray", "printer")
    assert sizes == [1, 5]
