"""What torchrun starts in the tests: trains models, one after the other, and saves them, by the
first process.

torchrun --nproc-per-node 2 group_training.py JOBS.json

A job has ``model``, a class, and its ``settings``; ``out``, where the model goes, and with
``save_all`` those of the other processes beside it; ``checkpoint``; ``stop_after``: how often that
is written before the training is cut short; ``still``: whether encoders draw no random numbers;
``rows``: how many of them the last process has; ``refused``: whether it is to end with an error,
which is written to ``out``. A training that is cut short writes there how many labels each process
had.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import longtail as lt


def problem(n: int = 70, L: int = 23) -> tuple[list[str], list[list[int]]]:
    rng = np.random.default_rng(0)
    labels = [sorted(set(rng.integers(0, L, 2).tolist())) for _ in range(n)]
    noise = rng.integers(0, 40, (n, 3))
    texts = [
        " ".join([f"label{j}" for j in row] + [f"noise{j}" for j in extra])
        for row, extra in zip(labels, noise, strict=True)
    ]
    labels[0] = [L - 1]
    return texts, labels


def train(
    model: str,
    settings: dict[str, Any],
    *,
    checkpoint: str | None = None,
    still: bool = False,
    rows: int | None = None,
) -> Any:
    texts, labels = problem()
    given: dict[str, Any] = {"checkpoint": checkpoint}
    if model in ("DualEncoder", "UniDEC"):
        given["label_texts"] = [f"label{j}" for j in range(23)]
    made = getattr(lt, model)(device="cpu", onnx=False, n_jobs=1, **settings)
    with still_encoders() if still else as_they_are():
        return made.fit(texts[:rows], labels[:rows], **given)


@contextmanager
def as_they_are() -> Iterator[None]:
    yield


@contextmanager
def still_encoders() -> Iterator[None]:
    """Let new encoders drop nothing."""
    from longtail.deep.encoders.average import Average

    before = Average.__init__.__defaults__
    Average.__init__.__defaults__ = (384, 0.0)
    try:
        yield
    finally:
        Average.__init__.__defaults__ = before


class Ended(Exception):
    """The training was cut short here, as by a machine that is lost; with what it had."""


@contextmanager
def ends_after(times: int) -> Iterator[None]:
    """Let trainings end once they have written their checkpoint so often."""
    from longtail.deep.training.checkpoint import Checkpoint
    from longtail.text.level_training import LevelCheckpoint

    written = 0

    def ending(save: Any) -> Any:
        def save_and_end(self: Any, *args: Any) -> None:
            nonlocal written
            save(self, *args)
            written += 1
            if written == times:
                raise Ended(*args)

        return save_and_end

    with (
        patch.object(Checkpoint, "save", ending(Checkpoint.save)),
        patch.object(LevelCheckpoint, "save", ending(LevelCheckpoint.save)),
    ):
        yield


def do(job: dict[str, Any], rank: int, size: int) -> None:
    what = {name: job[name] for name in ("checkpoint", "still") if name in job}
    if rank == size - 1 and "rows" in job:
        what["rows"] = job["rows"]
    try:
        with ends_after(job["stop_after"]) if "stop_after" in job else as_they_are():
            model = train(job["model"], job["settings"], **what)
    except Ended as ended:
        if hasattr(ended.args[0], "output"):
            learned = ended.args[0].output.trained()
            count = len(learned["table"] if "table" in learned else learned["weights"])
            Path(f"{job['out']}-{rank}").write_text(str(count))
        return
    except (ValueError, RuntimeError) as error:
        if "process 0 failed with Ended" in str(error):
            return
        if not job.get("refused"):
            raise
        Path(f"{job['out']}-{rank}").write_text(str(error))
        return
    if rank == 0:
        model.save(job["out"])
    elif job.get("save_all"):
        model.save(f"{job['out']}-{rank}")


def main() -> None:
    import torch.distributed as dist

    import longtail.deep.group

    longtail.deep.group._STILL_AT_IT = 0.01  # so that words to those who wait are part of it all
    dist.init_process_group("gloo")
    for job in json.loads(Path(sys.argv[1]).read_text()):
        do(job, dist.get_rank(), dist.get_world_size())
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
