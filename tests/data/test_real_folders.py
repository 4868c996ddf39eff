"""Real data sets, where they are at hand: every count is the published one."""

import functools
import gzip
import json
import os
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import longtail as lt

pytestmark = pytest.mark.skipif(
    not os.environ.get("LONGTAIL_DATA"), reason="LONGTAIL_DATA does not name a folder of data sets"
)


class Expected(NamedTuple):
    """Rows, D, L, labels a training row (as printed), rows without label, filter pairs."""

    train: int
    dev: int
    test: int
    features: int | None
    labels: int
    density: str | None
    unlabelled: tuple[int, int] = (0, 0)
    filters: tuple[int | None, int | None] = (None, None)
    unseen: tuple[int, int] = (0, 0)
    texts: bool = False


REAL = {
    "TIB-SID-en": Expected(
        41_333, 9_404, 9_220, None, 22_625, "2.745", unseen=(2_227, 2_116), texts=True
    ),
    "DebDeps-src": Expected(35_412, 0, 9_255, None, 15_280, "4.40", texts=True),
    "CiteULike-t": Expected(20_817, 0, 5_127, 20_000, 13_855, "9.43"),
    "Bibtex": Expected(4_880, 0, 2_515, 1_836, 159, "2.38"),
    "Delicious": Expected(12_920, 0, 3_185, 500, 983, "19.05", unlabelled=(10, 4)),
    # 2.88, the density printed elsewhere, is that of the test rows.
    "RCV1-subset1": Expected(3_000, 0, 3_000, 47_236, 101, "2.91"),
    "EURLex-4K-labels-only": Expected(15_539, 0, 3_809, None, 3_993, "5.31", unlabelled=(28, 6)),
    "LF-AmazonTitles-131K-partial": Expected(
        0, 0, 134_835, None, 131_073, None, filters=(75_144, 79_663)
    ),
}


@functools.cache
def load(name: str) -> lt.data.Dataset:
    folder = Path(os.environ["LONGTAIL_DATA"], name)
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    return lt.load_dataset(folder)


@pytest.mark.parametrize("name", REAL)
def test_counts(name):
    ds, expected = load(name), REAL[name]
    n_dev = 0 if ds.dev is None else len(ds.dev)
    assert (len(ds.train), n_dev, len(ds.test)) == expected[:3]
    assert (ds.n_features, ds.n_labels) == (expected.features, expected.labels)
    for split in ds.splits.values():
        assert split.Y.shape == (len(split), expected.labels)
        assert split.Y.dtype == np.float32
        assert (split.Y.data == 1).all()
        assert (split.texts is not None) == expected.texts
    if expected.density is not None:
        digits = len(expected.density.partition(".")[2])
        assert f"{ds.train.Y.nnz / len(ds.train):.{digits}f}" == expected.density
    empty = {name: int((np.diff(s.Y.indptr) == 0).sum()) for name, s in ds.splits.items()}
    assert (empty.get("train", 0), empty["test"]) == expected.unlabelled
    pairs = tuple(None if f is None else len(f) for f in (ds.train_filter, ds.test_filter))
    assert pairs == expected.filters
    unseen = (0 if ds.dev is None else ds.dev.n_unknown_labels, ds.test.n_unknown_labels)
    assert (ds.train.n_unknown_labels, *unseen) == (0, *expected.unseen)


@pytest.mark.parametrize("name", REAL)
def test_label_names_are_in_id_order(name):
    ds = load(name)
    folder = Path(os.environ["LONGTAIL_DATA"], name)
    names = None
    if (folder / "labels.txt").exists():
        names = (folder / "labels.txt").read_text().split("\n")[:-1]
    for path in folder.glob("labels.jsonl*"):
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8", newline="\n") as file:
            names = [json.loads(line)["label"] for line in file]
    assert ds.label_names == names
    assert ds.feature_names is None or len(ds.feature_names) == REAL[name].features


def test_label_texts_in_another_language():
    german = load("TIB-SID-en")
    folder = Path(os.environ["LONGTAIL_DATA"], "TIB-SID-en")
    english = lt.load_dataset(folder, label_text_field="text_en")
    unseen = lt.data.read_label_file(folder / "unseen_labels.jsonl.gz", text_field="text_en")
    assert len(unseen.names) == 1747 and not set(unseen.names) & set(english.label_names)
    assert unseen.texts is not None and not set(unseen.texts) & set(unseen.names)
    changed = sum(a != b for a, b in zip(german.label_texts, english.label_texts, strict=True))
    assert 10_000 < changed <= 12_631  # so many labels have an English text; some are the same


def test_published_propensities_and_unseen_labels():
    ds = load("EURLex-4K-labels-only")
    assert int((ds.train.Y.getnnz(axis=0) == 0).sum()) == 207
    # The weights of Jain et al. with a = 0.55 and b = 1.5 follow from the training labels.
    n, counts = len(ds.train), ds.train.Y.getnnz(axis=0)
    weights = 1 + (np.log(n) - 1) * 2.5**0.55 * (counts + 1.5) ** -0.55
    np.testing.assert_allclose(ds.inverse_propensity, weights, rtol=5e-5)  # five digits


def test_constants_of_a_folder_with_a_public_name():
    ds = load("Bibtex")
    assert (ds.a, ds.b) == (0.55, 1.5)
    assert load("CiteULike-t").a is None


def test_values_are_counts():
    values = load("CiteULike-t").train.X.data
    assert (values == np.round(values)).all()
    assert values.max() > 1


@pytest.mark.parametrize("name", ["Bibtex", "Delicious", "RCV1-subset1", "CiteULike-t"])
def test_first_rows_against_the_text(name):
    ds = load(name)
    with open(Path(os.environ["LONGTAIL_DATA"], name, "test.txt")) as file:
        lines = list(islice(file, 1, 30))
    for row, line in enumerate(lines):
        labels, *entries = line.rstrip("\n").split(" ")
        assert ds.test.Y[row].indices.tolist() == [
            int(label) for label in labels.split(",") if label
        ]
        features = dict(entry.split(":") for entry in entries if entry)
        assert ds.test.X[row].indices.tolist() == [int(index) for index in features]
        assert ds.test.X[row].data.tolist() == [np.float32(value) for value in features.values()]
