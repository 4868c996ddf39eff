"""``label_shards``: a linear model cut by labels, for as many servers; exact when put together.

A shard has the levels above the last as they are, and of the last a range of blocks of labels:

    level 1   ●  ●  ●              in every shard: the search goes the same way everywhere
    level 2   ●●●  ●●●  ●●●        in every shard
    labels    ░░░░│░░░░│░░░░       cut where blocks end

The best labels of the whole are among the best of each shard, with the same ids and scores, bit for
bit; ``longtail.linear.sharded`` puts them together. Blocks are sliced out of the arrays and not
copied, so shards of a mapped model are mapped.
"""

from __future__ import annotations

import copy
import secrets
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longtail._validation import as_k
from longtail.exceptions import ModelFormatError
from longtail.linear.search.layer import Layer

if TYPE_CHECKING:
    from longtail.linear.ranker import LinearRanker

__all__ = ["ShardMark", "check_whole", "label_shards"]


class ShardMark(NamedTuple):
    """Which shard of how many this is, and of which model: a name made when it was cut."""

    number: int
    of: int
    model: str

    def as_json(self) -> dict[str, Any]:
        return self._asdict()

    @classmethod
    def from_json(cls, value: Any) -> ShardMark:
        """Raise ModelFormatError for what ``as_json`` does not return."""
        if not (isinstance(value, dict) and set(value) == set(cls._fields)):
            raise ModelFormatError(f"a shard must say which one it is, got {value!r}")
        mark = cls(**value)
        whole = all(isinstance(n, int) and not isinstance(n, bool) for n in (mark.number, mark.of))
        if not (whole and 0 <= mark.number < mark.of and isinstance(mark.model, str)):
            raise ModelFormatError(f"a shard must be one of several, got {value!r}")
        return mark


def check_whole(model: LinearRanker) -> None:
    """Raise ValueError if a model is a shard, and what ``_check_fitted`` raises."""
    model._check_fitted()
    if model.shard_ is not None:
        raise ValueError(
            "this is a shard, which answers and does nothing else: use the whole model"
        )


def label_shards(model: LinearRanker, n: int, name: str | None = None) -> list[LinearRanker]:
    """Return a fitted ``OneVsAll`` or ``XRLinear`` as ``n`` models of some labels each.

    A shard keeps the label ids of the whole and answers with its own labels only. It is saved and
    loaded like any model; labels are added to, and taken out of, the whole. ``name``: of the model
    that the shards are of; made here if None.

    Raises ValueError if the model has fewer blocks of labels (4,096 of them, or those of one tree
    node) than shards are wanted.
    """
    check_whole(model)
    n = as_k(n, "n")
    layer = model.layers_[-1]
    base = layer.arrays["entry_base"]
    n_blocks = len(base) - 1
    if n > n_blocks:
        blocks = "one block" if n_blocks == 1 else f"{n_blocks} blocks"
        raise ValueError(f"the model has {blocks} of labels: make at most so many shards")
    bounds = [0]  # about as many weights in each, and a block at least
    for i in range(1, n):
        at = int(np.searchsorted(base, i * (base[-1] / n)))
        bounds.append(min(max(at, bounds[-1] + 1), n_blocks - (n - i)))
    bounds.append(n_blocks)
    name = secrets.token_hex(8) if name is None else name
    shards = []
    for i in range(n):
        shard = copy.copy(model)
        shard.kept_rows_ = None
        shard.calibrator_ = shard.calibration_ = None
        cut, labels = _cut(layer, bounds[i], bounds[i + 1])
        shard._set_layers([*model.layers_[:-1], cut], model.label_of_leaf_[labels])
        shard.shard_ = ShardMark(i, n, name)
        shards.append(shard)
    return shards


def _cut(layer: Layer, first: int, last: int) -> tuple[Layer, slice]:
    """Return the blocks ``first .. last`` (end excluded) of a layer, and the children that they
    are.
    """
    a = layer.arrays
    out = {"parent_chunks": np.clip(a["parent_chunks"], first, last) - first}
    bounds = {}
    for name in ("chunk_children", "feature_ptr", "entry_base", "bucket_ptr"):
        own = a[name][first : last + 1]
        bounds[name] = slice(int(own[0]), int(own[-1]))
        out[name] = own - own[0]
    children, features = bounds["chunk_children"], bounds["feature_ptr"]
    slices = {
        "bucket_shift": slice(first, last),
        "buckets": bounds["bucket_ptr"],
        "features": features,
        "entry_ptr": slice(features.start + first, features.stop + last),
        "bias": children,
        "step": children,
    }
    for name, array in a.items():
        if name not in out:
            out[name] = array[slices.get(name, bounds["entry_base"])]
    return Layer(out), children
