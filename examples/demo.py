"""What Longtail does today, from raw text to an honest report, in a minute or two.

    python examples/demo.py [--out FOLDER]

Texts are descriptions of diagnoses; labels are ICD-10-CM codes and the headings above them, tens of
thousands in all, most of them rare. The codes ship with the package `simple-icd-10-cm`, so nothing
is downloaded.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer

import longtail as lt
from longtail.report import compare


def main() -> None:
    parser = argparse.ArgumentParser(description="From raw text to an honest report.")
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="folder for results")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()

    step("1. Data: diagnoses as text, their ICD-10-CM codes as labels")
    data = lt.load_dataset("icd10cm")
    print(data.describe())
    show_example(data)

    step("2. Features: TF-IDF of words")
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2)
    X_train = vectorizer.fit_transform(data.train.texts)
    X_test = vectorizer.transform(data.test.texts)
    print(f"{X_train.shape[1]:,} features, {X_train.nnz / X_train.shape[0]:.1f} a row")

    step("3. Two baselines, and how they fare on frequent and on rare labels")
    propensity = lt.JainPropensity().fit(data.train.Y)
    reports = {}
    for model in (lt.Popularity(), lt.NearestNeighbors(n_neighbors=10)):
        name = type(model).__name__
        start = time.perf_counter()
        top = model.fit(X_train, data.train.Y).predict_topk(X_test, k=5)
        print(f"{name}: trained and predicted in {time.perf_counter() - start:.1f} s")
        reports[name] = lt.evaluate(
            data.test.Y,
            top,
            propensity=propensity,
            train_Y=data.train.Y,
            label_names=data.label_names,
            title=f"{name} on ICD-10-CM",
        )
    print(f"\n{compare(reports)}\n")
    print(reports["NearestNeighbors"])

    step("4. The model as a directory, the report as a page")
    folder = out / "nearest-neighbors"
    model.save(folder, overwrite=True)
    again = lt.load(folder)
    assert again.predict_topk(X_test[:100], k=5) == top[:100]
    print(f"model   {folder} (loaded again, same answers)")
    page = out / "report.html"
    reports["NearestNeighbors"].to_html(page)
    print(f"report  {page.resolve().as_uri()}")
    print(f"\nDone in {time.perf_counter() - begin:.0f} s.")


def step(title: str) -> None:
    print(f"\n\033[1m{title}\033[0m\n" if sys.stdout.isatty() else f"\n{title}\n")


def show_example(data: lt.Dataset) -> None:
    row = len(data.test) // 2
    names = [data.label_names[label] for label in data.test.Y[row].indices]
    print(f"\nFor example, “{data.test.texts[row]}” has the labels {', '.join(names)}.")


if __name__ == "__main__":
    main()
