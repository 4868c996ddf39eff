"""Data sets of the comparison of text models: tokens and labels, made once and kept in files.

A folder of prepared rows holds, for each data set, ``NAME.npz`` with the token ids of its training,
dev and test texts, the label matrices, the token ids of label texts, where asked for, and the
tokenizer; it is small enough to be carried to another machine, which then needs no texts.

    python benchmarks/text/rows.py --encoder FOLDER --output prepared/
    python benchmarks/text/rows.py --encoder FOLDER --output prepared/ --titles --label-texts
    python benchmarks/text/rows.py --encoder words --output prepared/ --titles --label-texts
    python benchmarks/text/rows.py --output prepared/ --tfidf

``--titles`` cuts texts after their first sentence, the title, and writes ``NAME-titles.npz``.
``--encoder words`` takes the words of the training texts (and label texts) for a vocabulary, as
encoders that begin from nothing do, and writes ``NAME-words.npz`` or ``NAME-titles-words.npz``.
``--tfidf`` writes the features of the same rows and of label texts, ``NAME-tfidf.npz``, with values
of 16 bits.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import longtail as lt
from longtail.data.json_lines import read_json_lines
from longtail.data.label_file import read_label_file
from longtail.data.paired_rows import PairedRows
from longtail.data.text_rows import TextRows
from longtail.features.tokenizer import Tokenizer

LENGTHS = {"TIB-SID-en": 192, "DebDeps-src": 128}
SHORT = 32  # tokens of a title or of a label's text


@dataclass(frozen=True)
class Rows:
    """``tokens`` (or texts) and ``Y`` of "train", "dev" (where there is one) and "test"; ``labels``
    are the tokens (or texts) of label texts, one per label, where they were asked for. ``new``:
    those of labels that no training row has, and ``new_Y`` (n, m) which rows of "dev" and "test"
    have them.
    """

    tokens: dict[str, Any]
    Y: dict[str, sp.csr_matrix]
    labels: Any = None
    new: Any = None
    new_Y: dict[str, sp.csr_matrix] = field(default_factory=dict)

    def held_out(self) -> tuple[Any, Any, Any, Any]:
        """Rows to learn from and rows to choose settings on: dev, or a tenth of the training."""
        if "dev" in self.tokens:
            return self.tokens["train"], self.Y["train"], self.tokens["dev"], self.Y["dev"]
        order = np.random.default_rng([0, 20]).permutation(len(self.tokens["train"]))
        n = len(order) // 10
        valid, rest = np.sort(order[:n]), np.sort(order[n:])
        tokens, Y = self.tokens["train"], self.Y["train"]
        return tokens[rest], Y[rest], tokens[valid], Y[valid]


def read_texts(name: str, *, titles: bool = False) -> Rows:
    """Return the texts of a data set themselves, whole or titles only, and those of its labels."""
    folder = Path(os.environ["LONGTAIL_DATA"]) / name
    data = lt.load_dataset(folder, label_text_field="text_en")
    texts, Y = {}, {}
    for split, part in {"train": data.train, "dev": data.dev, "test": data.test}.items():
        if part is None or part.texts is None:
            continue
        whole = part.texts
        texts[split] = TextRows(t.partition(". ")[0] for t in whole) if titles else TextRows(whole)
        Y[split] = part.Y
    new, new_Y = None, {}
    if (folder / "unseen_labels.jsonl.gz").exists():
        found = read_label_file(folder / "unseen_labels.jsonl.gz", text_field="text_en")
        new, ids = TextRows(found.texts or []), {name: i for i, name in enumerate(found.names)}
        for split, file in (("dev", "dev.jsonl.gz"), ("test", "tst.jsonl.gz")):
            lists = [
                record.get("unseen_labels", []) for _, record in read_json_lines(folder / file)
            ]
            new_Y[split] = lt.answers.Vocabulary(ids).encode(lists, unknown="ignore")
    return Rows(texts, Y, TextRows(data.label_texts), new, new_Y)


def prepare(name: str, encoder: str, output: Path, *, titles: bool, label_texts: bool) -> Path:
    """Write the tokens and labels of a data set."""
    rows = read_texts(name, titles=titles)
    if encoder == "words":
        more = list(rows.labels) if label_texts else []
        tokenizer = Tokenizer.trained([*rows.tokens["train"], *more])
    else:
        tokenizer = Tokenizer.from_folder(encoder)
    arrays = {"n_labels": np.array(rows.Y["train"].shape[1])}
    for split, texts in rows.tokens.items():
        put(arrays, split, tokenizer.encode(texts, SHORT if titles else LENGTHS[name]))
        arrays[f"{split}_indptr"] = rows.Y[split].indptr
        arrays[f"{split}_indices"] = rows.Y[split].indices
    if label_texts:
        put(arrays, "label", tokenizer.encode(rows.labels, SHORT))
        if rows.new is not None:
            put(arrays, "new", tokenizer.encode(rows.new, SHORT))
        for split, found in rows.new_Y.items():
            arrays[f"new_{split}_indptr"] = found.indptr
            arrays[f"new_{split}_indices"] = found.indices
    arrays["tokenizer"] = np.frombuffer(tokenizer.json.encode(), np.uint8)
    path = output / f"{name}{'-titles' * titles}{'-words' * (encoder == 'words')}.npz"
    np.savez_compressed(path, **arrays)
    return path


def prepare_tfidf(name: str, output: Path) -> Path:
    """Write the TF-IDF features of a data set."""
    rows = read_texts(name)
    vectorizer = lt.Tfidf().fit(rows.tokens["train"])
    arrays = {"n_features": np.array(len(vectorizer.get_feature_names_out()))}
    for split, texts in {**rows.tokens, "label": rows.labels}.items():
        X = vectorizer.transform(texts)
        arrays |= {f"{split}_indptr": X.indptr, f"{split}_indices": X.indices}
        arrays[f"{split}_values"] = X.data.astype(np.float16)
    path = output / f"{name}-tfidf.npz"
    np.savez_compressed(path, **arrays)
    return path


def load_paired(name: str, folder: Path) -> Rows:
    """Return what ``prepare`` and ``prepare_tfidf`` wrote, side by side."""
    rows = load(name, folder)
    labels = rows.labels
    with np.load(folder / f"{name}-tfidf.npz") as file:
        width = int(file["n_features"])

        def paired(split: str, tokens: lt.data.Tokens) -> PairedRows:
            values, indices, indptr = (
                file[f"{split}_{part}"] for part in ("values", "indices", "indptr")
            )
            shape = (len(tokens), width)
            X = sp.csr_matrix((values.astype(np.float32), indices, indptr), shape=shape)
            return PairedRows(tokens, X)

        for split, tokens in rows.tokens.items():
            rows.tokens[split] = paired(split, tokens)
        if labels is not None and "label_values" in file:
            labels = paired("label", labels)
    return replace(rows, labels=labels)


def put(arrays: dict[str, np.ndarray], name: str, tokens: lt.data.Tokens) -> None:
    arrays[f"{name}_offsets"] = tokens.offsets
    small = not len(tokens.ids) or tokens.ids.max() < 1 << 16
    arrays[f"{name}_ids"] = tokens.ids.astype(np.uint16) if small else tokens.ids


def load(name: str, folder: Path) -> Rows:
    """Return what ``prepare`` wrote; ``name`` is that of the file."""
    tokens, Y, new_Y = {}, {}, {}
    with np.load(folder / f"{name}.npz") as file:
        width = int(file["n_labels"])

        def labels(split: str, width: int) -> sp.csr_matrix:
            indptr, indices = file[f"{split}_indptr"], file[f"{split}_indices"]
            ones = np.ones(len(indices), np.float32)
            return sp.csr_matrix((ones, indices, indptr), shape=(len(indptr) - 1, width))

        source = None
        if "tokenizer" in file:
            source = Tokenizer(file["tokenizer"].tobytes().decode())
        for split in ("train", "dev", "test", "label", "new"):
            if f"{split}_offsets" not in file:
                continue
            offsets, ids = file[f"{split}_offsets"], file[f"{split}_ids"]
            tokens[split] = lt.data.Tokens(offsets, ids, source=source)
            if split not in ("label", "new"):
                Y[split] = labels(split, width)
        for split in ("dev", "test"):
            if f"new_{split}_indptr" in file:
                new_Y[split] = labels(f"new_{split}", len(tokens["new"]))
    return Rows(tokens, Y, tokens.pop("label", None), tokens.pop("new", None), new_Y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", help="folder with a tokenizer.json, or words")
    parser.add_argument("--output", required=True, type=Path)
    parser.add_argument("--titles", action="store_true", help="first sentences only")
    parser.add_argument("--label-texts", action="store_true", help="texts of labels too")
    parser.add_argument("--tfidf", action="store_true", help="features instead of tokens")
    parser.add_argument("names", nargs="*", default=list(LENGTHS))
    options = parser.parse_args()
    if not (options.encoder or options.tfidf):
        parser.error("give --encoder FOLDER, --encoder words, or --tfidf")
    options.output.mkdir(parents=True, exist_ok=True)
    for name in options.names:
        if options.tfidf:
            path = prepare_tfidf(name, options.output)
        else:
            path = prepare(
                name,
                options.encoder,
                options.output,
                titles=options.titles,
                label_texts=options.label_texts,
            )
        print(f"{path.name}: {path.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
