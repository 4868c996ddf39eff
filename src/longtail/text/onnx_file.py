"""The ONNX file of an encoder: token ids and a mask in, vectors out."""

from __future__ import annotations

import io
import logging
import tempfile
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from longtail.exceptions import MissingDependencyError
from longtail.text.encoder_state import EncoderState

__all__ = ["exported", "quantized", "with_onnx"]

log = logging.getLogger(__name__)


def with_onnx(state: EncoderState, onnx: bool | str | None) -> EncoderState:
    """Return the state with the ONNX file that the parameter ``onnx`` of a ranker asks for."""
    if onnx not in (None, True, False, "int8"):
        if not isinstance(onnx, str):
            raise TypeError(f"onnx must be True, False, 'int8' or None, got {onnx!r}")
        raise ValueError(f"onnx must be True, False, 'int8' or None, got {onnx!r}")
    if onnx is False:
        return state.with_onnx(None)
    if onnx is None and (state.onnx is not None or not _can_export()):
        return state
    made = state.onnx if state.onnx is not None and onnx != "int8" else exported(state)
    return state.with_onnx(quantized(made) if onnx == "int8" else made)


def _can_export() -> bool:
    return all(find_spec(name) is not None for name in ("torch", "onnx", "onnxruntime"))


def exported(state: EncoderState) -> np.ndarray:
    """Return the encoder as the bytes of an ONNX file (uint8), with inputs ``ids`` (b, t) int64 and
    ``mask`` (b, t) bool, and the output ``vectors`` (b, e) float32.
    """
    for name in ("torch", "onnx"):
        if find_spec(name) is None:
            raise MissingDependencyError(name, "onnx", "writing an ONNX file")
    import torch
    from torch import nn

    class Pooled(nn.Module):
        def __init__(self, encoder: Any) -> None:
            super().__init__()
            self.encoder = encoder

        def forward(self, ids: Any, mask: Any) -> Any:
            return self.encoder.pooled(ids, mask, mask.long())

    module = Pooled(state.module()).eval()
    ids = torch.ones(2, 9, dtype=torch.int64)
    mask = torch.ones(2, 9, dtype=torch.bool)
    mask[1, 6:] = False
    out = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            (ids, mask),
            out,
            input_names=["ids", "mask"],
            output_names=["vectors"],
            dynamic_axes={"ids": {0: "b", 1: "t"}, "mask": {0: "b", 1: "t"}, "vectors": {0: "b"}},
            opset_version=17,
            dynamo=False,
        )
    return np.frombuffer(out.getvalue(), np.uint8)


def quantized(onnx: np.ndarray) -> np.ndarray:
    """Return an ONNX file whose products use weights of eight bits."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
        before.write_bytes(onnx.tobytes())
        quantize_dynamic(before, after, weight_type=QuantType.QInt8)
        return np.frombuffer(after.read_bytes(), np.uint8)
