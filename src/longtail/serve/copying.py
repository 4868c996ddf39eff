"""A copy of the model that nobody else writes to.

A model that is mapped from a folder of the user's dies with it: a file that is cut short in place
(``cp new/* served/``) takes the pages from under the process, and the next look at them kills it
(SIGBUS). So the server maps a copy of its own, in the folder for temporary files, with every
checksum compared: what was half written when it was copied is noticed, and the old model goes on.

Worker processes share one copy, and with it its pages: the first one makes it, under a lock, and
the last one removes its name; what is mapped stays until it is let go. Where there is no room for a
copy the model is read into memory.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

from longtail._models import load
from longtail.exceptions import ModelFormatError
from longtail.persist.mark import mark_of
from longtail.persist.siblings import foreign

__all__ = ["load_copy"]

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES}
_USERS = "users"  # a file with a byte for every process that has loaded the copy


def load_copy(path: str, shared: str | None = None, n_users: int = 1) -> Any:
    """Return the estimator saved in ``path``, from a copy of its files.

    ``shared``: a folder for the copies of ``n_users`` processes. Raises what ``longtail.load``
    raises.
    """
    try:
        with contextlib.ExitStack() as stack:
            if shared is None:
                home = tempfile.mkdtemp(prefix="longtail-model-")
                stack.callback(shutil.rmtree, home, ignore_errors=True)
                return _load(path, _copied(path, os.path.join(home, "model")))
            stack.enter_context(_locked(shared))
            home = os.path.join(shared, hashlib.sha256(repr(mark_of(path)).encode()).hexdigest())
            copy = os.path.join(home, "model")
            if not os.path.isdir(home):
                stack.callback(_remove_unused, home)
                _copied(path, copy)
            found = _load(path, copy)
            _count(home, n_users)
            return found
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
    return load(path, mmap=False, verify=True)


def _load(path: str, copy: str) -> Any:
    try:
        return load(copy, verify=True)
    except ModelFormatError as error:
        raise ModelFormatError(str(error).replace(copy, path)) from error.__cause__


def _copied(path: str, copy: str) -> str:
    """Copy the files of a model; what is missing or strange is for ``load`` to say."""
    if not os.path.isdir(path) or foreign(path) is None:
        load(path)  # which says what is wrong
    os.makedirs(copy)
    for name in sorted(os.listdir(path)):
        source = os.path.join(path, name)
        if os.path.isfile(source) and not os.path.islink(source):
            shutil.copyfile(source, os.path.join(copy, name))
    return copy


def _count(home: str, n_users: int) -> None:
    """Note that one more process has loaded the copy; the last one removes it."""
    with open(os.path.join(home, _USERS), "ab") as file:
        file.write(b".")
        file.flush()
        last = file.tell() >= n_users
    if last:
        shutil.rmtree(home, ignore_errors=True)


def _remove_unused(home: str) -> None:
    """After an error: a copy that nobody has loaded."""
    if os.path.isdir(home) and not os.path.exists(os.path.join(home, _USERS)):
        shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[None]:
    with open(os.path.join(folder, "lock"), "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
