"""Unpacks an archive into a new folder: all of it, nothing outside it, or nothing at all."""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from longtail.exceptions import DataFormatError

try:
    from lzma import LZMAError
except ImportError:  # a Python built without lzma; tarfile then refuses xz by itself
    LZMAError = EOFError  # type: ignore[assignment,misc]

__all__ = ["is_archive", "unpack"]

_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
# RuntimeError is what zipfile raises for an encrypted member.
_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, LZMAError, EOFError, RuntimeError)


def is_archive(name: str) -> bool:
    """Return whether a file of this name is unpacked: zip, or tar plain or with gzip, bzip2, xz."""
    return name.lower().endswith(_SUFFIXES)


def unpack(archive: str | os.PathLike[str], folder: str | os.PathLike[str]) -> Path:
    """Unpack ``archive`` into the new folder ``folder``, which appears only when it is complete.

    Where everything in the archive lies in one top folder, that folder's contents become
    ``folder``. Refuses, with ``DataFormatError``: members with an absolute path, ``..``, a drive or
    a backslash in their name, links and devices, two members of one name, a damaged archive, and
    one that says it needs more space than the disk has. Refuses with ``FileExistsError`` a
    ``folder`` that is there already.
    """
    archive, folder = Path(archive), Path(folder)
    if folder.exists():
        raise FileExistsError(f"{folder} exists already")
    folder.parent.mkdir(parents=True, exist_ok=True)
    working = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        _extract(archive, working)
        top = _single_folder(working)
        os.chmod(top, 0o755)  # mkdtemp made it private; a shared cache must stay readable
        os.rename(top, folder)
    finally:
        shutil.rmtree(working, ignore_errors=True)
    return folder


def _extract(archive: Path, working: Path) -> None:
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as zipped:
                _write(archive, _zip_members(archive, zipped), working)
        else:
            with tarfile.open(archive) as tarred:
                _write(archive, _tar_members(archive, tarred), working)
    except _DAMAGE as error:
        raise DataFormatError(f"cannot be unpacked: {error}", path=archive) from None
    except OSError as error:
        if error.errno is None:  # gzip and bz2 report damage as a bare OSError
            raise DataFormatError(f"cannot be unpacked: {error}", path=archive) from None
        raise


_Member = tuple[str, int, "IO[bytes] | None"]  # name, size, contents (None for a folder)


def _zip_members(archive: Path, zipped: zipfile.ZipFile) -> Iterator[_Member]:
    for info in zipped.infolist():
        mode = info.external_attr >> 16
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise DataFormatError(f"holds the link or device {info.filename!r}", path=archive)
        if info.is_dir():
            yield info.filename, 0, None
        else:
            with zipped.open(info) as contents:
                yield info.filename, info.file_size, contents


def _tar_members(archive: Path, tarred: tarfile.TarFile) -> Iterator[_Member]:
    for info in tarred:
        if not (info.isreg() or info.isdir()):
            raise DataFormatError(f"holds the link or device {info.name!r}", path=archive)
        yield info.name, info.size, tarred.extractfile(info) if info.isreg() else None


def _write(archive: Path, members: Iterator[_Member], working: Path) -> None:
    for name, size, contents in members:
        target = _target(archive, name, working)
        if target is None:
            continue
        if contents is None:
            target.mkdir(parents=True, exist_ok=True)
            continue
        if size > shutil.disk_usage(working).free:
            raise DataFormatError(
                f"needs {size} bytes for {name!r}, more than the disk has left", path=archive
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(target, "xb") as file:
                shutil.copyfileobj(contents, file, 1 << 20)
        except FileExistsError:
            raise DataFormatError(f"holds {name!r} twice", path=archive) from None


def _target(archive: Path, name: str, working: Path) -> Path | None:
    """Where a member goes; None for the archive's own root."""
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or "\\" in name or ":" in name or "\0" in name:
        raise DataFormatError(f"holds the unsafe path {name!r}", path=archive)
    return working.joinpath(*parts) if parts else None


def _single_folder(folder: Path) -> Path:
    """Go down while there is nothing but one folder inside."""
    while True:
        inside = [p for p in folder.iterdir() if p.name != "__MACOSX"]
        if len(inside) != 1 or not inside[0].is_dir():
            return folder
        folder = inside[0]
