"""Labels as people have them: columns of lists, sets and arrays, and numbers as names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tagger_cases import tickets

import longtail as lt
from longtail.data.label_lists import label_lists

TEXTS, LABELS = tickets(80)


def object_array(rows: list[Any]) -> np.ndarray:
    out = np.empty(len(rows), object)
    out[:] = rows
    return out


def series(rows: list[Any]) -> Any:
    return pytest.importorskip("pandas").Series(rows)


def frame_column(rows: list[Any]) -> Any:
    frame = pytest.importorskip("pandas").DataFrame({"text": TEXTS, "labels": rows})
    return frame.sample(frac=1, random_state=0).sort_index()["labels"]


def arrow(rows: list[Any]) -> Any:
    return pytest.importorskip("pyarrow").array(rows)


def chunked(rows: list[Any]) -> Any:
    pa = pytest.importorskip("pyarrow")
    return pa.chunked_array([rows[:30], rows[30:]])


def parquet(rows: list[Any]) -> Any:
    """What a column of lists is after a file: a Series of arrays."""
    pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    import io

    file = io.BytesIO()
    pd.DataFrame({"labels": rows}).to_parquet(file)
    assert pa is not None
    return pd.read_parquet(io.BytesIO(file.getvalue()))["labels"]


CONTAINERS = {
    "tuples": lambda rows: [tuple(row) for row in rows],
    "sets": lambda rows: [frozenset(row) for row in rows],
    "arrays": lambda rows: [np.array(row) for row in rows],
    "generator": lambda rows: (iter(row) for row in rows),
    "object array": object_array,
    "object array of sets": lambda rows: object_array([set(row) for row in rows]),
    "series": series,
    "series of tuples": lambda rows: series([tuple(row) for row in rows]),
    "column of a frame": frame_column,
    "arrow": arrow,
    "chunked arrow": chunked,
    "parquet": parquet,
}


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
def test_any_column_of_collections_is_the_same(container: Any) -> None:
    expected = lt.Tagger(calibrate=False).fit(TEXTS, LABELS)
    tagger = lt.Tagger(calibrate=False).fit(TEXTS, container(LABELS))
    assert tagger.label_names == expected.label_names
    assert tagger.predict(TEXTS[:9]) == expected.predict(TEXTS[:9])
    assert tagger.score(TEXTS, container(LABELS)) == expected.score(TEXTS, LABELS) > 0.9


def test_a_frame_as_people_have_it() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"text": TEXTS, "labels": LABELS}).iloc[5:]
    tagger = lt.Tagger().fit(frame["text"], frame["labels"])
    assert tagger.predict(["paper jam"], k=1)[0][0][0] == "printer"
    report = tagger.evaluate(frame["text"], frame["labels"], n_resamples=0)
    assert report["P@1"] > 0.9


@pytest.mark.parametrize("container", [list, object_array, series, arrow, parquet])
def test_whole_numbers_are_names_as_in_load_dataset(container: Any, tmp_path: Path) -> None:
    number = {name: 10 + i for i, name in enumerate(sorted({n for row in LABELS for n in row}))}
    rows = [[number[name] for name in row] for row in LABELS]
    tagger = lt.Tagger(calibrate=False).fit(TEXTS, container(rows))
    pd = pytest.importorskip("pandas")
    table = lt.load_dataset(pd.DataFrame({"text": TEXTS, "labels": rows}))
    assert list(tagger.label_names) == table.label_names == ["10", "11", "12", "13", "14"]
    best = str(number["printer"])
    assert tagger.predict(["paper jam"], k=1)[0][0][0] == best
    assert tagger.predict(["paper jam"], k=1, include=[number["printer"]])[0][0][0] == best
    assert tagger.explain("paper jam", number["printer"]).label == best
    assert [why.label for why in tagger.explain("paper jam", [10, "11"])] == ["10", "11"]
    assert tagger.score(TEXTS, container(rows)) > 0.9
    tagger.save(tmp_path / "model")
    assert lt.load(tmp_path / "model").label_names == tagger.label_names


def test_missing_rows_have_no_labels() -> None:
    assert label_lists([None, float("nan"), ["a"], np.array([3], np.uint8)]) == [
        [],
        [],
        ["a"],
        ["3"],
    ]
    assert label_lists(np.array([["a", "b"], ["c", "d"]])) == [["a", "b"], ["c", "d"]]


def test_numbers_beside_label_names_are_names_too() -> None:
    tagger = lt.Tagger(calibrate=False).fit(["a b", "c d"], [[7], [8]], label_names=["8", "7"])
    assert tagger.label_names == ("8", "7")
    with pytest.raises(ValueError, match="'0' is not one of the 2 label_names"):
        lt.Tagger().fit(["a b", "c d"], [[0], [1]], label_names=["x", "y"])


def test_new_labels_may_be_numbers() -> None:
    tagger = lt.Tagger(model="one-vs-all", calibrate=False).fit(TEXTS, LABELS)
    tagger.add_labels(["orbit moon rocket", *TEXTS[:20]], series([[7], *LABELS[:20]]))
    assert tagger.label_names[-1] == "7"


def test_texts_of_arrow_and_frames() -> None:
    pa = pytest.importorskip("pyarrow")
    expected = lt.Tfidf().fit_transform(TEXTS)
    for texts in (pa.array(TEXTS), pa.chunked_array([TEXTS[:7], TEXTS[7:]]), series(TEXTS)):
        assert (lt.Tfidf().fit_transform(texts) != expected).nnz == 0


def test_cross_validation_by_scikit_learn() -> None:
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV, cross_val_score

    scores = cross_val_score(lt.Tagger(calibrate=False), TEXTS, LABELS, cv=4)
    assert scores.shape == (4,) and (scores > 0.8).all()
    assert (cross_val_score(lt.Tagger(calibrate=False), series(TEXTS), series(LABELS)) > 0.8).all()
    search = GridSearchCV(
        lt.Tagger(calibrate=False), {"vectorizer": [{"min_df": 1}, {"min_df": 9}]}, cv=2
    )
    assert search.fit(TEXTS, LABELS).best_params_ == {"vectorizer": {"min_df": 1}}
    tagger = lt.Tagger(vectorizer={"min_df": 1}).fit(TEXTS, LABELS)
    assert clone(tagger).vectorizer == {"min_df": 1}


def test_score_is_precision_and_unknown_labels_are_missed() -> None:
    tagger = lt.Tagger(calibrate=False).fit(TEXTS, LABELS)
    report = tagger.evaluate(TEXTS[:30], LABELS[:30], n_resamples=0)
    for k in (1, 3):
        assert tagger.score(TEXTS[:30], LABELS[:30], k=k) == pytest.approx(report[f"P@{k}"])
    assert tagger.score(TEXTS[:3], [["never seen"]] * 3) == 0.0
    assert tagger.score([], []) == 0.0
    Y = lt.answers.Vocabulary(tagger.label_names).encode(LABELS)
    assert tagger.score(TEXTS, Y, label_names=tagger.label_names) == tagger.score(TEXTS, LABELS)
    with pytest.raises(ValueError, match="texts has 3 rows but labels has 2"):
        tagger.score(TEXTS[:3], LABELS[:2])
