"""What fewer bits and fewer weights cost in accuracy: TIB-SID-en and DebDeps-src, one encoder.

    python benchmarks/deep/output_accuracy.py --encoder FOLDER --rows prepared/ [--part precision]

``prepared/`` is made by ``benchmarks/text/rows.py``. Every run prints a line of JSON as soon as it
ends; all runs of a part differ in their output layer alone, and are measured on test rows (with
``--held-out``, on dev rows or a tenth of the training rows).

precision   SGD on summed binary cross-entropy: float32, bfloat16, float8; both data sets
sparse      f weights of 384 per label on TIB-SID-en: static, rewired, rewired with clusters beside
            it; and all of them
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "text"))

import rows as prepared

import longtail as lt

SGD = {"optimiser": "sgd", "reduction": "sum", "learning_rate": 0.05, "weight_decay": 1e-4}
ADAM = {"learning_rate": 0.01, "weight_decay": 1e-4}
REWIRED = {**ADAM, "rewire_every": 100, "rewire_share": 0.15, "rewire_until": 0.66}
CLUSTERS = {"auxiliary": 0.4, "auxiliary_epochs": 3}
PARTS: dict[str, dict[str, dict[str, Any]]] = {
    "precision": {
        precision: {"output_precision": precision, "output_options": SGD}
        for precision in ("float32", "bfloat16", "float8")
    },
    "sparse": {
        "f=16 static": {"fan_in": 16, "output_options": ADAM},
        "f=16 rewired": {"fan_in": 16, "output_options": REWIRED},
        "f=16 rewired, clusters": {"fan_in": 16, "output_options": {**REWIRED, **CLUSTERS}},
        "f=64 rewired, clusters": {"fan_in": 64, "output_options": {**REWIRED, **CLUSTERS}},
        "all": {},
    },
}
DATA = {"precision": ("TIB-SID-en", "DebDeps-src"), "sparse": ("TIB-SID-en",)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--part", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--data", nargs="+", help="names of data sets; those of the part")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--max-rows", type=int, help="train on so many rows only")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--held-out", action="store_true")
    args = parser.parse_args()
    for part in args.part:
        for name in args.data or DATA[part]:
            data = prepared.load(name, args.rows)
            if args.held_out:
                tokens, Y, other, truth = data.held_out()
            else:
                tokens, Y = data.tokens["train"], data.Y["train"]
                other, truth = data.tokens["test"], data.Y["test"]
            if args.max_rows:
                tokens, Y = tokens[: args.max_rows], Y[: args.max_rows]
            for setting, params in PARTS[part].items():
                for seed in range(args.seeds):
                    told = {"part": part, "data": name, "setting": setting, "seed": seed}
                    try:
                        told |= run(args, params, seed, tokens, Y, other, truth)
                    except Exception as error:
                        told["error"] = f"{type(error).__name__}: {error}"[:500]
                    print(json.dumps(told), flush=True)


def run(
    args: Any, params: dict[str, Any], seed: int, tokens: Any, Y: Any, other: Any, truth: Any
) -> dict[str, Any]:
    """Train and measure one model."""
    began = time.perf_counter()
    model = lt.TextNetwork(
        encoder=args.encoder, loss="sigmoid", epochs=args.epochs, random_state=seed, **params
    ).fit(tokens, Y)
    trained = time.perf_counter() - began
    top = model.predict_topk(other, k=5)
    precision = [100 * float(lt.metrics.precision_at_k(truth, top, k=k)) for k in (1, 3, 5)]
    return {
        "epochs": args.epochs,
        "rows": len(tokens),
        "P": [round(p, 2) for p in precision],
        "output_mib": round(model.output_weights_.nbytes / 2**20, 1),
        "seconds": round(trained, 1),
        "loss": model.history_[-1]["loss"],
    }


if __name__ == "__main__":
    main()
