"""What Longtail does today, from raw text to an honest report, in under a minute.

    python examples/demo.py [--out FOLDER]

Texts are descriptions of diagnoses; labels are ICD-10-CM codes and the headings above them, tens of
thousands in all, most of them rare. The codes ship with the package `simple-icd-10-cm`, so nothing
is downloaded.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
import time
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer

import longtail as lt
from longtail.report import Report

SHOWN = ("P@1", "P@5", "nDCG@5", "PSP@5", "macro-F1 present@5", "coverage present@5")


def main() -> None:
    parser = argparse.ArgumentParser(description="From raw text to an honest report.")
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="folder for results")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()

    heading("1. Data: diagnoses as text, their ICD-10-CM codes as labels")
    data = lt.load_dataset("icd10cm")
    print(data.describe())
    wanted = "Ollier's disease"
    row = data.test.texts.index(wanted) if wanted in data.test.texts else 0
    codes = data.vocabulary.decode(data.test.Y[row])[0]
    print(f"\nFor example, “{data.test.texts[row]}” has the labels {', '.join(codes)}.")

    heading("2. Features: TF-IDF of words")
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2)
    X_train = vectorizer.fit_transform(data.train.texts)
    X_test = vectorizer.transform(data.test.texts)
    print(f"{X_train.shape[1]:,} features, {X_train.nnz / X_train.shape[0]:.1f} a row")

    heading("3. Two baselines")
    propensity = lt.JainPropensity().fit(data.train.Y)
    reports = {}
    for model in (lt.Popularity(), lt.NearestNeighbors(n_neighbors=10)):
        name = type(model).__name__
        start = time.perf_counter()
        top = model.fit(X_train, data.train.Y).predict_topk(X_test, k=5)
        print(f"{name}: fitted, and {len(top):,} rows answered, ", end="")
        print(f"in {time.perf_counter() - start:.1f} s")
        reports[name] = lt.evaluate(
            data.test.Y,
            top,
            propensity=propensity,
            train_Y=data.train.Y,
            label_names=data.label_names,
            title=f"{name} on ICD-10-CM",
        )
    print_figures(reports)

    best = reports["NearestNeighbors"]
    heading("4. What not to trust")
    for note in best.warnings:
        print(textwrap.fill(f"- {note}", 96, subsequent_indent="  "))

    heading("5. The model as a directory, the report as a page")
    folder = out / "nearest-neighbors"
    model.save(folder, overwrite=True)
    assert lt.load(folder).predict_topk(X_test[:100], k=5) == top[:100]
    best.to_html(out / "report.html")
    print(f"model   {folder} (loaded again: same answers)")
    print(f"report  {(out / 'report.html').resolve().as_uri()}")
    print(f"\nDone in {time.perf_counter() - begin:.0f} s. For the whole table: print(report).")


def heading(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m\n" if sys.stdout.isatty() else f"\n{text}\n")


def print_figures(reports: dict[str, Report]) -> None:
    """Metrics, then the share of right labels found from head to tail, in per cent."""
    print(f"\n{'in per cent':<24}" + "".join(f"{name:>18}" for name in reports))
    for metric in SHOWN:
        print(f"{metric:<24}" + "".join(f"{100 * r[metric]:18.1f}" for r in reports.values()))
    print("\nlabels found among 5 answers, by training frequency")
    for bins in zip(*(report.bins for report in reports.values()), strict=True):
        what = f"{bins[0].name}: {bins[0].n_labels:,} labels"
        print(f"{what:<24}" + "".join(f"{100 * bin.recall[5]:18.1f}" for bin in bins))


if __name__ == "__main__":
    main()
