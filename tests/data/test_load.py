import gzip
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail.data.detect import LAYOUTS, detect_layout
from longtail.data.fasttext_lines import write_fasttext_folder
from longtail.data.label_features import write_label_feature_folder
from longtail.data.npz_pairs import write_npz_folder
from longtail.data.pecos_folder import write_pecos_folder
from longtail.data.raw_text import write_raw_text_folder
from longtail.data.table_folder import write_table_folder
from longtail.data.xc_folder import write_label_matrix_folder, write_xc_folder
from longtail.exceptions import DataFormatError

WRITERS = {
    "tables": write_table_folder,
    "label-features": write_label_feature_folder,
    "pecos": write_pecos_folder,
    "npz": write_npz_folder,
    "raw-text": write_raw_text_folder,
    "label-matrix": write_label_matrix_folder,
    "fasttext": write_fasttext_folder,
    "xc": write_xc_folder,
}


def small() -> lt.data.Dataset:
    def split(n: int) -> lt.data.Split:
        rows = np.arange(n)
        return lt.data.Split(
            X=sp.csr_matrix(np.eye(3)[rows % 3]),
            Y=np.eye(2)[rows % 2],
            texts=[f"text {i}" for i in rows],
        )

    return lt.data.Dataset(split(4), split(3), split(2), label_names=["a", "b"])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_recognised(tmp_path, layout):
    WRITERS[layout](tmp_path, small())
    assert detect_layout(tmp_path) == layout
    for chosen in (None, layout):
        ds = lt.load_dataset(tmp_path, layout=chosen)
        assert {name: len(split) for name, split in ds.splits.items()} == {
            "train": 4,
            "dev": 2,
            "test": 3,
        }
        assert ds.test.Y.toarray().tolist() == [[1, 0], [0, 1], [1, 0]]
        assert ds.name == tmp_path.name


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_test_split_alone(tmp_path, layout):
    WRITERS[layout](tmp_path, lt.data.Dataset(test=small().test, label_names=["a", "b"]))
    ds = lt.load_dataset(str(tmp_path))
    assert list(ds.splits) == ["test"]
    assert ds.train.Y is None


@pytest.mark.parametrize("layout", ["raw-text", "label-matrix", "fasttext", "xc"])
def test_text_files_may_be_gzip(tmp_path, layout):
    WRITERS[layout](tmp_path, small())
    for path in list(tmp_path.glob("*.txt")):
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert len(lt.load_dataset(tmp_path).train) == 4


def test_a_folder_without_data_says_what_was_looked_for(tmp_path):
    (tmp_path / "notes.md").write_text("x")
    (tmp_path / "more.md").write_text("x")
    with pytest.raises(DataFormatError) as caught:
        lt.load_dataset(tmp_path)
    message = str(caught.value)
    assert all(f"({name})" in message for name in LAYOUTS)
    assert "more.md, notes.md" in message


def test_an_empty_folder(tmp_path):
    with pytest.raises(DataFormatError, match="holds: nothing"):
        lt.load_dataset(tmp_path)
    with pytest.raises(DataFormatError, match="holds: nothing"):
        lt.load_dataset(tmp_path, layout="npz")


@pytest.mark.parametrize(
    ("name", "content", "shape"),
    [
        ("a.csv", "text,labels\nx,a\ny,b\n", (2, 2)),
        ("a.tsv", "text\tlabels\nx\ta\n", (1, 1)),
        ("a.jsonl", '{"text": "x", "labels": ["a", "b"]}\n', (1, 2)),
        ("a.ndjson", '{"text": "x", "labels": []}\n', (1, 0)),
        ("a.json", '{"text": "x", "labels": "a"}\n', (1, 1)),
        ("a.txt", "__label__a x\n__label__b y\n", (2, 2)),
        ("train.ft", "x __label__a\n", (1, 1)),
        ("a.txt", "2 3 4\n0 1:1\n1,3 0:0.5\n", (2, 4)),
        ("a.svm", "2 4\n0:1\n3:0.5 1:1\n", (2, 4)),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("alone", [False, True])
def test_a_single_file_is_the_training_split(tmp_path, name, content, shape, packed, alone):
    path = tmp_path / (name + ".gz" if packed else name)
    path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    ds = lt.load_dataset(tmp_path if alone and not name.startswith("train") else path)
    assert list(ds.splits) == ["train"]
    assert ds.train.Y.shape == shape
    assert ds.name in (name.split(".")[0], tmp_path.name)


@pytest.mark.parametrize("content", [b"", b"hello\n", b"1 2 3 4\n", b"\xff\xfe\n", b"1.5 2 3\n"])
def test_a_file_of_no_known_kind(tmp_path, content):
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(DataFormatError, match=r"a\.txt:1"):
        lt.load_dataset(path)


def test_options_reach_the_table_reader(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("title;tags\nx;a|b\n")
    options = {"text_column": "title", "label_column": "tags", "label_separator": "|"}
    assert lt.load_dataset(path, delimiter=";", **options).label_names == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", "text,labels\n"), ("a.txt", "1 1 1\n0 0:1\n"), ("b.txt", "__label__a x")],
)
def test_unknown_options_are_refused(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(TypeError, match="colour"):
        lt.load_dataset(path, colour=3)


def test_options_that_a_layout_does_not_know(tmp_path):
    write_npz_folder(tmp_path, small())
    with pytest.raises(TypeError, match="text_column= has no meaning"):
        lt.load_dataset(tmp_path, text_column="title")
    with pytest.raises(ValueError, match="layout must be one of tables"):
        lt.load_dataset(tmp_path, layout="parquet")
    with pytest.raises(ValueError, match="is for folders"):
        lt.load_dataset(tmp_path / "Y_train.npz", layout="npz")


def test_tables_in_memory():
    columns = {"text": ["x", "y"], "labels": [["a"], ["b", "a"]]}
    for table in (pd.DataFrame(columns), pa.table(columns), pa.RecordBatch.from_pydict(columns)):
        ds = lt.load_dataset(table)
        assert (ds.train.texts, ds.label_names) == (["x", "y"], ["a", "b"])
        assert ds.train.Y.toarray().tolist() == [[1, 0], [1, 1]]


@pytest.mark.parametrize("source", [None, 3, ["a"], {"text": ["x"]}])
def test_what_is_no_source(source):
    with pytest.raises(TypeError, match="expected a name, a path or a table"):
        lt.load_dataset(source)


def test_an_unknown_name_is_neither_path_nor_benchmark():
    with pytest.raises(FileNotFoundError, match=r"no file or folder 'Bibtexx', and .* Bibtex"):
        lt.load_dataset("Bibtexx")


def test_names_of_the_registry(tmp_path, monkeypatch):
    from longtail.data.registry import register_dataset

    monkeypatch.setenv("LONGTAIL_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    write_npz_folder(tmp_path / "tiny-tags", small())
    register_dataset("tiny-tags", a=0.6, b=2.6, overwrite=True)
    ds = lt.load_dataset("Tiny-Tags")  # not a path here: the registry does not care about case
    assert (ds.name, ds.a, ds.b, len(ds.train)) == ("tiny-tags", 0.6, 2.6, 4)
    by_path = lt.load_dataset(tmp_path / "tiny-tags")
    assert (by_path.a, by_path.b) == (0.6, 2.6)


@pytest.mark.parametrize(("size", "expected"), [(0.25, 25), (10, 10), (0.001, 1), (0.999, 99)])
def test_part_of_the_training_rows_can_be_held_out(size, expected):
    frame = pd.DataFrame({"text": [str(i) for i in range(100)], "labels": ["a", "b"] * 50})
    ds = lt.load_dataset(frame, test_size=size)
    assert len(ds.test) == expected
    assert sorted(ds.train.texts + ds.test.texts, key=int) == list(frame["text"])
    assert ds.test.texts == sorted(ds.test.texts, key=int)
    assert all(
        (int(t) % 2 == 0) == (y == 0) for t, y in zip(ds.test.texts, ds.test.Y.indices, strict=True)
    )
    again = lt.load_dataset(frame, test_size=size, random_state=0)
    assert again.test.texts == ds.test.texts
    if expected == 25:
        assert lt.load_dataset(frame, test_size=size, random_state=1).test.texts != ds.test.texts


@pytest.mark.parametrize("size", [0, 1.0, -1, 3, 1.5, float("nan")])
def test_sizes_that_leave_a_split_empty(size):
    frame = pd.DataFrame({"text": ["x", "y", "z"], "labels": ["a", "b", "c"]})
    with pytest.raises(ValueError, match="test_size must lie"):
        lt.load_dataset(frame, test_size=size)


def test_more_that_cannot_be_held_out(tmp_path):
    frame = pd.DataFrame({"text": ["x"], "labels": ["a"]})
    with pytest.raises(ValueError, match="at least 2 training rows"):
        lt.load_dataset(frame, test_size=0.5)
    with pytest.raises(TypeError, match="must be a number"):
        lt.load_dataset(frame, test_size="half")
    write_npz_folder(tmp_path, small())
    with pytest.raises(ValueError, match="sources without a test split"):
        lt.load_dataset(tmp_path, test_size=0.5)


def test_filter_pairs_follow_their_rows(tmp_path):
    n = 20
    ds = lt.data.Dataset(
        lt.data.Split(X=np.eye(n), Y=np.arange(n)),
        train_filter=[[row, row] for row in range(n)] * 2,
    )
    write_xc_folder(tmp_path, ds)
    found = lt.load_dataset(tmp_path, test_size=7)
    for split, pairs in ((found.train, found.train_filter), (found.test, found.test_filter)):
        # Row i has the label i, and so it does wherever it went.
        assert len(pairs) == 2 * len(split)
        assert (split.Y.indices[pairs[:, 0]] == pairs[:, 1]).all()


def test_an_empty_table_loads_without_a_warning(tmp_path):
    (tmp_path / "a.csv").write_text("text,labels\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ds = lt.load_dataset(tmp_path / "a.csv")
    assert (len(ds.train), ds.n_labels, ds.train.texts) == (0, 0, [])
