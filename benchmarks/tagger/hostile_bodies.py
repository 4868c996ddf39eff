"""Bodies that cost a careless service gigabytes and minutes, for ``abuse.py`` and for the tests."""

from __future__ import annotations

import numpy as np

__all__ = ["hostile_bodies", "hostile_rows"]


def hostile_bodies(size: int) -> dict[str, tuple[str, bytes]]:
    """Return paths and bodies of up to ``size`` bytes, by what is wrong with them; a few are right,
    and only large.
    """

    def filled(head: bytes, unit: bytes, tail: bytes) -> bytes:
        return head + unit * ((size - len(head) - len(tail)) // len(unit)) + tail

    def texts(unit: bytes) -> bytes:
        return filled(b'{"texts":[', unit + b",", unit + b"]}")

    names = b",".join(b'"%x":1' % i for i in range(size // 10))
    fields = b",".join(b'"f%d":1' % i for i in range(20))
    found = {
        "numbers for texts": texts(b"1"),
        "empty texts": texts(b'""'),
        "lists for texts": texts(b"[]"),
        "objects for texts": texts(b"{}"),
        "objects with wrong fields": b'{"texts":[%s]}' % b",".join([b"{%s}" % fields] * 9000),
        "one object of many fields": b'{"texts":[{%s}]}' % names,
        "unknown names": b"{%s}" % names,
        "one name again and again": filled(b"{", b'"a":1,', b'"a":1}'),
        "wrong labels": filled(b'{"text":"a","include":[', b"1,", b"1]}"),
        "wrong values in lists of lists": filled(b'{"texts":[', b"[[[1]]],", b"1]}"),
        "only brackets": b"[" * size,
        "deep and wide": filled(b'{"texts":' + b"[" * 15, b"1,", b"1"),
        "only quotes": b'"' * size,
        "only backslashes": filled(b'{"texts":["', rb"\\", b'"]}'),
        "escaped quotes": filled(b'{"texts":["', rb"\"", b'"]}'),
        "a number of many digits": filled(b'{"text":"a","k":', b"1", b"}"),
        "a text that never ends": filled(b'{"text":"', b"a", b"a"),
        "noise": np.random.default_rng(0).bytes(size),
        "one long text": filled(b'{"text":"', b"paper jam, ", b'"}'),
        "a thousand long texts": b'{"texts":[%s]}'
        % b",".join([b'"%s"' % (b"paper jam " * (size // 10_100))] * 1000),
        "escaped letters": filled(b'{"text":"', rb"\u00e9", b'"}'),
    }
    out = {name: ("/predict", body) for name, body in found.items()}
    for name in ("numbers for texts", "unknown names", "only brackets", "one long text"):
        out[f"/explain: {name}"] = ("/explain", found[name])
    out["/explain: wrong fields"] = ("/explain", b'{"label":"a","text":{%s}}' % names)
    return out


def hostile_rows(size: int, n_features: int) -> dict[str, bytes]:
    """Return questions to a shard (``longtail.linear.remote_shard``), in the same way."""

    def question(n: int, k: int, entries: int, rest: bytes = b"") -> bytes:
        head = np.array([n, k, 0, entries], "<i8").tobytes()
        return (head + rest).ljust(size, b"\0")[:size]

    room = size // 8 - 5
    offsets = np.array([0, room - 1], "<i8").tobytes()
    columns = np.resize(np.arange(n_features, dtype="<i4"), room - 1).tobytes()
    return {
        "noise": np.random.default_rng(0).bytes(size),
        "a million empty rows": question(room, 1, 0),
        "more rows than there are bytes": question(2**62, 1, 2**62),
        "all labels of every row": question(room, 2**31 - 1, 0),
        "a million columns out of order": question(1, 5, room - 1, offsets + columns),
        "a million columns of one feature": question(1, 5, room - 1, offsets),
    }
