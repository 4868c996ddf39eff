"""Folders of matrices and of label ids: npz pairs, PECOS, label features, text format."""

import io
import json
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from data_cases import assert_same, assert_same_matrix, datasets, folder, line_text, with_files
from hypothesis import given

from longtail.data import Dataset, Split, load_dataset
from longtail.data.label_features import read_label_records, write_label_feature_folder
from longtail.data.npz_pairs import read_matrix, read_npz_pair, write_npz_folder, write_npz_pair
from longtail.data.pecos_folder import write_pecos_folder
from longtail.data.xc_folder import write_label_matrix_folder, write_xc_folder
from longtail.exceptions import DataFormatError


@with_files
@given(datasets(name=line_text.filter(bool), soft=True))
def test_npz_survives_the_round_trip(dataset):
    with folder() as place:
        write_npz_folder(place, dataset)
        found = load_dataset(place)
    assert_same(found, dataset, texts=False)
    assert found.label_texts == dataset.label_texts


@with_files
@given(datasets(line_text, soft=True))
def test_pecos_survives_the_round_trip(dataset):
    with folder() as place:
        write_pecos_folder(place, dataset)
        found = load_dataset(place)
    texts = dataset.label_texts
    dataset.label_names = texts if len(set(texts)) == len(texts) and "" not in texts else None
    assert_same(found, dataset)
    assert found.label_texts == texts


@with_files
@given(datasets(soft=True))
def test_label_features_survive_the_round_trip(dataset):
    with folder() as place:
        write_label_feature_folder(place, dataset)
        found = load_dataset(place)
    assert_same(found, dataset, X=False)
    assert found.label_texts == dataset.label_texts


@with_files
@given(datasets(name=line_text.filter(bool)))
def test_text_format_survives_the_round_trip(dataset):
    dataset.feature_names = [f"f{i}" for i in range(dataset.n_features)]
    dataset.train_filter = np.array([[0, 0]])
    dataset.inverse_propensity = np.linspace(1, 7.1, dataset.n_labels)
    with folder() as place:
        write_xc_folder(place, dataset)
        found = load_dataset(place)
    assert_same(found, dataset, texts=False)
    assert found.feature_names == dataset.feature_names
    np.testing.assert_array_equal(found.train_filter, dataset.train_filter)
    np.testing.assert_array_equal(found.inverse_propensity, dataset.inverse_propensity)
    assert found.test_filter is None


@with_files
@given(datasets(name=line_text.filter(bool), soft=True))
def test_label_matrices_survive_the_round_trip(dataset):
    with folder() as place:
        write_label_matrix_folder(place, dataset)
        found = load_dataset(place)
    assert_same(found, dataset, texts=False)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("dtype", [np.float64, np.int64, bool])
def test_every_scipy_format_and_dtype(tmp_path, kind, dtype):
    dense = np.array([[1, 0, 1], [0, 0, 1]], dtype)
    for name in ("X.npz", "Y.npz"):
        sp.save_npz(tmp_path / name, sp.csr_matrix(dense).asformat(kind))
    X, Y = read_npz_pair(tmp_path / "X.npz", tmp_path / "Y.npz")
    assert_same_matrix(X, dense.astype(np.float32))
    assert_same_matrix(Y, dense.astype(np.float32))


def test_sparse_arrays_and_dense_features(tmp_path):
    sp.save_npz(tmp_path / "Y_train.npz", sp.csr_array(np.eye(2)))
    np.save(tmp_path / "X_train.npy", np.arange(6.0).reshape(2, 3))
    ds = load_dataset(tmp_path)
    assert isinstance(ds.train.X, np.ndarray)
    assert isinstance(ds.train.Y, sp.csr_matrix)
    write_npz_folder(tmp_path / "copy", ds)
    assert_same(load_dataset(tmp_path / "copy"), ds)


def test_pyxclib_names_and_labels_alone(tmp_path):
    write_npz_pair(tmp_path / "trn_X_Xf.npz", tmp_path / "trn_X_Y.npz", sp.eye(2), [[0], [1]])
    sp.save_npz(tmp_path / "tst_X_Y.npz", sp.csr_matrix(np.eye(2)))
    ds = load_dataset(tmp_path)
    assert (ds.train.X.shape, ds.test.X, ds.test.Y.shape) == ((2, 2), None, (2, 2))


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


CSR = {
    "format": b"csr",
    "shape": [2, 3],
    "data": [1.0],
    "indices": np.array([1], np.int32),
    "indptr": np.array([0, 1, 1], np.int32),
}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04 and no more",
        b"plain text",
        npz(a=[1]),
        npz(**{**CSR, "indices": np.array([7], np.int32)}),
        npz(**{**CSR, "indices": np.array([-1], np.int32)}),
        npz(
            **{**CSR, "format": b"csc", "indptr": np.array([0, 1, 1, 1]), "indices": np.array([9])}
        ),
        npz(**{**CSR, "indptr": np.array([0, 5, 1], np.int32)}),
        npz(**{**CSR, "indptr": np.array([0, 9], np.int32)}),
        npz(**{**CSR, "shape": [2]}),
        npz(**{**CSR, "shape": [-2, 3]}),
        npz(**{**CSR, "shape": ["a", "b"]}),
        npz(**{**CSR, "format": b"nonsense"}),
        npz(**{**CSR, "data": np.array([None])}),
        npz(**{**CSR, "data": [np.nan]}),
        npz(**{**CSR, "data": ["a"]}),
        npz(**{**CSR, "data": [2.0]}),
        npz(**{**CSR, "data": [-1.0]}),
        npz(**CSR)[:-40],
    ],
)
def test_damaged_npz_files_are_refused(tmp_path, content):
    path = tmp_path / "Y.npz"
    path.write_bytes(content)
    with pytest.raises(DataFormatError, match=r"Y\.npz"):
        read_npz_pair(None, path)


def test_a_header_that_claims_too_much(tmp_path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (4000000000000000,), }"
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        for name in ("format", "shape", "data", "indices", "indptr"):
            file.writestr(f"{name}.npy", array)
    with pytest.raises(DataFormatError, match=r"sparse \.npz"):
        read_matrix(tmp_path / "a.npz")


def test_pickles_are_never_loaded(tmp_path):
    np.save(tmp_path / "a.npy", np.array([print], object))
    with pytest.raises(DataFormatError, match=r"dense \.npy"):
        read_matrix(tmp_path / "a.npy")


def test_pairs_of_different_length(tmp_path):
    sp.save_npz(tmp_path / "X_train.npz", sp.eye(3).tocsr())
    sp.save_npz(tmp_path / "Y_train.npz", sp.eye(2).tocsr())
    with pytest.raises(DataFormatError, match=r"Y_train\.npz: expected 3 rows"):
        load_dataset(tmp_path)


def test_features_without_labels(tmp_path):
    sp.save_npz(tmp_path / "X_train.npz", sp.eye(3).tocsr())
    sp.save_npz(tmp_path / "Y_test.npz", sp.eye(3).tocsr())
    with pytest.raises(DataFormatError, match=r"expected Y_train\.npz next to X_train\.npz"):
        load_dataset(tmp_path)


def test_pecos_features_one_folder_down(tmp_path):
    sp.save_npz(tmp_path / "Y.trn.npz", sp.eye(2).tocsr())
    (tmp_path / "tfidf").mkdir()
    sp.save_npz(tmp_path / "tfidf" / "X.trn.npz", sp.eye(2).tocsr())
    assert load_dataset(tmp_path).train.X.shape == (2, 2)
    (tmp_path / "bert").mkdir()
    np.save(tmp_path / "bert" / "X.trn.npy", np.eye(2))
    with pytest.raises(DataFormatError, match=r"more than one subfolder \(bert, tfidf\)"):
        load_dataset(tmp_path)


@pytest.mark.parametrize(
    ("file", "lines", "message"),
    [
        ("X.trn.txt", "one\n", r"X\.trn\.txt: expected 2 lines"),
        ("output-items.txt", "a\nb\nc\n", "label_names has 3|label_texts has 3"),
    ],
)
def test_pecos_files_of_other_length(tmp_path, file, lines, message):
    sp.save_npz(tmp_path / "Y.trn.npz", sp.eye(2).tocsr())
    (tmp_path / file).write_text(lines)
    with pytest.raises(DataFormatError, match=message):
        load_dataset(tmp_path)


def write_jsonl(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def test_label_features_by_hand(tmp_path):
    write_jsonl(
        tmp_path / "trn.json",
        {"uid": "B1", "title": "T", "content": "C", "target_ind": [1, 0], "target_rel": [1.0, 0.5]},
        {"uid": "B2", "title": "U", "target_ind": []},
        {"uid": "B3", "title": "", "content": "V", "target_ind": [1, 1], "target_rel": [0.25, 1]},
    )
    write_jsonl(tmp_path / "lbl.json", {"uid": "L1", "title": "one"}, {"uid": 7, "title": "two"})
    (tmp_path / "filter_labels_train.txt").write_text("0 1\n")
    ds = load_dataset(tmp_path)
    assert ds.train.texts == ["T C", "U", "V"]
    assert ds.train.Y.toarray().tolist() == [[0.5, 1], [0, 0], [0, 1]]
    assert (ds.label_names, ds.label_texts) == (["L1", "7"], ["one", "two"])
    assert ds.train_filter.tolist() == [[0, 1]]
    assert ds.test_filter is None


def test_label_features_without_label_texts(tmp_path):
    write_jsonl(tmp_path / "trn.json", {"title": "T", "target_ind": [1]})
    write_jsonl(tmp_path / "tst.json", {"title": "T", "target_ind": [4]})
    ds = load_dataset(tmp_path)
    assert (ds.train.Y.shape, ds.test.Y.shape, ds.label_names) == ((1, 5), (1, 5), None)
    (tmp_path / "Yf.txt").write_text("a\nb\nc\nd\ne\nf\n")
    assert load_dataset(tmp_path).label_names == list("abcdef")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"title": "T"}, "target_ind"),
        ({"title": "T", "target_ind": 3}, "target_ind"),
        ({"title": "T", "target_ind": [2]}, "from 0 to 1"),
        ({"title": "T", "target_ind": [-1]}, "from 0 to 1"),
        ({"title": "T", "target_ind": [True]}, "from 0 to 1"),
        ({"title": "T", "target_ind": [1.0]}, "from 0 to 1"),
        ({"title": "T", "target_ind": ["1"]}, "from 0 to 1"),
        ({"title": "T", "target_ind": [1], "target_rel": []}, "list of 1 numbers"),
        ({"title": "T", "target_ind": [1], "target_rel": [0]}, "above 0"),
        ({"title": "T", "target_ind": [1], "target_rel": [1.5]}, "above 0"),
        ({"title": "T", "target_ind": [1], "target_rel": [float("nan")]}, "above 0"),
        ({"title": "T", "target_ind": [1], "target_rel": ["1"]}, "above 0"),
        ({"title": 3, "target_ind": [1]}, "title and content to be strings"),
    ],
)
def test_malformed_label_records(tmp_path, record, message):
    write_jsonl(tmp_path / "trn.json", {"title": "", "target_ind": [0]}, record)
    with pytest.raises(DataFormatError, match=message) as caught:
        read_label_records(tmp_path / "trn.json", n_labels=2)
    assert caught.value.line == 2


@pytest.mark.parametrize("label", [{"uid": "a"}, {"title": "x"}, {"uid": ""}, {"uid": None}])
def test_malformed_labels(tmp_path, label):
    write_jsonl(tmp_path / "trn.json", {"title": "", "target_ind": [0]})
    write_jsonl(tmp_path / "lbl.json", {"uid": "a", "title": "x"}, label)
    with pytest.raises(DataFormatError, match=r"lbl\.json:2: (expected uid|the uid 'a' occurs)"):
        load_dataset(tmp_path)


def test_matrix_files_of_different_length(tmp_path):
    (tmp_path / "trn_X_Y.txt").write_text("2 2\n0:1\n1:1\n")
    (tmp_path / "trn_X_Xf.txt").write_text("1 2\n0:1\n")
    with pytest.raises(DataFormatError, match=r"trn_X_Xf\.txt:1: expected 2 rows"):
        load_dataset(tmp_path)


def test_text_format_with_a_prefix(tmp_path):
    ds = Dataset(Split(X=np.eye(2), Y=[[0], [1]]), Split(X=np.eye(2), Y=[[0], [1]]))
    write_xc_folder(tmp_path, ds)
    for name in ("train", "test"):
        (tmp_path / f"{name}.txt").rename(tmp_path / f"eurlex_{name}.txt")
    assert_same(
        load_dataset(tmp_path), Dataset(*(Split(X=sp.eye(2), Y=s.Y) for s in ds.splits.values()))
    )


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("labels.txt", "a\n", r"label_names has 1 entries, but train has 2 labels"),
        ("features.txt", "a\n", "feature_names has 1 entries"),
        ("inv_prop.txt", "1.5\nx\n", r"inv_prop\.txt:2: expected an inverse propensity"),
        ("inv_prop.txt", "1.5\n0.5\n", r"inv_prop\.txt:2"),
        ("inv_prop.txt", "1.5\n", "inverse_propensity has 1 entries"),
        ("trn_filter_labels.txt", "5 0\n", r"trn_filter_labels\.txt:1:1: expected a row below 2"),
        ("trn_filter_labels.txt", "0 1\n0 2\n", r"trn_filter_labels\.txt:2"),
        ("test.txt", "1 2 3\n0 0:1\n", "different numbers of labels: train 2, test 3"),
    ],
)
def test_files_that_do_not_fit(tmp_path, file, content, message):
    write_xc_folder(tmp_path, Dataset(Split(X=np.eye(2), Y=[[0], [1]])))
    (tmp_path / file).write_text(content)
    with pytest.raises(DataFormatError, match=message):
        load_dataset(tmp_path)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (write_xc_folder, "no features or no labels"),
        (write_label_matrix_folder, "no labels"),
        (write_npz_folder, "no labels"),
        (write_pecos_folder, "no labels"),
        (write_label_feature_folder, "no labels"),
    ],
)
def test_writers_need_labels(tmp_path, write, message):
    with pytest.raises(ValueError, match=message):
        write(tmp_path, Dataset(Split(texts=["a"])))
