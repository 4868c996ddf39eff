"""Files of texts as rows on disk: the rows of reading everything at once, whoever made them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import longtail as lt
from longtail.exceptions import DataFormatError
from longtail.features import vectorized as module
from longtail.features.mapped_rows import is_mapped, take_rows

WORDS = ["rare", "label", "tail", "head", "text", "row", "shard", "block"]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Three files, of which the second is empty, and one of all rows."""
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(200):
        words = rng.choice(WORDS, rng.integers(1, 9)).tolist()
        rows.append({"text": " ".join(words), "labels": sorted({w.upper() for w in words[:2]})})
    rows[3]["labels"] = []
    made = []
    for i, part in enumerate([rows[:120], [], rows[120:]]):
        made.append(tmp_path / f"part-{i}.jsonl")
        made[-1].write_text("".join(json.dumps(row) + "\n" for row in part))
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return made


def check(folder: Path, whole: Path, params: dict[str, Any] | None = None) -> None:
    expected = lt.load_dataset(whole)
    X = lt.Tfidf(**params or {}).fit_transform(expected.train.texts)
    data = lt.features.load_vectorized(folder)
    assert data.label_names == expected.label_names
    for one, other in ((data.train.X, X), (data.train.Y, expected.train.Y)):
        assert one.shape == other.shape
        for name in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("block", [1, 500, 1 << 26])
def test_the_rows_of_reading_everything(files: list[Path], tmp_path: Path, block: int) -> None:
    folder = tmp_path / "rows"
    vectorizer = lt.features.vectorize_files(
        files, folder, lt.Tfidf(ngram_range=(1, 2)), block=block
    )
    check(folder, tmp_path / "all.jsonl", {"ngram_range": (1, 2)})
    assert sorted(p.name for p in folder.iterdir()) == [
        "X",
        "Y",
        "labels.jsonl",
        "rows.json",
        "vectorizer",
    ]
    again = lt.load(folder / "vectorizer").transform(["rare tail"])
    assert (again != vectorizer.transform(["rare tail"])).nnz == 0
    assert is_mapped(lt.features.load_vectorized(folder).train.X.data)


def test_by_the_workers_of_joblib(files: list[Path], tmp_path: Path) -> None:
    with lt.distributed.engine("loky", n_jobs=2):
        lt.features.vectorize_files(files, tmp_path / "rows")
    check(tmp_path / "rows", tmp_path / "all.jsonl")


def test_a_call_that_was_cut_short_goes_on(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, count, write, counted = tmp_path / "rows", module._count, module._write, []

    def counting(job: Any, shard: int, *, watch: Any) -> None:
        counted.append(shard)
        count(job, shard, watch=watch)

    def failing(job: Any, shard: int, *, watch: Any) -> None:
        if shard == 2:
            raise OSError(28, "No space left on device")
        write(job, shard, watch=watch)

    monkeypatch.setattr(module, "_count", counting)
    monkeypatch.setattr(module, "_write", failing)
    with pytest.raises(OSError, match="No space"):
        lt.features.vectorize_files(files, folder)
    with pytest.raises(DataFormatError, match="cut short"):
        lt.features.load_vectorized(folder)
    monkeypatch.setattr(module, "_write", write)
    lt.features.vectorize_files(files, folder)
    assert counted == [0, 1, 2]  # no second time
    check(folder, tmp_path / "all.jsonl")


def test_what_is_there_stays(files: list[Path], tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    lt.features.vectorize_files(files, folder)
    with pytest.raises(FileExistsError, match="overwrite"):
        lt.features.vectorize_files(files, folder)
    lt.features.vectorize_files(files[:1], folder, lt.Tfidf(min_df=1), overwrite=True)
    assert lt.features.load_vectorized(folder).train.X.shape[0] == 120
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious").write_text("")
    with pytest.raises(FileExistsError, match="not empty"):
        lt.features.vectorize_files(files, other, overwrite=True)
    assert (other / "precious").exists()


def test_refusals(files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="list of paths"):
        lt.features.vectorize_files(str(files[0]), tmp_path / "rows")
    with pytest.raises(ValueError, match="no files"):
        lt.features.vectorize_files([], tmp_path / "rows")
    with pytest.raises(FileNotFoundError):
        lt.features.vectorize_files([tmp_path / "none.jsonl"], tmp_path / "rows")
    assert not (tmp_path / "rows").exists()
    with pytest.raises(DataFormatError, match="text_column"):
        lt.features.vectorize_files(files, tmp_path / "rows", text_column="title")
    with pytest.raises(DataFormatError, match="not rows"):
        lt.features.load_vectorized(tmp_path)
    plain = tmp_path / "plain.txt"
    plain.write_text("just a line\n")
    with pytest.raises(DataFormatError, match="fastText"):
        lt.features.vectorize_files([plain], tmp_path / "lines")


def test_a_model_under_a_memory_limit_is_the_model_of_the_texts(
    files: list[Path], tmp_path: Path
) -> None:
    texts = lt.load_dataset(tmp_path / "all.jsonl")
    vectorizer = lt.features.vectorize_files(files, tmp_path / "rows")
    data = lt.features.load_vectorized(tmp_path / "rows")
    params: dict[str, Any] = {"model": lt.OneVsAll(), "calibrate": True}
    names = texts.label_names
    here = lt.Tagger(vectorizer=lt.Tfidf(), **params)
    here.fit(texts.train.texts, texts.train.Y, label_names=names)
    params["model"] = lt.OneVsAll(memory_limit="8GB")
    tagger = lt.Tagger(vectorizer=vectorizer, **params)
    tagger.fit(data.train.X, data.train.Y, label_names=names)
    asked = ["rare tail row", "head of a block"]
    assert tagger.predict(asked) == here.predict(asked)
    tagger.save(tmp_path / "model")
    again = lt.load(tmp_path / "model")
    assert again.predict(asked) == here.predict(asked)
    assert again.predict_topk(data.train.X[:5]) == here.predict_topk(texts.train.texts[:5])
    assert again.trained_on(texts.train.texts) is None  # it has never seen them
    with pytest.raises(ValueError, match="give the one that made them"):
        lt.Tagger(vectorizer=vectorizer).fit(data.train.X[:, :3], data.train.Y, label_names=names)


def test_taken_rows_of_mapped_ones_are_mapped(tmp_path: Path) -> None:
    X = lt.data.make_longtail(n=300, d=40, L=5, random_state=0).train.X
    lt.features.save_matrix(tmp_path / "X", X)
    mapped = lt.features.load_matrix(tmp_path / "X")
    mask = np.arange(X.shape[0]) % 3 == 1
    for rows in (mask, np.array([5, 2, 2, 299]), np.zeros(0, np.int64)):
        taken = take_rows(mapped, rows)
        assert (taken != X[rows]).nnz == 0 and taken.shape == X[rows].shape
        assert is_mapped(taken.data) or not taken.nnz
        assert not is_mapped(take_rows(X, rows).data)


def test_shards_of_matrices(tmp_path: Path) -> None:
    X = lt.data.make_longtail(n=90, d=40, L=5, random_state=0).train.X
    paths = [tmp_path / str(i) for i in range(3)]
    for i, path in enumerate(paths):
        lt.features.save_matrix(path, X[30 * i : 30 * i + 30])
    for mmap in (True, False):
        joined = lt.features.load_matrix(paths, mmap=mmap)
        assert (joined != X).nnz == 0 and is_mapped(joined.data) == mmap
    with pytest.raises(ValueError, match="no shard"):
        lt.features.load_matrix([])
    lt.features.save_matrix(paths[0], X[:30, :7], overwrite=True)
    with pytest.raises(ValueError, match="same width"):
        lt.features.load_matrix(paths)
