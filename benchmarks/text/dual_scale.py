"""UniDEC with 1.3 million labels: what it says it will take, and what it takes.

    python benchmarks/text/dual_scale.py [--encoder FOLDER] [--labels 1300000] [--rows 250000]

Texts are random words, labels as frequent as in ``make_longtail``. One epoch with hard negatives,
mined before it.
"""

from __future__ import annotations

import argparse
import resource

import numpy as np

import longtail as lt
from longtail.features.tokenizer import Tokenizer


def drawn(n: int, words: int, size: int, source: Tokenizer | None, seed: int) -> lt.data.Tokens:
    """Return n texts of random words, half as many to one and a half times as many."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(words // 2, words + words // 2 + 1, size=n)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return lt.data.Tokens(
        offsets, rng.integers(5, size, size=offsets[-1], dtype=np.int32), source=source
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", default="average")
    parser.add_argument("--labels", type=int, default=1_300_000)
    parser.add_argument("--rows", type=int, default=250_000)
    parser.add_argument("--words", type=int, default=32)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    if options.encoder == "average":
        source = Tokenizer.trained([" ".join(f"w{i}" for i in range(30_000))] * 9)
    else:
        source = Tokenizer.from_folder(options.encoder)
    texts = drawn(options.rows, options.words, source.size, source, 0)
    labels = drawn(options.labels, 8, source.size, source, 1)
    Y = lt.data.make_longtail(options.rows, 1000, options.labels, n_test=1).train.Y
    model = lt.UniDEC(
        encoder=options.encoder, epochs=1, mine_from=1, period=1, device=options.device, onnx=False
    )
    cost = model.plan(texts, Y, label_texts=labels)
    print(cost, flush=True)
    import torch

    on_gpu = torch.cuda.is_available() and options.device != "cpu"
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    model.fit(texts, Y, label_texts=labels)
    print(f"the epoch took {model.history_[0]['seconds']:.1f} s", end="")
    if on_gpu:
        print(f", and reserved {torch.cuda.max_memory_reserved() / 2**30:.2f} GiB", end="")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"; the process had {peak:.2f} GiB of memory at most")


if __name__ == "__main__":
    main()
