"""Decision rules against xCOLUMNs, on probabilities of our own models, and at extreme size.

    LONGTAIL_DATA=... python benchmarks/decide.py --compare TIB-SID-en CiteULike-t Delicious
    LONGTAIL_DATA=... python benchmarks/decide.py --quality TIB-SID-en [--best [--encoder FOLDER]]
    python benchmarks/decide.py --scale

``--compare``: a probabilistic label tree is trained on the training rows; its 100 most probable
labels of each test row are the candidates. Both libraries get the same matrix, the same k and the
same objective (epsilon 1e-6 in the denominators, tolerance 1e-6), run in turn, and keep the least
processor time of ``--repeats`` runs; xCOLUMNs is compiled by a first call that is not counted and
tries each of its starts. Utilities of both answers are computed by one function here. Frank-Wolfe
is fitted on the first half of the test rows, which the model has not seen.
``--quality``: what each rule does to metrics on true labels; with ``--best``, by the probabilities
of ``Tagger(quality="best")`` instead.
``--scale``: block coordinate ascent on 1,000,000 rows x 100 candidates x 500,000 labels.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import longtail as lt

EPSILON, TOLERANCE = 1e-6, 1e-6
RESULTS = Path(__file__).parent / "results"


def probabilities(
    name: str, n_candidates: int, seed: int, best: dict[str, Any] | None = None
) -> tuple[lt.TopK, Any, Any]:
    """Candidates of the test rows, true labels of test and training rows; kept on disk.

    ``best``: parameters of the fused model that gives the probabilities, instead of the tree.
    """
    kind = "C16" if best is None else f"best-{Path(best.get('encoder') or 'words').name}"
    kept = RESULTS / f"decide-{name}-{n_candidates}-{seed}-{kind}.npz"
    data = lt.load_dataset(Path(os.environ["LONGTAIL_DATA"]) / name)
    if not kept.exists():
        find = _tree if best is None else _fused
        top = find(data, n_candidates, random_state=seed, **(best or {}))
        RESULTS.mkdir(exist_ok=True)
        np.savez(kept, indices=top.indices, scores=top.scores)
    found = np.load(kept)
    top = lt.TopK(found["indices"], found["scores"], n_labels=data.train.Y.shape[1])
    return top, data.test.Y, data.train.Y


def _tree(data: Any, k: int, **how: Any) -> lt.TopK:
    X, X_test = data.train.X, data.test.X
    if X is None:
        tfidf = lt.Tfidf()
        X, X_test = tfidf.fit_transform(data.train.texts), tfidf.transform(data.test.texts)
    model = lt.XRLinear(loss="logistic", post_processor="sigmoid", C=16, beam=50, **how)
    return model.fit(X, data.train.Y).predict_proba_topk(X_test, k=k)


def _fused(data: Any, k: int, **how: Any) -> lt.TopK:
    tagger = lt.Tagger(quality="best", **how)
    named = {"label_names": data.label_names, "label_texts": data.label_texts}
    tagger.fit(data.train.texts, data.train.Y, **named)
    return tagger.predict_topk(data.test.texts, k=k)


def expected_f1(eta: sp.csr_matrix, chosen: sp.csr_matrix) -> float:
    """Macro-F1 of the expected counts, in double precision."""
    eta, chosen = eta.astype(np.float64), chosen.astype(np.float64)
    n = eta.shape[0]
    t = np.asarray(eta.multiply(chosen).sum(axis=0)).ravel() / n
    q, p = (np.asarray(m.sum(axis=0)).ravel() / n for m in (chosen, eta))
    return float((2 * t / (p + q + EPSILON)).mean())


def expected_coverage(eta: sp.csr_matrix, chosen: sp.csr_matrix) -> float:
    hit = eta.astype(np.float64).multiply(chosen).tocsr()
    with np.errstate(divide="ignore"):
        misses = np.bincount(hit.indices, weights=np.log1p(-hit.data), minlength=eta.shape[1])
    return float((1 - np.exp(misses)).mean())


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of processor time, all threads together: a busy machine does not change them much."""
    start = time.process_time()
    out = call()
    return time.process_time() - start, out


def in_turn(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, tuple[float, Any]]:
    """Fastest time and last result of each call, run in turn."""
    out: dict[str, tuple[float, Any]] = {}
    for _ in range(repeats):
        for name, call in calls.items():
            seconds, result = timed(call)
            out[name] = min(seconds, out[name][0]) if name in out else seconds, result
    return out


def show(title: str, results: dict[str, tuple[float, float, str]]) -> None:
    others = {name: r for name, r in results.items() if "longtail" not in name}
    print(f"  {title}")
    for name, (seconds, utility, note) in results.items():
        print(f"    {name:20} {seconds:9.3f} s   utility {utility:.7f}   {note}")
    best = max(u for _, u, _ in others.values())
    fastest = min(s for s, _, _ in others.values())
    of_best = max(others.values(), key=lambda r: r[1])[0]
    seconds, utility, _ = results["longtail"]
    print(
        f"    -> {fastest / seconds:.0f} times faster than its fastest start, "
        f"{of_best / seconds:.0f} times than its best; "
        f"utility {utility - best:+.2e} ({utility / best - 1:+.3%})"
    )


def compare_ascent(top: lt.TopK, k: int, seed: int, repeats: int) -> None:
    from xcolumns.block_coordinate import (
        predict_optimizing_coverage_using_bc,
        predict_optimizing_macro_f1_score_using_bc,
    )

    eta = top.to_csr()
    cases = {
        "macro_f1": (predict_optimizing_macro_f1_score_using_bc, expected_f1, EPSILON),
        "coverage": (predict_optimizing_coverage_using_bc, expected_coverage, 0.0),
    }
    for metric, (theirs, utility, epsilon) in cases.items():
        starts = ["top", "random"] if metric == "coverage" else ["top", "random", "greedy"]
        theirs(eta[:50].copy(), k=k, init_y_pred="top", seed=seed, max_iter=1)  # compiles
        rule = lt.BlockCoordinateAscent(
            metric, k=k, epsilon=epsilon, tol=TOLERANCE, random_state=seed, n_starts=1
        )
        calls: dict[str, Callable[[], Any]] = {"longtail": lambda r=rule: r.select(top)}  # type: ignore[misc]
        for start in starts:
            calls[f"xcolumns {start}"] = lambda s=start, f=theirs: f(  # type: ignore[misc]
                eta.copy(), k=k, init_y_pred=s, seed=seed, tolerance=TOLERANCE
            )
        rows: dict[str, tuple[float, float, str]] = {}
        for name, (seconds, answer) in in_turn(calls, repeats).items():
            chosen = answer.to_csr(binary=True) if name == "longtail" else answer
            note = f"{rule.n_sweeps_} sweeps" if name == "longtail" else ""
            rows[name] = seconds, utility(eta, sp.csr_matrix(chosen)), note
        show(f"block coordinate ascent, {metric}, k={k}", rows)


def compare_frank_wolfe(top: lt.TopK, Y: Any, k: int, seed: int, repeats: int) -> None:
    from xcolumns.frank_wolfe import find_classifier_using_fw
    from xcolumns.metrics import macro_f1_score_on_conf_matrix

    half = len(top) // 2
    eta, truth = top[:half].to_csr(), Y[:half]

    def theirs(start: str, max_iters: int = 50, rows: int = half) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return find_classifier_using_fw(
                truth[:rows],
                eta[:rows],
                macro_f1_score_on_conf_matrix,
                k,
                max_iters=max_iters,
                init_classifier=start,
                skip_tn=True,
                seed=seed,
                return_meta=True,
            )

    theirs("top", max_iters=1, rows=50)  # compiles
    rule = lt.FrankWolfe("macro_f1", k=k, epsilon=EPSILON, tol=TOLERANCE, random_state=seed)
    calls: dict[str, Callable[[], Any]] = {"longtail": lambda: rule.fit(top[:half], truth)}
    for start in ("top", "random"):
        calls[f"xcolumns {start}"] = lambda s=start: theirs(s)  # type: ignore[misc]
    rows: dict[str, tuple[float, float, str]] = {}
    for name, (seconds, out) in in_turn(calls, repeats).items():
        if name == "longtail":
            rows[name] = seconds, rule.utility_, f"{len(rule.weights_)} rules"
        else:
            utilities = out[1]["utilities"]
            rows[name] = seconds, float(utilities[-1]), f"{len(utilities)} rules"
    show(f"Frank-Wolfe, macro_f1, k={k}, fitted on {half} rows", rows)


def quality(top: lt.TopK, Y: Any, Y_train: Any, k: int, seed: int) -> None:
    half = len(top) // 2
    valid, test, truth = top[:half], top[half:], Y[half:]
    prior = np.asarray(Y_train.mean(axis=0)).ravel()
    propensity = lt.JainPropensity().fit(Y_train)
    seeded: dict[str, Any] = {"k": k, "random_state": seed}
    rules = {
        "top k": lt.decide.TopKRule(k=k),
        "PSP": lt.decide.WeightedTopK("psp", k=k, propensity=propensity),
        "power law 1/2": lt.decide.WeightedTopK("power_law", k=k, prior=prior),
        "log": lt.decide.WeightedTopK("log", k=k, prior=prior),
        "macro-recall": lt.decide.WeightedTopK("macro_recall", k=k, prior=prior),
        "BCA macro-F1, half precision": lt.BlockCoordinateAscent(
            "macro_f1", precision_weight=0.5, **seeded
        ),
        "BCA macro-F1": lt.BlockCoordinateAscent("macro_f1", **seeded),
        "BCA macro-F1, at most k": lt.BlockCoordinateAscent("macro_f1", budget="at_most", **seeded),
        "BCA coverage": lt.BlockCoordinateAscent("coverage", **seeded),
        "Frank-Wolfe macro-F1": lt.FrankWolfe("macro_f1", **seeded).fit(valid, Y[:half]),
        "Frank-Wolfe, shrinkage 0.1": lt.FrankWolfe("macro_f1", shrinkage=0.1, **seeded).fit(
            valid, Y[:half]
        ),
        "Frank-Wolfe, eta as truth": lt.FrankWolfe("macro_f1", **seeded).fit(valid, valid.to_csr()),
        "online macro-F1": lt.decide.OnlineRule("macro_f1", k=k),
        "threshold macro-F1": lt.decide.Threshold("macro_f1", k=k).fit(valid, Y[:half]),
    }
    names = ["precision", "ps_precision", "macro_precision", "macro_recall", "macro_f1", "coverage"]
    print(f"  {len(test)} test rows, k={k}; the rest of the test rows tune rules that are fitted")
    seen = (np.bincount(Y[:half].indices, minlength=top.n_labels) > 0).mean()
    print(f"  {seen:.1%} of the labels have a positive in the rows that tune")
    print(f"    {'rule':30}" + "".join(f"{name:>16}" for name in names) + f"{'labels/row':>12}")
    answers = {title: rule.select(test) for title, rule in rules.items()}
    for title, rule in rules.items():
        chosen = answers[title]
        values = [_measured(name, truth, chosen, propensity, k) for name in names]
        per_row = (chosen.indices >= 0).sum(axis=1).mean()
        fitted = f"   fitted to {rule.utility_:.4f}" if isinstance(rule, lt.FrankWolfe) else ""
        cells = "".join(f"{v:16.4f}" for v in values) + f"{per_row:12.2f}{fitted}"
        print(f"    {title:30}{cells}")
    told = {title: answers[title] for title in ("BCA macro-F1, half precision", "BCA macro-F1")}
    report = lt.evaluate(
        truth, answers["top k"], k=k, train_Y=Y_train, rules=told, n_resamples=0, n_listed=1
    )
    for result in report.rules[1:]:
        print(f"    {result.sentence}")


def _measured(name: str, truth: Any, chosen: lt.TopK, propensity: Any, k: int) -> float:
    metric = getattr(lt.metrics, f"{name}_at_k")
    return float(
        metric(truth, chosen, propensity, k) if "ps_" in name else metric(truth, chosen, k)
    )


def scale(n: int, n_candidates: int, n_labels: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ids = np.empty((n, n_candidates), np.int32)
    for start in range(0, n, 100_000):  # power-law labels, none twice in a row
        part = ids[start : start + 100_000]
        drawn = rng.random(part.shape, dtype=np.float32) ** 3
        part[:] = np.sort((drawn * (n_labels - n_candidates)).astype(np.int32), axis=1)
        part += np.arange(n_candidates, dtype=np.int32)
    scores = np.empty(ids.shape, np.float32)
    for start in range(0, n, 100_000):
        part = scores[start : start + 100_000]
        part[:] = -np.sort(-(rng.random(part.shape, dtype=np.float32) ** 4), axis=1)
    top = lt.TopK(ids, scores, n_labels=n_labels)
    print(f"  {n} rows x {n_candidates} candidates x {n_labels} labels, k={k}")
    for metric in ("macro_f1", "coverage"):
        for sweeps in (1, 100):
            rule = lt.BlockCoordinateAscent(
                metric, k=k, max_sweeps=sweeps, tol=TOLERANCE, random_state=seed
            )
            seconds, _ = timed(lambda r=rule: r.select(top))  # type: ignore[misc]
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            peak /= 1 << (30 if sys.platform == "darwin" else 20)
            print(
                f"    {metric:10} {rule.n_sweeps_:3} sweeps {seconds:8.2f} s   utility "
                f"{rule.utilities_[0]:.6f} -> {rule.utility_:.6f}   peak memory {peak:.2f} GiB"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compare", nargs="+", metavar="DATA", default=[])
    parser.add_argument("--quality", nargs="+", metavar="DATA", default=[])
    parser.add_argument("--best", action="store_true", help="--quality of the fused model")
    parser.add_argument("--encoder", help="folder of a pretrained encoder, for --best")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--scale", action="store_true")
    parser.add_argument("--candidates", type=int, default=100)
    parser.add_argument("-k", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--labels", type=int, default=500_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(f"{platform.platform()}, {platform.processor()}, {lt.native_info()}")
    print(f"python {platform.python_version()}, numpy {np.__version__}")
    print("command:", " ".join(["python", *sys.argv]), "seed:", args.seed)
    for name in args.compare:
        top, Y, _ = probabilities(name, args.candidates, args.seed)
        print(f"{name}: {len(top)} rows, {top.n_labels} labels, {top.k} candidates")
        compare_ascent(top, args.k, args.seed, args.repeats)
        compare_frank_wolfe(top, Y, args.k, args.seed, args.repeats)
    for name in args.quality:
        print(f"{name}")
        best = {"encoder": args.encoder, "device": args.device} if args.encoder else {}
        found = probabilities(name, args.candidates, args.seed, best if args.best else None)
        quality(*found, args.k, args.seed)
    if args.scale:
        scale(args.rows, args.candidates, args.labels, args.k, args.seed)


if __name__ == "__main__":
    main()
