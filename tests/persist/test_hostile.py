"""Models that are truncated, altered, newer or forged are refused, with the file and the reason."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model_files import read_manifest, same, sign, signed, small_state

import longtail as lt
from longtail.exceptions import ModelFormatError
from longtail.persist import State, load, save
from longtail.persist.arrays import open_regular
from longtail.persist.manifest import decode
from longtail.persist.records import short
from longtail.persist.values import parse_json


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(tmp_path / "m", small_state())
    return tmp_path / "m"


def test_every_truncation_of_every_file_is_refused(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        for length in {0, 1, 10, 64, 127, 128, len(whole) // 2, len(whole) - 1}:
            path.write_bytes(whole[:length])
            with pytest.raises(ModelFormatError, match=path.name):
                load(folder)
        path.write_bytes(whole + b"\0")
        with pytest.raises(ModelFormatError, match=path.name):
            load(folder)
        path.write_bytes(whole)
    assert same(load(folder, verify=True), small_state())


def test_every_missing_file_is_refused(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        path.unlink()
        with pytest.raises(ModelFormatError, match=f"{path.name} is missing"):
            load(folder)
        path.write_bytes(whole)


@pytest.mark.parametrize("mmap", [True, False])
def test_flipped_bits_in_arrays(folder: Path, mmap: bool) -> None:
    path, record = folder / "arrays.bin", read_manifest(folder)["arrays"]["ids"]
    whole = bytearray(path.read_bytes())
    for position in (0, 7, 63):  # what ties it to the manifest is compared on every load
        whole[position] ^= 1
        path.write_bytes(whole)
        with pytest.raises(ModelFormatError, match=r"arrays.bin does not belong"):
            load(folder, mmap=mmap)
        whole[position] ^= 1
    for position in (0, 1000, record["bytes"] - 1):  # the data when asked
        whole[record["offset"] + position] ^= 1
        path.write_bytes(whole)
        load(folder, mmap=mmap)
        with pytest.raises(ModelFormatError, match=r"checksum of ids in arrays.bin"):
            load(folder, mmap=mmap, verify=True)
        whole[record["offset"] + position] ^= 1


def test_the_arrays_of_another_model_are_noticed(folder: Path) -> None:
    """Of the same size and shapes: only the digits at the front tell."""
    save(folder.with_name("other"), small_state(2))
    shutil.copy(folder.with_name("other") / "arrays.bin", folder / "arrays.bin")
    with pytest.raises(ModelFormatError, match="does not belong to this manifest"):
        load(folder)


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_any_altered_manifest_is_refused(data: st.DataObject) -> None:
    """Flips, cuts, insertions and swaps of bytes: whatever differs from the original is refused."""
    raw = bytearray(_RAW)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(raw) - 1))
        kind = data.draw(st.sampled_from(["flip", "cut", "insert", "delete", "splice"]))
        if kind == "flip":
            raw[position] ^= 1 << data.draw(st.integers(0, 7))
        elif kind == "cut":
            del raw[max(position, 1) :]
        elif kind == "insert":
            raw[position:position] = data.draw(st.binary(max_size=8))
        elif kind == "delete":
            del raw[position : min(position + data.draw(st.integers(1, 20)), len(raw) - 1)]
        else:
            other = data.draw(st.integers(0, len(raw) - 1))
            raw[position : position + 10] = raw[other : other + 10]
    if bytes(raw) != _RAW:
        with pytest.raises(ModelFormatError):
            decode(bytes(raw))


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["../x.npy", "/etc/passwd", "a.npy", "|O", "<f4", "nan", "popularity"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


def _places(node: Any, path: tuple = ()) -> list[tuple]:
    inner: Any = ()
    if isinstance(node, (dict, list)):
        inner = node.items() if isinstance(node, dict) else enumerate(node)
    return [path] + [place for key, value in inner for place in _places(value, (*path, key))]


@given(data=st.data())
@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_forged_manifest_is_refused_or_harmless(data: st.DataObject, tmp_path: Path) -> None:
    """With a right checksum and any value changed, dropped or added: refused, or a model."""
    model = tmp_path / "nn"
    if not model.exists():
        X, Y = np.eye(6, 4, dtype=np.float32) + 0.1, [[i % 3] for i in range(6)]
        lt.baselines.NearestNeighbors(n_neighbors=2).fit(X, Y).save(model)
    document = read_manifest(_keep(model))
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.sampled_from(_places(document)[1:]))
        parent: Any = document
        for key in place[:-1]:
            parent = parent[key]
        action = data.draw(st.sampled_from(["replace", "drop", "add"]))
        if action == "replace":
            parent[place[-1]] = data.draw(JUNK)
        elif action == "drop":
            del parent[place[-1]]
        elif isinstance(parent, dict):
            parent[data.draw(st.text(max_size=6))] = data.draw(JUNK)
    try:
        raw = signed(document)
    except ValueError:  # a lone surrogate or the like: not a manifest one could write
        return
    (model / "manifest.json").write_bytes(raw)
    try:
        found = lt.load(model, verify=True)
    except ModelFormatError:
        return
    # What loads may carry nonsense parameters, which are refused in plain words when used.
    with contextlib.suppress(TypeError, ValueError):
        found.predict_topk(np.ones((1, found.n_features_in_), np.float32))


def _keep(model: Path) -> Path:
    """The folder with its original manifest, kept beside it after the first use."""
    kept = model.with_name("original.json")
    if not kept.exists():
        shutil.copy(model / "manifest.json", kept)
    shutil.copy(kept, model / "manifest.json")
    return model


def change(*path: Any, to: Any) -> Callable[[dict], None]:
    def apply(document: dict) -> None:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = to

    return apply


WEIGHTS = ("arrays", "weights")


@pytest.mark.parametrize(
    ("alter", "message"),
    [
        (change("format_version", to=3), "format version 3.*upgrade"),
        (change("format_version", to=1), "lacks 'file'"),
        (change("format_version", to=10**9), "format version 1000000000"),
        (change("format_version", to="1"), "format_version must be"),
        (change("format_version", to=True), "format_version must be"),
        (change("format_version", to=0), "format_version must be"),
        (change("format", to="pickle"), "not describe a longtail model"),
        (change("type", to="os.system"), "not a type tag"),
        (change("type", to=3), "not a type tag"),
        (change("params", to=[]), "params must be an object"),
        (change("surprise", to=1), "unknown 'surprise'"),
        (change("arrays", to=[]), "arrays must be an object"),
        (change(*WEIGHTS, to=3), "array weights: expected an object"),
        (change(*WEIGHTS, "file", to="weights.npy"), "unknown 'file'"),
        (change(*WEIGHTS, "offset", to=0), "not a multiple of 64"),
        (change(*WEIGHTS, "offset", to=100), "not a multiple of 64"),
        (change(*WEIGHTS, "offset", to=-64), "not a multiple of 64"),
        (change(*WEIGHTS, "offset", to=64.0), "not a multiple of 64"),
        (change(*WEIGHTS, "offset", to=True), "not a multiple of 64"),
        (change(*WEIGHTS, "offset", to=2**70), "arrays.bin would have"),
        (change(*WEIGHTS, "offset", to=2**40), "it is truncated"),
        (change("arrays", "ids", "offset", to=64), "overlaps another"),
        (change(*WEIGHTS, "dtype", to="|O"), r"dtype '\|O'"),
        (change(*WEIGHTS, "dtype", to=">f4"), "dtype"),
        (change(*WEIGHTS, "dtype", to="f4,(1000000000,)f8"), "dtype"),
        (change(*WEIGHTS, "dtype", to=None), "dtype"),
        (change(*WEIGHTS, "shape", to=[64, 17]), "takes 4352 bytes"),
        (change(*WEIGHTS, "shape", to=[2**40, 2**40]), "not the shape"),
        (change(*WEIGHTS, "shape", to=[0, 2**62]), "not the shape"),
        (change(*WEIGHTS, "shape", to=[-64, -16]), "not the shape"),
        (change(*WEIGHTS, "shape", to=[64.0, 16]), "not the shape"),
        (change(*WEIGHTS, "shape", to=[True, 1024]), "not the shape"),
        (change(*WEIGHTS, "shape", to=[1] * 33), "not the shape"),
        (change(*WEIGHTS, "shape", to="64"), "not the shape"),
        (change(*WEIGHTS, "bytes", to=10**30), "the manifest says"),
        (change(*WEIGHTS, "bytes", to=4096.0), "the manifest says"),
        (change(*WEIGHTS, "sha256", to="0" * 63), "not a checksum"),
        (change("arrays", to={"../x": {}}), "not a name"),
        (change("parts", "vectorizer", "type", to=None), "part vectorizer: type None"),
        (change("parts", "vectorizer", to=None), "part vectorizer"),
        (change("params", "C", to={"$float": "huge"}), "not a number"),
    ],
)
def test_forged_manifests(folder: Path, alter: Callable[[dict], None], message: str) -> None:
    document = read_manifest(folder)
    alter(document)
    (folder / "manifest.json").write_bytes(signed(document))
    with pytest.raises(ModelFormatError, match=message) as caught:
        load(folder)
    assert str(folder) in str(caught.value)


def test_an_honest_edit_needs_its_checksum(folder: Path) -> None:
    document = read_manifest(folder)
    document["params"]["C"] = 0.75
    (folder / "manifest.json").write_text(json.dumps(document))
    with pytest.raises(ModelFormatError, match=r"checksum of manifest.json.*altered"):
        load(folder)
    (folder / "manifest.json").write_bytes(signed(document))
    assert load(folder).params["C"] == 0.75


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "not JSON"),
        (b"[]", "not describe"),
        (b"null", "not describe"),
        (b"\x80\x04K\x01.", "not UTF-8"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"a":' * 100_000, "nested too deep"),
        (b'{"format": "longtail-model", "format": "longtail-model"}', "'format' occurs twice"),
        (b'{"format": NaN}', "NaN is not"),
        (b'{"format": 1e999}', "out of range"),
        (b'{"format": ' + b"9" * 100_000 + b"}", "100000 digits"),
        (b'{"format": 0.' + b"9" * 100_000 + b"}", "out of range"),
    ],
    ids=range(11),
)
def test_texts_that_are_not_manifests(folder: Path, text: bytes, message: str) -> None:
    (folder / "manifest.json").write_bytes(text)
    with pytest.raises(ModelFormatError, match=message):
        load(folder)


def test_numbers_are_at_most_a_thousand_characters_long() -> None:
    longest = b"0." + b"5" * 998
    assert parse_json(longest) == 5 / 9
    with pytest.raises(ModelFormatError, match="out of range"):
        parse_json(longest + b"5")


def test_a_manifest_larger_than_any_is_not_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = (folder / "manifest.json").stat().st_size
    monkeypatch.setattr("longtail.persist.store._LARGEST_MANIFEST", size)
    load(folder)
    monkeypatch.setattr("longtail.persist.store._LARGEST_MANIFEST", size - 1)
    with pytest.raises(ModelFormatError, match=f"has {size} bytes, more than any manifest"):
        load(folder)


def test_other_errors_of_the_system_come_through(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with pytest.raises(OSError) as caught:
            open_regular("x" * 300, descriptor)
        assert caught.value.errno == errno.ENAMETOOLONG
    finally:
        os.close(descriptor)


def test_messages_show_short_values_and_name_long_ones() -> None:
    assert short([0] * 3) == "[0, 0, 0]" and short([0] * 40) == "list"
    assert short([0] * 39) == repr([0] * 39)[:57] + "..."


def test_many_repeated_keys_are_refused_at_once() -> None:
    """In time linear in their number; pairwise comparison would take minutes."""
    keys = b", ".join(b'"k%d": 0' % i for i in range(200_000))
    with pytest.raises(ModelFormatError, match="'k199999' occurs twice"):
        decode(b"{" + keys + b', "k199999": 1}')


def test_repeated_keys_inside(folder: Path) -> None:
    raw = (folder / "manifest.json").read_bytes()
    (folder / "manifest.json").write_bytes(sign(raw.replace(b'"C": 0.5', b'"C": 0.5, "C": 9.5')))
    with pytest.raises(ModelFormatError, match="'C' occurs twice"):
        load(folder)


def test_parts_nested_without_end(folder: Path) -> None:
    document = read_manifest(folder)
    node = {"type": "x", "params": {}, "meta": {}, "arrays": {}, "parts": {}}
    for _ in range(40):
        node = {**node, "parts": {"p": node}}
    document["parts"] = {"p": node}
    (folder / "manifest.json").write_bytes(signed(document))
    with pytest.raises(ModelFormatError, match="nested more than"):
        load(folder)


@pytest.mark.parametrize("name", ["arrays.bin", "manifest.json"])
def test_links_pipes_and_folders_are_not_followed(folder: Path, name: str) -> None:
    path, elsewhere = folder / name, folder.with_name("elsewhere")
    shutil.copy(path, elsewhere)
    path.unlink()
    path.symlink_to(elsewhere)
    with pytest.raises(ModelFormatError, match=f"{name} is a link"):
        load(folder)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ModelFormatError, match=f"{name} is not a file"):
        load(folder)
    path.unlink()
    path.mkdir()
    with pytest.raises(ModelFormatError, match=f"{name} is not a file"):
        load(folder)


def test_unknown_and_unfit_models(tmp_path: Path) -> None:
    save(tmp_path / "new", State("quantum-ranker"))
    with pytest.raises(ModelFormatError, match="unknown type of model 'quantum-ranker': a newer"):
        lt.load(tmp_path / "new")
    save(tmp_path / "less", State("popularity", meta={"n_features": 2, "n_labels": 3}))
    with pytest.raises(ModelFormatError, match="must have an array 'prior'"):
        lt.load(tmp_path / "less")
    save(tmp_path / "more", State("popularity", {"temperature": 2}))
    with pytest.raises(ModelFormatError, match="no parameter 'temperature'"):
        lt.load(tmp_path / "more")


def test_a_forged_index_never_reaches_a_kernel(tmp_path: Path) -> None:
    """Well-formed files with sound checksums, but columns that would write outside of memory."""
    model = lt.baselines.NearestNeighbors().fit(np.eye(4)[[0, 1, 2, 3]], [[0], [1], [2], [3]])
    for name in ("labels_indices", "labels_indptr"):
        state = model._get_state()
        state.arrays[name] = state.arrays[name] + np.int32(1000)
        save(tmp_path / name, state)
        with pytest.raises(ModelFormatError, match="'labels'"):
            lt.load(tmp_path / name, verify=True)


def _make_raw() -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as parent:
        save(Path(parent) / "m", small_state())
        return (Path(parent) / "m" / "manifest.json").read_bytes()


_RAW = _make_raw()
