"""The endpoints."""

from __future__ import annotations

import asyncio
import importlib.resources
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from longtail import __version__
from longtail.serve import schemas
from longtail.serve.answers import model_facts
from longtail.serve.batching import Batcher
from longtail.serve.contract import contract_page
from longtail.serve.counters import Counters
from longtail.serve.guard import Guard
from longtail.serve.holder import Holder, Loaded
from longtail.serve.lifespan import lifespan
from longtail.serve.predicting import Predicting
from longtail.serve.problems import TYPE
from longtail.serve.refusals import invalid, refusal
from longtail.serve.settings import Settings
from longtail.serve.shard_app import create_shard_app
from longtail.tagger import Tagger
from longtail.tagger.names import search_labels

__all__ = ["create_app"]

_STATIC = {
    "find.js": "text/javascript; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "session.js": "text/javascript; charset=utf-8",
    "why.js": "text/javascript; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


def _problem(text: str) -> dict[str, Any]:
    """Return an error, for the contract."""
    shape = {"schema": {"$ref": f"#/components/schemas/{schemas.Problem.__name__}"}}
    return {"model": schemas.Problem, "content": {TYPE: shape}, "description": text}


_ERRORS: dict[int | str, dict[str, Any]] = {
    status: _problem(text)
    for status, text in {
        400: "not JSON",
        401: "no token, or a wrong one",
        413: "too large",
        415: "the content type is not JSON",
        421: "called by a name that is not the server's",
        422: "what is asked for makes no sense",
        429: "too many requests",
        503: "too busy, or too slow",
    }.items()
}


def create_app(settings: Settings, loaded: Loaded | None = None) -> Any:
    """Return the ASGI application of a server with these settings; load the model, unless it is
    ``loaded``.
    """
    counters = Counters(settings.counters)
    holder = Holder(settings, counters, loaded)
    if not isinstance(holder.current.tagger, Tagger):
        return create_shard_app(settings, holder, counters)
    batcher = Batcher(settings.max_waiting, counters)

    app = FastAPI(
        title=settings.title or "Longtail",
        version=__version__,
        summary="Label names for texts.",
        lifespan=lifespan(settings, holder, batcher.close),
        docs_url=None,  # their pages load scripts from elsewhere; ours is in ``contract``
        redoc_url=None,
        redirect_slashes=False,  # a redirect would repeat whatever name the client called us by
        responses=_ERRORS,
    )
    _handle_errors(app)
    predicting = Predicting(settings, holder, batcher)
    app.include_router(predicting.router())
    _facts(app, settings, holder, batcher, counters)
    if settings.page:
        _page(app)
    _docs(app)
    direct = {
        ("POST", "/predict"): predicting.answer,
        ("POST", "/explain"): predicting.explain,
    }
    return Guard(app, settings, counters, direct)


def _facts(
    app: FastAPI, settings: Settings, holder: Holder, batcher: Batcher, counters: Counters
) -> None:
    @app.get("/labels", response_model=schemas.Labels, summary="Search label names")
    async def labels(
        q: Annotated[str, Query(max_length=1000, description="Part of a name or text.")] = "",
        limit: Annotated[int, Query(ge=1, le=1000)] = 20,
    ) -> Response:
        tagger = holder.current.tagger
        counts = tagger.label_counts_
        if q.strip():
            ids = await asyncio.to_thread(
                search_labels, tagger.label_names, tagger.label_texts_, q, limit
            )
        else:  # the most frequent ones
            ids = (-counts).argsort(kind="stable")[:limit].tolist()
        texts = tagger.label_texts_
        found = [
            {
                "label": tagger.label_names[i],
                "text": texts[i] if texts is not None else None,
                "training_texts": int(counts[i]),
            }
            for i in ids
        ]
        return JSONResponse({"labels": found, "total": len(tagger.label_names)})

    @app.head("/health", include_in_schema=False)
    @app.get("/health", response_model=schemas.Health, summary="Whether the server answers")
    async def health() -> dict[str, Any]:
        return {"status": "ok", "reload_error": holder.error}

    @app.get("/version", response_model=schemas.Version, summary="What is running")
    async def version() -> dict[str, str]:
        since = holder.current.since
        return {"longtail": __version__, "model": settings.model, "since": since}

    @app.get("/model", response_model=schemas.ModelFacts, summary="Facts about the model")
    async def model() -> dict[str, Any]:
        return model_facts(holder.current.tagger, settings)

    @app.get("/metrics", response_class=Response, summary="Numbers for Prometheus")
    async def metrics() -> Response:
        gauges = {"waiting_texts": float(batcher.waiting)}
        text = counters.render(gauges)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get(
        "/report",
        response_class=Response,
        responses={404: _problem("no report was kept")},
        summary="The evaluation report of the model, as a page",
    )
    def report() -> Response:  # in a thread: a page takes tens of milliseconds
        tagger = holder.current.tagger
        if tagger.report_ is None:
            raise HTTPException(404, "this model was saved without an evaluation")
        headers = {"content-security-policy": _REPORT_POLICY}
        page = tagger.report_page()
        return Response(page, media_type="text/html; charset=utf-8", headers=headers)


def _page(app: FastAPI) -> None:
    folder = importlib.resources.files("longtail.serve").joinpath("static")
    files = {name: folder.joinpath(name).read_bytes() for name in (*_STATIC, "page.html")}

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return Response(files["page.html"], media_type="text/html; charset=utf-8")

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        if name not in _STATIC:
            raise HTTPException(404, "no such file")
        return Response(files[name], media_type=_STATIC[name])


def _docs(app: FastAPI) -> None:
    page: list[bytes] = []  # made when first asked for

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        if not page:
            page.append(contract_page(app.openapi()).encode("utf-8"))
        headers = {"content-security-policy": _REPORT_POLICY}
        return Response(page[0], media_type="text/html; charset=utf-8", headers=headers)


def _handle_errors(app: FastAPI) -> None:
    @app.exception_handler(HTTPException)
    async def refused(_: Request, error: HTTPException) -> Response:
        return refusal(error.status_code, str(error.detail), error.headers)

    @app.exception_handler(RequestValidationError)
    async def wrong(_: Request, error: RequestValidationError) -> Response:
        return invalid(error.errors())
