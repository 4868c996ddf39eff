"""The story that ``longtail demo`` tells: data, comparison, model, report, page."""

from __future__ import annotations

import sys
import textwrap
import time
from pathlib import Path

from longtail.cli.compare import compare_models, table
from longtail.cli.compare_page import page
from longtail.cli.models import load_tagger, make_models
from longtail.cli.reading import DataOptions, read

__all__ = ["tell"]

_MODELS = ["popularity", "nearest-neighbors", "auto"]
_TEXT = "Displaced fracture of the shaft of the left radius"


def tell(output: Path, *, serve: bool, port: int) -> None:
    """Tell it on standard output; files go to the folder ``output``."""
    began = time.perf_counter()
    output.mkdir(parents=True, exist_ok=True)

    _heading("1. Data: diagnoses as text, their ICD-10-CM codes as labels")
    dataset = read("icd10cm", DataOptions())
    print(
        f"{len(dataset.train):,} texts to learn from, {len(dataset.test):,} to measure on, "
        f"{dataset.n_labels:,} labels, most of them rare."
    )
    print(f"For example: “{dataset.test.inputs[0]}”")

    _heading("2. Three models side by side, the last one chosen for this data")
    model = output / "model"
    entries = compare_models(dataset, make_models(_MODELS), keep={"auto": model})
    print(table(entries))
    (output / "comparison.html").write_text(page("ICD-10-CM", entries), encoding="utf-8")

    _heading("3. The one that was chosen")
    tagger, report = load_tagger(model), entries[-1].report
    print(f"{tagger.choice_}.")
    report.to_html(output / "report.html")
    for note in report.warnings[:3]:
        print(textwrap.fill(f"- {note}", 96, subsequent_indent="  "))

    _heading("4. Text in, label names out, with the words that spoke for them")
    print(f"“{_TEXT}”")
    found = tagger.predict([_TEXT], k=4)[0]
    reasons = tagger.explain(_TEXT, [name for name, _ in found], n_terms=4)
    for (name, score), why in zip(found, reasons, strict=True):
        words = ", ".join(term for term, weight in why.terms if weight > 0)
        text = tagger.label_texts_[tagger.vocabulary_.id(name)] if tagger.label_texts_ else ""
        print(f"  {score:6.3f}  {name:<10} {text[:50]:<50}  {words}")

    _heading("5. What is left behind")
    print(f"model       {model}")
    for name in ("report", "comparison"):
        print(f"{name:<11} {(output / f'{name}.html').resolve().as_uri()}")
    print(f"\nDone in {time.perf_counter() - began:.0f} s.")
    if serve and sys.stdin.isatty() and sys.stdout.isatty():
        from longtail.serve import Settings, run

        print("The page starts now; open its address in a browser.", flush=True)
        run(Settings(model=str(model)), port=port)
    else:
        print(f"The page:   longtail serve {model}")


def _heading(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m\n" if sys.stdout.isatty() else f"\n{text}\n", flush=True)
