"""``TextRanker``: the door, the vectors and the files of rankers that read texts."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from longtail import persist
from longtail._native import n_threads
from longtail._validation import as_k
from longtail.calibrate.ranker import ProbabilityRanker
from longtail.data.paired_rows import PairedRows
from longtail.data.tokens import Tokens
from longtail.exceptions import ModelFormatError
from longtail.features.tokenizer import Tokenizer, as_texts
from longtail.text.encoded import EncodedTokens
from longtail.text.encoder_state import EncoderState
from longtail.text.encoding import Encoding, encoding_of
from longtail.text.onnx_file import with_onnx
from longtail.text.pretrained import fetched

__all__ = ["FRUGAL", "TextRanker"]

log = logging.getLogger(__name__)

FRUGAL = ("average", "convolution")  # encoders that begin from nothing


class TextRanker(ProbabilityRanker):
    """A ranker that takes texts, or ``Tokens`` that its own tokenizer made.

    After ``fit``: ``tokenizer_``, ``encoder_`` (an ``EncoderState``), ``n_truncated_`` (training
    texts longer than ``max_length``).
    """

    reads_texts: ClassVar[bool] = True
    _not_copied: ClassVar[tuple[str, ...]] = ("_encoding", "_exported", "_packed")

    tokenizer_: Tokenizer
    encoder_: EncoderState
    n_truncated_: int

    # Parameters every subclass stores.
    encoder: Any
    pooling: str
    frozen_layers: int
    gradient_checkpointing: bool
    max_length: int | None
    device: str
    runtime: str
    onnx: bool | str | None
    n_jobs: int | None

    def _rows(self, X: Any, *, fitted: bool = True) -> Tokens:
        if isinstance(X, PairedRows):
            X = X.tokens
        if not isinstance(X, Tokens):
            texts = as_texts(X)
            tokenizer = self.tokenizer_ if fitted else self._first_tokenizer(texts)
            return tokenizer.encode(texts, self._longest())
        if fitted or X.source is not None:
            size = self.tokenizer_.size if fitted else X.source.size
            if len(X.ids) and X.ids.max() >= size:
                raise ValueError(
                    f"X holds the token id {X.ids.max()}, but the tokenizer has {size}: make "
                    "tokens with the tokenizer of the model (tokenize)"
                )
        return X.cut(self._longest())

    def tokenize(self, texts: Any) -> Tokens:
        """Return texts as tokens, to be passed in their place when the same texts are asked about
        several times.

        Parameters
        ----------
        texts : list of str
            Texts.
        """
        self._check_fitted()
        return self._rows(as_texts(texts))

    def _setting(self, name: str) -> Any:
        """Return a parameter; a subclass says what None stands for."""
        return getattr(self, name)

    def _longest(self) -> int:
        return as_k(self._setting("max_length"), "max_length")

    def _first_tokenizer(self, texts: list[str]) -> Tokenizer:
        """Return the tokenizer to train with: the encoder's, or one of the words of the texts."""
        if self.encoder in FRUGAL:
            return Tokenizer.trained(texts)
        return Tokenizer.from_folder(fetched(self.encoder))

    def _set_sizes(self, X: Any, Y: Any) -> None:
        self.n_features_in_, self.n_labels_ = self.tokenizer_.size, int(Y.shape[1])

    def _take_encoder(self, module: Any, tokenizer: Tokenizer, tokens: Tokens) -> None:
        """Keep a trained encoder, as data and ready to encode."""
        self.tokenizer_, self.encoder_ = tokenizer, EncoderState.of(module)
        self.n_truncated_ = tokens.n_truncated
        for made in ("_encoding", "_exported"):
            self.__dict__.pop(made, None)
        if tokens.n_truncated:
            log.info(
                "%d of %d texts were longer than %d tokens and were cut",
                tokens.n_truncated,
                len(tokens),
                self._longest(),
            )

    def embed(self, X: Any) -> np.ndarray:
        """Return the vectors of texts, (n, e) float32: an ordinary dense X for other models.

        Parameters
        ----------
        X : list of str, or Tokens
            Texts.
        """
        self._check_fitted()
        return self._vectors(self._rows(X))

    def _vectors(self, tokens: Tokens) -> np.ndarray:
        if isinstance(tokens, EncodedTokens):
            return tokens.by(self.encoder_, self._encode)
        return self._encode(tokens)

    def _encode(self, tokens: Tokens) -> np.ndarray:
        # More threads than processors only wait for each other, and a session starts all of them.
        threads = min(n_threads(self.n_jobs), os.cpu_count() or 1)
        key = (self.runtime, self.device, threads)
        made_for, encoding = self.__dict__.get("_encoding", (None, None))
        if encoding is None or made_for != key:
            encoding = encoding_of(self.encoder_, *key)
            self.__dict__["_encoding"] = key, encoding
        made: Encoding = encoding
        return made(tokens)

    def save_encoder(self, folder: str | os.PathLike[str]) -> None:
        """Write the trained encoder to a new folder as ``config.json``, ``model.safetensors`` and
        ``tokenizer.json``, as ``transformers`` and ``encoder=`` of these rankers read it.

        Parameters
        ----------
        folder : str or path
            Where it goes.
        """
        self._check_fitted()
        if self.encoder_.kind != "transformer":
            raise TypeError(f"an encoder of the kind {self.encoder_.kind!r} has no such folder")
        from safetensors.numpy import load, save

        from longtail.deep.encoders.transformer_config import safe_settings
        from longtail.deep.encoders.transformer_files import plain_names

        path = Path(folder)
        path.mkdir(parents=True)
        settings = safe_settings(self.encoder_.config["model"])
        (path / "config.json").write_text(json.dumps(settings, indent=2), encoding="utf-8")
        tensors = plain_names(load(self.encoder_.weights.tobytes()))
        raw = save(tensors, metadata={"format": "pt"})
        (path / "model.safetensors").write_bytes(raw)
        (path / "tokenizer.json").write_text(self.tokenizer_.json, encoding="utf-8")

    def _saved_encoder(self) -> EncoderState:
        """Return the encoder with its ONNX file, as ``onnx`` asks for one; written once."""
        made_for, saved = self.__dict__.get("_exported", (None, None))
        if saved is None or made_for != self.onnx:
            saved = with_onnx(self.encoder_, self.onnx)
            self.__dict__["_exported"] = self.onnx, saved
        return saved  # type: ignore[no-any-return]

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        if not isinstance(self.encoder, (str, os.PathLike)):
            raise TypeError(f"parameter encoder cannot be saved: {self.encoder!r}")
        state.params["encoder"] = os.fspath(self.encoder)
        self._saved_encoder().put(state)
        raw = self.tokenizer_.json.encode("utf-8", "surrogatepass")
        state.arrays["tokenizer"] = np.frombuffer(raw, np.uint8)
        state.meta["n_truncated"] = self.n_truncated_
        return state

    def _set_state(self, state: persist.State) -> None:
        super()._set_state(state)
        raw = state.array("tokenizer", np.uint8, (None,)).tobytes()
        try:
            self.tokenizer_ = Tokenizer(raw.decode("utf-8", "surrogatepass"))
        except UnicodeDecodeError as error:
            raise ModelFormatError(f"the tokenizer cannot be read: {error}") from None
        self.encoder_ = EncoderState.take(state)
        self.n_truncated_ = state.count("n_truncated")
