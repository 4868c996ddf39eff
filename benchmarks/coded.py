"""Fewer outputs than labels: what do MACH and DECLARE cost, and what do they save?

    python benchmarks/coded.py run [--data Bibtex Delicious CiteULike-t TIB-SID-en] [--seeds 0 1 2]
                                   [--models declare pruned network mach …] [--n-jobs 2]
    python benchmarks/coded.py report [--plot docs/_static/coded-convergence.svg]

``run`` trains what is missing and writes one file per data set, model and seed below
``benchmarks/results/coded``, so that it can be stopped and started again; ``report`` prints the
tables and draws P@1 against training time. Data sets are folders below LONGTAIL_DATA; texts become
TF-IDF rows. All networks have one hidden layer of 256 and the same optimiser and early stopping on
a tenth of the training rows; test rows are only looked at to draw the curves. "pruned" has as many
weights left as the network of DECLARE, over both layers together.

The networks need torch; the linear rows do not.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import longtail as lt
from longtail.coded import Ridge
from longtail.coded.estimators import REGRESSION
from longtail.codes import SVDCode

RESULTS = Path(__file__).parent / "results" / "coded"
COMPONENTS = {"Bibtex": 100, "Delicious": 100, "CiteULike-t": 200, "TIB-SID-en": 200}
EPOCHS = {"Bibtex": 20, "Delicious": 20, "CiteULike-t": 12, "TIB-SID-en": 8}
MODELS = ("network", "pruned", "declare", "mach", "one-vs-all", "declare-linear", "mach-linear")
RECOVERIES = ("inner", "cosine", "labels")
HIDDEN = 256


def load(name: str) -> tuple[Any, Any, Any, Any]:
    data = lt.load_dataset(Path(os.environ["LONGTAIL_DATA"]) / name)
    X, X_test = data.train.X, data.test.X
    if X is None:
        vectoriser = lt.Tfidf()
        X, X_test = (
            vectoriser.fit_transform(data.train.texts),
            vectoriser.transform(data.test.texts),
        )
    return X, data.train.Y, X_test, data.test.Y


def precisions(Y: Any, top: lt.TopK) -> list[float]:
    return [100 * float(lt.metrics.precision_at_k(Y, top, k=k)) for k in (1, 3, 5)]


class Cell:
    """One training; ``run`` returns what goes into its file."""

    def __init__(self, name: str, data: Any, seed: int, n_jobs: int) -> None:
        self.name, self.seed, self.n_jobs = name, seed, n_jobs
        self.X, self.Y, self.X_test, self.Y_test = data
        self.c = COMPONENTS[name]

    def network(self, **params: Any) -> lt.Network:
        return lt.Network(
            hidden=HIDDEN,
            epochs=EPOCHS[self.name],
            random_state=self.seed,
            n_jobs=self.n_jobs,
            **params,
        )

    def run(self, model: str) -> dict[str, Any]:
        began = time.perf_counter()
        found = getattr(self, "_" + model.replace("-", "_"))()
        found.setdefault("seconds", time.perf_counter() - began)
        return found

    def _network(self, **params: Any) -> dict[str, Any]:
        curve = []

        def look(epoch: int, seconds: float, network: lt.Network) -> None:
            top = network.predict_topk(self.X_test, k=5)
            curve.append([seconds, precisions(self.Y_test, top)[0]])

        model = self.network(**params).fit(self.X, self.Y, after_epoch=look)
        return {
            "P": precisions(self.Y_test, model.predict_topk(self.X_test, k=5)),
            "outputs": self.Y.shape[1],
            "parameters": model.n_parameters_,
            "seconds": model.history_[-1]["seconds"],
            "curve": curve,
        }

    def _pruned(self) -> dict[str, Any]:
        return self._network(keep=HIDDEN * (self.X.shape[1] + self.c))

    def _declare(self) -> dict[str, Any]:
        began = time.perf_counter()
        code = SVDCode(n_components=self.c, random_state=self.seed, n_jobs=self.n_jobs).fit(self.Y)
        compressing = time.perf_counter() - began
        curve = []

        def look(epoch: int, seconds: float, network: lt.Network) -> None:
            top = code.decode(network.decision_function(self.X_test), 5)
            curve.append([compressing + seconds, precisions(self.Y_test, top)[0]])

        network = self.network(**REGRESSION).fit_targets(self.X, code.codes_, after_epoch=look)
        codes, truth = network.decision_function(self.X_test), code.encode(self.Y_test)
        found: dict[str, Any] = {}
        for recovery in RECOVERIES:
            code.set_params(recovery=recovery)
            found[f"P {recovery}"] = precisions(self.Y_test, code.decode(codes, 5))
            found[f"oracle {recovery}"] = precisions(self.Y_test, code.decode(truth, 5))
        return {
            **found,
            "P": found["P inner"],
            "outputs": self.c,
            "parameters": network.n_parameters_,
            "seconds": compressing + network.history_[-1]["seconds"],
            "compressing": compressing,
            "curve": curve,
        }

    def _mach(self) -> dict[str, Any]:
        model = lt.MACH(estimator=self.network(), random_state=self.seed, n_jobs=self.n_jobs)
        began = time.perf_counter()
        model.fit(self.X, self.Y)
        return self._of_mach(model, time.perf_counter() - began)

    def _mach_linear(self) -> dict[str, Any]:
        model = lt.MACH(estimator="linear", random_state=self.seed, n_jobs=self.n_jobs)
        began = time.perf_counter()
        model.fit(self.X, self.Y)
        return self._of_mach(model, time.perf_counter() - began)

    def _of_mach(self, model: lt.MACH, seconds: float) -> dict[str, Any]:
        found = {"seconds": seconds, "outputs": model.n_outputs_}
        members = list(model.repetitions_.values())
        found["parameters"] = sum(
            m.n_parameters_ if isinstance(m, lt.Network) else m.coef_.nnz for m in members
        )
        for aggregation in ("logits", "mean", "min", "median"):
            model.set_params(aggregation=aggregation)
            top = model.predict_topk(self.X_test, k=5)
            found[f"P {aggregation}"] = precisions(self.Y_test, top)
        found["P"] = found["P logits"]
        found["size"] = [model.code_.n_buckets_, model.code_.n_repetitions_]
        return found

    def _one_vs_all(self) -> dict[str, Any]:
        model = lt.OneVsAll(C=1.0, random_state=self.seed, n_jobs=self.n_jobs)
        began = time.perf_counter()
        model.fit(self.X, self.Y)
        return {
            "seconds": time.perf_counter() - began,
            "P": precisions(self.Y_test, model.predict_topk(self.X_test, k=5)),
            "outputs": self.Y.shape[1],
            "parameters": model.coef_.nnz,
        }

    def _declare_linear(self, compression: str = "svd") -> dict[str, Any]:
        model = lt.DECLARE(
            n_components=self.c,
            estimator=Ridge(l2=1.0),
            compression=compression,
            random_state=self.seed,
            n_jobs=self.n_jobs,
        )
        began = time.perf_counter()
        model.fit(self.X, self.Y)
        found: dict[str, Any] = {"seconds": time.perf_counter() - began}
        counts = np.bincount(self.Y.indices, minlength=self.Y.shape[1])
        rare = np.flatnonzero(counts <= np.quantile(counts[counts > 0], 0.5))
        for recovery in RECOVERIES:
            model.set_params(recovery=recovery)
            top = model.predict_topk(self.X_test, k=5)
            found[f"P {recovery}"] = precisions(self.Y_test, top)
            oracle = model.oracle_topk(self.Y_test, k=5)
            found[f"oracle {recovery}"] = precisions(self.Y_test, oracle)
            hits = top.to_csr(binary=True).multiply(self.Y_test).tocsc()[:, rare].sum()
            found[f"rare recall {recovery}"] = float(100 * hits / self.Y_test[:, rare].sum())
        found.update(P=found["P inner"], outputs=self.c)
        found["parameters"] = model.estimator_.coef_.size + model.estimator_.intercept_.size
        return found

    def _declare_neighbors(self) -> dict[str, Any]:
        return self._declare_linear("neighbors")


def run(args: argparse.Namespace) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in args.data:
        data = None
        for seed in args.seeds:
            for model in args.models:
                path = RESULTS / f"{name}.{model}.{seed}.json"
                if path.exists():
                    continue
                data = load(name) if data is None else data
                found = Cell(name, data, seed, args.n_jobs).run(model)
                found["machine"] = f"{platform.machine()}, {lt.native_info()}"
                found["command"] = " ".join(sys.argv)
                path.write_text(json.dumps(found))
                P = "/".join(f"{p:.2f}" for p in found["P"])
                print(f"{name} {model} seed {seed}: {P}, {found['seconds']:.1f} s", flush=True)


def cells(name: str, model: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(RESULTS.glob(f"{name}.{model}.*.json"))]


def mean(found: list[dict[str, Any]], key: str) -> str:
    values = np.array([cell[key] for cell in found])
    return " / ".join(f"{v:.2f}" for v in np.atleast_1d(values.mean(axis=0)))


ROWS = [
    ("uncompressed network", "network", "P"),
    ("pruned network", "pruned", "P"),
    ("DECLARE, inner products (the paper)", "declare", "P inner"),
    ("DECLARE, cosine", "declare", "P cosine"),
    ("DECLARE, through V", "declare", "P labels"),
    ("DECLARE, true codes (ceiling, cosine)", "declare", "oracle cosine"),
    ("MACH, logits", "mach", "P logits"),
    ("MACH, mean of probabilities", "mach", "P mean"),
    ("MACH, minimum", "mach", "P min"),
    ("MACH, median", "mach", "P median"),
    ("one-vs-all, linear", "one-vs-all", "P"),
    ("DECLARE, linear, inner products", "declare-linear", "P inner"),
    ("DECLARE, linear, cosine", "declare-linear", "P cosine"),
    ("DECLARE, linear, through V", "declare-linear", "P labels"),
    ("DECLARE, linear, neighbour code, cosine", "declare-neighbors", "P cosine"),
    ("MACH, linear, logits", "mach-linear", "P logits"),
]


def report(args: argparse.Namespace) -> None:
    for name in args.data:
        print(f"\n### {name}\n\n| model | P@1 / 3 / 5 | outputs | parameters | seconds | seeds |")
        print("|---|---:|---:|---:|---:|---:|")
        for title, model, key in ROWS:
            found = cells(name, model)
            if found:
                parameters = np.mean([cell["parameters"] for cell in found]) / 1e6
                seconds = np.mean([cell["seconds"] for cell in found])
                print(
                    f"| {title} | {mean(found, key)} | {found[0]['outputs']:,} | "
                    f"{parameters:.2f} M | {seconds:.0f} | {len(found)} |"
                )
        for model in ("declare-linear", "declare-neighbors"):
            found = cells(name, model)
            if found:
                rare = ", ".join(f"{r} {mean(found, f'rare recall {r}')}" for r in RECOVERIES)
                print(f"\nrecall@5 of the rarer half of the labels, {model}: {rare}")
    if args.plot:
        plot(args.data, args.plot)


def plot(names: list[str], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = [name for name in names if cells(name, "declare") and cells(name, "network")]
    figure, axes = plt.subplots(1, len(shown), figsize=(4 * len(shown), 3.2), squeeze=False)
    styles = (("network", "uncompressed"), ("pruned", "pruned"), ("declare", "DECLARE"))
    for axis, name in zip(axes[0], shown, strict=True):
        for color, (model, title) in enumerate(styles):
            for i, cell in enumerate(cells(name, model)):
                curve = np.array(cell["curve"])
                label = title if i == 0 else None
                axis.plot(*curve.T, color=f"C{color}", label=label, lw=1.2, alpha=0.8)
        axis.set(title=name, xlabel="training seconds", xscale="log")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("P@1 on the test rows")
    axes[0][0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name, function in (("run", run), ("report", report)):
        command = commands.add_parser(name)
        command.set_defaults(function=function)
        command.add_argument("--data", nargs="+", default=list(COMPONENTS))
        command.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
        command.add_argument("--models", nargs="+", default=list(MODELS))
        command.add_argument("--n-jobs", type=int, default=2)
        command.add_argument("--plot", type=Path)
    args = parser.parse_args(sys.argv[1:] or ["report"])
    args.function(args)


if __name__ == "__main__":
    main()
