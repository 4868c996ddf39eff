"""Swapping two directories in one step, which no rename can do.

Linux has ``renameat2(RENAME_EXCHANGE)``, macOS ``renamex_np(RENAME_SWAP)``; Python has neither.
File systems may lack it (NFS does), so callers need another way as well.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys

__all__ = ["exchange"]

_AT_FDCWD = -100
_RENAME_EXCHANGE = (
    2  # both names exist and are swapped; <linux/fs.h> and, as RENAME_SWAP, <stdio.h> on macOS
)
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


def exchange(first: str, second: str) -> bool:
    """Swap what the two paths name, atomically. False if this system or file system cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    a, b = os.fsencode(first), os.fsencode(second)
    try:
        if sys.platform == "darwin":
            status = libc.renamex_np(a, b, ctypes.c_uint(_RENAME_EXCHANGE))
        else:
            status = libc.renameat2(_AT_FDCWD, a, _AT_FDCWD, b, ctypes.c_uint(_RENAME_EXCHANGE))
    except AttributeError:  # a C library older than the call
        return False
    if status == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), first, None, second)
