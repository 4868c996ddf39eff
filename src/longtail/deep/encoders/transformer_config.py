"""Configurations of transformers: what is read of them, and what never is.

A configuration is JSON that comes with a model, and ``transformers`` obeys it: a key may name a
Python module to import, a kernel to download or a package to quantise with. A model here is plain
arithmetic, so its type has to be in ``MODEL_TYPES`` and such keys are dropped at any depth. Nothing
else in this library makes a configuration of ``transformers``.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import threading
from collections.abc import Iterator
from typing import Any

from longtail.exceptions import MissingDependencyError

__all__ = ["MODEL_TYPES", "library", "safe_settings", "transformer_config", "without_stdin"]

# Models of one text, whose code comes with ``transformers`` and downloads nothing.
MODEL_TYPES = (
    "albert", "bert", "bert-generation", "big_bird", "camembert", "convbert", "data2vec-text",
    "deberta", "deberta-v2", "distilbert", "electra", "ernie", "eurobert", "flaubert",
    "gemma3_text", "gte", "ibert", "jina_embeddings_v3", "llama", "longformer", "megatron-bert",
    "mistral", "mobilebert", "modernbert", "mpnet", "nomic_bert", "nystromformer", "qwen2",
    "qwen3", "rembert", "roberta", "roberta-prelayernorm", "roc_bert", "roformer", "xlm",
    "xlm-roberta", "xlm-roberta-xl",
)  # fmt: skip
# Code and kernels from elsewhere; names of labels, of which there may be 10^9; the type of weights,
# an attribute of torch, which is float32 here; and what is private to ``transformers``.
_DROPPED = re.compile(
    r"_.*|auto_map|custom_.*|.*_implementation|name_or_path|quantization_config|per_layer_config"
    r"|(torch_)?dtype|num_labels|id2label|label2id"
)
_loading = threading.RLock()


def safe_settings(settings: Any) -> Any:
    """Return a configuration without the keys that could run code or fill the memory.

    >>> safe_settings({"hidden_size": 8, "auto_map": {"AutoModel": "mine.Mine"}})
    {'hidden_size': 8}
    """
    if isinstance(settings, dict):
        kept = {k: v for k, v in settings.items() if not _DROPPED.fullmatch(k)}
        return {k: safe_settings(v) for k, v in kept.items()}
    if isinstance(settings, list):
        return [safe_settings(value) for value in settings]
    return settings


def transformer_config(settings: dict[str, Any]) -> Any:
    """Return the configuration that ``settings`` describe; raise ValueError for unknown model types
    and values that make no sense.
    """
    transformers = library()
    settings = safe_settings(settings)
    kind = settings.pop("model_type", None)
    if not isinstance(kind, str) or kind not in MODEL_TYPES:
        raise ValueError(
            f"encoders of the type {kind!r:.100} are not supported; "
            f"supported are {', '.join(sorted(MODEL_TYPES))}"
        )
    try:
        return transformers.AutoConfig.for_model(kind, **settings)
    except Exception as error:  # checks of ``transformers`` have an error of their own
        raise ValueError(f"the encoder's configuration is not usable: {error}") from None


@contextlib.contextmanager
def without_stdin() -> Iterator[None]:
    """Leave nothing to read on standard input, where ``transformers`` asks whether to run code."""
    with _loading:
        before, sys.stdin = sys.stdin, io.StringIO()
        try:
            yield
        finally:
            sys.stdin = before


def library() -> Any:
    """Return ``transformers``, made quiet."""
    try:
        import transformers
    except ModuleNotFoundError as error:
        if error.name != "transformers":
            raise
        raise MissingDependencyError("transformers", "text", "a transformer encoder") from error
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers
