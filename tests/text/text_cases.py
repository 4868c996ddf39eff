"""What tests of text models share: a small pretrained encoder, and texts it can learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import longtail as lt

WORDS = [f"word{i}" for i in range(60)]
FEW = {"epochs": 12, "batch_size": 32, "learning_rate": 3e-3, "output_learning_rate": 3e-2}


def text_network(encoder: Any, **params: Any) -> lt.TextNetwork:
    """Return an unfitted model that learns ``worded`` in seconds."""
    return lt.TextNetwork(
        encoder=encoder, **{"device": "cpu", "n_jobs": 1, "onnx": False, **FEW, **params}
    )


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
