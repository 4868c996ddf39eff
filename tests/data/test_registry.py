"""The registry: its numbers are consistent, its entries download for real, its errors help."""

from __future__ import annotations

import dataclasses
import hashlib
import http.server
import threading
import zipfile

import pytest

from longtail.data import registry
from longtail.data.detect import LAYOUTS
from longtail.data.load import load_dataset
from longtail.data.registry import benchmark, fetch_dataset, list_datasets, register_dataset
from longtail.exceptions import DataFormatError

PUBLIC = [entry for entry in list_datasets() if entry.builder is None]


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    monkeypatch.setattr(registry, "_keys", dict(registry._keys))
    monkeypatch.setenv("LONGTAIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LONGTAIL_DATA", raising=False)


@pytest.fixture
def site(tmp_path):
    """A folder served over HTTP."""
    folder = tmp_path / "site"
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, directory=str(folder), **kwargs)

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def make_archive(folder, name="tags.zip", inside="tags/train.txt"):
    with zipfile.ZipFile(folder / name, "w") as archive:
        archive.writestr(inside, "1 2 3\n0 0:1\n")
    return hashlib.sha256((folder / name).read_bytes()).hexdigest()


def test_table_is_complete_and_consistent():
    names = [entry.name for entry in PUBLIC]
    assert len(set(names)) == len(names) and len(names) >= 30
    for entry in PUBLIC:
        assert entry.n_labels, entry.name
        assert entry.source.startswith("http") and entry.numbers
        assert (entry.a, entry.b) in {(0.5, 0.4), (0.6, 2.6), (0.55, 1.5)}
        if entry.n_train and entry.points_per_label:
            # Published points/label counts either the training rows or all rows.
            pairs = [
                n * entry.labels_per_point for n in (entry.n_train, entry.n_train + entry.n_test)
            ]
            close = [abs(p / entry.n_labels / entry.points_per_label - 1) < 0.005 for p in pairs]
            assert any(close), entry


@pytest.mark.parametrize(
    ("name", "a", "b"),
    [
        ("WikiLSHTC-325K", 0.5, 0.4),
        ("LF-Wikipedia-500K", 0.5, 0.4),
        ("Amazon-3M", 0.6, 2.6),
        ("LF-AmazonTitles-131K", 0.6, 2.6),
        ("AmazonCat-13K", 0.55, 1.5),
        ("Wiki10-31K", 0.55, 1.5),
        ("LF-WikiSeeAlso-320K", 0.55, 1.5),
        ("EURLex-4K", 0.55, 1.5),
    ],
)
def test_propensity_constants(name, a, b):
    assert (benchmark(name).a, benchmark(name).b) == (a, b)


def test_lookup():
    assert benchmark("eurlex_4k").name == "EURLex-4K"
    assert benchmark("EURLEX-4.3K").name == "EURLex-4.3K"
    assert benchmark("wiki-500k").name == "Wikipedia-500K"
    with pytest.raises(KeyError, match="Amazon-670K"):
        benchmark("Amazn-670K")
    with pytest.raises(KeyError, match="did you mean"):
        benchmark("")


def test_by_hand_message(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        fetch_dataset("Amazon-670K")
    message = str(caught.value)
    assert "manikvarma.org" in message and "pecos-amazon-670k" in message
    assert str(tmp_path / "cache" / "datasets" / "Amazon-670K") in message
    assert "\n" not in message
    with pytest.raises(FileNotFoundError, match="pecos-wiki-500k"):
        fetch_dataset("Wiki-500K")


def test_local_folders_come_first(tmp_path, monkeypatch):
    cached = tmp_path / "cache" / "datasets" / "Bibtex"
    cached.mkdir(parents=True)
    assert fetch_dataset("bibtex") == cached
    (tmp_path / "own" / "Bibtex").mkdir(parents=True)
    monkeypatch.setenv("LONGTAIL_DATA", str(tmp_path / "own"))
    assert fetch_dataset("bibtex") == tmp_path / "own" / "Bibtex"


def test_registered_archive_downloads_for_real(site, tmp_path):
    folder, address = site
    digest = make_archive(folder)
    register_dataset("my-tags", f"{address}/tags.zip", sha256=digest, n_labels=3, a=0.6, b=2.6)
    found = fetch_dataset("My-Tags")
    assert found == tmp_path / "cache" / "datasets" / "my-tags"
    assert (found / "train.txt").read_text() == "1 2 3\n0 0:1\n"
    assert not (tmp_path / "cache" / "downloads" / "my-tags").exists()
    (folder / "tags.zip").unlink()
    assert fetch_dataset("my-tags") == found  # from the cache


def test_load_dataset_downloads_and_reads(site):
    folder, address = site
    with zipfile.ZipFile(folder / "set.zip", "w") as archive:
        archive.writestr("set/train.txt", "2 3 2\n0,1 0:1 2:0.5\n1 1:2\n")
        archive.writestr("set/test.txt", "1 3 2\n0 0:1\n")
    digest = hashlib.sha256((folder / "set.zip").read_bytes()).hexdigest()
    register_dataset("real-set", f"{address}/set.zip", sha256=digest, a=0.6, b=2.6)
    ds = load_dataset("real-set")
    assert (len(ds.train), len(ds.test), ds.n_features, ds.n_labels) == (2, 1, 3, 2)
    assert (ds.name, ds.a, ds.b) == ("real-set", 0.6, 2.6)
    with pytest.raises(FileNotFoundError, match=r"no data set 'reel-set'.*real-set"):
        load_dataset("reel-set")


def test_layouts_of_the_table_are_known():
    assert {entry.layout for entry in PUBLIC} - {None} <= set(LAYOUTS)


def test_threads_fetch_once(site):
    folder, address = site
    register_dataset("shared", f"{address}/tags.zip", sha256=make_archive(folder))
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(fetch_dataset("shared"))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and len(set(found)) == 1
    assert (found[0] / "train.txt").is_file()


def test_built_data_sets_have_no_files():
    with pytest.raises(ValueError, match="has no files"):
        fetch_dataset("icd10cm")


def test_registered_files(site):
    folder, address = site
    (folder / "one").write_bytes(b"1")
    (folder / "two").write_bytes(b"2")
    register_dataset(
        "files",
        {"trn.json": f"{address}/one", "tst.json": f"{address}/two"},
        sha256={"trn.json": hashlib.sha256(b"1").hexdigest()},
    )
    assert {p.name: p.read_bytes() for p in fetch_dataset("files").iterdir()} == {
        "trn.json": b"1",
        "tst.json": b"2",
    }
    register_dataset("single", f"{address}/one")
    assert [p.name for p in fetch_dataset("single").iterdir()] == ["one"]


def test_failed_downloads_leave_no_data_set(site, tmp_path):
    folder, address = site
    make_archive(folder)
    register_dataset("wrong", f"{address}/tags.zip", sha256="0" * 64)
    with pytest.raises(DataFormatError, match="expected 0000"):
        fetch_dataset("wrong")
    make_archive(folder, "evil.zip", "../evil")
    register_dataset("evil", f"{address}/evil.zip")
    with pytest.raises(DataFormatError, match="unsafe path"):
        fetch_dataset("evil")
    register_dataset("missing", f"{address}/none.zip")
    with pytest.raises(FileNotFoundError, match="404"):
        fetch_dataset("missing")
    assert list((tmp_path / "cache" / "datasets").glob("*")) == []


def test_interrupted_unpacking_is_repaired(site):
    folder, address = site
    (folder / "cut.zip").write_bytes(b"PK\x03\x04 cut short")
    register_dataset("cut", f"{address}/cut.zip")
    with pytest.raises(DataFormatError, match="cannot be unpacked"):
        fetch_dataset("cut")
    make_archive(folder, "cut.zip")
    assert (fetch_dataset("cut") / "train.txt").is_file()


@pytest.mark.parametrize("name", ["../up", "", "a/b", ".hidden", "con:", "a b"])
def test_names_that_are_no_folder(name):
    with pytest.raises(ValueError, match="will not do"):
        register_dataset(name, "http://127.0.0.1/x.zip")


def test_taken_names_and_bad_arguments():
    with pytest.raises(ValueError, match="taken by Amazon-670K"):
        register_dataset("amazon-670k")
    with pytest.raises(ValueError, match="taken by Wikipedia-500K"):
        register_dataset("mine", aliases=("wiki-500k",))
    register_dataset("mine", n_labels=1)
    with pytest.raises(ValueError, match="taken"):
        register_dataset("mine")
    assert register_dataset("mine", overwrite=True, n_labels=2).n_labels == 2
    assert benchmark("mine").n_labels == 2
    with pytest.raises(TypeError, match="unexpected keyword"):
        register_dataset("other", n_label=2)
    with pytest.raises(ValueError, match="not the name of a file"):
        register_dataset("other", {"../x": "http://127.0.0.1/x"})
    with pytest.raises(ValueError, match="no such files"):
        register_dataset("other", {"x": "http://127.0.0.1/x"}, sha256={"y": "0" * 64})
    with pytest.raises(ValueError, match="single url"):
        register_dataset("other", {"x": "http://127.0.0.1/x"}, sha256="0" * 64)


def test_entries_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        benchmark("Bibtex").a = 1.0
