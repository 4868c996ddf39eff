"""A small pretrained encoder, and a model fitted on it, for every test of this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

for package in ("torch", "transformers", "tokenizers"):
    pytest.importorskip(package, reason=f"{package} is not installed")

from text_cases import small_encoder, text_network, worded  # noqa: E402


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="session")
def data() -> Any:
    return worded()


@pytest.fixture(scope="session")
def fitted(encoder: Path, data: Any) -> Any:
    """A trained model; tests must not change it."""
    return text_network(encoder).fit(*data)
