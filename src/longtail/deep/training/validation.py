"""What early stopping looks at: a metric on rows that are not trained on.

Answers come from the output layer's ``top``, so that nothing as wide as the labels is held.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from longtail.answers.topk import TopK
from longtail.metrics import (
    ndcg_at_k,
    precision_at_k,
    ps_precision_at_k,
    recall_at_k,
)

__all__ = ["LabelValidation", "TargetValidation"]

KS = (1, 3, 5)
_ROWS = 512


class LabelValidation:
    """The mean over k = 1, 3, 5 of a metric at k on the rows ``numbers`` of ``inputs``."""

    def __init__(
        self,
        inputs: Any,
        Y: sp.csr_matrix,
        numbers: np.ndarray,
        metric: str,
        propensity: Any = None,
    ) -> None:
        self.inputs, self.numbers = inputs, inputs.by_length(numbers)
        self.truth = Y[self.numbers]
        plain = {"precision": precision_at_k, "recall": recall_at_k, "ndcg": ndcg_at_k}
        self.metric: Callable[..., Any]
        if metric == "psp":
            self.metric = lambda truth, top, k: ps_precision_at_k(truth, top, propensity, k=k)
        else:
            self.metric = plain[metric]

    def __call__(self, encode: Callable[[Any], torch.Tensor], output: Any) -> float:
        """Return the value of the present model, higher is better."""
        ids, scores = [], []
        k = min(max(KS), output.n_labels)
        for batch, _ in _batches(self.inputs, self.numbers, output):
            found, values = output.top(encode(batch), k)
            ids.append(found.cpu().numpy().astype(np.int32))
            scores.append(values.cpu().numpy())
        top = TopK._trusted(np.concatenate(ids), np.concatenate(scores), self.truth.shape[1])
        return float(np.mean([self.metric(self.truth, top, k=j) for j in KS]))


class TargetValidation:
    """Minus the mean error of a regression: of its square, or of its length."""

    def __init__(
        self, inputs: Any, targets: np.ndarray, numbers: np.ndarray, *, by_length: bool
    ) -> None:
        self.inputs, self.targets, self.numbers = inputs, targets, inputs.by_length(numbers)
        self.by_length = by_length

    def __call__(self, encode: Callable[[Any], torch.Tensor], output: Any) -> float:
        """Return the value of the present model, higher is better."""
        total = 0.0
        for batch, part in _batches(self.inputs, self.numbers, output):
            h = encode(batch)
            targets = torch.tensor(np.asarray(self.targets[part], np.float32)).to(h.device)
            squares = output.squared_errors(h, targets).cpu().numpy().astype(np.float64)
            total -= float((np.sqrt(squares) if self.by_length else squares).sum())
        return total / len(self.numbers)


def _batches(inputs: Any, numbers: np.ndarray, output: Any) -> Any:
    device = output.device
    for begin in range(0, len(numbers), _ROWS):
        part = numbers[begin : begin + _ROWS]
        yield inputs.take(torch.tensor(part).to(device)), part
