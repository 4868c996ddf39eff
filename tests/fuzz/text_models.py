"""Models that read texts, to damage: they hold files of other formats (safetensors, ONNX, the JSON
of a tokenizer) as arrays of bytes.

Empty where torch, transformers or ONNX Runtime is not installed.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import shutil
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import longtail as lt

__all__ = ["FILES", "import_text_packages", "text_models"]

FILES = ("encoder", "encoder_onnx", "tokenizer")  # names of arrays that hold a file
_NEEDED = ("torch", "transformers", "tokenizers", "safetensors", "onnx", "onnxruntime")


def text_models(texts: list[str], labels: list[list[str]]) -> dict[str, Callable[[Path], None]]:
    """Return what saves a model of each kind, trained for a moment on these texts."""
    if any(find_spec(name) is None for name in _NEEDED):
        return {}
    tag = functools.partial(_tagger, texts, labels)
    coded: Any = functools.partial(_network, "average", loss="sigmoid")
    return {
        "text-average": lambda path: tag(_network("average", onnx=True)).model_.save(path),
        "text-float8": lambda path: tag(_network("average", output_precision="float8")).model_.save(
            path
        ),
        "text-fan-in": lambda path: tag(
            _network("average", fan_in=4, output_options={"hidden": 8})
        ).model_.save(path),
        "text-convolution": lambda path: tag(_network("convolution")).model_.save(path),
        "text-transformer": lambda path: tag(_network(_pretrained())).model_.save(path),
        "text-transformer-onnx": lambda path: tag(
            _network(_pretrained(), onnx=True, runtime="onnx")
        ).model_.save(path),
        "dual-encoder": lambda path: tag(_network("average", kind=lt.DualEncoder)).model_.save(
            path
        ),
        "unidec": lambda path: tag(_network("average", lt.UniDEC)).model_.save(path),
        "xr-transformer": lambda path: tag(_xr_transformer()).model_.save(path),
        "tagger-text": lambda path: tag(_network("average", onnx=True)).save(path),
        "tagger-text-mach": lambda path: tag(
            lt.MACH(n_buckets=4, n_repetitions=2, estimator=coded())
        ).save(path),
    }


def import_text_packages() -> None:
    """Import what text models need to answer."""
    if all(find_spec(name) is not None for name in _NEEDED):
        lazy = ("safetensors.torch", "transformers.models.bert.modeling_bert")
        for name in (*_NEEDED, *lazy):
            importlib.import_module(name)


def _tagger(texts: list[str], labels: list[list[str]], model: Any) -> lt.Tagger:
    return lt.Tagger(model=model, calibrate=False).fit(texts, labels)


def _network(encoder: Any, kind: Any = lt.TextNetwork, **how: Any) -> Any:
    """One thread: the probes fork, which the threads of torch do not survive."""
    usual = {"device": "cpu", "n_jobs": 1, "onnx": False, "runtime": "auto", "epochs": 1}
    return kind(encoder=encoder, **{**usual, "max_length": 16, **how})


def _xr_transformer() -> lt.XRTransformer:
    shape = {"leaf": 2, "branching": 2, "min_codes": 2, "refined_leaf": 2, "refined_branching": 2}
    usual = {"device": "cpu", "n_jobs": 1, "onnx": False, "max_length": 16, "steps": 2}
    return lt.XRTransformer(encoder="average", vectorizer=lt.Tfidf(min_df=1), **usual, **shape)


@functools.cache
def _pretrained() -> Path:
    sys.path.append(str(Path(__file__).parents[1] / "text"))
    from text_cases import small_encoder

    home = tempfile.mkdtemp(prefix="longtail-fuzz-encoder-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return small_encoder(Path(home))
