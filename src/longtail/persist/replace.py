"""Putting a directory in place so that a crash at any moment leaves the old one or the new one,
whole.

A rename cannot replace a directory that holds files, so a save goes like this:

1. write everything to a hidden sibling (``siblings.py``), and sync it;
2. exchange the two names in one step (``exchange.py``), and sync the parent;
3. remove the sibling, which now holds the old model.

Where the file system has no exchange, step 2 is two renames, ``model → ….old`` and ``….new →
model``. A crash between them leaves no ``model``; ``open_directory`` then reads the ``.old`` one,
and the next save moves it back first.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass

from longtail.persist.exchange import exchange
from longtail.persist.manifest import MANIFEST
from longtail.persist.siblings import (
    current,
    empty,
    foreign,
    lock,
    open_manifest,
    sibling,
    siblings,
    sweep,
)

__all__ = ["Staging", "in_motion", "open_directory", "replacing", "sync"]

_log = logging.getLogger(__name__)
_PATIENCE = 60.0  # seconds to wait for another save
_OCCUPIED = {errno.ENOTEMPTY, errno.EEXIST}
_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass
class Staging:
    """The sibling being written: its path, its descriptor, and its manifest, empty and locked, to
    be written last.
    """

    path: str
    directory: int
    manifest: int


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, overwrite: bool) -> Iterator[Staging]:
    """Yield a directory to write to, which becomes ``path`` when the block ends well, and vanishes
    when it does not.

    Refuses a target that is a file, or a directory that is not empty, unless ``overwrite`` is given
    and it is a model.
    """
    target = os.path.realpath(path)  # a link to a model is written through, not replaced
    sweep(target)
    while not _may_replace(target, overwrite):
        pass
    with _parents(os.path.dirname(target)):
        staging = _stage(target)
        try:
            yield staging
            with contextlib.suppress(FileNotFoundError):  # the permissions stay as they were
                os.fchmod(staging.directory, stat.S_IMODE(os.stat(target).st_mode))
            sync(staging.directory)
            _publish(staging.path, target, overwrite)
        finally:
            # After success this is the old model, or nothing; after a failure, what was written so
            # far.
            empty(staging.path)
            os.close(staging.manifest)
            os.close(staging.directory)
            _remove_empty(staging.path)


def open_directory(path: str | os.PathLike[str]) -> int:
    """Return a descriptor of the model at ``path``, or of its predecessor if a crash between two
    renames left only that.
    """
    try:
        return os.open(path, _OPEN_DIRECTORY)
    except FileNotFoundError:
        target = os.path.realpath(path)
        kept = [
            path
            for path in siblings(target, ".old")
            if os.path.exists(os.path.join(path, MANIFEST))
        ]
        if not kept:
            raise
        newest = max(kept, key=os.path.getmtime)
        _log.info("%s is missing, a save was cut short: reading %s", target, newest)
        return os.open(newest, _OPEN_DIRECTORY)


def in_motion(path: str | os.PathLike[str]) -> bool:
    """Return whether somebody may be saving to ``path`` at this moment, or it has just appeared."""
    target = os.path.realpath(path)
    return os.path.lexists(target) or bool(siblings(target, ".new") or siblings(target, ".old"))


def sync(descriptor: int) -> None:
    """Wait until the file or directory is on the disk."""
    if hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync alone does not reach past the drive's cache
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    try:
        os.fsync(descriptor)
    except OSError as error:  # some network file systems cannot sync a directory
        is_directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        if not is_directory or error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


def _sync_path(directory: str) -> None:
    descriptor = os.open(directory, _OPEN_DIRECTORY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _parents(folder: str) -> Iterator[None]:
    """Create the missing folders above a model, and take them away again if the block fails."""
    missing = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    created = []
    try:
        for folder in reversed(missing):
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder)
                created.append(folder)
            _sync_path(os.path.dirname(folder))
        yield
    except BaseException:
        for folder in reversed(created):
            _remove_empty(folder)
        raise


def _may_replace(target: str, overwrite: bool) -> bool:
    """Return True if ``target`` is free or may go, False to ask again; raise if it must stay."""
    if os.path.dirname(target) == target or target == _current_folder():
        raise ValueError(f"{target} cannot become a model: name a folder inside it")
    if not os.path.lexists(target):
        return True
    try:
        other = foreign(target)
    except NotADirectoryError:
        raise FileExistsError(f"{target} is a file: a model is saved to a directory") from None
    except FileNotFoundError:  # another save replaces it at this moment
        return False
    if other:
        raise FileExistsError(
            f"{target} is not empty and holds {other!r}, which is not part of a model: "
            "save somewhere else"
        )
    if other == "" and not overwrite:
        raise FileExistsError(f"{target} holds a model: pass overwrite=True to replace it")
    return True


def _current_folder() -> str | None:
    """Where this process is; None if that was removed, as under a worker that outlives its job."""
    try:
        return os.path.realpath(os.curdir)
    except FileNotFoundError:
        return None


def _stage(target: str) -> Staging:
    while True:
        path = sibling(target, ".new")
        with contextlib.ExitStack() as undo:
            os.mkdir(path)
            undo.callback(_remove_empty, path)
            # A sweeper that saw the directory first may have claimed or removed it: then try again.
            with contextlib.suppress(FileNotFoundError, FileExistsError):
                directory = os.open(path, _OPEN_DIRECTORY)
                undo.callback(os.close, directory)
                flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                manifest = os.open(MANIFEST, flags, 0o666, dir_fd=directory)
                undo.callback(os.close, manifest)
                if lock(manifest) is not False and current(manifest, path):
                    undo.pop_all()
                    return Staging(path, directory, manifest)


def _remove_empty(directory: str) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(directory)


def _publish(staged: str, target: str, overwrite: bool) -> None:
    parent = os.path.dirname(target)
    with contextlib.ExitStack() as moved:
        while not _renamed(staged, target):
            with contextlib.suppress(FileNotFoundError):  # another save is moving it: try again
                if not _may_replace(target, overwrite):  # it may have changed while we were writing
                    continue
                if exchange(staged, target):
                    break
                moved.enter_context(_set_aside(target))
        _sync_path(parent)


def _renamed(staged: str, target: str) -> bool:
    """Rename, which is enough where there is nothing or an empty directory; return False if there
    is more.
    """
    try:
        os.rename(staged, target)
    except OSError as error:
        if error.errno in _OCCUPIED:
            return False
        if error.errno in (errno.EBUSY, errno.EXDEV):
            message = "a mount point cannot be replaced, save to a folder inside it"
            raise OSError(error.errno, message, target) from None
        raise
    return True


@contextlib.contextmanager
def _set_aside(target: str) -> Iterator[None]:
    """Move the old model to its ``.old`` name; remove it after the block, or moves it back if the
    block failed.
    """
    kept = sibling(target, ".old")
    manifest = open_manifest(target)
    try:
        # Its lock comes first: of two saves only one moves it, and nobody sweeps it away, or puts
        # half of it back, before its successor is in place.
        _wait_for(manifest, target)
        moved = current(manifest, target)
        if moved:
            os.rename(target, kept)
        try:
            yield
        except BaseException:
            try:
                if moved:
                    os.rename(kept, target)
            except OSError as error:
                if error.errno in _OCCUPIED:  # by its successor: the failure came later
                    empty(kept)
            raise
        if moved:
            empty(kept)
    finally:
        os.close(manifest)
        _remove_empty(kept)


def _wait_for(manifest: int, target: str) -> None:
    """Lock the manifest; whoever else holds it is about to finish a save of the same model."""
    deadline = time.monotonic() + _PATIENCE
    while lock(manifest) is False:
        if time.monotonic() > deadline:
            raise OSError(errno.EBUSY, "another save of the model does not end", target)
        time.sleep(0.001)
