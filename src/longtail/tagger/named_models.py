"""The models that can be named: in ``Tagger(model="…")`` and on the command line.

One entry of ``MODELS`` is all it takes to name a further model in ``train``, ``compare`` and
``tune``: how it is made, which settings it takes, which package it needs, and what ``tune`` tries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from typing import Any

from longtail._validation import as_seed
from longtail.baselines import NearestNeighbors, Popularity
from longtail.codes import DECLARE, MACH
from longtail.codes.estimators import bucket_estimator, code_estimator
from longtail.deep import Network
from longtail.ensemble import Ensemble
from longtail.exceptions import MissingDependencyError
from longtail.linear import OneVsAll, XRLinear
from longtail.text import DualEncoder, TextNetwork, UniDEC, XRTransformer

__all__ = ["MODELS", "NamedModel", "Settings", "make_model", "members", "reads_label_texts"]

Limit = int | float | str | None


@dataclass(frozen=True)
class Settings:
    """What a model is made with, whatever its kind; None where nothing was said."""

    random_state: Any = 0
    n_jobs: int | None = None
    memory_limit: Limit = None
    device: str | None = None
    encoder: str | None = None

    def said(self) -> list[str]:
        """Return the settings that not every model takes, as far as they were given."""
        common = ("random_state", "n_jobs")
        names = [f.name for f in fields(self) if f.name not in common]
        return [name for name in names if getattr(self, name) is not None]


@dataclass(frozen=True)
class NamedModel:
    """A model that has a name.

    Parameters
    ----------
    make : returns the unfitted model for ``Settings``
    takes : names of the settings it takes beside seed and threads; the others are refused
    needs : (package, extra of longtail) without which it cannot be trained; None for nothing
    tries : values that ``longtail tune`` tries, by parameter, beside the default
    """

    make: Callable[[Settings], Any]
    takes: tuple[str, ...] = ()
    needs: tuple[str, str] | None = None
    tries: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


def _tree(settings: Settings) -> XRLinear:
    return XRLinear(
        random_state=settings.random_state,
        n_jobs=settings.n_jobs,
        memory_limit=settings.memory_limit,
    )


def _three_trees(settings: Settings) -> Ensemble:
    trees = [_tree(settings) for _ in range(3)]
    for i, tree in enumerate(trees):
        tree.set_params(random_state=as_seed(settings.random_state) % 2**31 + i)
    return Ensemble(models=trees)


def _one_vs_all(settings: Settings) -> OneVsAll:
    return OneVsAll(
        random_state=settings.random_state,
        n_jobs=settings.n_jobs,
        memory_limit=settings.memory_limit,
    )


def _network(settings: Settings) -> Network:
    return Network(
        random_state=settings.random_state,
        n_jobs=settings.n_jobs,
        device=settings.device or "cpu",
    )


def _coded(cls: Any, estimator: Callable[[Any], Any]) -> Callable[[Settings], Any]:
    """Return what makes a coded model; with a device, over a network that is trained there."""

    def make(settings: Settings) -> Any:
        model = cls(random_state=settings.random_state, n_jobs=settings.n_jobs)
        if settings.device is not None:
            model.set_params(estimator=estimator("network").set_params(device=settings.device))
        return model

    return make


def _reads_texts(cls: Any) -> Callable[[Settings], Any]:
    def make(settings: Settings) -> Any:
        return cls(
            encoder=settings.encoder or "average",
            device=settings.device or "auto",
            random_state=settings.random_state,
            n_jobs=settings.n_jobs,
        )

    return make


_LINEAR = {"C": (1.0, 2.0, 4.0)}

#: Models by name, in the order in which help and messages list them.
MODELS: dict[str, NamedModel] = {
    "xr-linear": NamedModel(_tree, takes=("memory_limit",), tries=_LINEAR),
    "one-vs-all": NamedModel(_one_vs_all, takes=("memory_limit",), tries=_LINEAR),
    "ensemble": NamedModel(_three_trees, takes=("memory_limit",), tries=_LINEAR),
    "network": NamedModel(
        _network,
        takes=("device",),
        needs=("torch", "deep"),
        tries={"hidden": (128, 512), "learning_rate": (5e-3, 2e-2), "dropout": (0.0, 0.5)},
    ),
    "text-network": NamedModel(
        _reads_texts(TextNetwork),
        takes=("device", "encoder"),
        needs=("torch", "text"),
        tries={"epochs": (5, 20), "dropout": (0.0, 0.3)},
    ),
    "xr-transformer": NamedModel(
        _reads_texts(XRTransformer),
        takes=("device", "encoder"),
        needs=("torch", "text"),
        tries={"positive_cost": (0.5, 2.0), "learning_rate": (5e-5, 2e-4)},
    ),
    "dual-encoder": NamedModel(
        _reads_texts(DualEncoder),
        takes=("device", "encoder"),
        needs=("torch", "text"),
        tries={"epochs": (5, 20), "negatives": (2, 6)},
    ),
    "unidec": NamedModel(
        _reads_texts(UniDEC),
        takes=("device", "encoder"),
        needs=("torch", "text"),
        tries={"epochs": (5, 20), "answer": ("classifier", "dual")},
    ),
    "mach": NamedModel(
        _coded(MACH, bucket_estimator), takes=("device",), tries={"n_repetitions": (8, 32)}
    ),
    "declare": NamedModel(
        _coded(DECLARE, code_estimator),
        takes=("device",),
        tries={"n_components": (100, 400), "n_neighbors": (10, 50)},
    ),
    "nearest-neighbors": NamedModel(
        lambda settings: NearestNeighbors(n_jobs=settings.n_jobs),
        tries={"n_neighbors": (5, 50, 100)},
    ),
    "popularity": NamedModel(lambda _: Popularity()),
}


def make_model(
    name: str,
    random_state: Any = 0,
    n_jobs: int | None = None,
    memory_limit: Limit = None,
    *,
    device: str | None = None,
    encoder: str | None = None,
) -> Any:
    """Return the unfitted model of a name in ``MODELS``.

    Parameters
    ----------
    name : str
        One of ``MODELS``.
    random_state : int, Generator or None, default=0
        Seed.
    n_jobs : int, default=None
        Number of threads; None is all cores. Results do not depend on it.
    memory_limit : int or str, default=None
        Bytes, or a text like "2GB".
    device : str, default=None
        Where a network is trained, such as "cuda"; ``mach`` and ``declare`` stand on one then.
    encoder : str, default=None
        Folder or name of a pretrained encoder.

    Raises ``ValueError`` for an unknown name and for a setting that the model does not take,
    ``MissingDependencyError`` where a package is missing without which it cannot be trained.

    >>> make_model("xr-linear")
    XRLinear()
    """
    if name not in MODELS:
        raise ValueError(f"unknown model {name!r}: use auto, {', '.join(MODELS)}")
    named, settings = MODELS[name], Settings(random_state, n_jobs, memory_limit, device, encoder)
    for setting in settings.said():
        if setting not in named.takes:
            takers = [other for other, entry in MODELS.items() if setting in entry.takes]
            raise ValueError(f"{name} takes no {setting}: {', '.join(takers)} do")
    needs = named.needs or (("torch", "deep") if device is not None else None)
    if needs is not None and find_spec(needs[0]) is None:
        raise MissingDependencyError(*needs, f"training the model {name!r}")
    return named.make(settings)


def reads_label_texts(model: Any) -> bool:
    """Return whether a model, or the one of a name, learns from what labels are called."""
    return model in ("dual-encoder", "unidec") or getattr(model, "reads_label_texts", False)


def members(model: Any) -> list[Any]:
    """Return the models whose parameters count: those inside an ensemble, else the model itself."""
    return list(getattr(model, "models", [model]))
