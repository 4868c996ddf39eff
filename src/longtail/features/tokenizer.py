"""``Tokenizer``: texts to ``Tokens``, by a tokenizer of the ``tokenizers`` library.

A tokenizer is its JSON text, the ``tokenizer.json`` that comes with a pretrained encoder; models
keep it inside their directory.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longtail._validation import as_k
from longtail.data.tokens import Tokens
from longtail.exceptions import MissingDependencyError, ModelFormatError

__all__ = ["Tokenizer", "as_texts"]

_BLOCK = 4096  # texts that are encoded together: Ctrl-C is seen between blocks
_LARGEST = 1 << 28  # characters of a tokenizer's JSON
_SPECIAL = ["[PAD]", "[UNK]"]


def as_texts(texts: Any, name: str = "X") -> list[str]:
    """Return a list of strings from a list, array or series of them.

    Raise TypeError for a single string, for bytes, and for what is not text.
    """
    if isinstance(texts, (str, bytes)):
        raise TypeError(f"{name} is a single text: pass a list, [{name}]")
    if hasattr(texts, "tolist"):
        texts = texts.tolist()
    try:
        out = list(texts)
    except TypeError:
        raise TypeError(
            f"{name} must be a list of texts, got {type(texts).__name__}: this model reads texts"
        ) from None
    for i, text in enumerate(out):
        if not isinstance(text, str):
            raise TypeError(
                f"{name}[{i}] must be a text, got {type(text).__name__}: this model reads texts"
            )
    return out


class Tokenizer:
    """Texts to token ids.

    ``json``: the text of a ``tokenizer.json``. ``size``: how many ids there are. ``max_length``, if
    given, is the longest text, special tokens included; the rest is cut off and counted.

    >>> tokenizer = Tokenizer.trained(["a red fox", "a fox"], least=1)
    >>> tokenizer.encode(["red fox", ""]).lengths
    array([2, 0])
    """

    def __init__(self, text: str) -> None:
        library = _library()
        if not isinstance(text, str) or len(text) > _LARGEST:
            raise ModelFormatError("the tokenizer is no JSON text of a reasonable size")
        with _faults_told("cannot be read"):
            self._tokenizer = library.Tokenizer.from_str(text)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self.json = text

    @classmethod
    def from_folder(cls, folder: str | os.PathLike[str]) -> Tokenizer:
        """Return the tokenizer of a pretrained encoder, from its ``tokenizer.json``."""
        path = Path(folder) / "tokenizer.json"
        if not path.is_file():
            raise FileNotFoundError(
                f"{folder} has no tokenizer.json: save one there with "
                "transformers.AutoTokenizer.from_pretrained(…).save_pretrained(folder)"
            )
        return cls(path.read_text(encoding="utf-8"))

    @classmethod
    def trained(cls, texts: Sequence[str], *, size: int = 100_000, least: int = 2) -> Tokenizer:
        """Return a tokenizer of words and punctuation, in lower case, learned from texts: at most
        ``size`` words that occur at least ``least`` times; all others share one id.
        """
        library = _library()
        from tokenizers import models, normalizers, pre_tokenizers, trainers

        tokenizer = library.Tokenizer(models.WordLevel(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.Sequence(
            [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
        )
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        trainer = trainers.WordLevelTrainer(
            vocab_size=as_k(size, "size"),
            min_frequency=as_k(least, "least"),
            special_tokens=_SPECIAL,
            show_progress=False,
        )
        tokenizer.train_from_iterator(map(_encodable, texts), trainer)
        return cls(_sorted_vocabulary(tokenizer.to_str()))

    @property
    def size(self) -> int:
        """How many ids there are."""
        return int(self._tokenizer.get_vocab_size())

    def encode(self, texts: Sequence[str], max_length: int | None = None) -> Tokens:
        """Return the token ids of texts."""
        if max_length is None:
            self._tokenizer.no_truncation()
        else:
            self._tokenizer.enable_truncation(as_k(max_length, "max_length"))
        lengths, ids, truncated = [np.zeros(1, np.int64)], [np.zeros(0, np.int32)], 0
        for begin in range(0, len(texts), _BLOCK):
            block = [_encodable(text) for text in texts[begin : begin + _BLOCK]]
            with _faults_told("does not work"):
                found = self._tokenizer.encode_batch_fast(block)
            lengths.append(np.array([len(one) for one in found], np.int64))
            ids += [np.asarray(one.ids, np.int32) for one in found]
            truncated += sum(bool(one.overflowing) for one in found)
        offsets = np.cumsum(np.concatenate(lengths))
        return Tokens(offsets, np.concatenate(ids), truncated, source=self)

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[str]]:
        return Tokenizer, (self.json,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokenizer) and other.json == self.json

    def __hash__(self) -> int:
        return hash(self.json)


@contextlib.contextmanager
def _faults_told(what: str) -> Iterator[None]:
    """Raise ModelFormatError for what the library raises over a damaged tokenizer: plain
    ``Exception``, or a panic, which is none and would end threads and tasks that catch those.
    """
    try:
        yield
    except BaseException as error:
        if type(error) is not Exception and type(error).__name__ != "PanicException":
            raise
        raise ModelFormatError(f"the tokenizer {what}: {error}") from None


def _encodable(text: str) -> str:
    """Return the text with a question mark for each lone surrogate, which is not in UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _sorted_vocabulary(text: str) -> str:
    """Return the JSON of a word tokenizer with ids by falling count, then by word: the library
    leaves the order of equal counts to chance.
    """
    # The trainer sorts by count; only the order within equal counts, which it does not tell, is
    # open. Words are therefore numbered by themselves, after the special tokens.
    document = json.loads(text)
    vocabulary = document["model"]["vocab"]
    words = sorted(word for word in vocabulary if word not in _SPECIAL)
    document["model"]["vocab"] = {word: i for i, word in enumerate([*_SPECIAL, *words])}
    return json.dumps(document, ensure_ascii=False, sort_keys=True)


def _library() -> Any:
    try:
        import tokenizers
    except ModuleNotFoundError as error:
        if error.name != "tokenizers":
            raise
        raise MissingDependencyError("tokenizers", "text", "reading texts as tokens") from error
    return tokenizers
