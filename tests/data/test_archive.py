"""Archives: whole, or refused with nothing left behind."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile

import pytest

from longtail.data.archive import is_archive, unpack
from longtail.exceptions import DataFormatError

FILES = {"set/train.txt": b"1 2 3\n", "set/raw/test.txt": b"4\n"}


def make_zip(path, files, mode=None):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, contents in files.items():
            info = zipfile.ZipInfo(name)
            if mode is not None:
                info.external_attr = mode << 16
            archive.writestr(info, contents)
    return path


def make_tar(path, files, kind=tarfile.REGTYPE, target=""):
    with tarfile.open(path, "w:" + path.suffix[1:].replace("tar", "")) as archive:
        for name, contents in files.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, target, len(contents)
            archive.addfile(info, io.BytesIO(contents))
    return path


MAKERS = {
    "a.zip": make_zip,
    "a.tar.gz": make_tar,
    "a.tar.bz2": make_tar,
    "a.tar.xz": make_tar,
    "a.tar": make_tar,
}


@pytest.mark.parametrize("name", MAKERS)
def test_unpacks_and_strips_the_single_top_folder(tmp_path, name):
    archive = MAKERS[name](tmp_path / name, FILES)
    folder = unpack(archive, tmp_path / "out")
    found = {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }
    assert found == {"train.txt": b"1 2 3\n", "raw/test.txt": b"4\n"}
    assert sorted(p.name for p in tmp_path.iterdir()) == [name, "out"]


def test_keeps_several_top_entries(tmp_path):
    folder = unpack(make_zip(tmp_path / "a.zip", {"a/x": b"", "b/y": b""}), tmp_path / "out")
    assert sorted(p.name for p in folder.iterdir()) == ["a", "b"]


@pytest.mark.parametrize("make", [make_zip, make_tar])
@pytest.mark.parametrize(
    "name", ["../evil", "/evil", "a/../../evil", "..\\evil", "C:/evil", "ok/../../../evil"]
)
def test_path_traversal_is_refused(tmp_path, make, name):
    archive = make(
        tmp_path / ("a.zip" if make is make_zip else "a.tar"), {"good": b"1", name: b"2"}
    )
    inner = tmp_path / "inner"
    with pytest.raises(DataFormatError, match="unsafe path"):
        unpack(archive, inner / "out")
    assert list(inner.iterdir()) == []
    assert not list(tmp_path.rglob("evil*"))


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
)
def test_links_and_devices_in_tar(tmp_path, kind):
    archive = make_tar(tmp_path / "a.tar", {"a/link": b""}, kind, target="/etc/passwd")
    with pytest.raises(DataFormatError, match="link or device"):
        unpack(archive, tmp_path / "out")


def test_links_in_zip(tmp_path):
    archive = make_zip(tmp_path / "a.zip", {"a/link": b"/etc/passwd"}, stat.S_IFLNK | 0o777)
    with pytest.raises(DataFormatError, match="link or device"):
        unpack(archive, tmp_path / "out")


def test_same_name_twice(tmp_path):
    archive = tmp_path / "a.tar"
    with tarfile.open(archive, "w") as tar:
        for contents in (b"1", b"2"):
            info = tarfile.TarInfo("a/f")
            info.size = 1
            tar.addfile(info, io.BytesIO(contents))
    with pytest.raises(DataFormatError, match="twice"):
        unpack(archive, tmp_path / "out")


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tar.xz"])
def test_damage_leaves_nothing(tmp_path, name):
    archive = MAKERS[name](tmp_path / name, {"a/big": bytes(range(256)) * 500})
    whole = archive.read_bytes()
    for cut in (0, 10, len(whole) // 2, 2 * len(whole) // 3):
        archive.write_bytes(whole[:cut])
        with pytest.raises(DataFormatError, match="cannot be unpacked"):
            unpack(archive, tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == [name]


def test_existing_folder_is_refused(tmp_path):
    archive = make_zip(tmp_path / "a.zip", FILES)
    (tmp_path / "out").mkdir()
    with pytest.raises(FileExistsError):
        unpack(archive, tmp_path / "out")


def test_more_than_the_disk_has(tmp_path, monkeypatch):
    archive = make_zip(tmp_path / "a.zip", FILES)
    usage = type("usage", (), {"free": 3})
    monkeypatch.setattr("longtail.data.archive.shutil.disk_usage", lambda path: usage)
    with pytest.raises(DataFormatError, match="more than the disk has left"):
        unpack(archive, tmp_path / "out")


def test_is_archive():
    assert is_archive("X.ZIP") and is_archive("a.tar.gz") and not is_archive("trn.json.gz")
