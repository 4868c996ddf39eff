"""Examples are tests: every ``>>>`` in README, docs and docstrings is run and compared.

In Markdown, a block marked ``python`` without ``>>>`` is run too; what needs the network, or a file
that only the reader has, is marked ``<!-- skip: next -->``. A page runs in an empty folder.
"""

from __future__ import annotations

import os
import signal
import tempfile
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from typing import Any

from sybil import Sybil
from sybil.document import PythonDocStringDocument
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.parsers.rest import DocTestParser

# What a script starts in the background, `nohup make test &` for one, ignores Ctrl-C, and so does
# every process that it starts. Tests of interruption send it to themselves and to others.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

FLAGS = ELLIPSIS | NORMALIZE_WHITESPACE


def enter_empty_folder(namespace: dict[str, Any]) -> None:
    namespace["_folder"] = tempfile.TemporaryDirectory()
    namespace["_before"] = os.getcwd()
    os.chdir(namespace["_folder"].name)


def leave_folder(namespace: dict[str, Any]) -> None:
    os.chdir(namespace["_before"])
    namespace["_folder"].cleanup()
    forget(namespace)


def forget(namespace: dict[str, Any]) -> None:
    """Lets go of the models of a page: once torch is loaded, what pytest holds is never freed."""
    namespace.clear()


pages = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=FLAGS), SkipParser()],
    patterns=["README.md", "docs/*.md"],
    setup=enter_empty_folder,
    teardown=leave_folder,
)
docstrings = Sybil(
    parsers=[DocTestParser(optionflags=FLAGS)],
    patterns=["src/longtail/*.py", "src/longtail/**/*.py"],
    teardown=forget,
    document_types={".py": PythonDocStringDocument},
)

pytest_collect_file = (pages + docstrings).pytest()
