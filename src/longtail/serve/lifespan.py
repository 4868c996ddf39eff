"""What every server does when it begins and when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Callable
from typing import Any

from longtail.serve.holder import Holder, settle
from longtail.serve.logs import start_logs, stop_logs
from longtail.serve.settings import Settings

__all__ = ["lifespan"]


def lifespan(settings: Settings, holder: Holder, close: Callable[[], None]) -> Any:
    """Return what FastAPI runs around a server: logs, and a look for new models now and then.

    ``close``: called when no request comes any more.
    """

    @contextlib.asynccontextmanager
    async def running(_: Any) -> AsyncIterator[None]:
        settle()
        logs = start_logs() if settings.logs else None
        watching = None
        if settings.reload_seconds:
            watching = asyncio.create_task(holder.watch(settings.reload_seconds))
        yield
        if watching is not None:
            watching.cancel()
        close()
        gc.unfreeze()
        if logs is not None:
            stop_logs(logs)

    return running
