"""Requests that make no sense, for ``service.py``: drawn at random, the same for the same seed.

Bodies with one wrong value, cut and altered bytes, noise, other methods and paths, bodies that are
deep, large or of another type, and bytes that are no HTTP at all.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import socket
from collections import Counter

__all__ = ["send_odd_requests"]

_GOOD = {"texts": ["a text"], "k": 5, "threshold": 0.1, "tail": 0.5, "explain": True}
_VALUES = [
    None, True, -1, 0, 10**40, 1e308, "", "x" * 1000, "\ud800", [], {}, [[]], [None], {"": 1},
    ["\x00"], [{"a": "b"}], [{"a": None}], "NaN", [1.5], {"texts": {}}, ["a"] * 2000, [""],
    ["\u202e\ufeff"], ["a" * 100_000], 0.1 + 0.2, 1001, 2**63, -(2**63) - 1, ["no such label"],
]  # fmt: skip
_BODIES = [
    b"[" * 100_000,
    b'{"texts": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"a":' * 2000 + b"1" + b"}" * 2000,
    b'{"texts": ["a"], "k": 1e400}',
    b'{"texts": ["a"], "threshold": NaN}',
    b'{"texts": ["a"], "threshold": -Infinity}',
    b'{"texts": ["a"], "texts": 3}',
    b'{"texts": ["\xff\xfe"]}',
    b'{"texts": ["\\ud83d"]}',
    b"\xef\xbb\xbf" + b'{"texts": ["a"]}',
    '{"texts": ["a"]}'.encode("utf-16"),
    b"null",
    b"",
    b"\x1f\x8b\x08",
]
_POST = b"POST /predict HTTP/1.1\r\nhost: localhost\r\n"
_RAW = [
    b"\r\n\r\n",
    b"GET\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # somebody speaks TLS
    b"GET / HTTP/9.9\r\nhost: localhost\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    _POST + b"content-length: -1\r\n\r\n{}",
    _POST + b"content-length: 99999999999999999999\r\n\r\n{}",
    _POST + b"content-length: 2\r\ncontent-length: 7\r\n\r\n{}",
    _POST + b"transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    _POST + b"transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    b"GET /%00%ff%zz HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"GET /labels?q=%ff%fe&limit=%00 HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"GET /static/../../../etc/passwd HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: localhost\r\n" + b"a: " + b"b" * 200_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 5000 + b"\r\n",
    b"GET / HTTP/1.1\r\nhost: localhost\r\nx\x00y: z\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"CONNECT a:1 HTTP/1.1\r\nhost: localhost\r\n\r\n",
]
_TYPES = ["text/plain", "multipart/form-data", "application/xml", "", "application/json; charset=x"]


def send_odd_requests(port: int, n: int, seed: int = 0) -> Counter[str]:
    """How often each status came back; "closed" where the server hung up without one."""
    rng = random.Random(seed)
    counts: Counter[str] = Counter()
    for _ in range(n):
        if rng.random() < 0.1:
            status = _send_bytes(port, _noise(rng))
            counts[status] += 1
            continue
        method, path, body, kind = _odd(rng)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request(method, path, body, {"content-type": kind})
            response = connection.getresponse()
            response.read()
            status = str(response.status)
        except (http.client.HTTPException, ConnectionError):
            status = "closed"
        finally:
            connection.close()
        counts[status] += 1
        if status.startswith("5"):
            print(f"{status}: {method} {path} {body!r:.300}")
    return counts


def _odd(rng: random.Random) -> tuple[str, str, bytes, str]:
    """Method, path, body and content type."""
    question = dict(_GOOD)
    question[rng.choice([*_GOOD, "include", "exclude", "other"])] = rng.choice(_VALUES)
    body, kind = json.dumps(question).encode(), "application/json"
    method, path = "POST", "/predict"
    which = rng.randrange(7)
    if which == 1:
        cut = rng.randrange(len(body))
        body = body[:cut] + bytes([rng.randrange(256)]) + body[cut + rng.randrange(3) :]
    elif which == 2:
        body = rng.randbytes(rng.randrange(200))
    elif which == 3:
        method = rng.choice(["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "BREW"])
    elif which == 4:
        odd = "".join(rng.choice("abc%/.?=&0_-~") for _ in range(rng.randrange(30)))
        path = rng.choice(["/labels?q=", "/labels?limit=", "/", "/static/", "/report/"]) + odd
        method = "GET"
    elif which == 5:
        body = rng.choice(_BODIES)
    elif which == 6:
        kind = rng.choice(_TYPES)
    return method, path, body, kind


def _noise(rng: random.Random) -> bytes:
    raw = rng.choice(_RAW)
    if rng.random() < 0.3:
        at = rng.randrange(len(raw))
        raw = raw[:at] + rng.randbytes(rng.randrange(8)) + raw[at:]
    return raw


def _send_bytes(port: int, raw: bytes) -> str:
    """The status of what comes back within half a second; "closed" for nothing."""
    answer = b""
    with (
        contextlib.suppress(OSError),
        socket.create_connection(("127.0.0.1", port), timeout=0.5) as connection,
    ):
        connection.sendall(raw)
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(64)
    parts = answer.split(b" ")
    return parts[1].decode("latin-1")[:3] if answer.startswith(b"HTTP/") else "closed"
