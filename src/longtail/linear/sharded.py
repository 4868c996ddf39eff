"""``ShardedRanker``: the answer of a model whose labels are shared out among servers."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import persist
from longtail.answers.label_filter import LabelFilter
from longtail.answers.topk import TopK
from longtail.calibrate.ranker import ProbabilityRanker
from longtail.exceptions import ModelFormatError
from longtail.linear.remote_shard import RemoteShard

__all__ = ["ShardedRanker", "merge_shards"]


def merge_shards(tops: Sequence[TopK], k: int, n_labels: int) -> TopK:
    """Return the k best of several answers to the same rows, whose labels differ.

    >>> one, other = TopK([[4, 0]], [[0.9, 0.1]]), TopK([[1, 2]], [[0.9, 0.5]])
    >>> merge_shards([one, other], 3, 5).indices
    array([[1, 4, 2]], dtype=int32)
    """
    ids = np.concatenate([top.indices for top in tops], axis=1)
    scores = np.concatenate([top.scores for top in tops], axis=1)
    order = np.lexsort((np.where(ids < 0, n_labels, ids), -scores), axis=1)[:, :k]
    return TopK._trusted(
        np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1), n_labels
    )


class ShardedRanker(ProbabilityRanker):
    """What is left of a linear model when its weights are in shards: it asks them, and merges.

    Made by ``longtail shard`` (``longtail.linear.shards``); ids, scores and probabilities are those
    of the whole model, bit for bit. Nothing is answered while a shard is missing
    (``longtail.linear.remote_shard.ShardLost``). Label filters, and explanations, which need them,
    are not supported: under a filter a tree is searched more widely, by what is allowed in it.

    ``connect`` says where the shards are, before the first question.
    """

    type_tag = "sharded"
    _not_copied = ("_shards", "_pool")

    n_shards_: int
    model_: str  # name of the model that was cut
    member_: int  # of an ensemble
    probabilities_: bool  # whether scores are such without calibration

    def __init__(self) -> None:
        pass

    @classmethod
    def of(cls, model: Any, n_shards: int, name: str, member: int = 0) -> ShardedRanker:
        """Return what asks the shards that ``model`` was cut into."""
        self = cls()
        self.n_features_in_, self.n_labels_ = model.n_features_in_, model.n_labels_
        self.label_names_ = model.label_names_
        self.n_shards_, self.model_, self.member_ = n_shards, name, member
        self.probabilities_ = bool(model._scores_are_probabilities())
        self.calibrator_, self.calibration_ = model.calibrator_, model.calibration_
        return self

    def connect(
        self, addresses: Sequence[str], *, token: str | None = None, timeout: float = 30.0
    ) -> ShardedRanker:
        """Ask the shards at these addresses, in the order in which they were cut."""
        if len(addresses) != self.n_shards_:
            raise ValueError(
                f"the model has {self.n_shards_} shards, and {len(addresses)} addresses were given"
            )
        return self.use(
            [
                RemoteShard(address, self.model_, self.member_, token=token, timeout=timeout)
                for address in addresses
            ]
        )

    def use(self, shards: Sequence[Any]) -> ShardedRanker:
        """Ask these objects, which have ``predict_topk(X, k)``; shards in this process will do."""
        self.__dict__["_shards"] = list(shards)
        self.__dict__["_pool"] = ThreadPoolExecutor(max(1, len(shards)), "longtail-shard")
        return self

    def _fit(self, X: Any, Y: Any, *args: Any, **options: Any) -> None:
        raise TypeError("a ShardedRanker is made of a fitted model (longtail shard), not fitted")

    def _predict_topk(self, X: Any, k: int) -> TopK:
        shards = self.__dict__.get("_shards")
        if shards is None:
            raise ValueError(
                f"the labels of this model are in {self.n_shards_} shards: connect(addresses) "
                "says where (longtail serve --shard)"
            )
        rows = X if sp.issparse(X) else sp.csr_matrix(X)
        asked = [self.__dict__["_pool"].submit(shard.predict_topk, rows, k) for shard in shards]
        return merge_shards([answer.result() for answer in asked], k, self.n_labels_)

    def _predict_allowed(self, X: Any, k: int, labels: LabelFilter) -> TopK:
        raise TypeError(
            "a model in shards does not support label filters (include, exclude) or explanations"
        )

    def _scores_are_probabilities(self) -> bool:
        return self.probabilities_

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        state.meta.update(
            n_shards=self.n_shards_,
            model=self.model_,
            member=self.member_,
            probabilities=self.probabilities_,
        )
        return state

    def _set_state(self, state: persist.State) -> None:
        super()._set_state(state)
        self.n_shards_, self.member_ = state.count("n_shards"), state.count("member")
        name, probabilities = state.meta.get("model"), state.meta.get("probabilities")
        if not isinstance(name, str) or not isinstance(probabilities, bool):
            raise ModelFormatError("a sharded model must name the model that it was")
        self.model_, self.probabilities_ = name, probabilities
