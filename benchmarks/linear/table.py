"""Prints measurements as Markdown: one table for each data set, settings and versions below.

    python benchmarks/linear/table.py [RESULTS.jsonl ...] [--short]    all of results/ by default

A system that was measured in several runs appears with the newest. Times are medians over the
repetitions of that run. In parentheses: how many times as much as ours.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from systems import DATA_SETS, SYSTEMS

__all__ = ["print_table"]

REFERENCE = "Longtail XRLinear"
TIMES = "\N{MULTIPLICATION SIGN}"


class Column(NamedTuple):
    """A measured quantity; ``main`` ones show the ratio to ours, and alone make the short table."""

    head: str
    field: str
    digits: int
    main: bool = False


COLUMNS = (
    Column("train CPU s", "train_cpu_s", 1, main=True),
    Column("train s", "train_s", 1),
    Column("peak MB", "train_peak_mb", 0),
    Column("model MB", "model_mb", 1, main=True),
    Column("load ms", "load_ms", 0),
    Column("batch CPU ms/query", "batch_cpu_ms", 3, main=True),
    Column("batch ms/query", "batch_ms", 3),
    Column("single p50 ms", "single_p50_ms", 3, main=True),
    Column("single p99 ms", "single_p99_ms", 3),
)
QUALITY = (("P@", (1, 3, 5)), ("PSP@", (1, 3, 5)), ("nDCG@", (5,)))

Records = list[dict[str, Any]]


def read(files: Iterable[Path]) -> dict[tuple[str, str], Records]:
    """Records of each (data set, system): of the newest run that has a result, if any has."""
    best: dict[tuple[str, str], tuple[tuple[bool, str], Records]] = {}
    for file in files:
        for line in file.read_text().splitlines():
            record = json.loads(line)
            key, rank = (record["data"], record["system"]), ("P@1" in record, record["run"])
            known, records = best.get(key, ((False, ""), []))
            if rank > known:
                best[key] = rank, [record]
            elif rank == known:
                records.append(record)
    return {key: records for key, (_, records) in best.items()}


def middle(records: Records, field: str) -> float | None:
    values = [record[field] for record in records if field in record]
    return statistics.median(values) if values else None


def cell(records: Records, reference: Records, column: Column) -> str:
    value, ours = middle(records, column.field), middle(reference, column.field)
    if value is None:
        return ""
    text = f"{value:,.{column.digits}f}"
    if column.main and ours and records is not reference:
        text += f" ({value / ours:.1f}{TIMES})"
    return text


def scores(records: Records, name: str, ks: tuple[int, ...]) -> str:
    values = [middle(records, f"{name}{k}") for k in ks]
    return "" if None in values else "/".join(f"{value:.1f}" for value in values)


def print_data_set(data: str, rows: dict[str, Records], reference_name: str, short: bool) -> None:
    facts = next(iter(rows.values()))[0]["facts"]
    print(f"\n### {data}\n")
    print(
        f"{facts['rows']:,} training and {facts['test_rows']:,} test rows, "
        f"{facts['n_features']:,} features ({facts['features_per_row']:.0f} a row; "
        f"{facts['features']}), {facts['n_labels']:,} labels "
        f"({facts['labels_per_row']:.1f} a row)\n"
    )
    columns = [column for column in COLUMNS if column.main or not short]
    heads = [column.head for column in columns] + [n + "/".join(map(str, k)) for n, k in QUALITY]
    print(f"| system | {' | '.join(heads)} |")
    print(f"|---|{'---:|' * len(heads)}")
    reference = rows.get(reference_name, [])
    for name, records in rows.items():
        if middle(records, "P@1") is not None:
            cells = [cell(records, reference, column) for column in columns]
            cells += [scores(records, *measure) for measure in QUALITY]
            print(f"| {name} | {' | '.join(cells)} |")
    for name, records in rows.items():
        for word in ("skipped", "failed"):
            if reason := next((r[word] for r in records if word in r), None):
                print(f"\n{name}: {word}: {reason}")


def print_conditions(newest: dict[tuple[str, str], Records]) -> None:
    """Machine, load, commands; settings and versions of every system."""
    print("\n### How it was measured\n")
    everything = [record for records in newest.values() for record in records]
    for machine in sorted({record["machine"] for record in everything}):
        print(f"- machine: {machine}")
    threads = sorted({record["threads"] for record in everything})
    loads = [record["load"] for record in everything]
    print(f"- threads: {', '.join(map(str, threads))}; load {min(loads):.1f} to {max(loads):.1f}")
    for command in sorted({record["command"] for record in everything}):
        print(f"- command: `{command}`")
    for name in SYSTEMS:
        used = [r for r in everything if r["system"] == name and "versions" in r]
        if not used:
            continue
        versions = ", ".join(f"{k} {v}" for k, v in used[-1]["versions"].items())
        settings = used[-1]["settings"]
        shown = settings.get("make") or ", ".join(f"{k}={v!r}" for k, v in settings.items())
        repetitions = max(record["repetition"] for record in used) + 1
        parts = [used[-1]["note"], f"`{shown}`" if shown else "", versions]
        parts.append(f"{repetitions} repetition{'s' if repetitions > 1 else ''}")
        print(f"- {name}: {'; '.join(filter(None, parts))}")


def print_table(files: Iterable[Path], reference: str = REFERENCE, short: bool = False) -> None:
    """Prints all data sets, systems in the order of ``systems.py``."""
    newest = read(files)
    if not newest:
        print("no measurements found")
        return
    for data in DATA_SETS:
        rows = {name: newest[data, name] for name in SYSTEMS if (data, name) in newest}
        if rows:
            print_data_set(data, rows, reference, short)
    print_conditions(newest)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="RESULTS.jsonl")
    parser.add_argument("--reference", default=REFERENCE, help="the system to divide by")
    parser.add_argument("--short", action="store_true", help="the most important columns only")
    args = parser.parse_args()
    folder = Path(__file__).resolve().parent / "results"
    print_table(args.files or sorted(folder.glob("*.jsonl")), args.reference, args.short)


if __name__ == "__main__":
    main()
