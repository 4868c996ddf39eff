"""``POST /predict``.

The body goes from bytes to a checked ``Question`` in one step, in compiled code, and the answer to
bytes in another; ``Guard`` hands such requests over by itself. That is where most requests go, and
the framework's own way would double the time they take beside the model's. The contract (OpenAPI)
is still read off the signature of an endpoint.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic import ValidationError

from longtail.serve import schemas
from longtail.serve.answers import explained, shown
from longtail.serve.batching import Batcher, Busy, Options
from longtail.serve.holder import Holder
from longtail.serve.refusals import invalid, refusal
from longtail.serve.settings import Settings
from longtail.tagger.abilities import can_filter

__all__ = ["Predicting"]

_MOST_EXPLAINED = 16


class Predicting:
    """Answers ``POST /predict``: ``answer`` from the bytes of a body to a response, errors too."""

    def __init__(self, settings: Settings, holder: Holder, batcher: Batcher) -> None:
        self.settings = settings
        self.holder = holder
        self.batcher = batcher

    async def answer(self, content_type: str, body: bytes) -> Response:
        kind = content_type.partition(";")[0].strip().lower()
        if kind != "application/json" and not kind.endswith("+json"):
            return refusal(415, "send JSON, with content-type: application/json")
        try:
            question = schemas.Question.model_validate_json(body)
        except ValidationError as error:
            return invalid(error.errors(include_url=False, include_input=False))
        try:
            return await self._answer(question)
        except Busy:
            return refusal(503, "too many texts are waiting; try again", {"retry-after": "1"})
        except (TypeError, ValueError) as error:
            return refusal(422, str(error))

    async def _answer(self, question: schemas.Question) -> Response:
        tagger = self.holder.current.tagger
        n = len(question.texts)
        if n > self.settings.max_batch:
            return refusal(413, f"more than {self.settings.max_batch:,} texts in one request")
        if question.explain and n > _MOST_EXPLAINED:
            return refusal(422, f"explain is for at most {_MOST_EXPLAINED} texts at a time")
        if (question.include or question.exclude) and not can_filter(tagger.model_):
            return refusal(422, "this model cannot filter labels (include, exclude)")
        for name in (*(question.include or ()), *(question.exclude or ())):
            if name not in tagger.vocabulary_:  # said without the slow search for a similar one
                return refusal(422, f"unknown label {name[:100]!r}")
        options = Options(
            question.k,
            question.threshold,
            None if question.include is None else tuple(question.include),
            None if question.exclude is None else tuple(question.exclude),
            self.settings.tail if question.tail is None else question.tail,
        )
        answers = await self.batcher.ask(tagger, question.texts, options)
        reasons = None
        if question.explain:
            reasons = await self.batcher.run(explained, tagger, question.texts, answers)
        body = json.dumps(shown(tagger, answers, reasons), separators=(",", ":"))
        return Response(body.encode("ascii"), media_type="application/json")

    def router(self) -> APIRouter:
        """The endpoint, for the framework and its contract."""
        answer = self.answer

        class Route(APIRoute):
            def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
                async def handle(request: Request) -> Response:
                    kind = request.headers.get("content-type", "")
                    return await answer(kind, await request.body())

                return handle

        router = APIRouter(route_class=Route)

        @router.post("/predict", response_model=schemas.Predictions, summary="Label texts")
        async def predict(question: schemas.Question) -> Response:
            return await answer("application/json", question.model_dump_json().encode())

        return router
