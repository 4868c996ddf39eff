"""Downloads one file: checked, resumed, and moved into place only when it is whole.

While a download runs, ``NAME.part`` holds the bytes so far and ``NAME.part.json`` says which
version of which URL they came from. A later attempt asks the server for the rest (``Range``) on the
condition that the file is still that version (``If-Range`` with its ETag or date), so that two
halves of different files are never joined; a server that knows no ranges, or has a new version,
sends it all.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import http.client
import json
import logging
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, NoReturn

from longtail._progress import Progress
from longtail.data.cache import locked
from longtail.exceptions import DataFormatError

__all__ = ["download", "file_sha256"]

_CHUNK = 1 << 18
_ATTEMPTS = 5  # in a row without a single new byte
_FULL = (errno.EACCES, errno.EDQUOT, errno.ENOSPC, errno.EROFS)  # retrying will not help
_log = logging.getLogger(__name__)


def download(
    url: str,
    path: str | os.PathLike[str],
    *,
    sha256: str | None = None,
    timeout: float = 30.0,
    pause: float = 1.0,
) -> Path:
    """Fetch ``url`` into the file ``path`` and return that path; do nothing if it is there.

    ``sha256`` (64 hex digits) is checked before the file gets its name; without one the file is
    taken on trust, and its own checksum is logged. A dropped connection is resumed, five times in a
    row without progress at most, ``pause`` seconds apart (doubling); ``timeout`` seconds of silence
    count as dropped. Progress is shown when standard error is a terminal.

    Safe to call from several processes at once: one downloads, the others wait and find the file.

    Raises ``ConnectionError`` when the server cannot be reached, ``FileNotFoundError`` for a page
    that is not there, ``OSError`` for any other answer, each naming the URL and where to put the
    file by hand; ``DataFormatError`` when the checksum is wrong (the file is removed);
    ``ValueError`` for a URL that is not http, https or file.
    """
    path = Path(path)
    if urllib.parse.urlsplit(url).scheme not in ("http", "https", "file"):
        raise ValueError(f"cannot download {url!r}: give an address of http, https or file")
    if sha256 is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
        raise ValueError(f"sha256 must be 64 hex digits, got {sha256!r}")
    lock = path.with_name(path.name + ".lock")
    with locked(lock):
        if path.exists():
            _check(path, url, sha256)
        else:
            part = path.with_name(path.name + ".part")
            _fetch(url, part, path, timeout, pause)
            _check(part, url, sha256)
            os.replace(part, path)
            _origin(part).unlink(missing_ok=True)
        # From here on whoever waits, for this lock or a new one, finds the file.
        with contextlib.suppress(OSError):
            lock.unlink()
    return path


def file_sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file, as hex digits."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _check(path: Path, url: str, sha256: str | None) -> None:
    found = file_sha256(path)
    if sha256 is None:
        _log.info("%s has no registered checksum; its sha256 is %s", url, found)
    elif found != sha256.lower():
        path.unlink()
        _origin(path).unlink(missing_ok=True)
        raise DataFormatError(
            f"the file from {url} has the sha256 {found}, expected {sha256.lower()}: it was "
            "damaged on the way or has changed at its source. It was removed; try again",
            path=path,
        )


def _origin(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _fetch(url: str, part: Path, path: Path, timeout: float, pause: float) -> None:
    """Append to ``part`` until it is complete, over as many connections as it takes."""
    failures = 0
    while True:
        before = part.stat().st_size if part.exists() else 0
        try:
            if _one_connection(url, part, timeout):
                return
            reason: Exception = ConnectionError("the server closed the connection early")
        except urllib.error.HTTPError as error:
            if error.code not in (408, 429, 500, 502, 503, 504):
                _give_up(url, path, error)
            reason = error
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, OSError) and error.errno in _FULL:
                raise
            reason = error
        after = part.stat().st_size if part.exists() else 0
        failures = 0 if after > before else failures + 1
        # Nothing has ever arrived and nothing is there to resume: most likely there is no network.
        if failures >= (_ATTEMPTS if after else 2):
            _give_up(url, path, reason)
        _log.warning("download of %s interrupted after %d bytes (%s): again", url, after, reason)
        time.sleep(pause * 2 ** max(failures - 1, 0))


def _one_connection(url: str, part: Path, timeout: float) -> bool:
    """Read one answer into ``part``. True when the file is complete, False when it was cut."""
    have = part.stat().st_size if part.exists() else 0
    origin = _read_origin(part)
    request = urllib.request.Request(
        url, headers={"User-Agent": "longtail", "Accept-Encoding": "identity"}
    )
    if have and origin.get("url") == url and origin.get("validator"):
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", origin["validator"])
    else:
        have = 0
    try:
        response = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code != 416:
            raise
        # Nothing lies beyond what we have: either it is complete, or the file has changed.
        if error.headers.get("Content-Range") == f"bytes */{have}":
            return True
        part.unlink(missing_ok=True)
        return False
    with response:
        resumed = getattr(response, "status", 200) == 206
        if resumed and not (response.headers.get("Content-Range") or "").startswith(
            f"bytes {have}-"
        ):
            part.unlink()  # a range that was not asked for
            return False
        if not resumed:
            have = 0
        length = response.headers.get("Content-Length")
        total = have + int(length) if length and length.isdigit() else None
        part.parent.mkdir(parents=True, exist_ok=True)
        if not resumed:
            _write_origin(part, url, response.headers)
        name = urllib.parse.unquote(urllib.parse.urlsplit(url).path.rsplit("/", 1)[-1]) or url
        mode = "ab" if resumed else "wb"
        with open(part, mode) as file, Progress(name, start=have) as progress:
            while chunk := response.read1(_CHUNK):  # what is there, so that a drop loses little
                file.write(chunk)
                have += len(chunk)
                of = "" if total is None else f" of {total / 1e6:,.1f}"
                progress(have, total or 0, f"{have / 1e6:,.1f}{of} MB")
            file.flush()
            os.fsync(file.fileno())
            return total is None or file.tell() == total


def _read_origin(part: Path) -> dict[str, Any]:
    try:
        origin = json.loads(_origin(part).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return origin if isinstance(origin, dict) else {}


def _write_origin(part: Path, url: str, headers: Any) -> None:
    etag = headers.get("ETag")
    # A weak ETag promises the same meaning, not the same bytes: it must not be used to join halves.
    validator = etag if etag and not etag.startswith("W/") else headers.get("Last-Modified")
    _origin(part).write_text(json.dumps({"url": url, "validator": validator}), "utf-8")


def _give_up(url: str, path: Path, reason: Exception) -> NoReturn:
    by_hand = f"You can also fetch it in another way and put it at {path}"
    if isinstance(reason, urllib.error.HTTPError):
        kind = FileNotFoundError if reason.code in (404, 410) else OSError
        raise kind(f"{url} answered {reason.code} {reason.reason}. {by_hand}") from None
    cause = reason.reason if isinstance(reason, urllib.error.URLError) else reason
    if isinstance(cause, FileNotFoundError):
        raise FileNotFoundError(f"{url} does not exist. {by_hand}") from None
    raise ConnectionError(
        f"could not download {url}: {cause}. Is this machine offline? {by_hand}"
    ) from None
