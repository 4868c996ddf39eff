"""An ensemble as plain data, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from longtail import persist
from longtail._models import from_state
from longtail.base import Ranker, unfitted
from longtail.ensemble.learned_fusion import Fusion
from longtail.ensemble.part import Part, as_parts
from longtail.ensemble.part_rows import Vectorizers, shared_shape
from longtail.exceptions import ModelFormatError

if TYPE_CHECKING:
    from longtail.ensemble.ensemble import Ensemble

__all__ = ["restore", "to_state"]

_ADDED = ("held_out", "folds", "refit", "random_state", "n_jobs")  # parameters of "learned"


def to_state(ensemble: Ensemble, state: persist.State) -> persist.State:
    """Fill the state: members and vectorisers as parts, what each of them reads, the fusion."""
    del state.params["models"]
    for name in _ADDED:  # as in files from before there was "learned"
        if state.params[name] == ensemble._defaults[name]:
            del state.params[name]
    if state.params["candidates"] is None:
        del state.params["candidates"]
    parts = as_parts(ensemble.models)
    for i, model in enumerate(ensemble.members_):
        state.parts[f"member{i}"] = model._get_state()
    for i, vectorizer in enumerate(ensemble.vectorizers_.fitted):
        if not hasattr(vectorizer, "_get_state"):
            raise TypeError(f"a representation cannot be saved: {vectorizer!r}")
        state.parts[f"vectorizer{i}"] = vectorizer._get_state()
    if not all(isinstance(part.plain(), Ranker) for part in parts):
        state.meta["parts"] = [
            {
                "vectorizer": v,
                "vectors_of": p.representation if isinstance(p.representation, int) else None,
                "label_texts": bool(p.label_texts),
                "name": p.name,
            }
            for p, v in zip(parts, ensemble.vectorizers_.of_part, strict=True)
        ]
    if ensemble.fusion_ is not None:
        ensemble.fusion_.put(state)
    return state


def restore(ensemble: Ensemble, state: persist.State) -> None:
    """Take over what ``to_state`` has stored; sizes and parameters are there already."""
    members, vectorizers = (
        [from_state(state.parts[name]) for name in _numbered(state, kind)]
        for kind in ("member", "vectorizer")
    )
    if not members or len(members) + len(vectorizers) != len(state.parts):
        raise ModelFormatError("an ensemble needs its members, numbered from 0")
    for model in members:
        if not isinstance(model, Ranker) or model.n_labels_ != ensemble.n_labels_:
            raise ModelFormatError("a member of the ensemble has other features or labels")
    parts, of_part = _parts_of(state.meta.get("parts", [{}] * len(members)), members, vectorizers)
    ensemble.models = [part.plain() for part in parts]
    as_parts(ensemble.models)
    own = shared_shape(ensemble)
    if "parts" not in state.meta and any(shared_shape(member) != own for member in members):
        raise ModelFormatError("a member of the ensemble has other features or labels")
    ensemble.members_, ensemble.vectorizers_ = members, Vectorizers(vectorizers, of_part)
    ensemble.fusion_ = None
    if ensemble.rule == "learned":
        ensemble.fusion_ = Fusion.take(state, len(members), ensemble.n_labels_)


def _parts_of(
    kinds: Any, members: Sequence[Ranker], vectorizers: Sequence[Any]
) -> tuple[list[Part], list[int | None]]:
    """Return the parts of a saved ensemble, and the vectoriser that each of them reads."""
    if not isinstance(kinds, list) or len(kinds) != len(members):
        raise ModelFormatError(f"an ensemble must say what its parts read, got {kinds!r}")
    parts: list[Part] = []
    of_part: list[int | None] = []
    for member, kind in zip(members, kinds, strict=True):
        read: Any = kind.get("vectors_of")
        place = kind.get("vectorizer")
        if place is not None:
            if not isinstance(place, int) or not 0 <= place < len(vectorizers):
                raise ModelFormatError(f"a part of the ensemble reads no vectoriser {place!r}")
            read = unfitted(vectorizers[place])
        name = kind.get("name")
        about = bool(kind.get("label_texts")), None if name is None else str(name)
        parts.append(Part(read, unfitted(member), *about))
        of_part.append(place)
    return parts, of_part


def _numbered(state: persist.State, kind: str) -> list[str]:
    """Return the names of parts of a kind, as far as they are numbered from 0."""
    names: list[str] = []
    while f"{kind}{len(names)}" in state.parts:
        names.append(f"{kind}{len(names)}")
    return names
