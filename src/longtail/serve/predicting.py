"""``POST /predict`` and ``POST /explain``.

The body goes from bytes to a checked ``Question`` in one step, in compiled code, and the answer to
bytes in another; ``Guard`` hands such requests over by itself. That is where most requests go, and
the framework's own way would double the time they take beside the model's. The contract (OpenAPI)
is still read off the signature of an endpoint.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from longtail.answers import AnswerOptions
from longtail.linear.remote_shard import ShardLost
from longtail.serve import schemas
from longtail.serve.answers import explaining, explaining_one, rendered
from longtail.serve.batching import Batcher, Busy
from longtail.serve.bodies import Bodies, TooComplex, check_json
from longtail.serve.explaining import too_much
from longtail.serve.gone import Receive, until_gone
from longtail.serve.holder import Holder
from longtail.serve.refusals import invalid, refusal
from longtail.serve.settings import Settings
from longtail.serve.streamed import Streamed
from longtail.tagger.abilities import can_filter

__all__ = ["Predicting"]

Asked = TypeVar("Asked", bound=BaseModel)
Answer = Callable[[str, bytes, Receive], Awaitable[Any]]


class Predicting:
    """Answers from the bytes of a body to a response, errors too."""

    def __init__(self, settings: Settings, holder: Holder, batcher: Batcher) -> None:
        self.settings = settings
        self.holder = holder
        self.batcher = batcher
        self._bodies = Bodies()
        self._longest = max(settings.max_batch, schemas.MOST_NAMES)

    async def answer(self, content_type: str, body: bytes, receive: Receive) -> Any:
        """Answer ``POST /predict``."""
        return await self._read(schemas.Question, content_type, body, receive, self._answer)

    async def explain(self, content_type: str, body: bytes, receive: Receive) -> Any:
        """Answer ``POST /explain``."""
        return await self._read(schemas.Why, content_type, body, receive, self._explain)

    async def _read(
        self,
        kind: type[Asked],
        content_type: str,
        body: bytes,
        receive: Receive,
        answer: Callable[[Asked, Receive], Awaitable[Any]],
    ) -> Any:
        """Check the body and answer; what cannot be answered becomes a refusal."""
        stated = content_type.partition(";")[0].strip().lower()
        if stated != "application/json" and not stated.endswith("+json"):
            return refusal(415, "send JSON, with content-type: application/json")

        def checked(body: bytes) -> Asked:
            check_json(body, self._longest)
            return kind.model_validate_json(body)

        try:
            asked = await self._bodies.parsed(checked, body)
        except TooComplex as error:
            return refusal(413, str(error))
        except ValidationError as error:
            return invalid(error.errors(include_url=False, include_input=False))
        try:
            return await answer(asked, receive)
        except ShardLost as error:
            return refusal(503, f"{error}; try again", {"retry-after": "1"})
        except Busy:
            return refusal(503, "too many texts are waiting; try again", {"retry-after": "1"})
        except (TypeError, ValueError) as error:
            return refusal(422, str(error))

    async def _answer(self, question: schemas.Question, receive: Receive) -> Any:
        tagger = self.holder.current.tagger
        n = len(question.texts)
        if n > self.settings.max_batch:
            return refusal(413, f"more than {self.settings.max_batch:,} texts in one request")
        if question.explain:
            why = too_much(question.texts, min(question.k, len(tagger.label_names)))
            if why is not None:
                return refusal(422, why)
        if (question.include or question.exclude) and not can_filter(tagger.model_):
            return refusal(422, "this model cannot filter labels (include, exclude)")
        for name in (*(question.include or ()), *(question.exclude or ())):
            if name not in tagger.vocabulary_:  # said without the slow search for a similar one
                return refusal(422, f"unknown label {name[:100]!r}")
        options = AnswerOptions(
            question.k,
            question.threshold,
            None if question.include is None else tuple(question.include),
            None if question.exclude is None else tuple(question.exclude),
            self.settings.tail if question.tail is None else question.tail,
        )
        asking = self.batcher.ask(tagger, question.texts, options)
        if self.batcher.at_once(question.texts, options):
            answers = await asking
        else:
            answers = await until_gone(asking, receive)
        reasons = None
        if question.explain:
            n_labels = sum(int((answer.ids >= 0).sum()) for answer in answers)
            steps = explaining(tagger, question.texts, answers)
            reasons = await until_gone(self.batcher.explain(steps, n_labels), receive)
        return Streamed(rendered(tagger, answers, reasons))

    async def _explain(self, asked: schemas.Why, receive: Receive) -> Any:
        tagger = self.holder.current.tagger
        why = too_much([asked.text], 1)
        if why is not None:
            return refusal(422, why)
        if asked.label not in tagger.vocabulary_:
            return refusal(422, f"unknown label {asked.label[:100]!r}")
        steps = explaining_one(tagger, asked.text, asked.label)
        (found,) = await until_gone(self.batcher.explain(steps, 1), receive)
        return Response(found.encode("ascii"), media_type="application/json")

    def router(self) -> APIRouter:
        """Return the endpoints, for the framework and its contract."""
        answers = {"/predict": self.answer, "/explain": self.explain}

        class Route(APIRoute):
            def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
                answer = answers[self.path]

                async def handle(request: Request) -> Response:
                    kind = request.headers.get("content-type", "")
                    found: Response = await answer(kind, await request.body(), request.receive)
                    return found

                return handle

        router = APIRouter(route_class=Route)

        @router.post("/predict", response_model=schemas.Predictions, summary="Label texts")
        async def predict(question: schemas.Question) -> None: ...

        @router.post(
            "/explain",
            response_model=schemas.Explained,
            summary="Which words of a text spoke for a label",
        )
        async def explain(asked: schemas.Why) -> None: ...

        return router
