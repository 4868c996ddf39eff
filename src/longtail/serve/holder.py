"""The model in use, and the watch for a new one.

A save puts a whole new folder in place of the old one (``longtail.persist``); or somebody copies
new files over the old ones. The watch notices, loads a copy of the new model (``copying``) beside
the old, asks it once so that its pages are warm, and only then lets it take over. Requests under
way keep the model they began with. A folder that cannot be loaded, or is still being written,
changes nothing but a counter and a line in the log, until it changes again.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import logging
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from longtail.base import Ranker
from longtail.exceptions import ModelFormatError
from longtail.persist.mark import Mark, mark_of
from longtail.serve.copying import load_copy
from longtail.serve.counters import Counters
from longtail.serve.settings import Settings
from longtail.tagger import Tagger
from longtail.tagger.sharding import connect, members_of, shard_mark, sharded_parts

__all__ = ["Holder", "Loaded", "load_model", "n_labels_of", "settle"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Loaded:
    """A model, what tells it from the next one, and when it was loaded.

    ``tagger``: a ``Tagger``, or a shard of its model.
    """

    tagger: Any
    mark: Mark | None
    since: str = field(
        default_factory=lambda: datetime.now(timezone.utc).isoformat(timespec="seconds")
    )


def load_model(settings: Settings) -> Loaded:
    """Load a copy of the model; refuse one that is neither a tagger nor a shard of one."""
    path = settings.model
    mark = mark_of(path)
    tagger = load_copy(path, settings.copies, settings.n_workers)
    if isinstance(tagger, Ranker) and not isinstance(tagger, Tagger):
        with contextlib.suppress(ModelFormatError):
            shard_mark(tagger)
            if settings.shards:
                raise ValueError(f"{path} is a shard itself: --shard is for the front")
            return Loaded(tagger, mark)
    if not isinstance(tagger, Tagger):
        raise ModelFormatError(
            f"{path} holds a {type(tagger).__name__}, which knows neither texts nor label names: "
            "make a model with `longtail train`"
        )
    if not (hasattr(tagger.vectorizer_, "transform_one") or tagger.model_.reads_texts):
        raise ModelFormatError(f"{path} was trained on features, and a server is asked for texts")
    parts = sharded_parts(tagger.model_)
    if parts and not settings.shards:
        raise ModelFormatError(
            f"the labels of {path} are in {parts[0].n_shards_} shards: serve these, and name their "
            "addresses with --shard"
        )
    if settings.shards:
        connect(tagger, settings.shards, token=settings.token, timeout=settings.timeout)
    tagger.predict(["a first question"], k=1)
    return Loaded(tagger, mark)


def n_labels_of(model: Any) -> int:
    """Return how many labels a tagger, or a shard, answers with."""
    if isinstance(model, Tagger):
        return len(model.label_names)
    return len(members_of(model)[0].label_of_leaf_)


def settle(*, anew: bool = False) -> None:
    """Tell the garbage collector that what is there now will stay.

    Looking through a model with many names for garbage takes milliseconds, again and again, and
    writes to memory that workers would otherwise share with their supervisor. ``anew``: look once
    through what settled before, a model that was replaced. What loading has freed goes back to the
    system, where the C library knows how (glibc keeps it).
    """
    if anew:
        gc.unfreeze()
    gc.collect()
    gc.freeze()
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


class Holder:
    """``current`` is the model to use; ``watch`` replaces it."""

    def __init__(
        self, settings: Settings, counters: Counters, loaded: Loaded | None = None
    ) -> None:
        self.settings = settings
        self.counters = counters
        self.current = load_model(settings) if loaded is None else loaded
        self.error: str | None = None
        self._refused: Mark | None = None

    async def watch(self, seconds: float) -> None:
        """Look for a new model every so many seconds, until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            with contextlib.suppress(Exception):
                await self.look()

    async def look(self) -> bool:
        """Take over a new model if there is one; whether it did."""
        mark = mark_of(self.settings.model)
        if not mark or mark in (self.current.mark, self._refused):
            return False
        try:
            found: Any = await asyncio.to_thread(load_model, self.settings)
        except Exception as error:  # whatever is wrong with it, the old model goes on
            self._refused, self.error = mark, str(error)
            self.counters.add("reload_failures")
            log.warning("the new model cannot be loaded, the old one goes on: %s", error)
            return False
        self.current, self.error = found, None
        await asyncio.to_thread(settle, anew=True)
        self.counters.add("reloads")
        log.info("a new model took over: %s", self.settings.model)
        return True
