"""Answers of a text model without torch: how long one text takes, beside a bare session.

    python benchmarks/text/answers.py --encoder FOLDER [--labels 20000] [--threads 2]
    python benchmarks/text/answers.py --encoder FOLDER --fused [--threads 2]

A ``TextNetwork`` over the encoder with random output weights is saved with its ONNX file, in fp32
and in int8, and asked about one text of 128 tokens: tokens to the five best labels. In turn with
it, the same ONNX file runs in a bare session of ONNX Runtime. Medians of many rounds. Then the five
best labels of many texts are compared with those of torch.

``--fused``: the model that ``quality="best"`` makes of TIB-SID-en, its parts over words trained,
those with an encoder of the same sizes with random weights, saved, loaded, and asked about one
text. Beside it, in turn, one and two passes of bare sessions over its tokens, and every part alone.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

sys.path.insert(0, str(Path(__file__).parent))

import rows as prepared

import longtail as lt
from longtail.ensemble.learned_fusion import Fusion
from longtail.ensemble.part_rows import Vectorizers
from longtail.features.tokenizer import Tokenizer
from longtail.tagger.best import best_model, best_parts


def fitted(encoder: str, n_labels: int, threads: int) -> Any:
    """Return a model with the encoder as it is, and random weights for the labels."""
    model = lt.TextNetwork(encoder=encoder, device="cpu", n_jobs=threads, max_length=128)
    return with_random_labels(model, n_labels)


def with_random_labels(model: Any, n_labels: int) -> Any:
    """Give a ``TextNetwork`` or ``UniDEC`` its encoder as it is, and random weights for labels."""
    from longtail.deep.encoders.transformer import Transformer

    tokenizer = Tokenizer.from_folder(model.encoder)
    module, nothing = Transformer.pretrained(model.encoder).eval(), lt.data.Tokens([0], [])
    model._take_encoder(module, tokenizer, nothing)
    rng = np.random.default_rng(0)  # vectors of labels as far apart as those of texts
    width = model.encoder_.width
    of_labels = rng.standard_normal((n_labels, width), np.float32)
    model.n_labels_, model.n_features_in_ = n_labels, tokenizer.size
    model.history_, model.best_epoch_, model.loss_ = [], 1, "sigmoid"
    if isinstance(model, lt.TextNetwork):
        model._take(of_labels, np.zeros(n_labels, np.float32))
        return model
    model.heads_ = {"table": rng.standard_normal((n_labels, width), np.float32)}
    for head in ("dual", "classifier"):
        weights = rng.standard_normal((width, width), np.float32) / np.float32(width**0.5)
        model.heads_ |= {f"{head}.weight": weights, f"{head}.bias": np.zeros(width, np.float32)}
    model.label_tokens_ = lt.data.Tokens(np.arange(n_labels + 1), np.full(n_labels, 1000))
    model.has_rows_, model.answer_, model.share_ = np.ones(n_labels, bool), "both", 0.5
    model._take(of_labels / np.linalg.norm(of_labels, axis=1, keepdims=True))
    return model


def fused(encoder: str, threads: int) -> tuple[Any, list[str]]:
    """Return a model as ``quality="best"`` makes it of TIB-SID-en, and texts to ask it about."""
    data = prepared.read_texts("TIB-SID-en")
    texts, Y = data.tokens["train"], data.Y["train"]
    n, n_labels = Y.shape
    parts = best_parts(
        lt.Tfidf(),
        n_texts=n,
        n_labels=n_labels,
        label_texts=True,
        encoder=encoder,
        device="cpu",
        n_jobs=threads,
        onnx=True,
    )
    model = best_model(parts, n_jobs=threads)
    vectorizers = Vectorizers.unfitted(parts)
    X = vectorizers.fitted[0].fit_transform(texts)
    members = []
    for part in parts:
        if part.ranker.reads_texts:
            members.append(with_random_labels(part.ranker, n_labels))
        elif isinstance(part.representation, int):
            width = members[part.representation].encoder_.width
            vectors = np.random.default_rng(1).standard_normal((n, width), np.float32)
            members.append(part.ranker.fit(vectors, Y))
        else:
            members.append(part.ranker.fit(X, Y))
    model.members_, model.vectorizers_ = members, vectorizers
    model.n_labels_, model.n_features_in_ = n_labels, X.shape[1]
    dev, held = list(data.tokens["dev"][:200]), data.Y["dev"][:200]
    tops, counts = model._answers(dev, 40), np.bincount(Y.indices, minlength=n_labels)
    model.fusion_ = Fusion.fit(tops, held, counts)
    return model, dev


def time_fused(options: argparse.Namespace) -> None:
    model, texts = fused(options.encoder, options.threads)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "m")
        loaded = lt.load(Path(folder) / "m")
    names = loaded.part_names
    readers = [member for member in loaded.members_ if member.reads_texts]
    sessions = [bare(member, options.threads) for member in readers]
    long = sorted(texts, key=len)[-len(texts) // 4]  # as many tokens as a longer text has
    tokens = readers[0].tokenize([long])
    ids = tokens.ids[None].astype(np.int64)
    feed = {"ids": ids, "mask": np.ones(ids.shape, bool)}
    read = loaded._read_by_parts([long])
    works = {
        "fused": lambda: loaded.predict_topk([long], k=5),
        "one pass": lambda: sessions[0].run(None, feed),
        "two passes": lambda: [session.run(None, feed) for session in sessions],
        "texts to what parts read": lambda: loaded._rows_of_parts(loaded._rows([long])),
    }
    for name, member, X in zip(names, loaded.members_, read, strict=True):
        works[name] = lambda member=member, X=X: member._predict_topk(X, 40)  # vectors are known
    tops = loaded._answers([long], 40)
    works["fusion"] = lambda: loaded.fusion_.top(tops, 5, loaded.n_jobs)
    print(f"one text of {ids.shape[1]} tokens, {loaded.n_labels_:,} labels, medians in ms")
    print("| | wall | processor |")
    print("|---|---:|---:|")
    wall = median_ms(works, options.rounds)
    cpu = median_ms(works, options.rounds, time.process_time)
    for name in works:
        print(f"| {name} | {wall[name]:.1f} | {cpu[name]:.1f} |")


def bare(model: Any, threads: int) -> Any:
    """Return a session of ONNX Runtime over the encoder of a loaded model."""
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(
        model.encoder_.onnx.tobytes(), settings, providers=["CPUExecutionProvider"]
    )


def random_texts(n: int, length: int, size: int, seed: int = 0) -> lt.data.Tokens:
    rng = np.random.default_rng(seed)
    return lt.data.Tokens(np.arange(n + 1) * length, rng.integers(1000, size, n * length))


def median_ms(
    works: dict[str, Any], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Return the median time of each, taken in turn."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for i in range(rounds + 5):
        for name, work in works.items():
            began = clock()
            work()
            if i >= 5:
                times[name].append(1e3 * (clock() - began))
    return {name: float(np.median(each)) for name, each in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--fused", action="store_true")
    parser.add_argument("--labels", type=int, default=20_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--texts", type=int, default=500)
    options = parser.parse_args()
    print(f"{platform.platform()}, ONNX Runtime {onnxruntime.__version__}, {options}")
    if options.fused:
        time_fused(options)
        return
    model = fitted(options.encoder, options.labels, options.threads)
    size = model.tokenizer_.size
    one = random_texts(1, 128, size)
    many = random_texts(options.texts, 48, size, seed=1)
    expected = model.set_params(runtime="torch").predict_topk(many, k=5).indices
    print("| weights | model, ms | bare session, ms | ratio | answers as with torch |")
    print("|---|---:|---:|---:|---:|")
    for kind in (True, "int8"):
        with tempfile.TemporaryDirectory() as folder:
            model.set_params(onnx=kind).save(Path(folder) / "m")
            loaded = lt.load(Path(folder) / "m").set_params(runtime="onnx")
            session = bare(loaded, options.threads)
            ids = one.ids[None].astype(np.int64)
            feed = {"ids": ids, "mask": np.ones(ids.shape, bool)}
            works = {
                "model": lambda loaded=loaded: loaded.predict_topk(one, k=5),
                "bare": lambda session=session, feed=feed: session.run(None, feed),
            }
            found = median_ms(works, options.rounds)
            answers = loaded.predict_topk(many, k=5).indices
            same = [len(np.intersect1d(*rows)) / 5 for rows in zip(answers, expected, strict=True)]
        print(
            f"| {'fp32' if kind is True else kind} | {found['model']:.1f} | {found['bare']:.1f} | "
            f"{found['model'] / found['bare']:.2f} | {100 * np.mean(same):.2f} % |",
            flush=True,
        )


if __name__ == "__main__":
    main()
