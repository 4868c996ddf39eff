"""One model fitted and asked in a process of its own, so that its time and memory are its own."""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from dataclasses import dataclass
from typing import Any

__all__ = ["Trial", "run_trial"]


@dataclass(frozen=True)
class Trial:
    """What a model answered and what that cost.

    ``peak_mb``: most resident memory of the process that fitted it, data included; ``model_mb``:
    bytes of what was learned; ``microseconds``: per answered row, in one batch.
    """

    top: Any
    fit_seconds: float
    microseconds: float
    peak_mb: float | None
    model_mb: float


def run_trial(model: Any, X: Any, Y: Any, X_test: Any, k: int) -> Trial:
    """Fits and asks a model in a forked process; in this one where forking is not to be had."""
    if sys.platform != "linux":
        return _measure(model, X, Y, X_test, k, alone=False)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(theirs, ours, model, X, Y, X_test, k))
    child.start()
    theirs.close()
    try:
        answer = ours.recv()
    except EOFError:
        child.join()
        raise RuntimeError(f"the process that fitted {model!r} ended without an answer") from None
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
        pipe.send(_measure(*arguments, alone=True))
    except KeyboardInterrupt:
        pass  # the parent is told by the same key
    except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
        pipe.send(error)
    finally:
        pipe.close()


def _measure(model: Any, X: Any, Y: Any, X_test: Any, k: int, *, alone: bool) -> Trial:
    began = time.perf_counter()
    model.fit(X, Y)
    fitted = time.perf_counter()
    top = model.predict_topk(X_test, k)
    answered = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 if alone else None
    return Trial(
        top,
        fitted - began,
        1e6 * (answered - fitted) / max(X_test.shape[0], 1),
        peak,
        _bytes(model._get_state()) / 1e6,
    )


def _bytes(state: Any) -> int:
    own = sum(int(array.nbytes) for array in state.arrays.values())
    return own + sum(_bytes(part) for part in state.parts.values())
