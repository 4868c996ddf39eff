"""What goes in comes out, and what must not go in or be replaced is refused."""

from __future__ import annotations

import enum
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from model_files import read_manifest, same, small_state

import longtail as lt
from longtail.exceptions import ModelFormatError
from longtail.persist import State, load, replace, save
from longtail.persist.arrays import DTYPES
from longtail.persist.exchange import exchange
from longtail.persist.siblings import open_manifest


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("verify", [True, False])
def test_round_trip(tmp_path: Path, mmap: bool, verify: bool) -> None:
    state = small_state()
    save(tmp_path / "m", state)
    found = load(tmp_path / "m", mmap=mmap, verify=verify)
    assert same(found, state)
    assert found.arrays["weights"].flags.writeable is not mmap
    assert found.arrays["weights"].ctypes.data % 64 == 0
    assert os.listdir(tmp_path) == ["m"]


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_any_array_comes_back(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    dtype = data.draw(st.sampled_from(DTYPES))
    shape = hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4)
    array = data.draw(hnp.arrays(dtype, shape))
    folder = tmp_path_factory.mktemp("any") / "m"
    save(folder, State("demo", arrays={"a": array, "f": np.array(array, order="F")}))
    for mmap in (True, False):
        found = load(folder, mmap=mmap, verify=True).arrays
        for name in "af":
            assert found[name].dtype == array.dtype and found[name].shape == array.shape
            assert found[name].tobytes() == array.tobytes()
    record = read_manifest(folder)["arrays"]["a"]
    if array.size:  # plain NumPy reads the file too
        place = {name: record[name] for name in ("dtype", "offset")}
        read = np.memmap(folder / "arrays.bin", mode="r", shape=tuple(record["shape"]), **place)
        assert read.tobytes() == array.tobytes()


def test_foreign_byte_order_and_views(tmp_path: Path) -> None:
    base = np.arange(24, dtype=">i4").reshape(4, 6)
    save(tmp_path / "m", State("demo", arrays={"a": base[::2, 1::2]}))
    found = load(tmp_path / "m").arrays["a"]
    assert found.dtype == np.dtype("<i4")
    np.testing.assert_array_equal(found, base[::2, 1::2])


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**1000), 2**1000)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text().filter(lambda key: not key.startswith("$")), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(params=st.dictionaries(st.text(max_size=5).filter(lambda k: k[:1] != "$"), JSON, max_size=4))
@settings(max_examples=60, deadline=None)
def test_any_json_value_comes_back(tmp_path_factory: pytest.TempPathFactory, params: dict) -> None:
    folder = tmp_path_factory.mktemp("json") / "m"
    save(folder, State("demo", params, meta=params))
    found = load(folder)
    assert found.params == params and found.meta == params


def test_the_largest_whole_numbers_come_back(tmp_path: Path) -> None:
    for i, number in enumerate((2**1024 - 1, 1 - 2**1024)):
        save(tmp_path / str(i), State("x", {"n": number}))
        assert load(tmp_path / str(i)).params == {"n": number}
    with pytest.raises(ValueError, match="more than 1024 bits"):
        save(tmp_path / "more", State("x", {"n": 2**1024}))


def test_values_are_made_plain(tmp_path: Path) -> None:
    class Color(str, enum.Enum):
        RED = "red"

    params = {
        "f": np.float32(0.5),
        "i": np.int64(3),
        "b": np.bool_(True),
        "t": (1, (2, 3)),
        "s": np.str_("x"),
        "e": Color.RED,
        "inf": float("-inf"),
        "nan": np.float64("nan"),
    }
    save(tmp_path / "m", State("demo", params))
    found = load(tmp_path / "m").params
    assert np.isnan(found.pop("nan"))
    assert found == {
        "f": 0.5,
        "i": 3,
        "b": True,
        "t": [1, [2, 3]],
        "s": "x",
        "e": "red",
        "inf": float("-inf"),
    }
    assert [type(found[k]) for k in "fibse"] == [float, int, bool, str, str]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros(3), r"params\['alpha'\].*ndarray"),
        ({1, 2}, r"params\['alpha'\].*set"),
        (len, r"params\['alpha'\]"),
        (np.random.default_rng(0), r"params\['alpha'\].*whole number"),
        ({1: 2}, r"params\['alpha'\].*key 1"),
        ({"$float": "inf"}, r"params\['alpha'\].*\$float"),
        ([[object()]], r"params\['alpha'\]\[0\]\[0\]"),
        (1j, r"params\['alpha'\]"),
        (b"x", r"params\['alpha'\]"),
        (1 << 2000, r"params\['alpha'\].*bits"),
    ],
)
def test_other_values_are_refused_by_name(tmp_path: Path, value: object, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        save(tmp_path / "m", State("demo", {"alpha": value}))
    assert os.listdir(tmp_path) == []


def test_endless_values_are_refused(tmp_path: Path) -> None:
    loop: list = []
    loop.append(loop)
    with pytest.raises(ValueError, match="nested more than"):
        save(tmp_path / "m", State("demo", {"loop": loop}))
    state = State("demo")
    state.parts["self"] = state
    with pytest.raises(ValueError, match="nested more than"):
        save(tmp_path / "m", state)


def test_parts_are_at_most_sixteen_deep(tmp_path: Path) -> None:
    state = State("demo")
    for _ in range(16):
        state = State("demo", parts={"inner": state})
    save(tmp_path / "m", state)
    assert same(load(tmp_path / "m"), state)
    with pytest.raises(ValueError, match="nested more than 16 deep"):
        save(tmp_path / "n", State("demo", parts={"inner": state}))


@pytest.mark.parametrize("around", [lambda value: [value], lambda value: {"inner": value}])
def test_values_are_at_most_fifty_deep(tmp_path: Path, around: Callable[[object], object]) -> None:
    value = around(1)
    for _ in range(48):
        value = around(value)
    save(tmp_path / "m", State("demo", {"value": value}))
    assert load(tmp_path / "m").params == {"value": value}
    with pytest.raises(ValueError, match="nested more than 50 deep"):
        save(tmp_path / "n", State("demo", {"value": around(value)}))


@pytest.mark.parametrize(
    "array",
    [np.array([None]), np.array(["a"]), np.array([1j]), np.array([b"x"]), np.zeros(1, "M8[s]")],
    ids=lambda a: str(a.dtype),
)
def test_other_arrays_are_refused(tmp_path: Path, array: np.ndarray) -> None:
    with pytest.raises(TypeError, match=r"array a cannot be saved.*dtype"):
        save(tmp_path / "m", State("demo", arrays={"a": array}))


def test_what_is_no_array_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="array a cannot be saved: it is a list, not a NumPy array"):
        save(tmp_path / "m", State("demo", arrays={"a": [1.0]}))


def test_arrays_have_at_most_32_dimensions(tmp_path: Path) -> None:
    array = np.ones((1,) * 32, np.float32)
    save(tmp_path / "m", State("demo", arrays={"a": array}))
    assert load(tmp_path / "m").arrays["a"].shape == array.shape
    with pytest.raises((ValueError, IndexError), match="dimensions"):  # the latter by NumPy 1
        save(tmp_path / "n", State("demo", arrays={"a": array[None]}))


@pytest.mark.parametrize("name", ["", "a/b", "..", "a.b", "x" * 81, "ü", "a b", "CON:"])
def test_other_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="cannot name an array or part"):
        save(tmp_path / "m", State("demo", arrays={name: np.zeros(1)}))
    with pytest.raises(ValueError, match="cannot name an array or part"):
        save(tmp_path / "m", State("demo", parts={name: State("part")}))


def test_names_that_differ_in_case_only(tmp_path: Path) -> None:
    state = State("demo", arrays={"W": np.zeros(1), "w": np.ones(1)})
    save(tmp_path / "m", state)
    assert same(load(tmp_path / "m"), state)


@pytest.mark.parametrize("tag", ["", "os:system", "Longtail", "a.b", 3])
def test_tags_are_plain_words(tmp_path: Path, tag: object) -> None:
    with pytest.raises(ValueError, match="type tag"):
        save(tmp_path / "m", State(tag))  # type: ignore[arg-type]


def test_a_model_is_replaced_only_when_told(tmp_path: Path) -> None:
    save(tmp_path / "m", small_state(1))
    with pytest.raises(FileExistsError, match="overwrite=True"):
        save(tmp_path / "m", small_state(2))
    assert same(load(tmp_path / "m"), small_state(1))
    save(tmp_path / "m", small_state(2), overwrite=True)
    assert same(load(tmp_path / "m", verify=True), small_state(2))
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.parametrize("overwrite", [True, False])
def test_what_is_not_a_model_is_never_replaced(tmp_path: Path, overwrite: bool) -> None:
    home = tmp_path / "home"
    (home / "photos").mkdir(parents=True)
    (home / "thesis.txt").write_text("irreplaceable")
    beside = tmp_path / "beside"
    save(beside, small_state())
    (beside / "notes.txt").write_text("mine")
    arrays = tmp_path / "arrays"
    arrays.mkdir()
    np.save(arrays / "experiment.npy", np.zeros(3))
    claimed = tmp_path / "claimed"
    claimed.mkdir()
    (claimed / "manifest.json").write_text('{"name": "my web app"}')
    linked = tmp_path / "linked"
    save(linked, small_state())
    (linked / "more.npy").symlink_to(home / "thesis.txt")
    for folder, name in [
        (home, "photos"),
        (linked, "more.npy"),
        (beside, "notes.txt"),
        (arrays, "experiment.npy"),
        (claimed, "manifest.json"),
    ]:
        before = sorted(p.name for p in folder.rglob("*"))
        with pytest.raises(FileExistsError, match=f"holds '{name}'"):
            save(folder, small_state(2), overwrite=overwrite)
        assert sorted(p.name for p in folder.rglob("*")) == before
    with pytest.raises(FileExistsError, match="is a file"):
        save(home / "thesis.txt", small_state(), overwrite=overwrite)
    assert sorted(os.listdir(tmp_path)) == ["arrays", "beside", "claimed", "home", "linked"]


def test_empty_folders_links_and_missing_parents(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir(mode=0o750)
    save(tmp_path / "empty", small_state())
    assert (tmp_path / "empty").stat().st_mode & 0o777 == 0o750
    save(tmp_path / "a" / "b" / "m", small_state(1))
    (tmp_path / "current").symlink_to(tmp_path / "a" / "b" / "m")
    save(tmp_path / "current", small_state(2), overwrite=True)
    assert (tmp_path / "current").is_symlink()
    for path in (tmp_path / "current", tmp_path / "a" / "b" / "m", str(tmp_path / "current") + "/"):
        assert same(load(path), small_state(2))


def test_the_current_folder_is_not_pulled_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in (".", "/"):
        with pytest.raises(ValueError, match="name a folder inside it"):
            save(path, small_state())
    save("m", small_state())
    assert same(load("m"), small_state())


def test_a_model_may_replace_the_files_it_is_mapped_from(tmp_path: Path) -> None:
    save(tmp_path / "m", small_state(7))
    mapped = load(tmp_path / "m")
    save(tmp_path / "m", mapped, overwrite=True)
    assert same(load(tmp_path / "m", verify=True), small_state(7))
    assert same(mapped, small_state(7))  # the old files live on as long as they are mapped


def test_the_manifest_is_opened_to_be_read(tmp_path: Path) -> None:
    save(tmp_path / "m", small_state())
    descriptor = open_manifest(str(tmp_path / "m"))
    try:
        assert os.read(descriptor, 1) == b"{"
    finally:
        os.close(descriptor)


def test_exchange_says_what_is_wrong(tmp_path: Path) -> None:
    first, second = (str(tmp_path / name) for name in "ab")
    for path in (first, second):
        os.mkdir(path)
    if not exchange(first, second):
        pytest.skip("this file system cannot exchange")
    os.rmdir(second)
    with pytest.raises(FileNotFoundError):
        exchange(first, second)


def test_a_model_between_two_renames_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path / "aside", small_state())

    def in_motion(path: Path) -> bool:
        os.rename(tmp_path / "aside", path)
        return True

    monkeypatch.setattr("longtail.persist.store.in_motion", in_motion)
    assert same(load(tmp_path / "m"), small_state())


def test_an_empty_path_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("it waits"))
    with pytest.raises(FileNotFoundError, match="path of the model is empty"):
        load("")


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "m")
    (tmp_path / "m").write_text("x")
    with pytest.raises(ModelFormatError, match="is a file"):
        load(tmp_path / "m")
    with pytest.raises(ModelFormatError, match=r"manifest.json is missing"):
        load(tmp_path)


@pytest.mark.parametrize("strategy", ["exchange", "renames"])
def test_readers_and_writers_do_not_disturb_each_other(
    tmp_path: Path, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three threads replace a model while two read it: every read sees one whole model."""
    if strategy == "renames":
        monkeypatch.setattr(replace, "exchange", lambda first, second: False)
    save(tmp_path / "m", small_state(0))
    stop = threading.Event()
    faults: list[BaseException] = []

    def guarded(work) -> None:  # type: ignore[no-untyped-def]
        try:
            while not stop.is_set():
                work()
        except BaseException as error:
            faults.append(error)

    def read() -> None:
        found = load(tmp_path / "m", verify=True)
        assert same(found, small_state(found.meta["version"]))

    def write(start: int) -> None:
        save(tmp_path / "m", small_state(start), overwrite=True)

    works = [read, read, lambda: write(1), lambda: write(2), lambda: write(3)]
    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    stop.wait(1.0)
    stop.set()
    for thread in threads:
        thread.join()
    assert faults == []
    assert os.listdir(tmp_path) == ["m"]


def test_manifest_names_its_format_and_no_code(tmp_path: Path) -> None:
    save(tmp_path / "m", small_state())
    document = read_manifest(tmp_path / "m")
    assert (document["format"], document["format_version"]) == ("longtail-model", 2)
    assert b"import" not in (tmp_path / "m" / "manifest.json").read_bytes()
    record = document["parts"]["vectorizer"]["arrays"]["bias"]
    assert record["bytes"] == 5 * 8 and record["offset"] % 64 == 0
    assert record["offset"] + record["bytes"] == (tmp_path / "m" / "arrays.bin").stat().st_size
    assert sorted(os.listdir(tmp_path / "m")) == ["arrays.bin", "manifest.json"]


def test_an_ensemble_of_twenty_trees_takes_few_descriptors(tmp_path: Path) -> None:
    """A descriptor for every array would pass the usual limit of 1,024."""
    data = lt.data.make_longtail(n=60, d=20, L=12, random_state=0)
    trees = [lt.XRLinear(random_state=seed) for seed in range(20)]
    lt.Ensemble(models=trees).fit(data.train.X, data.train.Y).save(tmp_path / "m")
    before = len(os.listdir("/dev/fd"))
    model = lt.load(tmp_path / "m")
    assert len(os.listdir("/dev/fd")) - before < 50
    assert len(os.listdir(tmp_path / "m")) == 2
    assert model.predict_topk(data.test.X, k=2).indices.shape[1] == 2


def test_state_readers_refuse_what_does_not_fit() -> None:
    state = State(
        "demo", arrays={"a": np.zeros((2, 3), np.float32)}, meta={"n": 3, "bad": True, "neg": -1}
    )
    assert state.array("a", np.float32, (2, None)).shape == (2, 3)
    for name, dtype, shape in [
        ("b", "f4", (2, 3)),
        ("a", "f8", (2, 3)),
        ("a", "f4", (2,)),
        ("a", "f4", (3, 3)),
    ]:
        with pytest.raises(ModelFormatError):
            state.array(name, dtype, shape)
    with pytest.raises(ModelFormatError, match=r"float64 of shape \(any, 3\), it is float32 of"):
        state.array("a", np.float64, (None, 3))
    assert state.count("n") == 3
    for name in ("bad", "neg", "missing"):
        with pytest.raises(ModelFormatError):
            state.count(name)


@pytest.mark.parametrize(
    ("indptr", "indices", "fault"),
    [
        ([0, 1, 2], [0, 5], "columns"),
        ([0, 1, 2], [0, -1], "columns"),
        ([0, 2, 1], [0, 1], "offsets"),
        ([1, 1, 2], [0, 1], "offsets"),
        ([0, 1, 3], [0, 1], "offsets"),
        ([0, 2], [0, 1], "shape"),
    ],
)
def test_sparse_arrays_are_bounded(indptr: list[int], indices: list[int], fault: str) -> None:
    state = State("demo")
    values = np.ones(len(indices), np.float32)
    state.put_csr("m", (np.array(indptr), np.array(indices, np.int32), values, 5))
    with pytest.raises(ModelFormatError, match=fault):
        state.csr("m", 2, 5)


def test_sparse_arrays_may_have_empty_rows() -> None:
    state = State("demo")
    stored = np.array([0, 0, 2]), np.array([0, 4], np.int32), np.ones(2, np.float32), 5
    state.put_csr("m", stored)
    for found, expected in zip(state.csr("m", 2, 5), stored, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_saving_from_a_folder_that_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    save(tmp_path / "model", State("demo", arrays={"bias": np.arange(3)}))
    assert load(tmp_path / "model").arrays["bias"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("strings", [[], [""], ["a", "", "ü\U0001f600", "\ud800"]])
def test_strings_survive(strings, tmp_path):
    state = State("demo")
    state.put_strings("name", strings)
    save(tmp_path / "m", state)
    loaded = load(tmp_path / "m")
    assert loaded.strings("name") == loaded.strings("name", len(strings)) == strings
    with pytest.raises(ModelFormatError, match="name_ends"):
        loaded.strings("name", len(strings) + 1)


@pytest.mark.parametrize("ends", [[1, 2], [2, 1, 3], [4], [-1, 3], []])
def test_strings_must_be_divided(ends):
    state = State("demo")
    state.arrays = {"names": np.frombuffer(b"abc", np.uint8), "name_ends": np.array(ends, np.int64)}
    with pytest.raises(ModelFormatError, match="does not divide"):
        state.strings("name")
    state.arrays = {"names": np.array([255], np.uint8), "name_ends": np.array([1])}
    with pytest.raises(ModelFormatError, match="not UTF-8"):
        state.strings("name")
