"""``Transformer``: a text encoder of ``transformers``, pooled to one vector per text."""

from __future__ import annotations

import json
import os
import re
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from longtail.deep.batches.token_rows import TokenBatch
from longtail.deep.encoders.transformer_config import (
    library,
    safe_settings,
    transformer_config,
    without_stdin,
)
from longtail.exceptions import ModelFormatError

__all__ = ["POOLINGS", "Transformer"]

POOLINGS = ("mean", "first")
_REPEATS = re.compile("layer|group|network")  # in the names of settings that count parts
_FEW_PARTS = 64
_LARGEST_SIZE = 1 << 24


class Transformer(nn.Module):
    """A pretrained encoder: the mean of the last layer over the tokens of a text ("mean"), or the
    vector of the first token ("first").

    ``frozen_layers`` of the lowest layers, and the embeddings with them, are not trained; with -1
    nothing is. ``gradient_checkpointing`` keeps less for the backward pass and computes it again.
    """

    kind = "transformer"
    sparse_gradients = False

    def __init__(
        self,
        model: nn.Module,
        *,
        pooling: str = "mean",
        frozen_layers: int = 0,
        gradient_checkpointing: bool = False,
    ) -> None:
        super().__init__()
        if pooling not in POOLINGS:
            raise ValueError(f"pooling must be one of {', '.join(POOLINGS)}, got {pooling!r}")
        self.model, self.pooling = model, pooling
        self.width = int(model.config.hidden_size)
        self.max_length = int(getattr(model.config, "max_position_embeddings", 512) or 512)
        if str(model.config.model_type) in ("roberta", "xlm-roberta", "camembert"):
            self.max_length -= 2  # positions begin behind the padding index
        if gradient_checkpointing:
            model.gradient_checkpointing_enable()
        self._freeze(frozen_layers)

    @classmethod
    @without_stdin()
    def pretrained(cls, folder: str | os.PathLike[str], **options: Any) -> Transformer:
        """Return the encoder of a folder. Pickled weights and code that comes with a model are
        refused.
        """
        transformers = library()
        folder = Path(folder)
        if not any(folder.glob("*.safetensors")):
            raise ValueError(
                f"{folder} has no safetensors file: pickled weights may run code and are not read"
            )
        try:
            model = transformers.AutoModel.from_pretrained(
                folder,
                config=transformer_config(json.loads((folder / "config.json").read_bytes())),
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                dtype=torch.float32,
            )
        except Exception as error:  # the library has many kinds of error
            raise ValueError(f"the encoder in {folder} cannot be loaded: {error}") from error
        return cls(_plain(model), **options)

    @classmethod
    @without_stdin()
    def from_config(cls, config: dict[str, Any], weights: dict[str, torch.Tensor]) -> Transformer:
        """Return the encoder that ``config`` and ``state_dict`` describe. The sizes of the weights
        are compared with the configuration before anything of its size is made.
        """
        transformers = library()
        _check_sizes(config["model"], len(weights))
        try:
            made = transformer_config(config["model"])
            make = partial(transformers.AutoModel.from_config, made, trust_remote_code=False)
            with torch.device("meta"):
                outline = _plain(make())
        except Exception as error:
            raise ModelFormatError(f"the encoder's configuration is not usable: {error}") from None
        wanted = {f"model.{name}": tuple(t.shape) for name, t in outline.state_dict().items()}
        found = {name: tuple(t.shape) for name, t in weights.items()}
        if wanted != found:
            odd = sorted(set(wanted.items()) ^ set(found.items()))
            raise ModelFormatError(
                f"the encoder's weights do not fit its configuration: {odd[0][0]}"
            )
        out = cls(_plain(make()), pooling=str(config.get("pooling")))
        out.load_state_dict(weights)
        return out

    def config(self) -> dict[str, Any]:
        """Return what ``from_config`` needs besides the weights: JSON values."""
        settings = json.loads(self.model.config.to_json_string(use_diff=False))
        settings.pop("transformers_version", None)
        return {"pooling": self.pooling, "model": safe_settings(settings)}

    def forward(self, batch: TokenBatch) -> torch.Tensor:
        """Return vectors (b, e)."""
        mask = None if batch.full else batch.mask
        return self.pooled(batch.ids, batch.mask, mask)

    def pooled(
        self, ids: torch.Tensor, present: torch.Tensor, attended: torch.Tensor | None
    ) -> torch.Tensor:
        """Return vectors of token ids (b, t); ``attended`` None: there is no padding."""
        states = self.model(input_ids=ids, attention_mask=attended).last_hidden_state
        if self.pooling == "first":
            return states[:, 0]  # type: ignore[no-any-return]
        weight = present[:, :, None].to(states.dtype)
        return (states * weight).sum(1) / weight.sum(1).clamp(min=1.0)  # type: ignore[no-any-return]

    def _freeze(self, layers: int) -> None:
        if layers == 0:
            return
        if layers < 0:
            self.requires_grad_(False)
            return
        stack = _layers(self.model)
        if layers > len(stack):
            raise ValueError(f"frozen_layers is {layers}, but the encoder has {len(stack)} layers")
        for part in [getattr(self.model, "embeddings", None), *stack[:layers]]:
            if part is not None:
                part.requires_grad_(False)


def _layers(model: nn.Module) -> list[nn.Module]:
    """Return the layers of an encoder, lowest first: its longest list of modules."""
    lists = [list(m) for m in model.modules() if isinstance(m, nn.ModuleList)]
    if not lists:
        raise ValueError("the layers of this encoder cannot be told apart: use frozen_layers=-1")
    return max(lists, key=len)


def _check_sizes(settings: dict[str, Any], n_weights: int) -> None:
    """Raise ModelFormatError for sizes that would take minutes or gigabytes before the weights are
    compared: an outline of a million layers, tables of positions that are not saved.
    """
    for name, value in settings.items():
        most = max(n_weights, _FEW_PARTS) if _REPEATS.search(name) else _LARGEST_SIZE
        if isinstance(value, (int, float)) and value > most and "theta" not in name:
            raise ModelFormatError(
                f"the encoder has {n_weights} weights, and its configuration says {name} = {value}"
            )


def _plain(model: Any) -> Any:
    """Drop the head of BERT-like models, which nothing here uses."""
    if getattr(model, "pooler", None) is not None:
        model.pooler = None
    return model
