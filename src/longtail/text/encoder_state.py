"""``EncoderState``: a trained encoder as plain data, and back to something that encodes.

The weights are a safetensors file, held as bytes: never a pickle. Beside them are the kind of the
encoder (a name from the table below, never a class path), its configuration as JSON values and, for
answers without torch, the same encoder as an ONNX file.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from longtail import persist
from longtail.exceptions import MissingDependencyError, ModelFormatError

__all__ = ["KINDS", "EncoderState"]

# The key that names another file in an ONNX file, as a field of protobuf: ONNX Runtime would read
# any file below the working directory. Its tag and its length may be written in more bytes.
_ELSEWHERE = re.compile(rb"(\x0a|\x8a\x80*\x00)(\x08|\x88\x80*\x00)location")
KINDS = ("transformer", "average", "convolution")


@dataclass(frozen=True)
class EncoderState:
    """``kind`` and ``config`` describe the encoder, ``weights`` (uint8) is a safetensors file,
    ``width`` the size of its vectors, ``onnx`` (uint8) an ONNX file or None.
    """

    kind: str
    config: dict[str, Any]
    width: int
    weights: np.ndarray
    onnx: np.ndarray | None = None

    @classmethod
    def of(cls, module: Any) -> EncoderState:
        """Return the state of an encoder of ``longtail.deep.encoders``."""
        from safetensors.torch import save

        tensors = {n: t.detach().cpu().contiguous() for n, t in module.state_dict().items()}
        tensors = {n: t.float() if t.is_floating_point() else t for n, t in tensors.items()}
        raw = np.frombuffer(save(tensors), np.uint8)
        return cls(module.kind, module.config(), module.width, raw)

    def module(self) -> Any:
        """Return the encoder as a torch module, on the CPU and ready to encode."""
        try:
            import torch  # noqa: F401
            from safetensors.torch import load
        except ModuleNotFoundError as error:
            if error.name not in ("torch", "safetensors"):
                raise
            raise MissingDependencyError(
                str(error.name), "text", "encoding texts (or save the model with its ONNX file)"
            ) from error
        from longtail.deep.encoders.average import Average
        from longtail.deep.encoders.convolution import Convolution
        from longtail.deep.encoders.transformer import Transformer

        table: dict[str, Any] = {
            "transformer": Transformer,
            "average": Average,
            "convolution": Convolution,
        }
        try:
            tensors = load(self.weights.tobytes())
        except Exception as error:  # safetensors has an error of its own
            raise ModelFormatError(f"the encoder's weights cannot be read: {error}") from None
        try:
            module = table[self.kind].from_config(self.config, tensors)
        except ModelFormatError:
            raise
        except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise ModelFormatError(f"the encoder cannot be built: {error}") from None
        if module.width != self.width:
            raise ModelFormatError(
                f"the encoder makes vectors of {module.width} numbers, the model says {self.width}"
            )
        return module.eval()

    def check_onnx(self) -> None:
        """Raise ModelFormatError if the ONNX file asks for weights in another file."""
        if self.onnx is not None and _ELSEWHERE.search(np.ascontiguousarray(self.onnx).data):
            raise ModelFormatError("the ONNX file of the encoder asks for weights in another file")

    def with_onnx(self, onnx: np.ndarray | None) -> EncoderState:
        return replace(self, onnx=onnx)

    def put(self, state: persist.State) -> None:
        """Store the encoder in the state of a model."""
        config = copy.deepcopy(self.config)  # the state is the caller's, the encoder is not
        state.meta["encoder"] = {"kind": self.kind, "config": config, "width": self.width}
        state.arrays["encoder"] = self.weights
        if self.onnx is not None:
            state.arrays["encoder_onnx"] = self.onnx

    @classmethod
    def take(cls, state: persist.State) -> EncoderState:
        """Return what ``put`` stored; refuses what is no encoder."""
        about = state.meta.get("encoder")
        if not isinstance(about, dict) or not isinstance(about.get("config"), dict):
            raise ModelFormatError("the model does not describe its encoder")
        kind, width = about.get("kind"), about.get("width")
        if kind not in KINDS:
            raise ModelFormatError(f"there is no encoder of the kind {kind!r}")
        if type(width) is not int or not 0 < width < 1 << 20:
            raise ModelFormatError(f"vectors of an encoder cannot have {width!r} numbers")
        weights = state.array("encoder", np.uint8, (None,))
        onnx = None
        if "encoder_onnx" in state.arrays:
            onnx = state.array("encoder_onnx", np.uint8, (None,))
        return cls(kind, about["config"], width, weights, onnx)
