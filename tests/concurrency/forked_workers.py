"""Started by test_processes.py: forks workers off a process that holds a model, and weighs them.

Prints one JSON object: bytes of the model's arrays, and per worker how much memory it has to itself
and whether its answers were those of the parent.
"""

import json
import os
import sys
from typing import Any

import numpy as np

import longtail as lt


def private_bytes(needle: str = "") -> int:
    """Memory that only this process has and has written to, of mappings whose file has the name."""
    total, counts = 0, False
    with open("/proc/self/smaps") as lines:
        for line in lines:
            head = line.split()[0]
            if "-" in head and not head.endswith(":"):
                counts = needle in line
            elif counts and head == "Private_Dirty:":
                total += int(line.split()[1]) * 1024
    return total


def shared_bytes(needle: str) -> int:
    """Bytes in memory of mappings whose file has the name."""
    total, counts = 0, False
    with open("/proc/self/smaps") as lines:
        for line in lines:
            head = line.split()[0]
            if "-" in head and not head.endswith(":"):
                counts = needle in line
            elif counts and head == "Rss:":
                total += int(line.split()[1]) * 1024
    return total


def work(model: Any, X: Any, expected: Any, before: int, folder: str, out: int) -> None:
    same = model.predict_topk(X, k=5) == expected
    same &= (model.predict_topk(X, k=5, include=np.arange(1000)).indices < 1000).all()
    report = {
        "same": bool(same),
        "grown": private_bytes() - before,
        "dirty_files": private_bytes(folder),
        "mapped": shared_bytes(folder),
    }
    os.write(out, (json.dumps(report) + "\n").encode())
    os._exit(0)


def main(folder: str, mmap: bool) -> None:
    model = lt.load(folder, mmap=mmap)
    X = np.load(os.path.join(folder, "..", "X.npy"))
    expected = model.set_params(n_jobs=2).predict_topk(X, k=5)  # with threads, before the fork
    reader, writer = os.pipe()
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            os.close(reader)
            work(model, X, expected, private_bytes(), folder, writer)
        children.append(child)
    os.close(writer)
    with os.fdopen(reader) as lines:
        reports = [json.loads(line) for line in lines]
    codes = [os.waitpid(child, 0)[1] for child in children]
    print(json.dumps({"nbytes": model.nbytes, "codes": codes, "workers": reports}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] == "mmap")
