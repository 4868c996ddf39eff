"""Labels dropped on purpose: what unbiased estimates and corrections make up for, and what not.

    python benchmarks/injection.py --recall
    LONGTAIL_DATA=... python benchmarks/injection.py --training Bibtex
    LONGTAIL_DATA=... python benchmarks/injection.py --corrections Bibtex Delicious CiteULike-t \\
        --softmax
    LONGTAIL_DATA=... python benchmarks/injection.py --audit Bibtex

``--recall``: mean recall of a fixed prediction on artificial labels (100 labels of marginal 0.1),
estimated from observed labels without bias, by the bound, and as if nothing were missing, for
propensities from 0.9 to 0.2; mean and standard deviation over 100 draws of what is missing.
``--training``: linear softmax models for the 100 most frequent labels, trained with the normalised
cross-entropy on complete labels, on observed labels as they are, with the unbiased estimate and
with the bound; 1/p rises from 2 to 20 with rank; L2 over seven decades.
``--corrections``: ``longtail.audit.injection`` with every correction of the linear models:
``OneVsAll`` with logistic loss and C = 4, which suits complete labels, or ``XRLinear`` as it is
above 2,000 labels; with ``--softmax`` also of softmax models where labels are few; 1/p rises from
1.25 to 5 with rank.
``--audit``: whether the probabilities of ``longtail.audit.find_missing`` keep their word on dropped
labels.
``--plot FOLDER`` also draws the first two, after figures 3.2 and 3.3 of Schultheis's thesis.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import logsumexp

import longtail as lt
from longtail.audit import drop_labels, injection
from longtail.losses import normalized_weights

PROPENSITIES = np.linspace(0.9, 0.2, 15)
DECADES = 10.0 ** np.arange(-7, 0)
WAYS = ("complete labels", "no correction", "unbiased", "bound")
COLOURS = dict(zip(WAYS, ("#0b5fa5", "#6f6100", "#b8480b", "#0f7a5a"), strict=True))


def load(name: str) -> tuple[Any, Any, Any, Any]:
    data = lt.load_dataset(Path(os.environ["LONGTAIL_DATA"]) / name)
    X, X_test = data.train.X, data.test.X
    if X is None:
        tfidf = lt.Tfidf()
        X, X_test = tfidf.fit_transform(data.train.texts), tfidf.transform(data.test.texts)
    return X, data.train.Y, X_test, data.test.Y


def by_rank(Y: Any, low: float, high: float) -> np.ndarray:
    """Propensities whose inverse rises from low (most frequent label) to high (rarest) by rank."""
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    inverse = np.empty(Y.shape[1])
    inverse[np.argsort(-counts, kind="stable")] = np.linspace(low, high, Y.shape[1])
    return 1 / inverse


# Figure 3.2 ---------------------------------------------------------------------------------------


def estimated_recall(seed: int, n_draws: int = 100, n_rows: int = 1000) -> dict[str, Any]:
    """Estimates of mean recall: {"propensity", "true", way: (means, deviations)}."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n_rows, 100)) < 0.1
    predicted = np.where(truth, rng.random(truth.shape) < 0.6, rng.random(truth.shape) < 0.02)
    Y = sp.csr_matrix(truth.astype(np.float32))
    chosen = sp.csr_matrix(predicted.astype(np.float64))

    def recall(weights: sp.csr_matrix) -> float:
        return float(weights.multiply(chosen).sum()) / n_rows

    found: dict[str, Any] = {"propensity": PROPENSITIES.tolist()}
    found["true"] = recall(normalized_weights(Y))
    runs: dict[str, list[list[float]]] = {"unbiased": [], "bound": [], "no correction": []}
    for p in PROPENSITIES:
        drawn: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(n_draws):
            observed = drop_labels(Y, np.full(100, p), rng)
            every = np.full(100, p)
            for name in ("unbiased", "bound"):
                drawn[name].append(recall(normalized_weights(observed, every, estimate=name)))
            drawn["no correction"].append(recall(normalized_weights(observed)))
        for name, values in drawn.items():
            runs[name].append(values)
    for name, lists in runs.items():
        values = np.array(lists)
        found[name] = (values.mean(axis=1).tolist(), values.std(axis=1).tolist())
    return found


def show_recall(found: dict[str, Any]) -> None:
    print(f"Mean recall; true value {found['true']:.4f}. Mean and standard deviation of 100 draws")
    print(f"{'propensity':>12}{'unbiased':>20}{'bound':>20}{'no correction':>20}")
    for i, p in enumerate(found["propensity"]):
        cells = [
            f"{found[name][0][i]:.3f} ± {found[name][1][i]:.3f}"
            for name in ("unbiased", "bound", "no correction")
        ]
        print(f"{p:>12.2f}" + "".join(f"{cell:>20}" for cell in cells))


# Figure 3.3 ---------------------------------------------------------------------------------------


class Softmax:
    """Linear softmax regression: minimises mean_i sum_j T_ij (log sum_l e^s_il - s_ij) plus
    l2 / 2 |W|^2 by L-BFGS, T from ``reduction`` and the propensities.
    """

    def __init__(
        self,
        l2: float = 1e-5,
        reduction: str = "pick-all",
        estimate: str = "bound",
        propensity: Any = None,
        max_iter: int = 40,
    ) -> None:
        self.l2, self.reduction, self.estimate = l2, reduction, estimate
        self.propensity, self.max_iter = propensity, max_iter

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {
            name: getattr(self, name)
            for name in ("l2", "reduction", "estimate", "propensity", "max_iter")
        }

    def fit(self, X: Any, Y: Any) -> Softmax:
        X = as_rows(X)
        if self.reduction == "normalized":
            weights = normalized_weights(Y, self.propensity, estimate=self.estimate)
        else:
            p = np.ones(Y.shape[1]) if self.propensity is None else np.asarray(self.propensity)
            weights = sp.csr_matrix(Y.multiply(1 / p[None, :]))
        total = np.asarray(weights.sum(axis=1)).ravel()
        n, d, width = X.shape[0], X.shape[1], Y.shape[1]
        transposed = X.T.tocsr()

        def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
            w = flat.reshape(d, width)
            s = X @ w
            norm = logsumexp(s, axis=1)
            hits = weights.multiply(s).sum()
            value = (total @ norm - hits) / n + self.l2 / 2 * float(flat @ flat)
            pull = np.exp(s - norm[:, None]) * total[:, None]
            pull -= weights.toarray()
            return value, ((transposed @ pull) / n + self.l2 * w).ravel()

        out = minimize(
            objective,
            np.zeros(d * width),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": self.max_iter},
        )
        self.weights_ = out.x.reshape(d, width)
        return self

    def scores(self, X: Any) -> np.ndarray:
        return np.asarray(as_rows(X) @ self.weights_)

    def predict_topk(self, X: Any, k: int) -> lt.TopK:
        return lt.TopK.from_scores(self.scores(X).astype(np.float32), k)


def as_rows(X: Any) -> sp.csr_matrix:
    """Rows of unit length and a constant."""
    X = sp.csr_matrix(X, dtype=np.float64)
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    scaled = sp.diags(1 / np.maximum(norms, 1e-12)) @ X
    return sp.csr_matrix(sp.hstack([scaled, np.ones((X.shape[0], 1))]))


def cross_entropy(model: Softmax, X: Any, weights: sp.csr_matrix) -> float:
    s = model.scores(X)
    total = np.asarray(weights.sum(axis=1)).ravel()
    return float((total @ logsumexp(s, axis=1) - weights.multiply(s).sum()) / X.shape[0])


def training(name: str, seed: int) -> dict[str, Any]:
    X, Y, X_test, Y_test = load(name)
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    most = np.sort(np.argsort(-counts, kind="stable")[:100])
    Y, Y_test = Y[:, most], Y_test[:, most]
    keep, keep_test = np.diff(Y.indptr) > 0, np.diff(Y_test.indptr) > 0
    X, Y, X_test, Y_test = X[keep], Y[keep], X_test[keep_test], Y_test[keep_test]
    p = by_rank(Y, 2, 20)
    observed = drop_labels(Y, p, seed)
    noisy = normalized_weights(observed, p, estimate="unbiased")
    clean, test = normalized_weights(Y), normalized_weights(Y_test)
    print(
        f"{name}: {X.shape[0]} rows, 100 labels, {Y.nnz / X.shape[0]:.2f} labels a row, "
        f"{observed.nnz / X.shape[0]:.2f} observed"
    )
    print(f"{'':18}{'L2':>10}{'observed, unbiased':>20}{'clean training':>18}{'clean test':>14}")
    found: dict[str, Any] = {"l2": DECADES.tolist()}
    for way in WAYS:
        rows = []
        for l2 in DECADES:
            model = Softmax(l2, "normalized", "unbiased" if way == "unbiased" else "bound")
            if way in ("unbiased", "bound"):
                model.propensity = p
            model.fit(X, Y if way == "complete labels" else observed)
            row = [
                cross_entropy(model, X, noisy),
                cross_entropy(model, X, clean),
                cross_entropy(model, X_test, test),
            ]
            rows.append(row)
            print(f"{way:18}{l2:>10.0e}{row[0]:>20.3f}{row[1]:>18.3f}{row[2]:>14.3f}", flush=True)
        found[way] = rows
    return found


# Corrections and audit ----------------------------------------------------------------------------


def corrections(name: str, seed: int, with_softmax: bool) -> None:
    X, Y, X_test, Y_test = load(name)
    p = by_rank(Y, 1.25, 5)
    flat = Y.shape[1] <= 2000
    model = lt.OneVsAll(loss="logistic", C=4) if flat else lt.XRLinear()
    names = ["surrogate", "surrogate+balance", "balance+surrogate"]
    if flat:  # targets need problems that see every row
        names += ["unbiased", "normalized"]
    ways: dict[str, Any] = {each: {"missing_labels": p, "correction": each} for each in names}
    start = time.process_time()
    print(f"{name}: {model}")
    print(injection(model, X, Y, X_test, Y_test, p, ways, random_state=seed))
    if Y.shape[1] <= 200 and with_softmax:
        softmax = {
            "PAL": {"propensity": p},
            "PAL-N, bound": {"propensity": p, "reduction": "normalized"},
            "PAL-N, no correction": {"reduction": "normalized"},
        }
        print(f"{name}: linear softmax, pick all labels")
        print(injection(Softmax(), X, Y, X_test, Y_test, p, softmax, random_state=seed))
    print(f"{time.process_time() - start:.0f} s of processor time\n", flush=True)


def audited(name: str, seed: int) -> None:
    X, Y, _, _ = load(name)
    p = by_rank(Y, 1.25, 5)
    observed = drop_labels(Y, p, seed)
    models = {"true propensities": p, "JainPropensity": lt.JainPropensity().fit(observed)}
    found = lt.audit.find_missing(lt.XRLinear(), X, observed, propensity=models, n_listed=20_000)
    print(f"{name}: {Y.nnz} positives, {Y.nnz - observed.nnz} of them dropped")
    print(f"expected among the examined pairs: {found.expected_missing:.0f}")
    chance = np.array([s.probability for s in found.missing])
    truly = np.array([Y[s.row, s.label] > 0 for s in found.missing])
    print(f"{'probability':>14}{'pairs':>8}{'mean':>8}{'dropped':>9}")
    for low, high in ((0.9, 1.01), (0.7, 0.9), (0.5, 0.7), (0.3, 0.5), (0.1, 0.3)):
        own = (chance >= low) & (chance < high)
        if own.any():
            print(
                f"{low:>8.1f} to {min(high, 1):.1f}{own.sum():>8}{chance[own].mean():>8.3f}"
                f"{truly[own].mean():>9.3f}"
            )
    for text in found.warnings:
        print("!", text)


# Drawings -----------------------------------------------------------------------------------------


def draw_recall(found: dict[str, Any], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    x = np.array(found["propensity"])
    for name in ("unbiased", "bound", "no correction"):
        mean, spread = (np.array(values) for values in found[name])
        ax.plot(x, mean, color=COLOURS[name], label=name)
        ax.fill_between(x, mean - spread, mean + spread, color=COLOURS[name], alpha=0.2)
    ax.axhline(found["true"], color="black", linewidth=1, label="true recall")
    ax.set(xlabel="propensity", ylabel="mean recall", ylim=(0, 1.2))
    ax.invert_xaxis()
    ax.grid(alpha=0.25)
    ax.legend(frameon=False, fontsize=9)
    figure.savefig(path, metadata={"Date": None})


def draw_training(found: dict[str, Any], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for way in WAYS:
        values = np.array(found[way])
        for column, style in ((0, "--"), (1, ":"), (2, "-")):
            label = way if column == 2 else None
            ax.plot(found["l2"], values[:, column], style, color=COLOURS[way], label=label)
    for style, name in (("--", "observed training"), (":", "clean training"), ("-", "clean test")):
        ax.plot([], [], style, color="black", label=name)
    low = min(-4.0, float(np.array(found["unbiased"])[:, 0].min()))
    ax.set(xscale="log", xlabel="L2 regularisation", ylabel="normalised cross-entropy")
    ax.set_yscale("symlog", linthresh=8)
    ax.set_ylim(low * 1.5, max(20.0, float(np.array(found["unbiased"]).max()) * 1.5))
    ax.grid(alpha=0.25)
    ax.legend(frameon=False, fontsize=8, ncols=2)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recall", action="store_true")
    parser.add_argument("--training", metavar="DATA")
    parser.add_argument("--corrections", nargs="+", metavar="DATA", default=[])
    parser.add_argument("--softmax", action="store_true", help="with --corrections: PAL and PAL-N")
    parser.add_argument("--audit", nargs="+", metavar="DATA", default=[])
    parser.add_argument("--plot", type=Path, metavar="FOLDER")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(f"{platform.platform()}, python {platform.python_version()}, numpy {np.__version__}")
    print("command:", " ".join(["python", *sys.argv]), "seed:", args.seed)
    if args.recall:
        recalls = estimated_recall(args.seed)
        show_recall(recalls)
        if args.plot:
            draw_recall(recalls, args.plot / "injection-recall.svg")
    for name in args.audit:
        audited(name, args.seed)
    for name in args.corrections:
        corrections(name, args.seed, args.softmax)
    if args.training:
        trained = training(args.training, args.seed)
        if args.plot:
            draw_training(trained, args.plot / "injection-training.svg")


if __name__ == "__main__":
    main()
