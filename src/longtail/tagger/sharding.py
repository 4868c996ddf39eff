"""A tagger cut by labels: a front that knows texts and names, and shards that hold the weights."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Sequence
from typing import Any

from longtail.ensemble import Ensemble
from longtail.exceptions import ModelFormatError
from longtail.linear.ranker import LinearRanker
from longtail.linear.sharded import ShardedRanker
from longtail.linear.shards import ShardMark, label_shards

__all__ = ["connect", "members_of", "shard_mark", "shard_tagger", "sharded_parts"]


def shard_tagger(tagger: Any, n: int) -> tuple[Any, list[Any]]:
    """Return a tagger without the weights of its model, and ``n`` shards that have them.

    The tagger asks the shards (``connect``) and answers as the whole one does, bit for bit. For
    models that are linear, or ensembles of such. Raises TypeError for any other.
    """
    tagger._check_fitted()
    model, name = tagger.model_, secrets.token_hex(8)
    members = members_of(model)
    for member in members:
        if not isinstance(member, LinearRanker):
            raise TypeError(
                f"{type(member).__name__} cannot be cut by labels: OneVsAll, XRLinear and "
                "ensembles of them can"
            )
    if isinstance(model, Ensemble) and model.rule == "learned":
        raise TypeError("an ensemble whose rule is learned cannot be cut by labels")
    cut = [label_shards(member, n, name) for member in members]
    fronts = [ShardedRanker.of(member, n, name, j) for j, member in enumerate(members)]
    front = copy.copy(tagger)
    if isinstance(model, Ensemble):
        front.model_ = copy.copy(model)
        front.model_.models, front.model_.members_ = [ShardedRanker() for _ in fronts], fronts
        shards: list[Any] = [Ensemble.of(list(parts)) for parts in zip(*cut, strict=True)]
    else:
        front.model_, shards = fronts[0], cut[0]
    return front, shards


def members_of(model: Any) -> Sequence[Any]:
    """Return the members of an ensemble; any other model is its only one."""
    return model.members_ if isinstance(model, Ensemble) else [model]


def shard_mark(model: Any) -> ShardMark:
    """Return which shard a model is; raise ModelFormatError if it is none."""
    mark = getattr(members_of(model)[0], "shard_", None)
    if not isinstance(mark, ShardMark):
        raise ModelFormatError(f"this {type(model).__name__} is no shard of a model")
    return mark


def sharded_parts(model: Any) -> list[ShardedRanker]:
    """Return the parts of a model that ask shards."""
    return [member for member in members_of(model) if isinstance(member, ShardedRanker)]


def connect(tagger: Any, addresses: Sequence[str], **how: Any) -> Any:
    """Tell a front where its shards are (``ShardedRanker.connect``); returns the tagger."""
    parts = sharded_parts(tagger.model_)
    if not parts:
        raise ValueError("this model is whole: it has no shards to connect to")
    for part in parts:
        part.connect(addresses, **how)
    return tagger
