"""XRTransformer beside the XR-Transformer of PECOS: same rows, encoder, trees, steps; on a CPU.

PECOS needs an environment of its own (``pip install libpecos==1.2.8 transformers==4.36.2``):

    python benchmarks/text/pecos_xr_transformer.py prepare --output FOLDER [--rows 5000]
    PECOS/bin/python benchmarks/text/pecos_xr_transformer.py pecos --encoder ENCODER --data FOLDER
    python benchmarks/text/pecos_xr_transformer.py ours --encoder ENCODER --data FOLDER
    python benchmarks/text/pecos_xr_transformer.py print --data FOLDER

The first writes texts, TF-IDF features and labels of some training rows of DebDeps-src, and 1,000
others to measure on. Both train by ``SETTINGS``; ``linear`` is the CPU time of trees
and linear models, ``cpu`` that of everything. PECOS takes the first token of a text through the
pooling layer of the encoder, ours takes the mean of the tokens.
"""

from __future__ import annotations

import argparse
import functools
import json
import platform
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

SETTINGS: dict[str, Any] = {"steps": [30, 30, 60], "rate": 1e-4, "batch": 16, "tokens": 32}
SETTINGS |= {"leaf": 16, "branching": 16, "min_codes": 64, "refined_leaf": 100, "refined": 32}
SETTINGS |= {"beam": 20, "man_beam": 20, "positive": 4.0, "negative": 1.0, "threads": 1}


class Clock:
    """CPU seconds of some functions, those that they call themselves counted once."""

    def __init__(self) -> None:
        self.seconds, self.depth = 0.0, 0

    def watch(self, owner: Any, name: str) -> None:
        raw = owner.__dict__[name]
        kind = type(raw) if isinstance(raw, (classmethod, staticmethod)) else None
        function = raw.__func__ if kind else raw

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            self.depth += 1
            began = cpu()
            try:
                return function(*args, **kwargs)
            finally:
                self.depth -= 1
                if not self.depth:
                    self.seconds += cpu() - began

        setattr(owner, name, kind(timed) if kind else timed)


def cpu() -> float:
    """CPU seconds of this process and of its finished children."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, kinds))


def prepare(folder: Path, n: int) -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    import rows as data_sets

    import longtail as lt

    rows = data_sets.read_texts("DebDeps-src")
    Y = rows.Y["train"]
    order = np.random.default_rng(0).permutation(Y.shape[0])[: n + 1000]
    train, test = np.sort(order[:n]), np.sort(order[n:])
    used = np.flatnonzero(np.bincount(Y[train].indices, minlength=Y.shape[1]))
    folder.mkdir(parents=True, exist_ok=True)
    vectorizer = lt.Tfidf()
    for name, some in (("train", train), ("test", test)):
        texts = [rows.tokens["train"][int(i)] for i in some]
        X = vectorizer.fit_transform(texts) if name == "train" else vectorizer.transform(texts)
        (folder / f"{name}.json").write_text(json.dumps(texts))
        sp.save_npz(folder / f"{name}-X.npz", X)
        sp.save_npz(folder / f"{name}-Y.npz", Y[some][:, used].tocsr())


def read(folder: Path, name: str) -> tuple[list[str], Any, Any]:
    texts = json.loads((folder / f"{name}.json").read_text())
    return texts, sp.load_npz(folder / f"{name}-X.npz"), sp.load_npz(folder / f"{name}-Y.npz")


def ours(folder: Path, encoder: str) -> dict[str, Any]:
    import longtail as lt
    from longtail.linear import XRLinear
    from longtail.text import level_training
    from longtail.tree import LabelTree

    clock, s = Clock(), SETTINGS
    for owner, name in ((XRLinear, "fit"), (XRLinear, "predict_topk"), (LabelTree, "fit")):
        clock.watch(owner, name)
    clock.watch(level_training, "train_level")
    texts, _, Y = read(folder, "train")
    model = lt.XRTransformer(
        encoder=encoder,
        steps=s["steps"],
        learning_rate=s["rate"],
        warmup_steps=0,
        batch_size=s["batch"],
        max_length=s["tokens"],
        leaf=s["leaf"],
        branching=s["branching"],
        min_codes=s["min_codes"],
        refined_leaf=s["refined_leaf"],
        refined_branching=s["refined"],
        beam=s["beam"],
        man_beam=s["man_beam"],
        positive_cost=s["positive"],
        negative_cost=s["negative"],
        device="cpu",
        n_jobs=s["threads"],
    )
    began, cpu_began = time.perf_counter(), cpu()
    model.fit(texts, Y)
    out = {"cpu": cpu() - cpu_began, "linear": clock.seconds, "wall": time.perf_counter() - began}
    others, _, truth = read(folder, "test")
    return {**out, "P": precisions(truth, model.predict_topk(others, k=5).to_csr())}


def pecos(folder: Path, encoder: str) -> dict[str, Any]:
    import copy

    import torch
    from pecos.xmc.base import HierarchicalKMeans, MLModel
    from pecos.xmc.xlinear.model import XLinearModel
    from pecos.xmc.xtransformer.model import XTransformer
    from pecos.xmc.xtransformer.module import MLProblemWithText

    torch.set_num_threads(SETTINGS["threads"])
    clock, s = Clock(), SETTINGS
    for owner, name in ((MLModel, "train"), (MLModel, "predict"), (XLinearModel, "train")):
        clock.watch(owner, name)
    clock.watch(HierarchicalKMeans, "gen")
    texts, X, Y = read(folder, "train")
    how = XTransformer.TrainParams.from_dict({}, recursive=True)
    ask = XTransformer.PredParams.from_dict({}, recursive=True)
    for tree, leaf, branching, least in (
        (how.preliminary_indexer_params, s["leaf"], s["branching"], s["min_codes"]),
        (how.refined_indexer_params, s["refined_leaf"], s["refined"], None),
    ):
        tree.max_leaf_size, tree.nr_splits, tree.min_codes = leaf, branching, least
        tree.threads = s["threads"]
    levels, answers = [], []
    for i, steps in enumerate(s["steps"]):
        level = copy.deepcopy(how.matcher_params_chain)
        level.model_shortcut, level.max_steps, level.learning_rate = encoder, steps, s["rate"]
        level.negative_sampling = "tfn+man" if i else "tfn"
        level.batch_size, level.batch_gen_workers, level.use_gpu = s["batch"], 1, False
        level.max_active_matching_labels, level.threshold, level.save_steps = 1000, 1e-3, steps
        level.cost_sensitive_ranker = True
        levels.append(level)
        answer = copy.deepcopy(ask.matcher_params_chain)
        answer.only_topk, answer.truncate_length = s["man_beam"], s["tokens"]
        answer.ensemble_method, answer.post_processor = "concat-only", "l3-hinge"
        answers.append(answer)
    how.matcher_params_chain, ask.matcher_params_chain = levels, answers
    ranker, found = how.ranker_params, ask.ranker_params.hlm_args
    ranker.rel_mode, ranker.rel_norm = "ranker-only", "l1"
    problem = ranker.hlm_args.model_chain
    problem.Cp, problem.Cn, problem.threshold = s["positive"], s["negative"], 1e-3
    problem.threads = s["threads"]
    depth = n_levels(Y.shape[1], s["refined_leaf"], s["refined"])
    ranker.hlm_args.model_chain = [copy.deepcopy(problem) for _ in range(depth)]
    ranker.hlm_args.neg_mining_chain = ["tfn"] * (depth - 1) + ["tfn+man"]
    found.model_chain.only_topk = s["beam"]
    found.model_chain = [copy.deepcopy(found.model_chain) for _ in range(depth)]
    found.model_chain[-1].post_processor = "noop"
    began, cpu_began = time.perf_counter(), cpu()
    model = XTransformer.train(
        MLProblemWithText(texts, Y, X_feat=X), train_params=how, pred_params=ask
    )
    out = {"cpu": cpu() - cpu_began, "linear": clock.seconds, "wall": time.perf_counter() - began}
    others, X_others, truth = read(folder, "test")
    top = model.predict(others, X_feat=X_others, use_gpu=False, batch_size=32, batch_gen_workers=1)
    return {**out, "P": precisions(truth, top)}


def n_levels(n_labels: int, leaf: int, branching: int) -> int:
    """Levels of the tree: labels, their clusters, and these grouped until few remain."""
    clusters, depth = 2 ** max(1, int(np.ceil(np.log2(n_labels / leaf)))), 2
    while clusters > branching:
        clusters, depth = -(-clusters // branching), depth + 1
    return depth


def precisions(truth: Any, answers: Any) -> list[float]:
    """P@1, 3 and 5 in per cent."""
    answers, out = sp.csr_matrix(answers), []
    for k in (1, 3, 5):
        hits = 0
        for i in range(answers.shape[0]):
            row = slice(answers.indptr[i], answers.indptr[i + 1])
            best = answers.indices[row][np.argsort(-answers.data[row], kind="stable")[:k]]
            hits += np.isin(best, truth.indices[truth.indptr[i] : truth.indptr[i + 1]]).sum()
        out.append(round(100 * hits / (k * answers.shape[0]), 2))
    return out


def table(folder: Path) -> None:
    """Print both, and the ratios."""
    found = {
        name: json.loads((folder / f"{name}.result").read_text()) for name in ("pecos", "ours")
    }
    print("| | P@1/3/5 | CPU s | of trees and linear models | seconds |")
    print("|---|---:|---:|---:|---:|")
    for name, r in found.items():
        p = "/".join(f"{v:.1f}" for v in r["P"])
        print(f"| {name} | {p} | {r['cpu']:.0f} | {r['linear']:.1f} | {r['wall']:.0f} |")
    ratio = {key: found["pecos"][key] / found["ours"][key] for key in ("cpu", "linear", "wall")}
    print("ratios:", ", ".join(f"{key} {value:.2f}" for key, value in ratio.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", choices=["prepare", "pecos", "ours", "print"])
    parser.add_argument("--encoder")
    parser.add_argument("--data", "--output", dest="folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--steps", type=int, nargs="*", default=SETTINGS["steps"])
    options = parser.parse_args()
    SETTINGS["steps"] = options.steps
    if options.work == "prepare":
        prepare(options.folder, options.rows)
    elif options.work == "print":
        table(options.folder)
    else:
        run = ours if options.work == "ours" else pecos
        result = {**run(options.folder, options.encoder), "machine": platform.platform()}
        print(json.dumps(result))
        (options.folder / f"{options.work}.result").write_text(json.dumps(result))


if __name__ == "__main__":
    main()
