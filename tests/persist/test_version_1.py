"""Models of format version 1, one file per array: damaged or forged ones are still refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import make_golden
import pytest
from model_files import read_manifest, same, signed

from longtail.exceptions import ModelFormatError
from longtail.persist import load, save


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An old model with arrays of every dtype; a1 holds three bytes."""
    shutil.copytree(make_golden.FOLDER / "v1" / "everything", tmp_path / "m")
    return tmp_path / "m"


def test_every_truncation_is_refused(folder: Path) -> None:
    for path in sorted(folder.glob("*.npy")):
        whole = path.read_bytes()
        for cut in (b"", whole[:64], whole[:-1], whole + b"\0"):
            path.write_bytes(cut)
            with pytest.raises(ModelFormatError, match=path.name):
                load(folder)
        path.unlink()
        with pytest.raises(ModelFormatError, match=f"{path.name} is missing"):
            load(folder)
        path.write_bytes(whole)
    assert same(load(folder, verify=True), make_golden.everything())


@pytest.mark.parametrize("mmap", [True, False])
def test_flipped_bits(folder: Path, mmap: bool) -> None:
    path = folder / "a1.npy"
    whole = bytearray(path.read_bytes())
    for position, verify in [(0, False), (9, False), (100, False), (len(whole) - 1, True)]:
        whole[position] ^= 1
        path.write_bytes(whole)
        with pytest.raises(ModelFormatError, match="checksum of a1" if verify else "header of a1"):
            load(folder, mmap=mmap, verify=verify)
        whole[position] ^= 1


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("../a1.npy", "own directory"),
        ("/etc/passwd", "own directory"),
        ("sub/a1.npy", "own directory"),
        (".hidden.npy", "own directory"),
        ("a1.npy\n", "own directory"),
        ("manifest.json", "own directory"),
        (["a1.npy"], "own directory"),
        ("a2.npy", "share a file"),
        ("A2.npy", "share a file"),
    ],
)
def test_forged_names(folder: Path, file: Any, message: str) -> None:
    document = read_manifest(folder)
    document["arrays"]["a1"]["file"] = file
    (folder / "manifest.json").write_bytes(signed(document))
    with pytest.raises(ModelFormatError, match=message):
        load(folder)


def test_a_link_is_not_followed(folder: Path) -> None:
    shutil.move(folder / "a1.npy", folder.with_name("elsewhere"))
    (folder / "a1.npy").symlink_to(folder.with_name("elsewhere"))
    with pytest.raises(ModelFormatError, match=r"a1.npy is a link"):
        load(folder)


def test_an_old_model_is_replaced_by_a_new_one(folder: Path) -> None:
    mapped = load(folder)
    save(folder, mapped, overwrite=True)
    assert sorted(path.name for path in folder.iterdir()) == ["arrays.bin", "manifest.json"]
    assert same(load(folder, verify=True), make_golden.everything())
