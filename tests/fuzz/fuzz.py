"""Fuzzes in large what the tests fuzz in small; ``make fuzz`` runs it.

    python tests/fuzz/fuzz.py                            100,000 models, 100,000 calls and so on
    python tests/fuzz/fuzz.py --models 5000 --seed 7     other numbers, other cases
    python tests/fuzz/fuzz.py --kinds tagger mach        models of these kinds only
    python tests/fuzz/fuzz.py --again model tagger 1076  one case, in this process

Prints a line per probe, and every fault (a crash, a hang over 10 seconds, an error that no user
should see). What it finds goes into ``corpus``, which is tried first and in every run of the tests.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import warnings
from collections.abc import Callable

import probes

AGAIN: dict[str, Callable[[list[str]], None]] = {
    "model": lambda words: probes.damaged_model((words[0], int(words[1]))),
    "call": lambda words: probes.odd_call((words[0], int(words[1]))),
    "text": lambda words: probes.odd_text(int(words[0])),
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz models, calls, texts, memory and HTTP.")
    parser.add_argument("--models", type=int, default=100_000)
    parser.add_argument("--kinds", nargs="+", help="kinds of models; default all")
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=500, help="for each endpoint")
    parser.add_argument("--rooms", type=int, default=60, help="amounts of memory, up to 240 MB")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", nargs="+", help="model KIND SEED, call NAME SEED, text SEED")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.again:
        AGAIN[options.again[0]](options.again[1:])
        return 0
    print(platform.platform(), platform.processor(), "seed", options.seed)
    print("python", *sys.argv, flush=True)
    n_rooms = options.rooms
    tried: dict[str, Callable[[], probes.Outcome]] = {
        "corpus": probes.corpus,
        "models": lambda: probes.models(options.models, options.seed, options.kinds),
        "calls": lambda: probes.calls(options.calls, options.seed),
        "texts": lambda: probes.texts(options.texts, options.seed),
        "rooms": lambda: probes.memory([4 + 240 * i // n_rooms for i in range(n_rooms)]),
    }
    n_faults = 0
    for name, probe in tried.items():
        if getattr(options, name, 1) > 0:
            found = probe()
            print(f"{name}: {found}", flush=True)
            for fault in found.faults:
                print("  ", fault, flush=True)
            n_faults += len(found.faults)
    if options.requests > 0:
        _http(options.requests)  # which raises what it finds
    return 1 if n_faults else 0


def _http(n: int) -> None:
    try:
        import schemathesis  # noqa: F401
    except ImportError:
        print("requests: schemathesis is not installed")
        return
    import http_contract

    seen = http_contract.ask(n)
    print(f"requests: {seen.total():,}:", ", ".join(f"{n:,} {k}" for k, n in seen.most_common()))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="longtail-fuzz-") as folder:
        os.chdir(folder)  # an odd argument may be the name of a folder to write to
        sys.exit(main())
