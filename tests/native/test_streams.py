"""The core has no streams of the C++ standard library.

A process may hold a second copy of them, in torch's wheels for one; code of one copy on objects of
the other ended such a process with a segmentation fault.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CPP = Path(__file__).parents[2] / "cpp"


@pytest.mark.skipif(not CPP.exists(), reason="the sources of the core are not here")
def test_no_streams() -> None:
    files = [path for room in ("kernels", "bindings") for path in (CPP / room).rglob("*.*")]
    found = [p.name for p in files if re.search(r"#include <\w*stream>|std::regex", p.read_text())]
    assert len(files) > 50
    assert found == []
