"""Work that ends when the client is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, TypeVar

__all__ = ["Gone", "Receive", "until_gone"]

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Found = TypeVar("Found")


class Gone(Exception):
    """Nobody is there to be answered."""


async def until_gone(work: Coroutine[Any, Any, Found], receive: Receive) -> Found:
    """Return what ``work`` returns; cancels it and raises ``Gone`` once the client hangs up.

    The body of the request must have been received.
    """
    task = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Gone
    finally:
        task.cancel()
        leaving.cancel()
        await asyncio.gather(task, leaving, return_exceptions=True)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
