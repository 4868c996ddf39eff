"""Models for a command: by name, or from a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["load_tagger", "make_models", "named_model", "parse_models"]


def named_model(
    name: str,
    seed: int = 0,
    jobs: int | None = None,
    *,
    memory_limit: Any = None,
    device: str | None = None,
    encoder: str | None = None,
) -> Any:
    """Return what ``Tagger`` takes as its model: the name, or a model made for a device.

    Raises ValueError, before any work, for an unknown name and for a setting that the model does
    not take; ``auto`` takes no device, since what it chooses is trained on the processor.
    """
    from longtail.tagger import make_model

    if name == "auto":
        for flag, value in (("--device", device), ("--encoder", encoder)):
            if value is not None:
                known = "--model text-network" if encoder else "--model network"
                raise ValueError(f"{flag} goes with a model that is named, such as {known}")
        return name
    made = make_model(name, seed, jobs, memory_limit, device=device, encoder=encoder)
    return name if device is None and encoder is None else made


def parse_models(text: str) -> list[str]:
    """Return the names in ``a,b``, each once."""
    return list(dict.fromkeys(name.strip() for name in text.split(",")))


def make_models(
    names: list[str], *, device: str | None = None, encoder: str | None = None, **settings: Any
) -> dict[str, Any]:
    """Return unfitted models by name, None for ``auto``; those that can take ``device`` and
    ``encoder``.

    Raises ValueError, before any work, for an unknown name and for what none of them takes.
    """
    from longtail.tagger import MODELS, make_model

    made: dict[str, Any] = {}
    said = {"device": device, "encoder": encoder}
    for name in names:
        takes = MODELS[name].takes if name in MODELS else ()
        own: Any = {setting: value for setting, value in said.items() if setting in takes}
        made[name] = None if name == "auto" else make_model(name, **settings, **own)
    for setting, value in said.items():
        if value is not None and not any(setting in MODELS[n].takes for n in names if n in MODELS):
            raise ValueError(f"--{setting}: none of {', '.join(names)} takes one")
    return made


def load_tagger(path: Path, *, verify: bool = False) -> Any:
    """Return the tagger in a folder; another kind of model is refused."""
    import longtail as lt
    from longtail.tagger import Tagger

    found = lt.load(path, verify=verify)
    if not isinstance(found, Tagger):
        raise ValueError(
            f"{path} holds a {type(found).__name__}, which knows neither texts nor label names: "
            "make a model with `longtail train`"
        )
    return found
