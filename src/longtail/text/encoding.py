"""From ``Tokens`` to vectors, with torch or with ONNX Runtime.

Texts are encoded longest first, so many tokens at a time, and come back in their own order.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from longtail.data.tokens import Tokens
from longtail.exceptions import MissingDependencyError, ModelFormatError
from longtail.text.encoder_state import EncoderState

__all__ = ["RUNTIMES", "Encoding", "OnnxEncoding", "TorchEncoding", "encoding_of"]

RUNTIMES = ("auto", "torch", "onnx")
_CPU_TOKENS = 1 << 11  # padded tokens encoded at a time
_GPU_TOKENS = 1 << 17


class Encoding(Protocol):
    """Something that encodes."""

    def __call__(self, tokens: Tokens) -> np.ndarray:
        """Return vectors (n, e) float32."""


def encoding_of(state: EncoderState, runtime: str, device: str, n_threads: int) -> Encoding:
    """Return what encodes with this runtime; "auto" is ONNX Runtime on a CPU where the model has
    such a file and the package is there, else torch.
    """
    if runtime not in RUNTIMES:
        raise ValueError(f"runtime must be one of {', '.join(RUNTIMES)}, got {runtime!r}")
    has_onnx = state.onnx is not None and find_spec("onnxruntime") is not None
    if runtime == "onnx" or (
        runtime == "auto"
        and has_onnx
        and (device in ("auto", "cpu") or not find_spec("torch"))
        and not _has_gpu(device)
    ):
        return OnnxEncoding(state, n_threads)
    return TorchEncoding(state.module(), device, n_threads)


def _has_gpu(device: str) -> bool:
    if device != "auto" or not find_spec("torch"):
        return False
    from longtail.deep.training.plan import resolved_device

    return resolved_device("auto") != "cpu"


def blocks(tokens: Any, most: int) -> Iterator[np.ndarray]:
    """Yield numbers of texts to encode together: at most ``most`` padded tokens, or one text.

    ``tokens``: anything with their ``lengths``.
    """
    lengths = np.maximum(tokens.lengths, 1)
    order = np.argsort(-lengths, kind="stable")
    begin = 0
    while begin < len(order):
        count = max(1, most // int(-(-lengths[order[begin]] // 8) * 8))
        yield order[begin : begin + count]
        begin += count


class TorchEncoding:
    """An encoder of ``longtail.deep.encoders`` on a device.

    On a CPU each block of texts is one thread's work: the bits of a vector do not depend on the
    number of threads, and a forked process finds no pool of torch's whose threads are gone.
    """

    def __init__(self, module: Any, device: str, n_threads: int) -> None:
        import torch

        from longtail.deep.training.plan import resolved_device
        from longtail.deep.training.trainer import require_device

        name = resolved_device(device)
        require_device(name)
        self.device = torch.device(name)
        self.n_threads = n_threads if name == "cpu" else 1
        self.module = module.to(self.device).eval()

    def __call__(self, tokens: Tokens) -> np.ndarray:
        import torch

        from longtail.deep.batches.token_rows import TokenRows
        from longtail.deep.workers import single_threads

        out = np.empty((len(tokens), self.module.width), np.float32)
        rows = TokenRows(tokens, self.device)

        def encode(numbers: np.ndarray) -> None:
            low = self.device.type == "cuda" and not self.module.sparse_gradients
            with (
                torch.inference_mode(),
                torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=low),
            ):
                batch = rows.take(torch.tensor(numbers).to(self.device))
                out[numbers] = self.module(batch).float().cpu().numpy()

        if self.device.type == "cpu":
            with single_threads(self.n_threads) as pool:
                for _ in pool.map(encode, blocks(tokens, _CPU_TOKENS)):
                    pass
        else:
            for numbers in blocks(tokens, _GPU_TOKENS):
                encode(numbers)
        return out


class OnnxEncoding:
    """The ONNX file of an encoder, on ONNX Runtime: no torch."""

    def __init__(self, state: EncoderState, n_threads: int) -> None:
        if state.onnx is None:
            raise ValueError(
                "this model was saved without an ONNX file: save it again where torch and the "
                "extra 'onnx' are installed, with onnx=True"
            )
        state.check_onnx()
        try:
            import onnxruntime
        except ModuleNotFoundError as error:
            if error.name != "onnxruntime":
                raise
            raise MissingDependencyError(
                "onnxruntime", "onnx", "answering without torch"
            ) from error
        self.runtime, self.file, self.n_threads = onnxruntime, state.onnx, max(1, n_threads)
        self.width = state.width
        self._open()

    def _open(self) -> None:
        options = self.runtime.SessionOptions()
        options.intra_op_num_threads = self.n_threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self.session = self.runtime.InferenceSession(
                self.file.tobytes(), options, providers=["CPUExecutionProvider"]
            )
            inputs = {each.name for each in self.session.get_inputs()}
        except Exception as error:  # the runtime has errors of its own
            raise ModelFormatError(
                f"the ONNX file of the encoder cannot be read: {error}"
            ) from None
        if inputs != {"ids", "mask"} or len(self.session.get_outputs()) != 1:
            raise ModelFormatError(f"the ONNX file of the encoder takes {sorted(inputs)}")
        self.process = os.getpid()

    def __call__(self, tokens: Tokens) -> np.ndarray:
        if self.process != os.getpid():  # a session's threads do not live on in a forked process
            self._open()
        out = np.empty((len(tokens), self.width), np.float32)
        lengths = tokens.lengths
        for numbers in blocks(tokens, _CPU_TOKENS):
            longest = max(1, int(lengths[numbers].max()))
            place = np.arange(longest)
            mask = place < lengths[numbers][:, None]
            ids = np.zeros(mask.shape, np.int64)
            ids[mask] = tokens[numbers].ids
            try:
                (found,) = self.session.run(None, {"ids": ids, "mask": mask})
            except Exception as error:  # the runtime has errors of its own
                raise ModelFormatError(f"the ONNX file of the encoder fails: {error}") from None
            if found.shape != (len(numbers), self.width):
                raise ModelFormatError(
                    f"the ONNX file of the encoder makes vectors of shape {found.shape}"
                )
            out[numbers] = found
        return out
