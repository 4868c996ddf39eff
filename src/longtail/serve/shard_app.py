"""The endpoints of a shard: rows in, its best labels out, for the server that merges them.

``longtail.linear.remote_shard`` has the question and the answer, byte by byte. A shard knows
neither texts nor names; those are with the server that clients ask.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response

from longtail import __version__
from longtail._validation import as_width
from longtail.linear.remote_shard import MODEL_HEADER, pack_top, unpack_rows
from longtail.serve.bodies import Bodies
from longtail.serve.counters import Counters
from longtail.serve.guard import Guard
from longtail.serve.holder import Holder
from longtail.serve.lifespan import lifespan
from longtail.serve.refusals import refusal
from longtail.serve.settings import Settings
from longtail.tagger.sharding import members_of, shard_mark

__all__ = ["create_shard_app"]

_MOST_ANSWERS = 10_000_000  # rows times k of one request


def create_shard_app(settings: Settings, holder: Holder, counters: Counters) -> Any:
    """Return the ASGI application of a server whose model is a shard."""
    ranking = _Ranking(settings, holder, counters)

    app = FastAPI(
        title="Longtail shard",
        version=__version__,
        lifespan=lifespan(settings, holder, ranking.close),
        docs_url=None,
    )

    @app.head("/health", include_in_schema=False)
    @app.get("/health", summary="Whether the server answers, and for which shard")
    async def health() -> dict[str, Any]:
        mark = shard_mark(holder.current.tagger)
        return {"status": "ok", "reload_error": holder.error, "shard": mark.as_json()}

    @app.get("/metrics", response_class=Response, summary="Numbers for Prometheus")
    async def metrics() -> Response:
        text = counters.render({"waiting_texts": float(ranking.waiting)})
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.post("/rank", response_class=Response, summary="Best labels of rows, as bytes")
    async def rank(request: Request) -> Response:
        return await ranking.answer(request.headers.get(MODEL_HEADER), await request.body())

    return Guard(app, settings, counters)


class _Ranking:
    """Asks the model in a thread of its own, one request after the other."""

    def __init__(self, settings: Settings, holder: Holder, counters: Counters) -> None:
        self.settings, self.holder, self.counters = settings, holder, counters
        self.waiting = 0  # rows
        self._bodies = Bodies()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="longtail-model")

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def answer(self, wanted: str | None, body: bytes) -> Response:
        model = self.holder.current.tagger
        mark = shard_mark(model)
        if wanted != mark.model:
            return refusal(409, f"this is a shard of the model {mark.model}, not of {wanted!r:.50}")
        try:
            unpack = partial(unpack_rows, n_features=model.n_features_in_)
            X, k, member = await self._bodies.parsed(unpack, body)
            k = as_width(k, model.n_labels_)
            members = members_of(model)
            if member >= len(members):
                raise ValueError(f"there is no member {member}: the model has {len(members)}")
        except ValueError as error:
            return refusal(422, str(error))
        n = X.shape[0]
        if n > self.settings.max_batch or n * k > _MOST_ANSWERS:
            return refusal(413, f"{n:,} rows with {k:,} labels each are too many for one request")
        if self.waiting and self.waiting + n > self.settings.max_waiting:
            self.counters.add("refused")
            return refusal(503, "too many rows are waiting; try again", {"retry-after": "1"})
        self.counters.add("batches")
        self.counters.add("texts", n)
        self.waiting += n
        try:
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(self._thread, _rank, members[member], X, k)
        except ValueError as error:  # columns out of order, or not finite
            return refusal(422, str(error))
        finally:
            self.waiting -= n
        return Response(answer, media_type="application/octet-stream")


def _rank(model: Any, X: Any, k: int) -> bytes:
    return pack_top(model.predict_topk(X, k))
