"""Data sets of the comparison of text models: tokens and labels, made once and kept in files.

A folder of prepared rows holds, for each data set, ``NAME.npz`` with the token ids of its training,
dev and test texts (and of title-only texts and label texts, where asked for) and the label
matrices; it is small enough to be carried to another machine, which then needs neither the texts
nor the tokenizer.

    python benchmarks/text/rows.py --encoder FOLDER --output prepared/
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import longtail as lt

LENGTHS = {"TIB-SID-en": 192, "DebDeps-src": 128}


@dataclass(frozen=True)
class Rows:
    """``tokens`` and ``Y`` of "train", "dev" (where there is one) and "test"."""

    tokens: dict[str, lt.Tokens]
    Y: dict[str, sp.csr_matrix]

    def held_out(self) -> tuple[Any, Any, Any, Any]:
        """Rows to learn from and rows to choose settings on: dev, or a tenth of the training."""
        if "dev" in self.tokens:
            return self.tokens["train"], self.Y["train"], self.tokens["dev"], self.Y["dev"]
        order = np.random.default_rng([0, 20]).permutation(len(self.tokens["train"]))
        n = len(order) // 10
        valid, rest = np.sort(order[:n]), np.sort(order[n:])
        tokens, Y = self.tokens["train"], self.Y["train"]
        return tokens[rest], Y[rest], tokens[valid], Y[valid]


def prepare(name: str, tokenizer: Any, output: Path) -> None:
    """Write the tokens and labels of a data set."""
    data = lt.load_dataset(Path(os.environ["LONGTAIL_DATA"]) / name)
    arrays: dict[str, np.ndarray] = {}
    splits = {"train": data.train, "dev": data.dev, "test": data.test}
    for split, part in splits.items():
        if part is None or part.texts is None:
            continue
        tokens = tokenizer.encode(part.texts, LENGTHS[name])
        arrays[f"{split}_offsets"] = tokens.offsets
        arrays[f"{split}_ids"] = tokens.ids.astype(np.uint16)
        arrays[f"{split}_indptr"] = part.Y.indptr
        arrays[f"{split}_indices"] = part.Y.indices
    arrays["n_labels"] = np.array(data.train.Y.shape[1])
    np.savez_compressed(output / f"{name}.npz", **arrays)


def load(name: str, folder: Path) -> Rows:
    """Return what ``prepare`` wrote."""
    tokens, Y = {}, {}
    with np.load(folder / f"{name}.npz") as file:
        width = int(file["n_labels"])
        for split in ("train", "dev", "test"):
            if f"{split}_offsets" not in file:
                continue
            tokens[split] = lt.Tokens(file[f"{split}_offsets"], file[f"{split}_ids"])
            indptr, indices = file[f"{split}_indptr"], file[f"{split}_indices"]
            ones = np.ones(len(indices), np.float32)
            Y[split] = sp.csr_matrix((ones, indices, indptr), shape=(len(indptr) - 1, width))
    return Rows(tokens, Y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", required=True, help="folder with a tokenizer.json")
    parser.add_argument("--output", required=True, type=Path)
    parser.add_argument("names", nargs="*", default=list(LENGTHS))
    options = parser.parse_args()
    from longtail.features.tokenizer import Tokenizer

    options.output.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer.from_folder(options.encoder)
    for name in options.names:
        prepare(name, tokenizer, options.output)
        print(f"{name}: {(options.output / f'{name}.npz').stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
