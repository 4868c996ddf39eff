"""Real texts for the tests of this folder."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_texts() -> list[str]:
    """The first 1,500 training texts of TIB-SID-en: English and German, many scripts in names."""
    root = os.environ.get("LONGTAIL_DATA")
    if root is None:
        pytest.skip("LONGTAIL_DATA is not set")
    path = Path(root) / "TIB-SID-en" / "trn.jsonl.gz"
    if not path.exists():
        pytest.skip(f"{path} does not exist")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line, _ in zip(lines, range(1500), strict=False)]
