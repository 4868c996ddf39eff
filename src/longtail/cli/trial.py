"""One model fitted and asked in a process of its own, so that its time and memory are its own."""

from __future__ import annotations

import multiprocessing
import pickle
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Trial", "run_trial"]


@dataclass(frozen=True)
class Trial:
    """What a model is worth and what that cost.

    ``report``: on its answers; ``fit_seconds``: training, features not counted; ``peak_mb``: most
    resident memory of the process that fitted it, data included; ``model_mb``: bytes of what was
    learned; ``microseconds``: per answered row, in one batch.
    """

    report: Any
    fit_seconds: float
    microseconds: float
    peak_mb: float | None
    model_mb: float


def run_trial(tagger: Any, rows: Any, texts: Any, measure: Callable[[Any, Any], Any]) -> Trial:
    """Fit a tagger on rows and ask it about texts, in a forked process where there are such.

    ``measure(tagger, top)`` makes the report on its answers.
    """
    if sys.platform != "linux":
        return _measured(tagger, rows, texts, measure, alone=False)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(theirs, ours, tagger, rows, texts, measure))
    child.start()
    theirs.close()
    try:
        answer = ours.recv()
    except EOFError:
        child.join()
        raise RuntimeError(
            f"the process that fitted {rows.plan.why} ended without an answer"
        ) from None
    finally:
        ours.close()
        if child.is_alive():
            child.join(timeout=1)
            child.terminate()
    child.join()
    if isinstance(answer, BaseException):
        raise answer
    found: Trial = answer
    return found


def _child(pipe: Any, other: Any, *arguments: Any) -> None:
    other.close()
    try:
        pipe.send(_measured(*arguments, alone=True))
    except KeyboardInterrupt:
        pass  # the parent is told by the same key
    except Exception as error:
        pipe.send(_sendable(error))
    finally:
        pipe.close()


def _sendable(error: Exception) -> Exception:
    """Return the error itself, or its message where it does not survive the way."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return ValueError(str(error))
    return error


def _measured(
    tagger: Any, rows: Any, texts: Any, measure: Callable[[Any, Any], Any], *, alone: bool
) -> Trial:
    began = time.perf_counter()
    tagger.fit_rows(rows)
    fitted = time.perf_counter()
    X = tagger.transform(texts)
    asked = time.perf_counter()
    top = tagger.rank(X, 5)
    answered = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 if alone else None
    return Trial(
        measure(tagger, top),
        fitted - began,
        1e6 * (answered - asked) / max(X.shape[0], 1),
        peak,
        _bytes(tagger.model_._get_state()) / 1e6,
    )


def _bytes(state: Any) -> int:
    own = sum(int(array.nbytes) for array in state.arrays.values())
    return own + sum(_bytes(part) for part in state.parts.values())
