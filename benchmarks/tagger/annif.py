"""Annif's omikuji backend on Longtail's shim, and on the real omikuji.

    python benchmarks/tagger/annif.py ANNIF_PYTHON DATA_FOLDER... [--train N] [--test N]

ANNIF_PYTHON is the interpreter of an environment with ``annif``, ``omikuji`` and the NLTK data
``punkt_tab`` (say where with NLTK_DATA); Longtail is found where this script finds it. For each
data set: the vocabulary is loaded, a project is trained and evaluated, and a text is given
suggestions, all by Annif's own command line, once with each library and Annif's default parameters.
Prints a row of a table each: F1@5, nDCG, processor seconds and peak memory of ``annif train``, the
same of ``annif train --cached`` (the analysed texts are there already, so what is left is the
library's own work, but for the start of Annif), processor seconds of ``annif eval``.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
from pathlib import Path

import longtail as lt
from machine import print_machine

PROJECT = """[benchmark]
name=benchmark
language=en
backend=omikuji
analyzer=snowball(english)
vocab=labels
"""
SHIM = "from longtail.compat.omikuji import *\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Annif on the shim and on omikuji.")
    parser.add_argument("annif_python")
    parser.add_argument("data", nargs="+")
    parser.add_argument("--train", type=int, help="texts to train on; default all")
    parser.add_argument("--test", type=int, help="texts to evaluate on; default all")
    options = parser.parse_args()
    print_machine()
    head = ("F1@5", "nDCG", "train CPU s", "MB", "cached train CPU s", "MB", "eval CPU s")
    print("\n| data | library |", " | ".join(head), "|")
    print("|---|---|" + "---:|" * len(head), flush=True)
    for name in options.data:
        data = lt.load_dataset(name)
        with tempfile.TemporaryDirectory() as folder:
            write(data, Path(folder), options.train, options.test)
            for library in ("omikuji", "longtail"):
                row = drive(options.annif_python, folder, library)
                print(f"| {data.name} | {library} | {row} |", flush=True)


def write(data: lt.data.Dataset, folder: Path, n_train: int | None, n_test: int) -> None:
    """Vocabulary and documents in Annif's formats; label names become addresses."""
    texts = data.label_texts or data.label_names
    lines = [f"<http://example.org/{i}>\t{clean(t) or i}\n" for i, t in enumerate(texts)]
    (folder / "labels.tsv").write_text("".join(lines), encoding="utf-8")
    for name, split, most in (("train", data.train, n_train), ("test", data.test, n_test)):
        with open(folder / f"{name}.tsv", "w", encoding="utf-8") as file:
            for row, text in enumerate(split.texts[:most]):
                ids = split.Y.indices[split.Y.indptr[row] : split.Y.indptr[row + 1]]
                file.write(clean(text) + "\t")
                file.write(" ".join(f"<http://example.org/{i}>" for i in ids) + "\n")


def clean(text: str) -> str:
    return " ".join(text.split())


def drive(python: str, folder: str, library: str) -> str:
    """Annif's commands, one after the other; what they measured."""
    home = Path(folder) / library
    home.mkdir()
    (home / "projects.cfg").write_text(PROJECT)
    environment = {**os.environ, "ANNIF_DATADIR": str(home / "data")}
    environment.pop("PYTHONPATH", None)
    if library == "longtail":
        (home / "shim").mkdir()
        (home / "shim" / "omikuji.py").write_text(SHIM)
        source = Path(lt.__file__).parents[1]
        environment["PYTHONPATH"] = f"{home / 'shim'}{os.pathsep}{source}"

    def annif(*arguments: str, stdin: str = "") -> tuple[str, float, float]:
        """What it printed, its processor seconds, its peak memory in MB."""
        report = home / "cost"
        timed = ["/usr/bin/time", "-o", str(report), "-f", "%U %S %M"]
        done = subprocess.run(
            [*timed, python, "-m", "annif.cli", *arguments],
            cwd=home,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(f"annif {' '.join(arguments)}\n{done.stdout}\n{done.stderr}")
        user, system, peak = map(float, report.read_text().split()[-3:])
        return done.stdout, user + system, peak / 1024

    annif("load-vocab", "labels", f"{folder}/labels.tsv", "--language", "en")
    _, *whole = annif("train", "benchmark", f"{folder}/train.tsv")
    _, *alone = annif("train", "--cached", "benchmark")
    answer, _, _ = annif("suggest", "benchmark", stdin="A text about databases and networks.")
    if not answer.strip():
        raise SystemExit("annif suggest answered nothing")
    metrics = ("--metric", "F1@5", "--metric", "NDCG")
    measured, asked, _ = annif("eval", "benchmark", f"{folder}/test.tsv", *metrics)
    found = dict(re.findall(r"^(F1@5|NDCG)\s*:?\s*([\d.]+)", measured, re.MULTILINE))
    quality = " | ".join(f"{100 * float(found[name]):.2f}" for name in ("F1@5", "NDCG"))
    costs = " | ".join(f"{number:,.0f}" for number in (*whole, *alone, asked))
    return f"{quality} | {costs}"


if __name__ == "__main__":
    main()
