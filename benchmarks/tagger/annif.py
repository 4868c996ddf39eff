"""Annif's omikuji backend on Longtail's shim, and on the real omikuji.

    python benchmarks/tagger/annif.py ANNIF_PYTHON DATA_FOLDER... [--train N] [--test N]

ANNIF_PYTHON is the interpreter of an environment with ``annif``, ``omikuji`` and the NLTK data
``punkt_tab`` (say where with NLTK_DATA); Longtail is found where this script finds it. For each
data set: the vocabulary is loaded, a project is trained and evaluated, and a text is given
suggestions, all by Annif's own command line, once with each library. Prints F1@5, nDCG, training
time and peak memory.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import longtail as lt

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
    parser.add_argument("--test", type=int, default=2000, help="texts to evaluate on")
    options = parser.parse_args()
    print("python", *sys.argv)
    for name in options.data:
        data = lt.load_dataset(name)
        with tempfile.TemporaryDirectory() as folder:
            write(data, Path(folder), options.train, options.test)
            for library in ("omikuji", "longtail"):
                print(f"{data.name}, {library}: {drive(options.annif_python, folder, library)}")
                sys.stdout.flush()


def write(data: lt.Dataset, folder: Path, n_train: int | None, n_test: int) -> None:
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
        report = home / "memory"
        began = time.perf_counter()
        done = subprocess.run(
            ["/usr/bin/time", "-o", str(report), "-f", "%M", python, "-m", "annif.cli", *arguments],
            cwd=home,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
        )
        seconds = time.perf_counter() - began
        if done.returncode:
            raise SystemExit(f"annif {' '.join(arguments)}\n{done.stdout}\n{done.stderr}")
        return done.stdout, seconds, int(report.read_text().split()[-1]) / 1024

    annif("load-vocab", "labels", f"{folder}/labels.tsv", "--language", "en")
    _, seconds, memory = annif("train", "benchmark", f"{folder}/train.tsv")
    answer, _, _ = annif("suggest", "benchmark", stdin="A text about databases and networks.")
    assert answer.strip(), "no suggestion"
    metrics = ("--metric", "F1@5", "--metric", "NDCG")
    measured, asked, _ = annif("eval", "benchmark", f"{folder}/test.tsv", *metrics)
    lines = [line for line in measured.splitlines() if re.match(r"(F1@5|NDCG|Documents)", line)]
    found = ", ".join(" ".join(line.split()) for line in lines)
    return f"{found}; training {seconds:.0f} s, {memory:.0f} MB; evaluation {asked:.0f} s"


if __name__ == "__main__":
    main()
