"""Modules of Triton kernels, imported on first use."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

__all__ = ["kernels"]


@cache
def kernels(name: str) -> Any:
    """Return the module ``longtail.deep.<name>``, or None without Triton."""
    try:
        return importlib.import_module(f"longtail.deep.{name}")
    except ImportError:
        return None
