"""What torchrun starts in the tests: trains a text network and saves it, by the first process.

torchrun --nproc-per-node 2 group_training.py SETTINGS.json OUT
"""

from __future__ import annotations

import json
import sys
from typing import Any

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


def train(settings: dict[str, Any], checkpoint: str | None = None, **change: Any) -> Any:
    texts, labels = problem()
    texts = texts[: change.get("rows", len(texts))]
    settings = dict(settings)
    if settings.pop("still", False):  # an encoder that draws no random numbers
        from longtail.deep.encoders.average import Average

        Average.__init__.__defaults__ = (384, 0.0)
    model = lt.TextNetwork(device="cpu", onnx=False, n_jobs=1, **settings)
    return model.fit(texts, labels[: len(texts)], checkpoint=checkpoint)


class Ended(Exception):
    """The training was cut short here, as by a machine that is lost."""


def end_after(epochs: int) -> None:
    """Let trainings end once so many epochs are in the checkpoint."""
    from longtail.deep.training.checkpoint import Checkpoint

    save = Checkpoint.save

    def save_and_end(self: Any, trainer: Any, spent: float) -> None:
        save(self, trainer, spent)
        if len(trainer.history) == epochs:
            raise Ended

    Checkpoint.save = save_and_end  # type: ignore[method-assign]


def main() -> None:
    import torch.distributed as dist

    settings, out = json.loads(sys.argv[1]), sys.argv[2]
    dist.init_process_group("gloo")
    checkpoint = settings.pop("checkpoint", None)
    change = {}
    if settings.pop("disagree", False) and dist.get_rank() == 1:
        change = {"rows": 60}
    save_all = settings.pop("save_all", False)
    stop_after = settings.pop("stop_after", None)
    if stop_after is not None:
        end_after(stop_after)
    try:
        model = train(settings, checkpoint, **change)
        if dist.get_rank() == 0:
            model.save(out)
        elif save_all:
            model.save(f"{out}-{dist.get_rank()}")
    except Ended:
        pass
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
