"""Requests that arrive together are answered together.

One thread asks the model. While it works, requests gather; when it is free it takes all of them (up
to ``BATCH`` texts) at once. A lone request never waits for company, and a busy server does its work
in batches. Long requests are cut into pieces, so that short ones get their turn in between.

A short request that finds the server at rest is answered on the spot: handing it to the thread and
back would take about as long as the answer itself.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.serve.counters import Counters
from longtail.tagger import Tagger

__all__ = ["Answer", "Batcher", "Busy", "Options"]

BATCH = 256
AT_ONCE = 20_000  # characters of a request that may be answered on the spot: a few milliseconds
REST = 0.002  # seconds without work, after which the server counts as at rest


class Busy(Exception):
    """Too many texts are waiting."""


@dataclass(frozen=True)
class Options:
    """How one request wants to be answered; equal ones share a call."""

    k: int
    threshold: float | None = None
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    tail: float = 0.0


@dataclass(frozen=True)
class Answer:
    """Labels of one text, and how many of its terms the model knows."""

    labels: list[tuple[str, float]]
    known_terms: int


@dataclass
class _Piece:
    tagger: Tagger
    texts: list[Any]
    options: Options
    done: asyncio.Future[list[Answer]]


class Batcher:
    """``ask`` from the event loop; the work is done in one thread of its own."""

    def __init__(self, max_waiting: int, counters: Counters) -> None:
        self.max_waiting = max_waiting
        self.counters = counters
        self.waiting = 0  # texts
        self._queue: deque[_Piece] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="longtail-model")
        self._running: asyncio.Task[None] | None = None
        self._last = 0.0  # when the last work ended

    async def ask(self, tagger: Tagger, texts: list[Any], options: Options) -> list[Answer]:
        """Answers, in order. Raises ``Busy`` where too many texts are waiting already."""
        if self.waiting and self.waiting + len(texts) > self.max_waiting:
            self.counters.add("refused")
            raise Busy
        loop = asyncio.get_running_loop()
        if self._at_rest() and _is_short(texts):
            self.counters.add("batches")
            self.counters.add("texts", len(texts))
            try:
                return _ask(tagger, texts, options)
            finally:
                self._last = time.perf_counter()
        pieces = [
            _Piece(tagger, texts[i : i + BATCH], options, loop.create_future())
            for i in range(0, len(texts), BATCH)
        ]
        self._queue.extend(pieces)
        self.waiting += len(texts)
        if self._running is None or self._running.done():
            self._running = loop.create_task(self._work())
        try:
            found = await asyncio.gather(*(piece.done for piece in pieces))
        except BaseException:
            for piece in pieces:
                piece.done.cancel()
            raise
        return [answer for answers in found for answer in answers]

    def _at_rest(self) -> bool:
        busy = self._running is not None and not self._running.done()
        return not busy and not self._queue and time.perf_counter() - self._last > REST

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Other work for the same thread, such as explanations."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, function, *arguments)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._queue:
            batch: list[_Piece] = []
            size = 0
            while self._queue and (not batch or size + len(self._queue[0].texts) <= BATCH):
                piece = self._queue.popleft()
                self.waiting -= len(piece.texts)
                if not piece.done.done():  # whoever asked may have gone
                    batch.append(piece)
                    size += len(piece.texts)
            if not batch:
                continue
            self.counters.add("batches")
            self.counters.add("texts", size)
            results = await loop.run_in_executor(self._thread, _answer, batch)
            for piece, result in zip(batch, results, strict=True):
                if piece.done.done():
                    continue
                if isinstance(result, BaseException):
                    piece.done.set_exception(result)
                else:
                    piece.done.set_result(result)
        self._last = time.perf_counter()


def _is_short(texts: list[Any]) -> bool:
    if len(texts) > 4:
        return False
    parts = [text.values() if isinstance(text, dict) else (text,) for text in texts]
    return sum(len(part) for values in parts for part in values) <= AT_ONCE


def _answer(batch: list[_Piece]) -> list[list[Answer] | BaseException]:
    """Pieces of the same model and options in one call; an error stays with its piece."""
    groups: dict[tuple[int, Options], list[int]] = {}
    for i, piece in enumerate(batch):
        groups.setdefault((id(piece.tagger), piece.options), []).append(i)
    out: list[Any] = [None] * len(batch)
    for (_, options), members in groups.items():
        tagger = batch[members[0]].tagger
        texts = [text for i in members for text in batch[i].texts]
        try:
            answers = _ask(tagger, texts, options)
        except Exception as error:
            if len(members) == 1:
                out[members[0]] = error
            else:  # one of them is at fault: each is asked alone
                for i in members:
                    out[i] = _answer([batch[i]])[0]
            continue
        start = 0
        for i in members:
            stop = start + len(batch[i].texts)
            out[i] = answers[start:stop]
            start = stop
    return out


def _ask(tagger: Tagger, texts: list[Any], options: Options) -> list[Answer]:
    X = tagger.transform(texts)
    top = tagger.rank(
        X,
        options.k,
        threshold=options.threshold,
        include=options.include,
        exclude=options.exclude,
        tail=options.tail,
    )
    known = np.diff(X.indptr).tolist()
    return [Answer(labels, n) for labels, n in zip(tagger.named(top), known, strict=True)]
