"""``save`` and ``load``: a ``State`` to a directory and back."""

from __future__ import annotations

import errno
import os
import time

from longtail import __version__
from longtail.exceptions import ModelFormatError
from longtail.persist.arrays import ARRAYS, open_regular, read_arrays, write_all, write_arrays
from longtail.persist.manifest import MANIFEST, decode, encode, outline
from longtail.persist.npy_files import read_npy
from longtail.persist.replace import in_motion, open_directory, replacing, sync
from longtail.persist.state import State

__all__ = ["load", "save"]

_LARGEST_MANIFEST = 1 << 30
_PATIENCE = 5.0  # seconds to wait for a save that is replacing what we read


def save(path: str | os.PathLike[str], state: State, *, overwrite: bool = False) -> None:
    """Write a state to the directory ``path``: all of it, or nothing.

    Missing parent folders are created. A target that is not empty is refused with
    ``FileExistsError`` unless ``overwrite=True``, and even then only a directory that holds a model
    and nothing else is replaced. If anything fails (a full disk, Ctrl-C, a crash), what was there
    before is untouched.

    Parameters and meta must be JSON values (see ``State``); anything else is refused with an error
    that names it.

    Parameters
    ----------
    path : str or path
        Folder of the model.
    state : State
        What to write.
    overwrite : bool, default=False
        Replace what is there.

    >>> import numpy as np, tempfile
    >>> folder = tempfile.mkdtemp() + "/model"
    >>> save(folder, State("demo", params={"C": 1.0}, arrays={"bias": np.arange(3)}))
    >>> load(folder).arrays["bias"]
    array([0, 1, 2])
    """
    document, slots = outline(state, __version__)
    with replacing(path, overwrite=overwrite) as staging:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(ARRAYS, flags, 0o666, dir_fd=staging.directory)
        try:
            write_arrays(descriptor, slots)
            sync(descriptor)
        finally:
            os.close(descriptor)
        write_all(staging.manifest, memoryview(encode(document)))
        sync(staging.manifest)


def load(path: str | os.PathLike[str], *, mmap: bool = True, verify: bool = False) -> State:
    """Read the state saved in the directory ``path``.

    With ``mmap`` arrays are read-only views of the files, brought in page by page when used, and
    shared between processes; without it they are read into memory and may be changed. Every load
    checks the manifest's own checksum, and that the arrays beside it are its own and complete;
    ``verify=True`` also reads every byte and compares its SHA-256.

    Raises ``FileNotFoundError`` if there is nothing at ``path``, and ``ModelFormatError``, saying
    which file and why, if it is not a model, or one that is truncated, altered, or of a newer
    format.

    Parameters
    ----------
    path : str or path
        Folder of a model.
    mmap : bool, default=True
        Map arrays from the file instead of reading them.
    verify : bool, default=False
        Check every byte against its checksum.
    """
    if not os.fspath(path):
        raise FileNotFoundError(errno.ENOENT, "the path of the model is empty", "")
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            directory = open_directory(path)
        except FileNotFoundError:
            # Without exchange there are moments, between two renames, when nothing is there.
            if time.monotonic() > deadline or not in_motion(path):
                raise
            time.sleep(0.001)
            continue
        except NotADirectoryError:
            raise ModelFormatError(f"{os.fspath(path)} is a file; a model is a directory") from None
        try:
            return _load(directory, mmap, verify)
        except ModelFormatError as error:
            if time.monotonic() > deadline or not _replaced(path, directory):
                raise ModelFormatError(f"cannot load {os.fspath(path)}: {error}") from None
            time.sleep(0.001)
        finally:
            os.close(directory)


def _load(directory: int, mapped: bool, verify: bool) -> State:
    descriptor, size = open_regular(MANIFEST, directory)
    with open(descriptor, "rb") as file:
        if size > _LARGEST_MANIFEST:
            raise ModelFormatError(f"{MANIFEST} has {size} bytes, more than any manifest")
        raw = file.read(size + 1)
    state, slots, version = decode(raw)
    if version == 1:
        for slot in slots:
            read_npy(directory, slot, mapped=mapped, verify=verify)
    else:
        read_arrays(directory, slots, mapped=mapped, verify=verify)
    return state


def _replaced(path: str | os.PathLike[str], directory: int) -> bool:
    """Return whether a save put another model in place of the directory that was being read."""
    try:
        return not os.path.samestat(os.stat(path), os.fstat(directory))
    except FileNotFoundError:
        return True
