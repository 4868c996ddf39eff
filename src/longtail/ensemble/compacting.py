"""Smaller copies of ensembles: their linear members take fewer bytes."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from longtail.linear import compact
from longtail.linear.ranker import LinearRanker

if TYPE_CHECKING:
    from longtail.ensemble.ensemble import Ensemble

__all__ = ["compacted"]


def compacted(ensemble: Ensemble, **how: Any) -> Ensemble:
    """Return a copy of a fitted ensemble, ``how`` as in ``longtail.linear.compact``."""
    if not _is_compactable(ensemble):
        raise TypeError("no member of this ensemble is linear: there is nothing to compact")
    small = copy.copy(ensemble)
    small.members_ = [_smaller(member, how) for member in ensemble.members_]
    return small


def _smaller(member: Any, how: dict[str, Any]) -> Any:
    if not _is_compactable(member):
        return member
    return compact(member, **how) if isinstance(member, LinearRanker) else compacted(member, **how)


def _is_compactable(model: Any) -> bool:
    """Say whether a model, or a member of it, is linear."""
    return isinstance(model, LinearRanker) or any(
        _is_compactable(member) for member in getattr(model, "members_", ())
    )
