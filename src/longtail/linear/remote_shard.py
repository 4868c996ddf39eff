"""``RemoteShard``: a shard of a model on another server, asked over HTTP.

A question is ``POST /rank`` with rows, and an answer has label ids and scores, as bytes: both keep
every bit. Little-endian, and nothing between the parts::

    question   int64 n, k, member, n_entries │ int64 indptr (n + 1) │ int32 columns │ float32 values
    answer     int32 ids (n, k) │ float32 scores (n, k)

The header ``x-longtail-model`` of a question names the model that is asked for; a server that has
another one refuses (409), so that shards of two models are never mixed.
"""

from __future__ import annotations

import contextlib
import http.client
import threading
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import scipy.sparse as sp

from longtail._csr import csr
from longtail.answers.topk import TopK

__all__ = ["MODEL_HEADER", "RemoteShard", "ShardLost", "pack_top", "unpack_rows"]

MODEL_HEADER = "x-longtail-model"
_HEAD = 4  # numbers before the rows
_STALE = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)


class ShardLost(ConnectionError):
    """A shard does not answer, or not for this model; the answer of the whole is not known."""


class RemoteShard:
    """The shard that a server, or a load balancer before several of them, answers for.

    ``address``: as in ``http://10.0.0.7:8000``; ``model``: name of the model that was cut;
    ``member``: which member of an ensemble, 0 otherwise; ``timeout``: seconds for an answer.
    Connections are kept open, one for each thread that asks.
    """

    def __init__(
        self,
        address: str,
        model: str,
        member: int = 0,
        *,
        token: str | None = None,
        timeout: float = 30.0,
    ) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
            raise ValueError(f"a shard's address is like http://10.0.0.7:8000, got {address!r}")
        self.address, self.member, self.timeout = address, member, timeout
        self._kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        self._place = parts.netloc
        self._headers = {"content-type": "application/octet-stream", MODEL_HEADER: model}
        if token is not None:
            self._headers["authorization"] = f"Bearer {token}"
        self._local = threading.local()

    def predict_topk(self, X: sp.csr_matrix, k: int) -> TopK:
        """Return the best labels of the shard. Raise ``ShardLost`` if it cannot be asked."""
        try:
            status, body = self._post(_pack_rows(X, k, self.member))
        except (OSError, http.client.HTTPException) as error:
            self._close()
            raise ShardLost(f"the shard at {self.address} does not answer: {error!r}") from error
        if status != 200:
            said = body.decode("utf-8", "replace")[:300]
            raise ShardLost(f"the shard at {self.address} refused, with {status}: {said}")
        n = X.shape[0]
        if len(body) != 8 * n * k:
            raise ShardLost(f"the shard at {self.address} answered {len(body)} bytes")
        ids = np.frombuffer(body, "<i4", n * k).reshape(n, k)
        scores = np.frombuffer(body, "<f4", n * k, 4 * n * k).reshape(n, k)
        return TopK._trusted(ids, scores, None)

    def _post(self, body: bytes) -> tuple[int, bytes]:
        """Ask; a connection that was closed while it rested is made anew, once."""
        kept = getattr(self._local, "connection", None)
        if kept is not None:
            try:
                return self._exchange(kept, body)
            except _STALE:
                self._close()
        self._local.connection = self._kind(self._place, timeout=self.timeout)
        return self._exchange(self._local.connection, body)

    def _exchange(self, connection: Any, body: bytes) -> tuple[int, bytes]:
        connection.request("POST", "/rank", body, self._headers)
        response = connection.getresponse()
        return response.status, response.read()

    def _close(self) -> None:
        kept = self._local.__dict__.pop("connection", None)
        if kept is not None:
            with contextlib.suppress(OSError):
                kept.close()


def _pack_rows(X: sp.csr_matrix, k: int, member: int) -> bytes:
    head = np.array([X.shape[0], k, member, X.nnz], "<i8")
    parts = (head, X.indptr.astype("<i8"), X.indices.astype("<i4"), X.data.astype("<f4"))
    return b"".join(part.tobytes() for part in parts)


def unpack_rows(body: bytes, n_features: int) -> tuple[sp.csr_matrix, int, int]:
    """Return rows, k and the member of a question; raise ValueError for bytes that are none.

    Offsets are checked here, columns by whoever reads the rows.
    """
    if len(body) < 8 * _HEAD:
        raise ValueError(f"expected rows, got {len(body)} bytes")
    n, k, member, entries = np.frombuffer(body, "<i8", _HEAD).tolist()
    if min(n, member, entries) < 0 or k < 1 or len(body) != 8 * (_HEAD + n + 1) + 8 * entries:
        raise ValueError(f"the head tells of {n} rows, k = {k} and {entries} entries")
    indptr = np.frombuffer(body, "<i8", n + 1, 8 * _HEAD)
    if indptr[0] != 0 or indptr[-1] != entries or (indptr[1:] < indptr[:-1]).any():
        raise ValueError(f"offsets must rise from 0 to {entries}")
    start = 8 * (_HEAD + n + 1)
    columns = np.frombuffer(body, "<i4", entries, start)
    values = np.frombuffer(body, "<f4", entries, start + 4 * entries)
    return csr(indptr, columns, values, n_features), k, member


def pack_top(top: TopK) -> bytes:
    """Return an answer as bytes."""
    return top.indices.astype("<i4").tobytes() + top.scores.astype("<f4").tobytes()
