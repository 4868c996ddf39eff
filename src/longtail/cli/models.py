"""Loading a model for a command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["load_tagger"]


def load_tagger(path: Path, *, verify: bool = False) -> Any:
    """The tagger in a folder; another kind of model is refused."""
    import longtail as lt
    from longtail.tagger import Tagger

    found = lt.load(path, verify=verify)
    if not isinstance(found, Tagger):
        raise ValueError(
            f"{path} holds a {type(found).__name__}, which knows neither texts nor label names: "
            "make a model with `longtail train`"
        )
    return found
