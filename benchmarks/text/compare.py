"""Text models on TIB-SID-en and DebDeps-src: accuracy, seconds and tokens per second.

Rows are prepared by ``rows.py``. Every finished run is a line of the journal; one that is in it is
not made again, so the table can be filled in several sittings:

    python benchmarks/text/compare.py --encoder FOLDER --rows prepared/ --journal runs.jsonl
    python benchmarks/text/compare.py --journal runs.jsonl --print

``--held-out`` measures on dev rows (or a tenth of the training rows) instead of the test rows, for
choosing settings; ``--set epochs=5,learning_rate=2e-4`` overrides parameters and names the run.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import rows as prepared
from journal import Journal, means

import longtail as lt


def measured(Y_train: Any, Y: Any, top: lt.TopK) -> dict[str, Any]:
    """Precision and propensity-scored precision at 1, 3 and 5, macro-F1 at 5 and labels found."""
    p = lt.JainPropensity(a=0.55, b=1.5).fit(Y_train)
    m = lt.metrics
    hits = top.to_csr(binary=True).multiply(Y).tocsc()
    return {
        "P": [round(100 * float(m.precision_at_k(Y, top, k=k)), 2) for k in (1, 3, 5)],
        "PSP": [round(100 * float(m.ps_precision_at_k(Y, top, p, k=k)), 2) for k in (1, 3, 5)],
        "macro-F1@5": round(100 * float(m.macro_f1_at_k(Y, top, k=5)), 2),
        "found": int((np.diff(hits.indptr) > 0).sum()),
    }


def run(name: str, folder: Path, params: dict[str, Any], held_out: bool) -> dict[str, Any]:
    """Train and measure one model."""
    rows = prepared.load(name, folder)
    if held_out:
        tokens, Y, other, Y_other = rows.held_out()
    else:
        tokens, Y = rows.tokens["train"], rows.Y["train"]
        other, Y_other = rows.tokens["test"], rows.Y["test"]
    began = time.perf_counter()
    model = lt.TextNetwork(**params).fit(tokens, Y)
    trained = time.perf_counter() - began
    top = model.predict_topk(other, k=5)
    return {
        **measured(Y, Y_other, top),
        "seconds": round(time.perf_counter() - began, 1),
        "training": round(trained, 1),
        "epochs": [round(r["seconds"], 1) for r in model.history_],
    }


def throughput(encoder: str, name: str, folder: Path, batch_size: int = 128) -> dict[str, Any]:
    """Tokens per second of training, beside a bare forward and backward of the same encoder on the
    same batches.
    """
    import torch

    from longtail.deep.batches.token_rows import TokenRows
    from longtail.deep.encoders.transformer import Transformer

    rows = prepared.load(name, folder)
    tokens, Y = rows.tokens["train"], rows.Y["train"]
    n = min(len(tokens), 200 * batch_size)
    tokens, Y = tokens[:n], Y[:n]
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    inputs = TokenRows(tokens, device)
    order = inputs.arranged(np.random.default_rng(0).permutation(n), batch_size, [0])
    module = Transformer.pretrained(encoder).to(device).train()
    bare = []
    for _ in range(3):
        if device.type == "cuda":
            torch.cuda.synchronize()
        began = time.perf_counter()
        for batch in inputs.batches(torch.tensor(order).to(device), batch_size):
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                h = module(batch).float()
            h.backward(torch.ones_like(h))
            module.zero_grad(set_to_none=True)
        if device.type == "cuda":
            torch.cuda.synchronize()
        bare.append(time.perf_counter() - began)
    model = lt.TextNetwork(encoder=encoder, epochs=3, batch_size=batch_size).fit(tokens, Y)
    ends = [record["seconds"] for record in model.history_]
    epochs = np.diff([0, *ends])
    count = int(tokens.lengths.sum())
    return {
        "tokens": count,
        "bare": round(count / min(bare)),
        "training": round(count / float(epochs.min())),
        "ratio": round(min(bare) / float(epochs.min()), 3),
    }


def table(journal: Path) -> None:
    """Print the mean over seeds of every setting."""
    print("| data | setting | seeds | P@1/3/5 | PSP@1/3/5 | macro-F1@5 | labels found | seconds |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for key, runs in sorted(Journal(journal).groups(("data", "setting"), "P").items()):
        cells = [*key, str(len(runs)), means(runs, "P"), means(runs, "PSP")]
        cells += [means(runs, "macro-F1@5", 2), means(runs, "found", 0), means(runs, "seconds", 0)]
        print(f"| {' | '.join(cells)} |")


def settings_of(text: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for pair in filter(None, text.split(",")):
        key, _, value = pair.partition("=")
        try:
            out[key] = json.loads(value)
        except json.JSONDecodeError:
            out[key] = value
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", default="average")
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--journal", type=Path, default=Path("text-runs.jsonl"))
    parser.add_argument("--data", nargs="*", default=["TIB-SID-en", "DebDeps-src"])
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--set", dest="settings", nargs="*", default=[""])
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--throughput", action="store_true")
    parser.add_argument("--print", dest="only_print", action="store_true")
    options = parser.parse_args()
    if options.only_print:
        table(options.journal)
        return
    journal = Journal(options.journal)
    print(f"{platform.platform()}, {lt.native_info()}, {' '.join(sys.argv)}", flush=True)
    for name in options.data:
        if options.throughput:
            result = throughput(options.encoder, name, options.rows)
            journal.write({"data": name, "setting": "throughput", **result})
            continue
        for text in options.settings:
            for seed in options.seeds:
                label = ("held-out " if options.held_out else "") + (text or "default")
                about = {"data": name, "setting": label, "seed": seed}
                if journal.has(about):
                    continue
                params = {"encoder": options.encoder, "random_state": seed, **settings_of(text)}
                journal.write({**about, **run(name, options.rows, params, options.held_out)})


if __name__ == "__main__":
    main()
