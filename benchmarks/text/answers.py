"""Answers of a text model without torch: how long one text takes, beside a bare session.

    python benchmarks/text/answers.py --encoder FOLDER [--labels 20000] [--threads 2]

A ``TextNetwork`` over the encoder with random output weights is saved with its ONNX file, in fp32
and in int8, and asked about one text of 128 tokens: tokens to the five best labels. In turn with
it, the same ONNX file runs in a bare session of ONNX Runtime. Medians of many rounds. Then the five
best labels of many texts are compared with those of torch.
"""

from __future__ import annotations

import argparse
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import longtail as lt
from longtail.features.tokenizer import Tokenizer


def fitted(encoder: str, n_labels: int, threads: int) -> Any:
    """Return a model with the encoder as it is, and random weights for the labels."""
    from longtail.deep.encoders.transformer import Transformer

    tokenizer = Tokenizer.from_folder(encoder)
    model = lt.TextNetwork(encoder=encoder, device="cpu", n_jobs=threads, max_length=128)
    rng = np.random.default_rng(0)  # vectors of labels as far apart as those of texts
    model._take_encoder(Transformer.pretrained(encoder).eval(), tokenizer, lt.data.Tokens([0], []))
    model._take(
        rng.standard_normal((n_labels, model.encoder_.width), np.float32),
        np.zeros(n_labels, np.float32),
    )
    model.n_labels_, model.n_features_in_ = n_labels, tokenizer.size
    model.history_, model.best_epoch_, model.loss_ = [], 1, "sigmoid"
    return model


def random_texts(n: int, length: int, size: int, seed: int = 0) -> lt.data.Tokens:
    rng = np.random.default_rng(seed)
    return lt.data.Tokens(np.arange(n + 1) * length, rng.integers(1000, size, n * length))


def median_ms(works: dict[str, Any], rounds: int) -> dict[str, float]:
    """Return the median time of each, taken in turn."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for i in range(rounds + 5):
        for name, work in works.items():
            began = time.perf_counter()
            work()
            if i >= 5:
                times[name].append(1e3 * (time.perf_counter() - began))
    return {name: float(np.median(each)) for name, each in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--labels", type=int, default=20_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--texts", type=int, default=500)
    options = parser.parse_args()
    print(f"{platform.platform()}, ONNX Runtime {onnxruntime.__version__}, {options}")
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
            settings = onnxruntime.SessionOptions()
            settings.intra_op_num_threads = options.threads
            session = onnxruntime.InferenceSession(
                loaded.encoder_.onnx.tobytes(), settings, providers=["CPUExecutionProvider"]
            )
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
