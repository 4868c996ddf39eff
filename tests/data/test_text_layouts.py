"""Folders of texts with label names: tables, raw text, fastText lines."""

import json

import pandas as pd
import pytest
from data_cases import assert_same, datasets, folder, line_text, with_files, word
from hypothesis import given
from hypothesis import strategies as st

from longtail.data import load_dataset
from longtail.data.fasttext_lines import iter_fasttext, write_fasttext, write_fasttext_folder
from longtail.data.label_file import read_label_file, write_label_file
from longtail.data.raw_text import write_raw_text, write_raw_text_folder
from longtail.data.table_folder import write_table_folder
from longtail.exceptions import DataFormatError

printable = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=9)
plain_text = line_text.filter(lambda t: "__label__" not in t and t == t.lstrip(" \t\v\f\r\0"))


@with_files
@given(datasets(printable, printable.filter(bool)), st.sampled_from([".jsonl.gz", ".csv", ".tsv"]))
def test_tables_survive_the_round_trip(dataset, suffix):
    with folder() as place:
        write_table_folder(place, dataset, suffix=suffix)
        found = load_dataset(place)
    assert_same(found, dataset, X=False)
    assert found.label_texts == dataset.label_texts


@with_files
@given(datasets(line_text, word))
def test_raw_text_survives_the_round_trip(dataset):
    with folder() as place:
        write_raw_text_folder(place, dataset)
        assert_same(load_dataset(place), dataset, X=False)


@with_files
@given(datasets(plain_text, word))
def test_fasttext_survives_the_round_trip(dataset):
    with folder() as place:
        write_fasttext_folder(place, dataset)
        assert_same(load_dataset(place, layout="fasttext"), dataset, X=False)


def write_jsonl(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def test_ids_come_from_the_label_file_and_unknown_test_labels_are_counted(tmp_path):
    write_jsonl(tmp_path / "trn.jsonl", {"text": "x", "labels": ["b"], "id": 1})
    write_jsonl(
        tmp_path / "tst.jsonl",
        {"text": "y", "labels": ["a", "q"], "unseen_labels": ["r"]},
        {"text": "z", "labels": []},
    )
    write_jsonl(
        tmp_path / "labels.jsonl",
        {"label": "b", "text": "Biene", "text_en": "bee"},
        {"label": "a", "text": "Affe"},
        {"label": "c"},
    )
    ds = load_dataset(tmp_path)
    assert ds.label_names == ["b", "a", "c"]
    assert ds.label_texts == ["Biene", "Affe", "c"]
    assert ds.test.Y.toarray().tolist() == [[0, 1, 0], [0, 0, 0]]
    assert ds.test.unknown_labels.tolist() == [2, 0]
    assert ds.train.unknown_labels is None
    english = load_dataset(tmp_path, label_text_field="text_en")
    assert english.label_texts == ["bee", "Affe", "c"]


def test_labels_of_another_language_in_every_layout_with_a_label_file(tmp_path):
    for name, text in (("train_texts.txt", "x"), ("train_labels.txt", "b")):
        (tmp_path / name).write_text(text + "\n")
    write_jsonl(tmp_path / "labels.jsonl", {"label": "b", "text": "Biene", "text_en": "bee"})
    assert load_dataset(tmp_path, label_text_field="text_en").label_texts == ["bee"]
    for name in ("train_texts.txt", "train_labels.txt"):
        (tmp_path / name).unlink()
    (tmp_path / "train.txt").write_text("__label__b x\n")
    assert load_dataset(tmp_path, label_text_field="text_en").label_texts == ["bee"]


def test_label_files_with_tabs(tmp_path):
    path = tmp_path / "texts.tsv"
    path.write_text("label\ttext\nb\ta bee\na\tan ape\twith a tab\nc\t\n")
    assert read_label_file(path) == (["b", "a", "c"], ["a bee", "an ape\twith a tab", ""])
    path.write_text("b\ta bee\na\n")
    with pytest.raises(DataFormatError, match="expected a label, a tab and its text") as caught:
        read_label_file(path)
    assert caught.value.line == 2


def test_a_training_label_outside_the_label_file_is_refused(tmp_path):
    write_jsonl(
        tmp_path / "train.jsonl", {"text": "x", "labels": ["a"]}, {"text": "y", "labels": ["q"]}
    )
    (tmp_path / "labels.txt").write_text("a\n")
    with pytest.raises(DataFormatError, match="'q' is not one of the 1 names") as caught:
        load_dataset(tmp_path)
    assert caught.value.line == 2


def test_without_a_label_file_the_labels_of_all_splits_count(tmp_path):
    write_jsonl(tmp_path / "train.jsonl", {"text": "x", "labels": ["b"]})
    write_jsonl(tmp_path / "validation.jsonl", {"text": "y", "labels": ["c", "b"]})
    write_jsonl(tmp_path / "test.jsonl", {"text": "y", "labels": ["a"]})
    ds = load_dataset(tmp_path)
    assert ds.label_names == ["a", "b", "c"]
    assert ds.dev.Y.toarray().tolist() == [[0, 1, 1]]


@pytest.mark.parametrize("labels", [[""], [["a"]]])
def test_bad_label_names_are_placed(tmp_path, labels):
    write_jsonl(tmp_path / "train.jsonl", {"text": "x", "labels": labels})
    with pytest.raises(DataFormatError, match=r"train\.jsonl:1"):
        load_dataset(tmp_path)


def test_bad_label_names_of_a_table_without_lines():
    with pytest.raises(DataFormatError, match="<DataFrame>: row 1: a label name is empty"):
        load_dataset(pd.DataFrame({"text": ["x", "y"], "labels": [["a"], [""]]}))


def test_label_file_round_trip(tmp_path):
    names, texts = ["a b", " c", "d\u2028"], ["", "two\nlines", "x"]
    write_label_file(tmp_path / "labels.jsonl.gz", names, texts)
    assert read_label_file(tmp_path / "labels.jsonl.gz") == (names, texts)
    write_label_file(tmp_path / "labels.txt", names)
    assert read_label_file(tmp_path / "labels.txt") == (names, None)
    with pytest.raises(ValueError, match=r"labels\.jsonl instead"):
        write_label_file(tmp_path / "labels.txt", names, texts)


@pytest.mark.parametrize(
    ("name", "content", "line", "message"),
    [
        ("labels.txt", "a\n\nb\n", 2, "expected a label name, got ''"),
        ("labels.txt", "a\nb\na\n", 3, "'a' occurs twice, first on line 1"),
        ("labels.jsonl", '{"label": "a"}\n{"label": 3}\n', 2, "got 3"),
        ("labels.jsonl", '{"text": "a"}\n', 1, "got None"),
        ("labels.jsonl", '{"label": "a", "text": ["b"]}\n', 1, "not a string"),
    ],
)
def test_malformed_label_files(tmp_path, name, content, line, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataFormatError, match=message) as caught:
        read_label_file(tmp_path / name)
    assert caught.value.line == line


def test_raw_text_by_hand(tmp_path):
    (tmp_path / "train_texts.txt").write_bytes("a\u2028cat\r\n\r\nlast".encode())
    (tmp_path / "train_labels.txt").write_text("pet  mammal\tpet\n\ncow\n")
    ds = load_dataset(tmp_path)
    assert ds.train.texts == ["a\u2028cat", "", "last"]
    assert ds.label_names == ["cow", "mammal", "pet"]
    assert ds.train.Y.toarray().tolist() == [[0, 1, 1], [0, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize(
    ("texts", "labels", "longer", "line"),
    [("a\nb\n", "x\n", "train_texts.txt", 2), ("a\n", "x\n\n", "train_labels.txt", 2)],
)
def test_raw_text_files_of_different_length(tmp_path, texts, labels, longer, line):
    (tmp_path / "train_texts.txt").write_text(texts)
    (tmp_path / "train_labels.txt").write_text(labels)
    with pytest.raises(DataFormatError, match=f"{longer}:{line}: expected 1 lines"):
        load_dataset(tmp_path)


def test_raw_text_needs_both_files(tmp_path):
    (tmp_path / "train_texts.txt").write_text("a\n")
    with pytest.raises(DataFormatError, match="expected both texts and labels for train"):
        load_dataset(tmp_path)


@pytest.mark.parametrize("name", ["a b", "a\tb", ""])
def test_names_that_raw_text_cannot_hold(tmp_path, name):
    with pytest.raises(ValueError, match="empty or holds a blank"):
        write_raw_text(tmp_path / "t", tmp_path / "l", ["x"], [[name]])


@pytest.mark.parametrize(
    ("line", "labels", "text"),
    [
        ("__label__a __label__b some text", ["a", "b"], "some text"),
        ("__label__a", ["a"], ""),
        ("no label", [], "no label"),
        ("", [], ""),
        ("\t__label__a\tx  y ", ["a"], "\tx  y "),
        ("early __label__a late", ["a"], "early late"),
        ("not__label__a x", [], "not__label__a x"),
        ("__label__a\u00a0b x", ["a\u00a0b"], "x"),
        ("__label____label__a x", ["__label__a"], "x"),
    ],
)
def test_fasttext_grammar(tmp_path, line, labels, text):
    (tmp_path / "a.txt").write_text(line + "\n")
    (record,) = iter_fasttext(tmp_path / "a.txt")
    assert (record.labels, record.text) == (labels, text)


def test_fasttext_with_another_prefix(tmp_path):
    (tmp_path / "a.txt").write_text("#a #b x __label__c\n")
    (record,) = iter_fasttext(tmp_path / "a.txt", prefix="#")
    assert (record.labels, record.text) == (["a", "b"], "x __label__c")
    with pytest.raises(ValueError, match="prefix"):
        list(iter_fasttext(tmp_path / "a.txt", prefix=""))


def test_a_bare_prefix_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("__label__a x\n__label__a __label__ x\n")
    with pytest.raises(DataFormatError, match="label name after __label__") as caught:
        list(iter_fasttext(tmp_path / "a.txt"))
    assert (caught.value.line, caught.value.column) == (2, 21)


@pytest.mark.parametrize(
    ("text", "names"),
    [("a __label__b", []), (" a", ["x"]), ("a", ["x y"]), ("a", [""]), ("a\nb", [])],
)
def test_what_fasttext_cannot_hold(tmp_path, text, names):
    with pytest.raises(ValueError, match=r"word|blank|line break"):
        write_fasttext(tmp_path / "a.txt", [text], [names])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "write", [write_raw_text_folder, write_fasttext_folder, write_table_folder]
)
def test_text_formats_need_texts(tmp_path, write):
    from longtail.data import Dataset, Split

    with pytest.raises(ValueError, match="train split has no texts"):
        write(tmp_path, Dataset(Split(Y=[[0]]), label_names=["a"]))
    with pytest.raises(ValueError, match="no label names"):
        write(tmp_path, Dataset(Split(Y=[[0]], texts=["x"])))
