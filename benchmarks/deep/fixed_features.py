"""Few weights per label over vectors that stay as they are: accuracy and memory, on a GPU.

    python benchmarks/deep/fixed_features.py --encoder FOLDER --rows prepared/ [--tuned 0]

``prepared/`` is made by ``benchmarks/text/rows.py``. An encoder is trained with a network on top
(``--tuned 0``: it is taken as it comes), its vectors of all texts are taken once, and the output
layers are then trained on these alone: the squared hinge, averaged over rows and labels, Adam, the
tenth of all weights that is smallest rewired every 300 steps, the rate halved when P@3 of a
held-out twentieth of the training rows stalls. The test rows are answered with the weights of the
epoch that was best on the held-out rows. Memory is that of weights, indices and moments while a
layer learns, and of what is saved.

Every run prints a line of JSON as soon as it ends.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "text"))

import rows as prepared
from compare import measured

import longtail as lt
from longtail.deep.objectives import named
from longtail.deep.output_plan import OutputPlan
from longtail.deep.outputs.chosen import chosen_layer, drawn_outputs
from longtail.deep.training.plan import Plan

BATCH = 256
REWIRED = {"rewire_every": 300, "keep_values": True}  # as published
SETTINGS: dict[str, dict[str, Any]] = {
    "all weights": {},
    "f = 32": {"fan_in": 32, **REWIRED},
    "f = 64": {"fan_in": 64, **REWIRED},
    "f = 32, wide layer": {"fan_in": 32, "hidden": 32_768, **REWIRED},
    "f = 64, wide layer": {"fan_in": 64, "hidden": 32_768, **REWIRED},
    "bottleneck of 64": {"bottleneck": 64},
}


def vectors_of(name: str, options: argparse.Namespace) -> tuple[Any, ...]:
    """Return vectors and labels of the training and of the test rows."""
    data = prepared.load(name, options.rows)
    still = {} if options.tuned else {"learning_rate": 1e-9, "output_learning_rate": 1e-9}
    model = lt.TextNetwork(
        encoder=options.encoder, device=options.device, epochs=max(options.tuned, 1), **still
    )
    few = slice(None if options.tuned else 2)
    model.fit(data.tokens["train"][few], data.Y["train"][few])
    X, X_test = (model.embed(data.tokens[split]) for split in ("train", "test"))
    return X, data.Y["train"], X_test, data.Y["test"]


class Bottleneck:
    """``relu(V x + v)`` in front of a layer, trained by AdamW."""

    def __init__(self, width: int, inner: int, device: str) -> None:
        self.linear = torch.nn.Linear(width, inner).to(device)
        self.optimiser = torch.optim.AdamW(self.linear.parameters(), weight_decay=0)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))

    def learn(self, h: torch.Tensor, gradient: torch.Tensor, rate: float) -> None:
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        h.backward(gradient)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)


def trained(X: Any, Y: Any, setting: dict[str, Any], options: argparse.Namespace) -> Any:
    """Return a function from vectors to the five best labels, and what the training took."""
    setting = dict(setting)
    inner = setting.pop("bottleneck", None)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    held, rest = order[: len(X) // 20], order[len(X) // 20 :]
    # Averaged over labels too, gradients of a bottleneck are as small as Adam's epsilon.
    goal = named("squared_hinge", reduction="mean" if inner is None else "rows")
    targets = goal.rows(Y, torch.device(options.device), 0)
    x = torch.tensor(X).to(options.device)
    steps = options.epochs * -(-len(rest) // BATCH)
    output = OutputPlan(**setting)
    plan = Plan(options.epochs, BATCH, options.learning_rate, 0, 1, options.device, "float32")
    width = inner or X.shape[1]
    start = drawn_outputs(output, rng, Y.shape[1], width, goal.start_bias(Y), 0.1 / np.sqrt(width))
    layer = chosen_layer(output, plan, start, total_steps=steps)
    front = None if inner is None else Bottleneck(X.shape[1], inner, options.device)

    def top(rows: torch.Tensor) -> Any:
        ids, scores = [], []
        with torch.no_grad():
            for part in rows.split(2048):
                h = part if front is None else front(part)
                best = layer.top(h, 5)
                ids.append(best[0].cpu().numpy())
                scores.append(best[1].cpu().numpy())
        return lt.TopK(np.concatenate(ids), np.concatenate(scores), n_labels=Y.shape[1])

    best, stalled, rate = (-1.0, None), 0, options.learning_rate
    drop = torch.nn.Dropout(0.1)
    values: list[float] = []  # P@3 of the held-out rows after each epoch
    while len(values) < options.epochs and stalled < 4:
        for some in np.array_split(rng.permutation(rest), -(-len(rest) // BATCH)):
            where = torch.tensor(some).to(options.device)
            h = drop(x[where])
            if front is not None:
                h = front(h)
            _, gradient = layer.step(h.detach(), targets.take(where), goal, rate)
            if front is not None:
                front.learn(h, gradient, rate)
        answers = top(x[torch.tensor(held)])
        values.append(float(lt.metrics.precision_at_k(Y[held], answers, k=3)))
        if values[-1] > best[0] + 5e-5:
            best, stalled = (values[-1], top(torch.tensor(options.asked).to(options.device))), 0
        else:
            stalled += 1
            if stalled % 2 == 0:
                rate = max(rate / 2, options.learning_rate / 10)
    kept = sum(a.nbytes for a in layer.trained().values())
    learning = sum(a.nbytes for a in layer.arrays().values())
    if front is not None:
        size = sum(4 * p.numel() for p in front.linear.parameters())
        kept, learning = kept + size, learning + 3 * size
    return best[1], {
        "epochs": len(values),
        "saved_mib": round(kept / 2**20, 1),
        "learning_mib": round(learning / 2**20, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--data", nargs="*", default=["TIB-SID-en", "DebDeps-src"])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--tuned", type=int, default=5, help="epochs of the encoder, or 0")
    parser.add_argument("--learning-rate", type=float, default=1e-2)
    options = parser.parse_args()
    for name in options.data:
        X, Y, options.asked, truth = vectors_of(name, options)
        for setting, params in SETTINGS.items():
            began = time.perf_counter()
            found, about = trained(X, Y, params, options)
            about["seconds"] = round(time.perf_counter() - began, 1)
            told = {"data": name, "setting": setting, **measured(Y, truth, found), **about}
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
