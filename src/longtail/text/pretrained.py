"""Where a pretrained encoder comes from: a folder, or a name on the Hugging Face hub."""

from __future__ import annotations

import os
from pathlib import Path

from longtail.exceptions import MissingDependencyError

__all__ = ["fetched"]

_FILES = ("config.json", "tokenizer.json", "*.safetensors", "model.safetensors.index.json")


def fetched(source: str | os.PathLike[str]) -> Path:
    """Return the folder of a pretrained encoder: ``source`` itself, or the files of a model of that
    name on the hub, downloaded once and kept in the cache of ``huggingface_hub``.

    Only configuration, tokenizer and safetensors files are fetched: neither pickled weights nor
    code.
    """
    folder = Path(source)
    if folder.is_dir():
        return folder
    name = os.fspath(source)
    if folder.is_absolute() or name.count("/") > 1 or name.startswith((".", "~")):
        raise FileNotFoundError(f"there is no folder {name} with a pretrained encoder")
    try:
        from huggingface_hub import snapshot_download
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "huggingface_hub", "text", "fetching a pretrained encoder by name"
        ) from error
    try:
        return Path(snapshot_download(name, allow_patterns=list(_FILES)))
    except Exception as error:  # the hub's client has many kinds of error
        raise FileNotFoundError(
            f"there is no folder {name!r}, and no encoder of that name could be fetched: {error}"
        ) from error
