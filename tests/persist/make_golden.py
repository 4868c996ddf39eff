"""Writes ``golden/v<format version>``: models as this version of the library saves them.

Run it by hand when the format has a new version or there is a new kind of model, and commit what it
adds. What is there is never written again: it stands for the files that people have.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import longtail as lt
from longtail.base import Ranker
from longtail.linear.sharded import ShardedRanker
from longtail.linear.shards import label_shards
from longtail.persist import State, save
from longtail.persist.arrays import DTYPES
from longtail.persist.manifest import VERSION

FOLDER = Path(__file__).with_name("golden")
HAS_TORCH = find_spec("torch") is not None and find_spec("tokenizers") is not None

# Small whole numbers: every sum is exact, so that predictions are the same bits on every machine.
X = np.array([[2, 0, 1, 0], [0, 3, 0, 1], [1, 1, 0, 0], [0, 0, 4, 2], [1, 0, 0, 5]], np.float32)
Y = [[0, 3], [1], [0, 1, 2], [], [3]]
# Solvers sum fractions: the last bits of a weight depend on the instructions of the machine.
EXACT = (
    "popularity",
    "network",
    "network-float8",
    "network-fan-in",
    "nearest-neighbors-dense",
    "nearest-neighbors-sparse",
)
TEXTS = ["a red fox", "two foxes", "", "red red wine and a fox"]
QUERIES = np.array([[1, 0, 0, 0], [0, 2, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1]], np.float32)


def network() -> lt.Network:
    """With given weights: training needs torch, and its bits depend on the machine."""
    out = lt.Network(hidden=2, normalize=False, weight_decay=0.0, dropout=0.5)
    weights = (
        np.array([[1, 0], [0, 1], [-1, 2], [1, 1]], np.float32),
        np.array([0, -1], np.float32),
        np.array([[1, 0], [0, 1], [1, 1], [2, -1]], np.float32),
        np.array([0, 1, 0, -2], np.float32),
    )
    history = [{"epoch": 1, "seconds": 0.5, "validation": None}]
    out._take(weights, history, 1, "sigmoid")
    out.n_features_in_, out.n_labels_ = 4, 4
    return out


def with_outputs(precision: str | None, **params: Any) -> lt.Network:
    """The network with output weights of eight bits, or two of them per label."""
    out = network().set_params(output_precision=precision, **params)
    arrays = (out.input_weights_, out.input_bias_, out.output_weights_, out.output_bias_)
    if precision is not None:  # 1, 0, 2 and -1 in E4M3
        arrays = (
            *arrays[:2],
            np.array([[56, 0], [0, 56], [56, 56], [64, 184]], np.uint8),
            arrays[3],
        )
        out._take(arrays, out.history_, 1, "sigmoid")
    else:
        index = np.array([[0, 1, 0, 0], [1, 0, 1, 1]], np.uint16)
        values = np.array([[1, 1, 1, 2], [0, 0, 1, -1]], np.float32)
        out._take((*arrays[:2], values, arrays[3]), out.history_, 1, "sigmoid", index)
    return out


def over_texts(out: Any) -> Any:
    """Give a model that reads texts an encoder of the words of ``TEXTS``, with given weights."""
    import torch

    from longtail.deep.encoders.average import Average
    from longtail.features.tokenizer import Tokenizer

    out.set_params(encoder="average", device="cpu", runtime="torch", onnx=False)
    tokenizer = Tokenizer.trained(TEXTS, least=1)
    encoder = Average(tokenizer.size, width=2, dropout=0.5)
    with torch.no_grad():
        words = torch.arange(2 * tokenizer.size).reshape(-1, 2) % 5 - 1
        encoder.embeddings.weight.copy_(words)
        encoder.residual.weight.copy_(torch.tensor([[1.0, -1.0], [2.0, 0.0]]))
        encoder.residual.bias.zero_()
    out._take_encoder(encoder, tokenizer, tokenizer.encode(TEXTS))
    out.history_ = [{"epoch": 1, "seconds": 0.5, "loss": 1.0, "validation": None}]
    out.best_epoch_ = 1
    out.n_features_in_, out.n_labels_ = tokenizer.size, 4
    return out


def text_network() -> lt.TextNetwork:
    out = over_texts(lt.TextNetwork())
    out._take(
        np.array([[1, 0], [0, 1], [1, 1], [2, -1]], np.float32),
        np.array([0, 1, 0, -2], np.float32),
    )
    out.loss_ = "sigmoid"
    return out


def xr_transformer() -> lt.XRTransformer:
    """With the encoder of ``over_texts``; the ranker is trained on what it makes of ``TEXTS``."""
    out = over_texts(lt.XRTransformer(refined_leaf=2, refined_branching=2, steps=[2, 4], beam=3))
    out.vectorizer_ = lt.Tfidf(min_df=1).fit(TEXTS)
    out.n_columns_, out.max_length_ = len(out.vectorizer_.get_feature_names_out()), 32
    out.history_ = [{"level": 1, "nodes": 2, "steps": 2, "seconds": 0.5, "loss": 1.0}]
    labels = [[0, 3], [1], [2], [0]]
    out.ranker_ = out._ranker(4).fit(out._seen(out._rows(TEXTS)), labels)
    return out


def dual_encoder(out: Any) -> Any:
    """With given weights; the last label has had no row."""
    out = over_texts(out)
    turned = np.array([[0.5, -0.25], [0.25, 0.5]], np.float32)
    out.heads_ = {"dual.weight": turned, "dual.bias": np.array([0.125, 0], np.float32)}
    if out.has_table:
        out.heads_ |= {"classifier.weight": turned.T.copy(), "classifier.bias": np.zeros(2, "f")}
        out.heads_["table"] = np.array([[1, 0], [0, 2], [1, -1], [3, 4]], np.float32)
        out.answer_ = "both"
    out.label_tokens_ = out.tokenizer_.encode(["fox", "wine", "red", "two foxes"])
    out.has_rows_ = np.array([True, True, True, False])
    out._take(np.array([[1, 0], [0.6, 0.8], [-0.8, 0.6], [0, 1]], np.float32))
    return out


def queries(model: Ranker) -> Any:
    """What a model is asked: rows of features, or texts."""
    return TEXTS if model.reads_texts else QUERIES


def with_torch() -> dict[str, Ranker]:
    return {
        "text-network": text_network(),
        "xr-transformer": xr_transformer(),
        "dual-encoder": dual_encoder(lt.DualEncoder()),
        "unidec": dual_encoder(lt.UniDEC()),
    }


def models() -> dict[str, Ranker]:
    """Every estimator that can be saved, fitted."""
    xr_linear = lt.XRLinear(tree=lt.tree.LabelTree(level_sizes=[2])).fit(X, Y)
    shards = label_shards(xr_linear, 2, "golden")
    return {
        "popularity": lt.baselines.Popularity().fit(X, Y),
        "nearest-neighbors-dense": lt.baselines.NearestNeighbors(n_neighbors=3).fit(X, Y),
        "nearest-neighbors-sparse": lt.baselines.NearestNeighbors(
            n_neighbors=2, weights="uniform", normalize=False
        ).fit(sp.csr_matrix(X), Y),
        "one-vs-all": lt.OneVsAll().fit(X, Y),
        "xr-linear": xr_linear,
        "mach": lt.MACH(n_buckets=3, n_repetitions=4, estimator="linear").fit(X, Y),
        "declare": lt.DECLARE.as_published(n_components=3, n_neighbors=3, estimator="linear").fit(
            X, Y
        ),
        "network": network(),
        "network-float8": with_outputs("float8"),
        "network-fan-in": with_outputs(None, fan_in=2),
        **(with_torch() if HAS_TORCH else {}),
        "ensemble": lt.Ensemble.of([xr_linear, lt.baselines.Popularity().fit(X, Y)]),
        "shard-0": shards[0],
        "shard-1": shards[1],
    }


def front() -> ShardedRanker:
    """What asks the two shards of the tree above; it answers nothing by itself."""
    whole = lt.XRLinear(tree=lt.tree.LabelTree(level_sizes=[2])).fit(X, Y)
    return ShardedRanker.of(whole, 2, "golden")


def everything() -> State:
    """A state that uses all of the format."""
    arrays = {f"a{i}": np.arange(i + 2).astype(dtype) for i, dtype in enumerate(DTYPES)}
    arrays["scalar"] = np.array(2.5)
    arrays["none"] = np.zeros((0, 3), np.int32)
    params = {"inf": np.inf, "low": -np.inf, "text": "Größe \u2603", "list": [1, [2.5, None, True]]}
    inner = State("inner", {"x": 1}, {"b": np.ones((2, 2, 2), np.float32)})
    return State("everything", params, arrays, {"label_names": ["a", "b"]}, {"part": inner})


if __name__ == "__main__":
    folder = FOLDER / f"v{VERSION}"
    written = folder / "answers.json"
    answers = json.loads(written.read_text()) if written.exists() else {}
    for name, model in models().items():
        if name not in answers:
            model.save(folder / name)
            top = model.predict_topk(queries(model), k=3)
            scores = [[repr(float(score)) for score in row] for row in top.scores]
            answers[name] = {"indices": top.indices.tolist(), "scores": scores}
    if not (folder / "sharded").exists():
        front().save(folder / "sharded")
    if not (folder / "everything").exists():
        save(folder / "everything", everything())
    written.write_text(json.dumps(answers, indent=1) + "\n")
