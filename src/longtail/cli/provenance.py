"""What a command adds to a model and a report: where they come from."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

__all__ = ["command_line", "data_facts", "measured_now"]


def command_line() -> str:
    """Return the command as it was typed."""
    return shlex.join(["longtail", *sys.argv[1:]])


def data_facts(data: str, sha256: str | None) -> dict[str, Any]:
    """Return the name of a file and its hash, as models and reports keep them."""
    return {"path": Path(data).name or data, "sha256": sha256}


def measured_now(report: Any, data: str, sha256: str | None, **facts: Any) -> Any:
    """Return a report that tells when, by which command and on which file it was made."""
    from longtail.tagger.provenance import made_now

    made = made_now(command=command_line(), data=data_facts(data, sha256), **facts)
    return replace(report, provenance=made)
