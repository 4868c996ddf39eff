"""The training behind ``DualEncoder`` and ``UniDEC``: texts of rows and of labels to an encoder,
heads and, for the latter, a table of label vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from longtail._progress import tell
from longtail.data.tokens import Tokens
from longtail.deep.batches.pair_feed import Mining, PairFeed
from longtail.deep.batches.token_rows import TokenRows
from longtail.deep.encoders.average import Average
from longtail.deep.encoders.siamese import Siamese
from longtail.deep.group import Group
from longtail.deep.objectives import Decoupled, Objective, SupCon, Triplet, named
from longtail.deep.outputs.heads import HeadPlan, Heads, started
from longtail.deep.training.checkpoint import digest_of, open_checkpoint
from longtail.deep.training.cost import Cost
from longtail.deep.training.plan import Plan
from longtail.deep.training.trainer import Outcome, Trainer, own_randomness, require_device
from longtail.deep.training.validation import LabelValidation
from longtail.propensity import JainPropensity
from longtail.text.all_texts import AllTexts
from longtail.text.dual_cost import dual_cost
from longtail.text.training import first_encoder, torch_threads

if TYPE_CHECKING:
    from longtail.text.dual_encoder import DualEncoder

__all__ = [
    "DualTrained",
    "described_together",
    "plan_dual_encoder",
    "train_dual_encoder",
]

_MANY_LABELS = 100_000  # from so many on the cost is told before the first epoch


@dataclass
class DualTrained:
    """A trained encoder, the heads' weights by name, and how it went."""

    encoder: nn.Module
    heads: dict[str, np.ndarray]
    outcome: Outcome


def train_dual_encoder(
    model: DualEncoder, tokens: Tokens, label_tokens: Tokens, Y: Any, plan: Plan, **of: Any
) -> DualTrained:
    """Train on texts, label texts and labels, in a group together with other processes; ``of``: as
    of ``_prepared``.
    """
    group = Group.current()
    trainer, texts = _prepared(model, tokens, label_tokens, Y, plan, group=group, **of)
    with torch_threads(plan):
        if Y.shape[1] >= _MANY_LABELS and group is None:
            tell(dual_cost(trainer, tokens, label_tokens, texts.vectors))
        outcome = trainer.run()
    arrays = trainer.output.whole(trainer.output.trained())
    heads = {name: a.detach().cpu().numpy().copy() for name, a in arrays.items()}
    return DualTrained(texts.encoder.inner.eval(), heads, outcome)


def plan_dual_encoder(
    model: DualEncoder, tokens: Tokens, label_tokens: Tokens, Y: Any, plan: Plan, **of: Any
) -> Cost:
    """Return what training on these texts and labels would take."""
    trainer, texts = _prepared(model, tokens, label_tokens, Y, plan, **of)
    with torch_threads(plan):
        return dual_cost(trainer, tokens, label_tokens, texts.vectors)


def described_together(
    describe: Callable[[Tokens], np.ndarray], tokens: Tokens, plan: Plan
) -> np.ndarray:
    """Return what ``describe`` returns for label texts; in a group, each process does a share."""
    group = Group.current()
    if group is None:
        return describe(tokens)
    own = torch.tensor(describe(tokens[group.share(len(tokens))])).to(plan.device)
    return np.asarray(group.gather(own).cpu().numpy())


def _prepared(
    model: DualEncoder,
    tokens: Tokens,
    label_tokens: Tokens,
    Y: Any,
    plan: Plan,
    *,
    n_tokens: int,
    start: Any = None,
    group: Group | None = None,
) -> tuple[Trainer, AllTexts]:
    """Return what trains, and its encoder. ``start`` is a fitted model to go on from; ``group``:
    the processes that train together, each with a range of the labels.
    """
    require_device(plan.device)
    device = torch.device(plan.device)
    mining, objective = model._mining(), _objective(model)
    if group is not None:
        settings = [str(model.encoder), mining, model._head_plan(), objective, model.width]
        group.check_same((str(plan), repr(settings), digest_of([tokens, label_tokens, Y])))
    order = np.random.default_rng([plan.seed, 0]).permutation(len(tokens))
    n_valid = int(len(tokens) * plan.validation)
    valid, rows = order[:n_valid], np.sort(order[n_valid:])
    with own_randomness(device):
        torch.manual_seed(plan.seed % 2**63)
        inner = first_encoder(model, n_tokens) if start is None else start.encoder_.module()
        if start is None and isinstance(inner, Average):
            inner.prepare(tokens[rows])
        encoder = Siamese(inner).to(device)
        if group is not None:
            group.same_start(encoder)
        longest = getattr(inner, "max_length", None)
        queries = TokenRows(tokens, device, longest)
        labels = TokenRows(label_tokens, device, longest)
        texts = AllTexts(encoder, plan)
        output = _heads(model, inner.width, Y.shape[1], plan, device, start, group)
        own_labels = labels
        if group is not None:
            group.same_start(output.modules)
            own_labels = TokenRows(label_tokens[output.own], device, longest)
        if output.table is not None and start is None:
            with torch.no_grad():
                first = output.classified(texts.vectors(own_labels))
                output.table.values.copy_(nn.functional.normalize(first, dim=1))

    def look() -> tuple[torch.Tensor, torch.Tensor]:
        found = output.vectors(texts.vectors(queries, group), mining.by)
        return found, output.label_vectors(texts.vectors(own_labels), mining.by)

    validate: Any = None
    if n_valid:
        p = JainPropensity().fit(Y) if plan.metric == "psp" else None
        watched = LabelValidation(queries, Y, valid, plan.metric, p)

        def validate(encode: Any, output: Heads) -> float:
            answer = "dual" if output.table is None else "both"
            output.labels = output.label_vectors(texts.vectors(own_labels), answer)
            return watched(encode, output)

    trainer = Trainer(
        encoder,
        output,  # type: ignore[arg-type]
        objective,
        PairFeed(queries, labels, Y, rows, plan.batch_size, mining, plan.seed, device, look, group),
        plan,
        validate=validate,
        checkpoint=open_checkpoint(
            plan,
            [tokens, label_tokens, Y],
            encoder=str(model.encoder),
            settings=repr([mining, output.plan, model._setting("loss"), model.width]),
            threads=plan.threads,
        ),
        group=group,
        title=type(model).__name__,
    )
    return trainer, texts


def _heads(
    model: DualEncoder,
    width: int,
    n_labels: int,
    plan: Plan,
    device: torch.device,
    start: Any,
    group: Group | None,
) -> Heads:
    size = width if model.width is None else int(model.width)
    settings = model._head_plan()
    dual, classifier = started(width, size, device), None
    table = None
    if model.has_table:
        classifier = started(width, size, device)
        count = n_labels
        if group is not None:
            own = group.share_of_labels(n_labels)
            count = own.stop - own.start
        table = torch.zeros(count, size, device=device)
    heads = Heads(
        dual,
        classifier,
        table,
        n_labels,
        settings,
        weight_decay=plan.weight_decay,
        group=group,
    )
    if start is not None:
        first = heads.part({name: torch.tensor(array) for name, array in start.heads_.items()})
        with torch.no_grad():
            for name, array in heads.trained().items():
                array.copy_(first[name])
    return heads


def _objective(model: DualEncoder) -> Objective:
    loss, temperature = model._setting("loss"), float(model._setting("temperature"))
    if loss == "triplet":
        return Triplet(margin=float(model.margin))
    return {"decoupled": Decoupled, "supcon": SupCon}[loss](temperature=temperature)


def classifier_plan(model: DualEncoder, **settings: Any) -> HeadPlan:
    """Return the plan of heads with a classifier."""
    loss, temperature = model._setting("loss"), float(model._setting("classifier_temperature"))
    kind = SupCon if loss == "supcon" else Decoupled
    return HeadPlan(classifier=kind(temperature=temperature), binary=named("sigmoid"), **settings)


def mining_of(model: DualEncoder) -> Mining:
    """Return how a model wants its negatives."""
    names = ("positives", "negatives", "period", "mine_from", "clusters")
    settings = {name: model._setting(name) for name in names}
    clusters = settings["clusters"]
    settings["clusters"] = clusters if isinstance(clusters, str) else tuple(clusters)
    return Mining(
        pick_one=model._setting("pick") == "one", pool=model.pool_size, by=model.mine_by, **settings
    )
