"""A text model inside ``Tagger``, MACH, DECLARE, and on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from text_cases import text_network, worded

import longtail as lt


def named(data: Any) -> tuple[list[str], list[list[str]]]:
    texts, Y = data
    rows = np.split(Y.indices, Y.indptr[1:-1])
    return texts, [[f"label {j}" for j in row] for row in rows]


def test_a_tagger_hands_texts_to_models_that_read_them(encoder: Path, data: Any, tmp_path: Path):
    texts, labels = named(data)
    tagger = lt.Tagger(model=text_network(encoder), calibrate=False).fit(texts, labels)
    assert "over the texts themselves" in tagger.choice_
    others, truth = named(worded(seed=1))
    assert tagger.score(others, truth) > 0.5
    tagger.save(tmp_path / "tagger")
    loaded = lt.load(tmp_path / "tagger")
    assert loaded.predict(others, k=3) == tagger.predict(others, k=3)
    fields = {"title": texts, "body": ["" for _ in texts]}
    two = lt.Tagger(model=text_network(encoder, epochs=2), calibrate=False).fit(fields, labels)
    assert len(two.predict([{"title": texts[0], "body": ""}], k=2)[0]) == 2


def test_probabilities_and_label_texts(data: Any) -> None:
    texts, labels = named(data)
    names = sorted({name for row in labels for name in row})
    own = [f"word{4 * i} word{4 * i + 1}" for i in range(len(names))]
    model = text_network("average", learning_rate=1e-2, epochs=6)
    tagger = lt.Tagger(model=model, learn_label_texts=True).fit(
        texts, labels, label_names=names, label_texts=own
    )
    proba = [score for answers in tagger.predict(texts[:20], k=3) for _, score in answers]
    assert tagger.has_probabilities and min(proba) >= 0 and max(proba) <= 1


def test_what_does_not_go_together(encoder: Path, data: Any) -> None:
    texts, labels = named(data)
    with pytest.raises(TypeError, match="reads texts"):
        lt.Tagger(model=text_network(encoder), vectorizer=lt.Tfidf()).fit(texts, labels)
    with pytest.raises(TypeError, match="reads texts"):
        lt.Tagger(model=text_network(encoder)).fit(np.ones((160, 3)), labels)


@pytest.mark.parametrize("coded", ["MACH", "DECLARE"])
def test_codes_over_text_networks(coded: str, data: Any, tmp_path: Path) -> None:
    texts, Y = data
    estimator = text_network("average", learning_rate=1e-2)
    if coded == "MACH":
        model: Any = lt.MACH(n_buckets=6, n_repetitions=3, estimator=estimator)
    else:
        model = lt.DECLARE(n_components=6, estimator=estimator)
    model.fit(texts, Y)
    assert model.reads_texts and model.score(*worded(seed=1)) > 0.3
    model.save(tmp_path / "model")
    assert lt.load(tmp_path / "model").predict_topk(texts[:9]) == model.predict_topk(texts[:9])
    with pytest.raises(TypeError, match="reads texts"):
        model.predict_topk(np.ones((2, 3)))


def test_the_command_line_trains_one(encoder: Path, data: Any, tmp_path: Path) -> None:
    texts, labels = named(data)
    rows = [{"text": t, "labels": row} for t, row in zip(texts, labels, strict=True)]
    source = tmp_path / "data.jsonl"
    source.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    path = os.pathsep.join(p for p in sys.path if p)

    def run(*arguments: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "longtail", *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
        )

    how = ("--model", "text-network", "--device", "cpu", "--no-calibrate", "--no-refit", "--json")
    done = run("train", source, "-o", tmp_path / "model", *how, "--encoder", encoder, "-j", 1)
    assert done.returncode == 0, done.stderr
    assert "TextNetwork" in json.loads(done.stdout)["choice"]
    model = lt.load(tmp_path / "model").model_
    assert model.encoder_.kind == "transformer"
    refused = run("train", source, "-o", tmp_path / "x", "--model", "xr-linear", "--encoder", "a")
    assert refused.returncode == 2 and "takes no encoder" in refused.stderr


def test_levels_of_a_tree_on_the_command_line(encoder: Path, data: Any, tmp_path: Path) -> None:
    texts, labels = named(data)
    rows = [{"text": t, "labels": row} for t, row in zip(texts, labels, strict=True)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))

    def run(*arguments: Any) -> str:
        command = [sys.executable, "-m", "longtail", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    how = ("--device", "cpu", "-j", 1, "--encoder", encoder)
    options = ("--model", "xr-transformer", "--no-calibrate", "--no-refit", "--json")
    told = run("train", "rows.jsonl", "-o", "m", *options, *how)
    assert "XRTransformer" in json.loads(told)["choice"]
    tagger = lt.load(tmp_path / "m")
    assert tagger.model_.encoder_.kind == "transformer" and tagger.model_.ranker_.n_labels_ == 8
    assert tagger.score(*named(worded(seed=1))) > 0.8
    told = run("compare", "rows.jsonl", "-m", "popularity,xr-transformer", *how)
    assert "xr-transformer" in told


def test_labels_found_by_what_they_are_called(data: Any, tmp_path: Path) -> None:
    texts, labels = named(data)
    names = [f"label {j}" for j in range(8)] + ["never seen"]
    own = [f"word{4 * i} word{4 * i + 1}" for i in range(8)] + ["word50 word51"]
    model = lt.UniDEC(encoder="average", epochs=6, device="cpu", n_jobs=1, onnx=False)
    tagger = lt.Tagger(model=model.set_params(new_label_margin=0.0), calibrate=False)
    tagger.fit(texts, labels, label_names=names, label_texts=own)
    assert tagger.predict(["word50 word51"], k=1)[0][0][0] == "never seen"
    tagger.add_labels(label_texts={"newer": "word57 word58", "newest": "word59"})
    assert tagger.predict(["word58 word57"], k=1)[0][0][0] == "newer"
    assert tagger.label_texts_[-1] == "word59" and tagger.label_counts_[-1] == 0
    tagger.add_labels(["word53 word54"] * 3, [["latest"]] * 3, label_texts={"latest": "word54"})
    assert tagger.predict(["word54 word53"], k=1)[0][0][0] == "latest"
    tagger.save(tmp_path / "tagger")
    assert lt.load(tmp_path / "tagger").predict(texts[:9]) == tagger.predict(texts[:9])
    with pytest.raises(ValueError, match="'newer' is known"):
        tagger.add_labels(label_texts={"newer": "word1"})
    with pytest.raises(TypeError, match="mapping"):
        tagger.add_labels(label_texts=["word1"])
    linear = lt.Tagger(model=lt.OneVsAll(), calibrate=False).fit(texts, labels)
    with pytest.raises(TypeError, match="called"):
        linear.add_labels(label_texts={"newer": "word1"})


def test_dual_encoders_on_the_command_line(data: Any, tmp_path: Path) -> None:
    texts, labels = named(data)
    rows = [{"text": t, "labels": ls} for t, ls in zip(texts, labels, strict=True)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    called = [{"label": f"label {j}", "text": f"word{4 * j}"} for j in range(8)]
    (tmp_path / "labels.jsonl").write_text("\n".join(map(json.dumps, called)))
    (tmp_path / "new.tsv").write_text("newer\tword57 word58\n")

    def run(*arguments: Any) -> str:
        command = [sys.executable, "-m", "longtail", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    options = ("--model", "dual-encoder", "--no-calibrate", "--device", "cpu", "--jobs", 1)
    run("train", "rows.jsonl", "-o", "m", "--label-texts", "labels.jsonl", *options)
    assert "1 labels added, 9 in all" in run("add-labels", "m", "new.tsv", "-o", "grown")
    run("add-labels", "m", "new.tsv")
    for folder in ("m", "grown"):
        assert lt.load(tmp_path / folder).label_names[-1] == "newer"
