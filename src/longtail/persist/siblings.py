"""The hidden siblings of a model: their names, who owns them, and cleaning up after a crash.

    .model.<host>-<random>.new    a model being written; after an exchange, the old one, to go
    .model.<host>-<random>.old    the old model between two renames, where there is no exchange

A name is ours only if it has exactly this form (8 and 12 hexadecimal digits), is a directory and no
link, and holds nothing but the files of one of our models: what a user called ``.model.backup.old``
is neither read nor removed.

A writer holds a lock on the manifest inside its sibling, which the kernel releases when the process
dies: what can be locked has no living owner. Whoever creates that manifest owns the sibling, so a
writer and a sweeper never both believe it is theirs.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import secrets
import stat
import time
import zlib

from longtail.persist.arrays import ARRAYS
from longtail.persist.manifest import FORMAT, MANIFEST

__all__ = [
    "current",
    "empty",
    "foreign",
    "lock",
    "open_manifest",
    "remove",
    "sibling",
    "siblings",
    "sweep",
]

_HARMLESS = {".DS_Store"}
_MIDDLE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{12}", re.ASCII)
_START = f'{{\n "format": "{FORMAT}"'.encode()  # of every manifest
_ABANDONED = (
    24 * 3600
)  # seconds after which another machine's sibling may be removed, if it can be locked


def sibling(target: str, suffix: str) -> str:
    """Return a fresh name beside ``target``."""
    name = f".{_stem(target)}.{_host()}-{secrets.token_hex(6)}{suffix}"
    return os.path.join(os.path.dirname(target), name)


def siblings(target: str, suffix: str) -> list[str]:
    """Return all such names that exist and are ours."""
    parent, start = os.path.dirname(target), f".{_stem(target)}."
    try:
        names = sorted(os.listdir(parent))
    except OSError:  # a folder that may be written but not listed
        return []
    return [
        os.path.join(parent, name)
        for name in names
        if name.startswith(start)
        and name.endswith(suffix)
        and _MIDDLE.fullmatch(name[len(start) : -len(suffix)])
        and _ours(os.path.join(parent, name))
    ]


def _ours(path: str) -> bool:
    """Return whether a sibling is a directory with the files of one of our models, perhaps
    unfinished.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        names = os.listdir(descriptor)
        if _stranger(descriptor, names) is not None:
            return False
        return MANIFEST not in names or _begins_as_ours(descriptor)
    except OSError:  # it goes while we look
        return False
    finally:
        os.close(descriptor)


def sweep(target: str) -> None:
    """Undo what crashes left: moves an ``.old`` model back if there is none, removes siblings
    without an owner.
    """
    for path in siblings(target, ".old") + siblings(target, ".new"):
        with contextlib.suppress(
            OSError
        ):  # another sweeper was quicker, or this is not ours to touch
            manifest = open_manifest(path, create=True)
            try:
                if not lock(manifest) or not current(manifest, path) or not _dead(path):
                    continue
                whole = os.fstat(manifest).st_size > 0  # and not one whose removal was cut short
                if path.endswith(".old") and whole and not os.path.lexists(target):
                    os.rename(path, target)
                    continue
                empty(path)
            finally:
                os.close(manifest)  # before rmdir: NFS keeps the name of an open file
            os.rmdir(path)


def open_manifest(directory: str, *, create: bool = False) -> int:
    """Return the descriptor of the manifest, for locking; writable where possible, because locks
    over NFS ask for it.
    """
    path = os.path.join(directory, MANIFEST)
    flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, flags | os.O_RDWR | (os.O_CREAT if create else 0), 0o666)
    except PermissionError:
        return os.open(path, flags | os.O_RDONLY)


def lock(descriptor: int) -> bool | None:
    """Return True if the lock is ours now, False if somebody else holds it, None if this file
    system has no locks.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def empty(directory: str) -> None:
    """Remove the files a model consists of, the manifest last: it carries the lock."""
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(directory), key=lambda name: name == MANIFEST):
            if _belongs(name):
                os.unlink(os.path.join(directory, name))


def remove(directory: str) -> None:
    """Remove a model, damaged or not; raise ``OSError`` where there is more than its files."""
    empty(directory)
    os.rmdir(directory)


def foreign(directory: str) -> str | None:
    """Name of something that is not part of a model; "" if all is; None if the directory is empty.

    Raises ``FileNotFoundError`` if the directory is gone, also if it goes while we look.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        names = sorted(os.listdir(descriptor))
        stranger = _stranger(descriptor, names)
        if stranger is not None:
            return stranger
        if names and not _is_model(descriptor):
            if not os.path.samestat(os.fstat(descriptor), os.stat(directory)):
                raise FileNotFoundError(directory)  # replaced, and then removed by another save
            return names[0]
    finally:
        os.close(descriptor)
    return "" if names else None


def _stranger(directory: int, names: list[str]) -> str | None:
    """Return the first name that is no file of a model."""
    for name in names:
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
        if not _belongs(name) or not stat.S_ISREG(mode):
            return name
    return None


def _begins_as_ours(directory: int) -> bool:
    """Return whether the manifest begins as ours do; one that was never written is empty."""
    manifest = os.open(MANIFEST, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        return _START.startswith(os.read(manifest, len(_START)))
    finally:
        os.close(manifest)


def _is_model(directory: int) -> bool:
    try:
        manifest = os.open(MANIFEST, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
    except FileNotFoundError:
        return False
    try:
        return f'"format": "{FORMAT}"'.encode() in os.read(manifest, 100)
    finally:
        os.close(manifest)


def _belongs(name: str) -> bool:
    return name in (MANIFEST, ARRAYS) or name.endswith(".npy") or name in _HARMLESS


def current(manifest: int, directory: str) -> bool:
    """Return whether the open manifest is still the one in the directory, and not one that was
    removed meanwhile.
    """
    return os.path.samestat(os.fstat(manifest), os.lstat(os.path.join(directory, MANIFEST)))


def _dead(path: str) -> bool:
    """Locks of another machine may not be visible here: its siblings are left alone until they are
    surely dead.
    """
    if f".{_host()}-" in os.path.basename(path):
        return True
    return time.time() - os.stat(path).st_mtime > _ABANDONED


def _host() -> str:
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _stem(target: str) -> str:
    name = os.path.basename(target)
    if len(os.fsencode(name)) > 200:  # a file name has 255 bytes at most
        name = hashlib.sha256(os.fsencode(name)).hexdigest()[:32]
    return name
