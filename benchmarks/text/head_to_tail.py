"""Head to tail: how many positives every part of a fused model finds, by how rare the label is.

    python benchmarks/text/best.py --no-encoder --seeds 0 --keep kept/
    python benchmarks/text/head_to_tail.py kept/ --plot docs/_static/best-head-to-tail.svg

Reads what ``best.py --keep`` wrote, ``NAME-SEED.npz``. Labels are put into bins by their number of
training rows: 1, 2, 3 to 4, 5 to 8 and so on, the last with more than 128. Of every bin it prints
and draws the share of its positives in the test rows that are among the first five answers, by
every part and by the whole; the mean over seeds, one panel per data set.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import longtail as lt
from longtail.metrics import LabelBins
from longtail.report.formatting import count_range

K = 5
BINS = 9
STYLES = {  # warm colours for what an encoder reads, cool ones for words
    "trees": ("#2b6cb0", "o"),
    "trees, label texts": ("#63a4dc", "s"),
    "neighbours by words": ("#8a97a6", "^"),
    "classifier": ("#c05621", "D"),
    "UniDEC": ("#9b2c6f", "v"),
    "neighbours by vectors": ("#dd9b3f", "P"),
    "whole": ("#111111", ""),
}


@dataclass(frozen=True)
class Curves:
    """``bins``: their names; ``labels`` and ``positives`` of each; ``recall`` of every source."""

    bins: list[str]
    labels: np.ndarray
    positives: np.ndarray
    recall: dict[str, np.ndarray]


def curves(path: Path) -> Curves:
    """Return the recall of every source in every bin, from one file of answers."""
    with np.load(path) as file:
        counts, indptr, indices = file["counts"], file["test.indptr"], file["test.indices"]
        of_sources = [k for k in file.files if k.startswith("test.") and k.endswith(".ids")]
        names = [key.removeprefix("test.").removesuffix(".ids") for key in of_sources]
        answers = {n: (file[f"test.{n}.ids"], file[f"test.{n}.scores"]) for n in names}
    n_labels = len(counts)
    ones = np.ones(len(indices), np.float32)
    Y = sp.csr_matrix((ones, indices, indptr), shape=(len(indptr) - 1, n_labels))
    bins = doubling(counts)
    recall = {
        name: lt.metrics.contribution_by_bin(Y, lt.TopK(*pair, n_labels), bins, K).recall
        for name, pair in answers.items()
    }
    positives = np.bincount(bins.bin_of_label[indices], minlength=BINS)
    return Curves([_range(i) for i in range(BINS)], bins.n_labels, positives, recall)


def doubling(counts: np.ndarray) -> LabelBins:
    """Return bins of labels by their training rows: 1, 2, 3 to 4, 5 to 8, ..."""
    level = np.minimum(np.ceil(np.log2(np.maximum(counts, 1))).astype(np.int64), BINS - 1)
    lowest = np.array([2**b // 2 + (b > 0) for b in range(BINS)])
    return LabelBins(
        level,
        np.bincount(level[counts > 0], minlength=BINS),
        np.bincount(level, weights=counts, minlength=BINS),
        lowest,
        np.append(2 ** np.arange(BINS - 1), counts.max(initial=0)),
    )


def _range(level: int) -> str:
    low, high = (2**level) // 2 + 1, 2**level
    return f"{low}+" if level == BINS - 1 else count_range(min(low, high), high, compact=True)


def averaged(paths: list[Path]) -> Curves:
    """Return the mean over files of several seeds."""
    found = [curves(path) for path in paths]
    first = found[0]
    recall = {
        name: np.mean([one.recall[name] for one in found], axis=0)
        for name in sorted(first.recall, key=lambda name: [*STYLES, name].index(name))
    }
    return Curves(first.bins, first.labels, first.positives, recall)


def table(name: str, drawn: Curves) -> None:
    """Print the numbers behind one panel."""
    print(f"| {name}: training rows of a label | {' | '.join(drawn.bins)} |")
    print(f"|---|{'---:|' * len(drawn.bins)}")
    for title, numbers in (("labels", drawn.labels), ("positives", drawn.positives)):
        print(f"| {title} | {' | '.join(f'{n:,}' for n in numbers)} |")
    for title, values in drawn.recall.items():
        print(f"| {title} | {' | '.join(f'{100 * v:.1f}' for v in values)} |")
    print()


def draw(panels: dict[str, Curves], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "longtail", "svg.fonttype": "none"})
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(panels), figsize=(4.8 * len(panels), 4.2), squeeze=False, layout="constrained"
    )
    for axis, (title, drawn) in zip(axes[0], panels.items(), strict=True):
        x = np.arange(len(drawn.bins))
        for name, values in drawn.recall.items():
            color, marker = STYLES.get(name, ("#444444", "x"))
            thick = 2.6 if name == "whole" else 1.3
            label = "fused" if name == "whole" else name
            axis.plot(x, 100 * values, color=color, marker=marker, ms=4.5, lw=thick, label=label)
        axis.set_xticks(x, drawn.bins, fontsize=8)
        axis.set(title=title, xlabel="training rows of a label", ylim=(0, None))
        axis.invert_xaxis()  # head first, as in reports
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel(f"positives among the first {K} answers, %")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=2 * len(panels),
        frameon=False,
        fontsize=9,
    )
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="what best.py --keep wrote")
    parser.add_argument("--data", nargs="*", default=["TIB-SID-en", "DebDeps-src"])
    parser.add_argument("--plot", type=Path, metavar="FILE")
    options = parser.parse_args()
    panels = {}
    for name in options.data:
        paths = sorted(options.folder.glob(f"{name}-*.npz"))
        if not paths:
            parser.error(f"{options.folder} has no {name}-SEED.npz: make it with best.py --keep")
        panels[name] = averaged(paths)
        table(name, panels[name])
    if options.plot:
        draw(panels, options.plot)


if __name__ == "__main__":
    main()
