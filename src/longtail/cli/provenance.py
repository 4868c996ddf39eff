"""What a command adds to a model and a report: where they come from."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longtail.cli.reading import DataOptions

if TYPE_CHECKING:
    from longtail.data import Dataset

__all__ = ["keep_provenance", "measured_now"]


def keep_provenance(
    tagger: Any, data: str, dataset: Dataset, options: DataOptions, **facts: Any
) -> None:
    """Add the command, the data and how it was read to what a tagger knows of its making."""
    tagger.provenance_ = {
        **tagger.provenance_,
        **facts,
        "command": _command_line(),
        "data": _data_facts(data, dataset.sha256),
        "reading": options.to_remember(data),
    }


def _command_line() -> str:
    return shlex.join(["longtail", *sys.argv[1:]])


def _data_facts(data: str, sha256: str | None) -> dict[str, Any]:
    return {"path": Path(data).name or data, "sha256": sha256}


def measured_now(report: Any, data: str, sha256: str | None, **facts: Any) -> Any:
    """Return a report that tells when, by which command and on which file it was made."""
    from longtail.tagger.provenance import made_now

    made = made_now(command=_command_line(), data=_data_facts(data, sha256), **facts)
    return replace(report, provenance=made)
