"""Examples are tests: every ``>>>`` in README, docs and docstrings is run and compared.

In Markdown, a block marked ``python`` without ``>>>`` is run too; what needs the network, or a file
that only the reader has, is marked ``<!-- skip: next -->``. A page runs in an empty folder.
"""

from __future__ import annotations

import os
import tempfile
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from typing import Any

from sybil import Sybil
from sybil.document import PythonDocStringDocument
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.parsers.rest import DocTestParser

FLAGS = ELLIPSIS | NORMALIZE_WHITESPACE


def enter_empty_folder(namespace: dict[str, Any]) -> None:
    namespace["_folder"] = tempfile.TemporaryDirectory()
    namespace["_before"] = os.getcwd()
    os.chdir(namespace["_folder"].name)


def leave_folder(namespace: dict[str, Any]) -> None:
    os.chdir(namespace["_before"])
    namespace["_folder"].cleanup()


pages = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=FLAGS), SkipParser()],
    patterns=["README.md", "docs/*.md"],
    setup=enter_empty_folder,
    teardown=leave_folder,
)
docstrings = Sybil(
    parsers=[DocTestParser(optionflags=FLAGS)],
    patterns=["src/longtail/*.py", "src/longtail/**/*.py"],
    document_types={".py": PythonDocStringDocument},
)

pytest_collect_file = (pages + docstrings).pytest()
