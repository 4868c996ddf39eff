"""What tests of the deep room share: one step of a perceptron, and a small pretrained encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

WORDS = [f"word{i}" for i in range(60)]


def one_step(
    X: np.ndarray,
    Y: np.ndarray,
    weights: Any,
    loss: str,
    *,
    device: str = "cpu",
    rate: float = 0.01,
    steps: int = 1,
    pruned_to: int | None = None,
    **objective: Any,
) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """Take steps of a ``Bag`` and a ``Full`` layer on one batch; return the weights and Adam's first
    moments by name (w1, b1, w2, b2), and the loss before the last step.
    """
    import torch

    from longtail.deep.batches.sparse_rows import SparseRows
    from longtail.deep.encoders.bag import Bag
    from longtail.deep.objectives import named
    from longtail.deep.outputs import Full
    from longtail.deep.training.optimise import LazyAdam
    from longtail.deep.training.pruning import prune

    place = torch.device(device)
    w1, b1, w2, b2 = (w.clone().to(place) for w in weights)
    encoder, output = Bag(w1, b1), Full(w2, b2)
    optimiser, goal = LazyAdam(encoder, 0.0), named(loss, **objective)
    rows = torch.arange(len(X), device=place)
    labels = Y if loss in ("squared", "length") else sp.csr_matrix(Y)
    targets = goal.rows(labels, place, 0).take(rows)
    batch = SparseRows(X, place).take(rows)
    value = None
    for step in range(steps):
        h = encoder(batch)
        value, gradient = output.step(h.detach(), targets, goal, rate, want_loss=True)
        h.backward(gradient)
        optimiser.step(rate)
        if step == 0 and pruned_to is not None:
            prune([optimiser.states["weight"], output.weights], pruned_to)
    state = optimiser.states
    arrays = (state["weight"], state["bias"], output.weights, output.bias)
    named_arrays = dict(zip(("w1", "b1", "w2", "b2"), arrays, strict=True))
    values = {name: array.values.detach().cpu() for name, array in named_arrays.items()}
    first = {name: array.first.detach().cpu() for name, array in named_arrays.items()}
    return values, first, value


def small_encoder(folder: Path) -> Path:
    """Write a BERT of two layers with random weights and a tokenizer of ``WORDS`` to a folder."""
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {word: i for i, word in enumerate([*special, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    torch.manual_seed(0)
    transformers.BertModel(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def worded(n: int = 160, n_labels: int = 8, seed: int = 0) -> tuple[list[str], sp.csr_matrix]:
    """Return texts whose words tell their labels, and the labels (n, L)."""
    rng = np.random.default_rng(seed)
    Y = np.zeros((n, n_labels), np.float32)
    Y[np.arange(n), np.arange(n) % n_labels] = 1
    Y[rng.random(Y.shape) < 0.05] = 1
    texts = []
    for row in Y:
        words = [WORDS[4 * int(j) + int(rng.integers(4))] for j in np.flatnonzero(row)]
        words += [WORDS[int(i)] for i in rng.integers(4 * n_labels, len(WORDS), 3)]
        texts.append(" ".join(rng.permutation(words)))
    return texts, sp.csr_matrix(Y)
