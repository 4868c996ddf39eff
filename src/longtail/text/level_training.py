"""The training behind ``XRTransformer``: one encoder, fine-tuned down the levels of a tree."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn

from longtail import persist
from longtail._blocks import BlockRows
from longtail._native import n_threads
from longtail.answers.topk import TopK
from longtail.data.paired_rows import PairedRows
from longtail.deep.batches.shortlist_feed import ShortlistFeed
from longtail.deep.batches.token_rows import TokenRows
from longtail.deep.encoders.average import Average
from longtail.deep.group import Group, made_once
from longtail.deep.objectives import Binary
from longtail.deep.outputs import Pool
from longtail.deep.outputs.label_shard import PoolShard
from longtail.deep.outputs.layer import Layer
from longtail.deep.training.plan import Plan
from longtail.deep.training.trainer import Trainer, own_randomness, require_device
from longtail.features.block_rows import beside
from longtail.linear import XRLinear
from longtail.linear.train.level import train_level
from longtail.linear.train.solver_options import SolverOptions
from longtail.text.all_texts import AllTexts
from longtail.text.encoder_state import EncoderState
from longtail.text.levels import Level, NodeLists
from longtail.text.training import first_encoder, torch_threads

if TYPE_CHECKING:
    from longtail.text.xr_transformer import XRTransformer

__all__ = ["Fitted", "train_levels"]

log = logging.getLogger(__name__)


@dataclass
class Fitted:
    """The encoder after the last level, vectors of all rows (n, e), and one record per level:
    ``level``, ``nodes``, ``steps``, ``seconds``, the ``loss`` at its beginning and end.
    """

    encoder: nn.Module
    vectors: np.ndarray
    history: list[dict[str, Any]]


def train_levels(
    model: XRTransformer,
    rows: PairedRows,
    levels: list[Level],
    steps: list[int],
    plan: Plan,
    *,
    n_tokens: int,
    linear: dict[str, Any],
    checkpoint: str | os.PathLike[str] | None,
    fingerprint: dict[str, Any],
    group: Group | None = None,
) -> Fitted:
    """Fine-tune the encoder on every level in turn. ``linear``: parameters of the linear models
    that match rows with the nodes of a level, from features and vectors side by side. ``group``:
    the processes that do it together, with a range of a level's nodes each; linear models are
    trained by the first one, which alone needs to see ``checkpoint``.
    """
    require_device(plan.device)
    device = torch.device(plan.device)
    with own_randomness(device):
        torch.manual_seed(plan.seed % 2**63)
        encoder = first_encoder(model, n_tokens)
        if isinstance(encoder, Average):
            encoder.prepare(rows.tokens)
        encoder = encoder.to(device)
    if group is not None:
        group.same_start(encoder)
    inputs = TokenRows(rows.tokens, device, getattr(encoder, "max_length", None))
    texts = AllTexts(encoder, plan)
    kept = None if checkpoint is None else LevelCheckpoint(Path(checkpoint), fingerprint)
    matched: TopK | None = None
    history: list[dict[str, Any]] = []
    done = -1
    if kept is not None and (found := made_once(group, kept.load)) is not None:
        encoder.load_state_dict(found.state.module().state_dict())
        matched, history, done = found.matched, found.history, found.level
        log.info("XRTransformer: going on after level %d", done + 1)
    vectors: np.ndarray | None = None  # of all rows, by the encoder as it is

    def known() -> np.ndarray:
        nonlocal vectors
        if vectors is None:
            with torch_threads(plan):
                vectors = np.asarray(texts.vectors(inputs, group).cpu().numpy())
        return vectors

    # Levels below the last that is trained need no matching: nothing looks at what it finds.
    last = max((i for i, count in enumerate(steps) if count), default=-1)
    for level, count in zip(levels, steps, strict=True):
        if level.number <= done or level.number > last:
            continue
        if count:
            solved = known() if model.bootstrap and level.number else None
            first = (model, level, matched, solved, encoder.width, plan)
            head = made_once(group, partial(_first_head, *first))
            history.append(
                _fine_tune(model, encoder, inputs, level, matched, head, count, plan, group)
            )
            vectors = None
        if level.number < last:
            seen = (model, level, matched, rows, known(), linear)
            matched = made_once(group, partial(_matched, *seen))
        if kept is not None:
            state = (level.number, encoder, matched, history)
            made_once(group, partial(kept.save, *state))
    return Fitted(encoder.eval(), known(), history)


def _first_head(
    model: XRTransformer,
    level: Level,
    matched: TopK | None,
    vectors: np.ndarray | None,
    width: int,
    plan: Plan,
) -> tuple[np.ndarray, np.ndarray]:
    """Return weights (K, e) and biases (K,) to begin with: of the linear solver on the vectors that
    the level above has left, over the same shortlists; without vectors small random ones.
    """
    if vectors is None:
        rng = np.random.default_rng([plan.seed, 3, level.number])
        weights = rng.standard_normal((level.n_nodes, width), np.float32) * np.float32(0.02)
        return weights, np.zeros(level.n_nodes, np.float32)
    counts = model.count_weights and model._setting("bootstrap_counts")
    cost = model._setting("bootstrap_cost")
    if cost is None:  # so that the regulariser weighs the same whatever the length of vectors
        cost = 1 / max(float((vectors.astype(np.float64) ** 2).sum(1).mean()), 1e-12)
    solved = train_level(
        BlockRows(sp.csr_matrix((len(vectors), 0), dtype=np.float32), vectors),
        level.problem(matched, float(cost), count_weights=counts),
        SolverOptions(threshold=0.0),
        seed=plan.seed % 2**31,
        n_threads=plan.threads,
    )
    return solved.weights(width).toarray(), np.array(solved.arrays["bias"])


def _fine_tune(
    model: XRTransformer,
    encoder: nn.Module,
    inputs: TokenRows,
    level: Level,
    matched: TopK | None,
    head: tuple[np.ndarray, np.ndarray],
    steps: int,
    plan: Plan,
    group: Group | None,
) -> dict[str, Any]:
    device = torch.device(plan.device)
    most = model._setting("most_active")
    lists = NodeLists(level, matched, most, count_weights=model.count_weights)
    own = slice(0, level.n_nodes) if group is None else group.share(level.n_nodes)
    output: Layer = Pool(*(torch.tensor(array[own]).to(device) for array in head))
    if group is not None:
        output = PoolShard(output, own, level.n_nodes, group)
    trainer = Trainer(
        encoder,
        output,
        Binary(base="squared_hinge"),
        ShortlistFeed(inputs, lists, plan.batch_size, steps, plan.seed + level.number, device),
        plan,
        group=group,
        title=f"XRTransformer, level {level.number + 1}, {level.n_nodes:,} nodes",
    )
    with torch_threads(plan):
        outcome = trainer.run()
    record = outcome.history[-1]
    return {
        "level": level.number + 1,
        "nodes": level.n_nodes,
        "steps": steps,
        "seconds": record["seconds"],
        "loss": record["loss"],
        "first_loss": trainer.first_loss,
    }


def _matched(
    model: XRTransformer,
    level: Level,
    matched: TopK | None,
    rows: PairedRows,
    vectors: np.ndarray,
    linear: dict[str, Any],
) -> TopK:
    """Return the nodes of a level that a linear model on both kinds of features ranks best."""
    X = beside(rows.X, vectors, n_threads=n_threads(model.n_jobs))
    ranker = XRLinear(tree=level.tree(), **linear)
    ranker.fit(X, level.labels(), extra_rows=level.extra_rows(matched))
    return ranker.predict_topk(X, k=min(model._setting("man_beam"), level.n_nodes))


@dataclass
class Kept:
    """What a checkpoint holds: the last level that was finished, and what the next one needs."""

    level: int
    state: EncoderState
    matched: TopK | None
    history: list[dict[str, Any]]


class LevelCheckpoint:
    """A folder with the encoder after a level, and what it must agree with."""

    def __init__(self, path: Path, fingerprint: dict[str, Any]) -> None:
        self.path, self.fingerprint = path, fingerprint

    def save(
        self, level: int, encoder: nn.Module, matched: TopK | None, history: list[dict[str, Any]]
    ) -> None:
        state = persist.State("level-checkpoint", {}, {}, {})
        EncoderState.of(encoder).put(state)
        state.meta.update(level=level, history=history, fingerprint=self.fingerprint)
        if matched is not None:
            state.arrays.update(matched=matched.indices, scores=matched.scores)
            state.meta["n_nodes"] = matched.n_labels
        persist.save(self.path, state, overwrite=True)

    def load(self) -> Kept | None:
        if not self.path.exists():
            return None
        state = persist.load(self.path, mmap=False)
        if state.type != "level-checkpoint" or state.meta.get("fingerprint") != self.fingerprint:
            raise ValueError(
                f"{self.path} is no checkpoint of this training (other data or parameters): remove "
                "it, or name another"
            )
        matched = None
        if "matched" in state.arrays:
            matched = TopK(
                state.arrays["matched"], state.arrays["scores"], n_labels=state.meta["n_nodes"]
            )
        return Kept(
            state.meta["level"], EncoderState.take(state), matched, list(state.meta["history"])
        )
