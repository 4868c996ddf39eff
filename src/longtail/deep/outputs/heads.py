"""``Heads``: rows meet labels by their texts, by a row of weights of each label, or by both.

::

             ┌─ dual head ─────── unit(tanh(A h + a)) ──► cosine with that of the label's text
    h(text) ─┤
             └─ classifier head ─ C h + c ──────────────► product with the label's row of a table

In one step both look at the pool of labels that the batch names. Of the table only the rows of
these labels are read and updated (sparse Adam). Without a table it is a dual encoder.

In a ``Group``, each process has a range of the labels and their rows of the table. All of them see
the vectors of the whole batch and the rows of its pool, and compute the same; each updates its own
rows. What is exchanged is as large as the pool, whatever the number of labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn.functional import normalize

from longtail.deep.adam import Adam, AdamArray
from longtail.deep.batches.pairs import PoolTargets
from longtail.deep.group import Group
from longtail.deep.objectives.objective import Objective
from longtail.deep.optimisers import TorchAdamW
from longtail.deep.outputs.chunks import Best, chunk_edges

__all__ = ["HeadPlan", "Heads"]


@dataclass(frozen=True)
class HeadPlan:
    """``table_rate``: learning rate of the table as a multiple of that of the heads. ``dual``: the
    weight of the dual encoder's loss (lambda), the rest is the classifier's; ``to_labels``: the
    weight of rows looking for labels (lambda_D), the rest is labels looking for rows.
    ``classifier``: the objective of the classifier, None for that of the dual encoder;
    ``auxiliary`` and ``binary``: the weight of a binary loss of the classifier's scores over the
    pool, and that loss. ``cosine``: whether the classifier's scores are cosines in training too.
    """

    dropout: float = 0.1
    table_rate: float = 5.0
    dual: float = 0.5
    to_labels: float = 0.5
    classifier: Objective | None = None
    auxiliary: float = 0.0
    binary: Objective | None = None
    cosine: bool = False


class Heads:
    """``dual`` and ``classifier``: linear layers; ``table`` (L, d) or None, of a ``group`` the rows
    of the labels ``own``.

    It keeps the promises of a ``Layer``; ``top`` needs ``labels``, the vectors of own labels.
    """

    def __init__(
        self,
        dual: nn.Linear,
        classifier: nn.Linear | None,
        table: torch.Tensor | None,
        n_labels: int,
        plan: HeadPlan,
        *,
        weight_decay: float = 0.0,
        group: Group | None = None,
    ) -> None:
        self.group = group
        self.own = slice(0, n_labels) if group is None else group.share_of_labels(n_labels)
        self.modules = nn.ModuleDict({"dual": dual})
        if classifier is not None:
            self.modules["classifier"] = classifier
        self.optimiser = TorchAdamW(self.modules, weight_decay)
        self.table = None if table is None else AdamArray.starting(table)
        self.n_labels, self.plan, self.weight_decay = n_labels, plan, weight_decay
        self.steps = 0
        self.labels: torch.Tensor | None = None

    def whole(self, arrays: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return arrays of ``trained`` or ``arrays`` with the labels of every process."""
        if self.group is None:
            return arrays
        gather = self.group.gather
        return {name: gather(a) if _of_table(name) else a for name, a in arrays.items()}

    def part(self, arrays: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return of arrays that ``whole`` returned what is this process's own."""
        return {name: a[self.own] if _of_table(name) else a for name, a in arrays.items()}

    @property
    def device(self) -> torch.device:
        return self.modules["dual"].weight.device  # type: ignore[return-value]

    def met(self, h: torch.Tensor, *, training: bool = False) -> torch.Tensor:
        """Return unit vectors of texts for the dual encoder."""
        u = torch.tanh(self.modules["dual"](h))
        return normalize(self._dropped(u, training), dim=1)

    def classified(self, h: torch.Tensor, *, training: bool = False) -> torch.Tensor:
        """Return vectors of texts for the classifier."""
        return self._dropped(self.modules["classifier"](h), training)

    def _dropped(self, u: torch.Tensor, training: bool) -> torch.Tensor:
        return nn.functional.dropout(u, self.plan.dropout, training=training)

    def step(
        self,
        h: torch.Tensor,
        targets: PoolTargets,
        objective: Objective,
        rate: float,
        *,
        want_loss: bool = False,
    ) -> tuple[torch.Tensor | None, torch.Tensor]:
        """Update heads and table on one batch: ``h`` holds the vectors of its rows, then those of
        the labels of its pool.
        """
        self.steps += 1
        loss, slope, rows = self.gradients(h, targets, objective)
        if self.group is not None:
            self.group.first_gradients(self.modules)
        self.optimiser.step(rate)
        if self.table is not None:
            assert rows is not None
            adam = Adam(rate * self.plan.table_rate, self.weight_decay)
            labels = targets.labels
            if self.group is not None:
                here = self._here(labels)
                labels, rows = labels[here] - self.own.start, rows[here]
            self.table.update(rows, adam, self.steps, rows=labels)
        return loss if want_loss else None, slope

    def gradients(
        self, h: torch.Tensor, targets: PoolTargets, objective: Objective
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Return the loss, and its gradients by ``h`` and by the pool's rows of the table; that of
        the heads stays with their parameters.
        """
        plan, n, rows = self.plan, len(targets), None
        h = h.detach().requires_grad_()
        with torch.enable_grad():
            u = self.met(h, training=True)
            scores = [u[:n] @ u[n:].T]
            if self.table is not None:
                rows = self._rows_of(self.table.values, targets.labels).requires_grad_()
                v = self.classified(h[:n], training=True)
                if plan.cosine:
                    scores.append(normalize(v, dim=1) @ normalize(rows, dim=1).T)
                else:
                    scores.append(v @ rows.T)
        share = plan.dual if self.table is not None else 1.0
        loss, gradient = self._both_ways(scores[0], targets, objective)
        loss, gradients = share * loss, [share * gradient]
        if self.table is not None:
            more, gradient = self._both_ways(scores[1], targets, plan.classifier or objective)
            loss = loss + (1 - share) * more
            if plan.auxiliary and plan.binary is not None:
                more, further = plan.binary.on_pool(
                    scores[1].detach(), targets.targets, None, targets.present
                )
                loss, gradient = loss + plan.auxiliary * more, gradient + plan.auxiliary * further
            gradients.append((1 - share) * gradient)
        torch.autograd.backward(scores, gradients)
        assert h.grad is not None
        return loss, h.grad, None if rows is None else rows.grad

    def _here(self, labels: torch.Tensor) -> torch.Tensor:
        return (labels >= self.own.start) & (labels < self.own.stop)

    @torch.no_grad()
    def _rows_of(self, table: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the rows of some labels (s, d), whoever has them."""
        if self.group is None:
            return table[labels]
        here, out = self._here(labels), table.new_zeros((len(labels), table.shape[1]))
        out[here] = table[labels[here] - self.own.start]
        return self.group.sum(out)

    def _both_ways(
        self, scores: torch.Tensor, targets: PoolTargets, objective: Objective
    ) -> tuple[torch.Tensor, torch.Tensor]:
        z, present, share = scores.detach(), targets.present, self.plan.to_labels
        loss, gradient = objective.on_pool(z, targets.targets, None, present)
        if share == 1:
            return loss, gradient
        back, slope = objective.on_pool(z.T, targets.targets.T, None, present.T)
        return share * loss + (1 - share) * back, share * gradient + (1 - share) * slope.T

    @torch.no_grad()
    def vectors(self, h: torch.Tensor, answer: str) -> torch.Tensor:
        """Return what rows are searched with: "dual", "classifier", or "both", side by side."""
        parts = []
        if answer != "classifier":
            parts.append(self.met(h))
        if answer != "dual":
            parts.append(normalize(self.classified(h), dim=1))
        return torch.cat(parts, dim=1)

    @torch.no_grad()
    def label_vectors(self, h: torch.Tensor, answer: str) -> torch.Tensor:
        """Return what own labels are found by, given the vectors ``h`` of all their texts."""
        parts = []
        if answer != "classifier":
            parts.append(self.met(h))
        if answer != "dual":
            assert self.table is not None
            parts.append(normalize(self.table.values, dim=1))
        return torch.cat(parts, dim=1)

    @torch.no_grad()
    def top(self, h: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return ids and scores (b, k) of the k best labels of every row, best first."""
        assert self.labels is not None
        labels, found = self.labels, Best(min(k, len(self.labels)))
        queries = self.vectors(h, "dual" if self.table is None else "both")
        bounds = chunk_edges(len(h), len(labels), h.device)
        for begin, end in pairwise(bounds):
            found.add([found.of(queries @ labels[begin:end].T, self.own.start + begin)])
        assert found.ids is not None
        if self.group is None:
            return found.ids, found.scores
        return self.group.best(found.ids, found.scores, min(k, self.n_labels))

    def trained(self) -> dict[str, torch.Tensor]:
        """Return what was learned, by name."""
        out = {name: p.data for name, p in self.modules.named_parameters()}
        return out if self.table is None else {**out, "table": self.table.values}

    def finite(self) -> bool:
        """Return whether everything that was learned is a finite number."""
        finite = all(bool(torch.isfinite(array).all()) for array in self.trained().values())
        return finite if self.group is None else self.group.all(finite, self.device)

    def arrays(self) -> dict[str, torch.Tensor]:
        """Return weights and moments by name, for a checkpoint."""
        out = {f"heads.{name}": array for name, array in self.optimiser.arrays().items()}
        if self.table is not None:
            out |= {f"table.{name}": array for name, array in self.table.arrays().items()}
        return out

    def load(self, arrays: dict[str, torch.Tensor], steps: int) -> None:
        """Take over what ``arrays`` returned after so many steps."""
        own: dict[str, dict[str, torch.Tensor]] = {"heads": {}, "table": {}}
        for name, array in arrays.items():
            part, _, rest = name.partition(".")
            own[part][rest] = array
        self.optimiser.load(own["heads"], steps)
        if self.table is not None:
            self.table.load(own["table"])
        self.steps = steps


def _of_table(name: str) -> bool:
    """Whether an array has a row for every label."""
    return "table" in name.split(".")


def started(width: int, size: int, device: Any) -> nn.Linear:
    """Return a head that begins as the identity, or as a rotation onto fewer numbers."""
    head = nn.Linear(width, size)
    nn.init.zeros_(head.bias)
    if width == size:
        nn.init.eye_(head.weight)
    else:
        nn.init.orthogonal_(head.weight)
    return head.to(device)
