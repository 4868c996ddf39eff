"""Requests that arrive together are answered together, and long work is done in small steps.

One thread asks the model. While it works, requests gather; when it is free it takes all of them (up
to ``BATCH`` texts) at once. A lone request never waits for company, and a busy server does its work
in batches. Long requests are cut into pieces, so that short ones get their turn in between.

Explanations are jobs of many small steps. Between two batches, one of them gets the thread for
``SLICE`` seconds, and the next one the next time: whatever is to be explained, an answer waits for
a slice at most. Who asked may go, or run out of time: a cancelled job is dropped at its next step,
and a cancelled piece before it is begun.

A short request that finds the server at rest is answered on the spot: handing it to the thread and
back would take about as long as the answer itself. Not so with a model that takes its time, such as
one that encodes texts: the event loop would stand still meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from longtail.answers import AnswerOptions
from longtail.data.text_rows import TextRows
from longtail.serve.counters import Counters
from longtail.tagger import Tagger
from longtail.tagger.answering import rows_to_rank

__all__ = ["Answer", "Batcher", "Busy"]

BATCH = 256
AT_ONCE = 20_000  # characters of a request that may be answered on the spot
QUICK = 0.01  # seconds that the model may have taken for a text lately, for that
REST = 0.002  # seconds without work, after which the server counts as at rest
SLICE = 0.002  # seconds
_FEW = 100  # labels per text that make no text heavier than another


class Busy(Exception):
    """Too many texts are waiting."""


def heaviness(options: AnswerOptions) -> int:
    """Return how many usual texts one text under these options stands for."""
    return -(-options.k // _FEW)


@dataclass(frozen=True)
class Answer:
    """Label ids and scores of one text, best first, and how many of its terms the model knows; None
    where it has no terms.
    """

    ids: np.ndarray
    scores: np.ndarray
    known_terms: int | None


@dataclass
class _Piece:
    tagger: Tagger
    texts: list[Any]
    options: AnswerOptions
    done: asyncio.Future[list[Answer]]

    @property
    def size(self) -> int:
        return len(self.texts) * heaviness(self.options)


@dataclass
class _Job:
    steps: Iterator[Any]
    weight: int
    done: asyncio.Future[list[Any]]
    found: list[Any] = field(default_factory=list)

    def advance(self) -> bool:
        """Work for a slice; whether that was the end."""
        deadline = time.perf_counter() + SLICE
        for step in self.steps:
            if step is not None:
                self.found.append(step)
            if time.perf_counter() > deadline:
                return False
        return True


class Batcher:
    """``ask`` and ``explain`` from the event loop; the work is done in one thread of its own."""

    def __init__(self, max_waiting: int, counters: Counters) -> None:
        self.max_waiting = max_waiting
        self.counters = counters
        self.waiting = 0  # texts, and labels of texts to be explained
        self._queue: deque[_Piece] = deque()
        self._jobs: deque[_Job] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="longtail-model")
        self._running: asyncio.Task[None] | None = None
        self._last = 0.0  # when the last work ended
        self._pace = 1.0  # seconds a text in the last call of the model

    def at_once(self, texts: list[Any], options: AnswerOptions) -> bool:
        """Return whether these texts would be answered on the spot."""
        quick = self._pace <= QUICK and len(texts) * heaviness(options) <= 4
        return quick and self._at_rest() and _is_short(texts)

    async def ask(self, tagger: Tagger, texts: list[Any], options: AnswerOptions) -> list[Answer]:
        """Return answers, in order. Raise ``Busy`` where too many texts are waiting already."""
        self._admit(len(texts))
        if self.at_once(texts, options):
            self.counters.add("batches")
            self.counters.add("texts", len(texts))
            began = time.perf_counter()
            try:
                return _ask(tagger, texts, options)
            finally:
                self._last = time.perf_counter()
                self._pace = (self._last - began) / len(texts)
        loop = asyncio.get_running_loop()
        size = max(1, BATCH // heaviness(options))
        pieces = [
            _Piece(tagger, texts[i : i + size], options, loop.create_future())
            for i in range(0, len(texts), size)
        ]
        self._queue.extend(pieces)
        self.waiting += len(texts)
        self._start()
        try:
            found = await asyncio.gather(*(piece.done for piece in pieces))
        except BaseException:
            for piece in pieces:
                piece.done.cancel()
            raise
        return [answer for answers in found for answer in answers]

    async def explain(self, steps: Iterator[Any], n_labels: int) -> list[Any]:
        """Return what ``steps`` yields, without the Nones; ``n_labels`` count as so many texts."""
        self._admit(n_labels)
        job = _Job(steps, n_labels, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self.waiting += n_labels
        self._start()
        try:
            return await job.done
        finally:
            job.done.cancel()

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _admit(self, n: int) -> None:
        if self.waiting and self.waiting + n > self.max_waiting:
            self.counters.add("refused")
            raise Busy

    def _at_rest(self) -> bool:
        busy = self._running is not None and not self._running.done()
        waiting = self._queue or self._jobs
        return not busy and not waiting and time.perf_counter() - self._last > REST

    def _start(self) -> None:
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        while self._queue or self._jobs:
            if self._queue:
                await self._answer_batch()
            if self._jobs:
                await self._advance_job()
        self._last = time.perf_counter()

    async def _answer_batch(self) -> None:
        batch: list[_Piece] = []
        size = 0
        while self._queue and (not batch or size + self._queue[0].size <= BATCH):
            piece = self._queue.popleft()
            self.waiting -= len(piece.texts)
            if not piece.done.done():  # whoever asked may have gone
                batch.append(piece)
                size += piece.size
        if not batch:
            return
        n = sum(len(piece.texts) for piece in batch)
        self.counters.add("batches")
        self.counters.add("texts", n)
        loop, began = asyncio.get_running_loop(), time.perf_counter()
        results = await loop.run_in_executor(self._thread, _answer, batch)
        self._pace = (time.perf_counter() - began) / n
        for piece, result in zip(batch, results, strict=True):
            if piece.done.done():
                continue
            if isinstance(result, BaseException):
                piece.done.set_exception(result)
            else:
                piece.done.set_result(result)

    async def _advance_job(self) -> None:
        job = self._jobs.popleft()
        ended = job.done.done()  # whoever asked has gone, or has no more time
        if not ended:
            loop = asyncio.get_running_loop()
            try:
                ended = await loop.run_in_executor(self._thread, job.advance)
                if ended and not job.done.done():
                    self.counters.add("explanations", job.weight)
                    job.done.set_result(job.found)
            except Exception as error:
                ended = True
                if not job.done.done():
                    job.done.set_exception(error)
        if ended:
            self.waiting -= job.weight
        else:
            self._jobs.append(job)


def _is_short(texts: list[Any]) -> bool:
    parts = [text.values() if isinstance(text, dict) else (text,) for text in texts]
    return sum(len(part) for values in parts for part in values) <= AT_ONCE


def _answer(batch: list[_Piece]) -> list[list[Answer] | BaseException]:
    """Return pieces of the same model and equal options in one call; an error stays with its
    piece.
    """
    groups: dict[tuple[int, AnswerOptions], list[int]] = {}
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


def _ask(tagger: Tagger, texts: list[Any], options: AnswerOptions) -> list[Answer]:
    X = rows_to_rank(tagger, texts)
    top = tagger.rank(X, options)
    known = [None] * len(top) if isinstance(X, TextRows) else np.diff(X.indptr).tolist()
    return [Answer(*row) for row in zip(top.indices, top.scores, known, strict=True)]
