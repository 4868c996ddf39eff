"""Started by test_crash.py: forks a child that replaces a model over and over until it is killed.

Reads one line per round, ``<path> <strategy> <seed>``, and answers with the child's process id; the
child's death is answered with ``dead``. Forking spares the tests thirty starts of an interpreter.
"""

import os
import sys

from model_files import small_state

from longtail.persist import replace, save


def main() -> None:
    for line in sys.stdin:
        path, strategy, start = line.split()
        child = os.fork()
        if child == 0:
            if strategy == "renames":
                replace.exchange = lambda first, second: False
            version = int(start)
            while True:
                version += 1
                save(path, small_state(version), overwrite=True)
        print(child, flush=True)
        os.waitpid(child, 0)
        print("dead", flush=True)


main()
