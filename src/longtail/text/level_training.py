"""The training behind ``XRTransformer``: one encoder, fine-tuned down the levels of a tree."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from longtail import persist
from longtail.data.paired_rows import PairedRows
from longtail.data.topk import TopK
from longtail.deep.batches.shortlist_feed import ShortlistFeed
from longtail.deep.batches.token_rows import TokenRows
from longtail.deep.encoders.average import Average
from longtail.deep.objectives import Binary
from longtail.deep.outputs import Pool
from longtail.deep.training.plan import Plan
from longtail.deep.training.trainer import Trainer, own_randomness, require_device
from longtail.features.beside import beside
from longtail.linear import XRLinear
from longtail.text.all_texts import AllTexts
from longtail.text.encoder_state import EncoderState
from longtail.text.levels import Level
from longtail.text.training import first_encoder, torch_threads

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
    model: Any,
    rows: PairedRows,
    levels: list[Level],
    steps: list[int],
    plan: Plan,
    *,
    n_tokens: int,
    linear: dict[str, Any],
    checkpoint: str | os.PathLike[str] | None,
    fingerprint: dict[str, Any],
) -> Fitted:
    """Fine-tune the encoder on every level in turn. ``linear``: parameters of the linear models
    that match rows with the nodes of a level, from features and vectors side by side.
    """
    require_device(plan.device)
    device = torch.device(plan.device)
    with own_randomness(device):
        torch.manual_seed(plan.seed % 2**63)
        encoder = first_encoder(model, n_tokens)
        if isinstance(encoder, Average):
            encoder.prepare(rows.tokens)
        encoder = encoder.to(device)
    inputs = TokenRows(rows.tokens, device, getattr(encoder, "max_length", None))
    texts = AllTexts(encoder, plan)
    kept = None if checkpoint is None else LevelCheckpoint(Path(checkpoint), fingerprint)
    matched: TopK | None = None
    history: list[dict[str, Any]] = []
    done = -1
    if kept is not None and (found := kept.load()) is not None:
        encoder.load_state_dict(found.state.module().state_dict())
        matched, history, done = found.matched, found.history, found.level
        log.info("XRTransformer: going on after level %d", done + 1)
    vectors: np.ndarray | None = None
    for level, count in zip(levels, steps, strict=True):
        if level.number <= done:
            continue
        if count:
            if vectors is None and level.number and model.bootstrap:
                vectors = _vectors(texts, inputs, plan)
            head = _first_head(model, level, matched, vectors, encoder.width, plan)
            record = _fine_tune(model, encoder, inputs, level, matched, head, count, plan)
            history.append(record)
            vectors = None
        last = level is levels[-1]
        if vectors is None and (count or not last):
            vectors = _vectors(texts, inputs, plan)
        if not last:
            matched = _matched(model, level, matched, rows, vectors, linear)
        if kept is not None:
            kept.save(level.number, encoder, matched, history)
    if vectors is None:
        vectors = _vectors(texts, inputs, plan)
    return Fitted(encoder.eval(), vectors, history)


def _vectors(texts: AllTexts, inputs: TokenRows, plan: Plan) -> np.ndarray:
    with torch_threads(plan):
        return np.asarray(texts.vectors(inputs).cpu().numpy())


def _first_head(
    model: Any,
    level: Level,
    matched: TopK | None,
    vectors: np.ndarray | None,
    width: int,
    plan: Plan,
) -> tuple[np.ndarray, np.ndarray]:
    """Return weights (K, e) and biases (K,) to begin with: of the linear solver on the vectors that
    the level above has left, over the same shortlists; small random ones on the first level.
    """
    if vectors is None or not model.bootstrap:
        rng = np.random.default_rng([plan.seed, 3, level.number])
        weights = rng.standard_normal((level.n_nodes, width), np.float32) * np.float32(0.02)
        return weights, np.zeros(level.n_nodes, np.float32)
    counts = model.count_weights and model._setting("bootstrap_counts")
    solved = XRLinear(
        tree=level.tree(),
        C=100.0,
        cost_weights="counts" if counts else None,
        threshold=0.0,
        normalize=False,
        random_state=plan.seed % 2**31,
        n_jobs=model.n_jobs,
    ).fit(vectors, level.labels(), extra_rows=level.extra_rows(matched))
    whole = solved.layers_[-1].to_csr(width).toarray()[solved.tree_.leaf_of_label_]
    return np.ascontiguousarray(whole[:, :-1]), np.ascontiguousarray(whole[:, -1])


def _fine_tune(
    model: Any,
    encoder: nn.Module,
    inputs: TokenRows,
    level: Level,
    matched: TopK | None,
    head: tuple[np.ndarray, np.ndarray],
    steps: int,
    plan: Plan,
) -> dict[str, Any]:
    device = torch.device(plan.device)
    lists = level.shortlists(matched, model._most_active(), [plan.seed, 8, level.number])
    if not model.count_weights:
        lists = replace(lists, weights=np.ones_like(lists.weights))
    output = Pool(*(torch.tensor(array).to(device) for array in head))
    feed = ShortlistFeed(inputs, lists, plan.batch_size, steps, plan.seed + level.number, device)
    trainer = Trainer(
        encoder,
        output,
        Binary(base="squared_hinge", reduction="mean"),
        feed,
        replace(plan, epochs=1),
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
    model: Any,
    level: Level,
    matched: TopK | None,
    rows: PairedRows,
    vectors: np.ndarray | None,
    linear: dict[str, Any],
) -> TopK:
    """Return the nodes of a level that a linear model on both kinds of features ranks best."""
    assert vectors is not None
    X = beside(rows.X, vectors)
    ranker = XRLinear(tree=level.tree(), **linear)
    ranker.fit(X, level.labels(), extra_rows=level.extra_rows(matched))
    return ranker.predict_topk(X, k=min(model._man_beam(), level.n_nodes))


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
