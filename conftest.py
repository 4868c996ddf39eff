"""Examples are tests: every ``>>>`` in README, docs and docstrings is run and compared.

In Markdown, a block marked ``python`` that has no ``>>>`` is run too; what needs the network or a
file that only the reader has is marked ``<!-- skip: next -->``.
"""

from __future__ import annotations

from doctest import ELLIPSIS, NORMALIZE_WHITESPACE

from sybil import Sybil
from sybil.document import PythonDocStringDocument
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.parsers.rest import DocTestParser

FLAGS = ELLIPSIS | NORMALIZE_WHITESPACE

pages = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=FLAGS), SkipParser()],
    patterns=["README.md", "docs/*.md"],
)
docstrings = Sybil(
    parsers=[DocTestParser(optionflags=FLAGS)],
    patterns=["src/longtail/**/*.py", "src/longtail/*.py"],
    document_types={".py": PythonDocStringDocument},
)

pytest_collect_file = (pages + docstrings).pytest()
