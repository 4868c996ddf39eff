"""What ``Tfidf`` accepts: parameters and texts, checked at the door."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from longtail._validation import as_k

__all__ = ["TfidfParams", "check_texts"]


@dataclass(frozen=True)
class TfidfParams:
    """The parameters of ``Tfidf`` (see there), checked, as plain Python values."""

    analyzer: str
    ngram_range: tuple[int, int]
    lowercase: bool
    strip_accents: str | None
    min_word_length: int
    stop_words: tuple[str, ...] | None
    min_df: int | float
    max_df: int | float
    max_features: int | None
    n_features: int | None
    binary: bool
    sublinear_tf: bool
    use_idf: bool
    smooth_idf: bool
    norm: str | None

    @classmethod
    def check(cls, params: dict[str, Any]) -> TfidfParams:
        """Refuse what is out of range, of the wrong type, or contradictory."""
        values = {name: params[name] for name in cls.__dataclass_fields__}
        _one_of("analyzer", values["analyzer"], "word", "char", "char_wb")
        _one_of("strip_accents", values["strip_accents"], None, "unicode", "ascii")
        _one_of("norm", values["norm"], None, "l1", "l2")
        for name in ("lowercase", "binary", "sublinear_tf", "use_idf", "smooth_idf"):
            if not isinstance(values[name], (bool, np.bool_)):
                raise TypeError(f"{name} must be True or False, got {values[name]!r}")
            values[name] = bool(values[name])
        for name in ("max_features", "n_features"):
            if values[name] is not None:
                values[name] = as_k(values[name], name)
        if (values["n_features"] or 0) > np.iinfo(np.int32).max:
            raise ValueError(f"n_features must be below 2^31, got {values['n_features']}")
        if values["n_features"] is not None and values["max_features"] is not None:
            raise ValueError(
                "max_features chooses from a vocabulary, and hashing (n_features) keeps none: "
                "give one of the two"
            )
        values["ngram_range"] = _ngram_range(values["ngram_range"])
        # No text is longer than that, so any larger number says the same.
        longest = np.iinfo(np.int32).max
        length = as_k(values["min_word_length"], "min_word_length")
        values["min_word_length"] = min(length, longest)
        values["min_df"] = _df("min_df", values["min_df"])
        values["max_df"] = _df("max_df", values["max_df"])
        values["stop_words"] = _stop_words(values["stop_words"], values["analyzer"])
        return cls(**values)

    def as_json(self) -> dict[str, Any]:
        """Return the same parameters as JSON has them: lists for tuples."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    def limits(self, n_texts: int) -> tuple[float, float]:
        """Return the smallest and largest number of texts that a term may occur in."""
        low, high = (
            float(df if isinstance(df, int) else df * n_texts) for df in (self.min_df, self.max_df)
        )
        if high < low:
            raise ValueError(
                f"min_df={self.min_df} asks for terms of at least {low:g} texts and "
                f"max_df={self.max_df} for terms of at most {high:g} (there are {n_texts} texts): "
                "lower min_df or raise max_df"
            )
        return low, high

    def stop_arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the stop words as UTF-8: bytes, and where each begins and ends."""
        encoded = [word.encode("utf-8", "surrogatepass") for word in self.stop_words or ()]
        offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        return np.frombuffer(b"".join(encoded), np.uint8), offsets


def check_texts(texts: Iterable[str]) -> list[Any]:
    """Return a list of our own; what is in it is checked by the core."""
    if isinstance(texts, (str, bytes)):
        raise TypeError("texts must be a list of str, got a single string: wrap it, as in [text]")
    if isinstance(texts, (Mapping, AbstractSet)):
        raise TypeError(
            f"texts must be a list of str, got a {type(texts).__name__}, which has no order of rows"
        )
    if getattr(texts, "ndim", 1) != 1:
        raise ValueError(
            f"texts must have one dimension, got {texts.ndim}: pass the column that holds the text"  # type: ignore[attr-defined]
        )
    try:
        if hasattr(texts, "to_pylist"):  # pyarrow
            return list(texts.to_pylist())
        return texts.tolist() if isinstance(texts, np.ndarray) else list(texts)
    except TypeError:
        raise TypeError(f"texts must be a list of str, got {type(texts).__name__}") from None


def _one_of(name: str, value: Any, *choices: str | None) -> None:
    if not (value is None or isinstance(value, str)) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def _ngram_range(value: Any) -> tuple[int, int]:
    try:
        low, high = value
    except (TypeError, ValueError):
        raise ValueError(f"ngram_range must be two numbers, as in (1, 2), got {value!r}") from None
    low, high = as_k(low, "ngram_range[0]"), as_k(high, "ngram_range[1]")
    if low > high:
        raise ValueError(f"ngram_range must ascend, got {value!r}")
    return low, min(high, 2**31)


def _df(name: str, value: Any) -> int | float:
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        if value < 1:
            raise ValueError(f"{name} as a number of texts must be at least 1, got {value}")
        return int(value)
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        part = float(value)
        if not 0 <= part <= 1:
            raise ValueError(
                f"{name} as a part of the texts must lie in [0, 1], got {part}: "
                "a number of texts is given as an int"
            )
        return part
    raise TypeError(f"{name} must be an int (texts) or a float (part of them), got {value!r}")


def _stop_words(value: Any, analyzer: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, (str, bytes)):
        raise TypeError(
            f"stop_words must be a list of words, got {value!r}: there is no built-in list "
            "(sklearn.feature_extraction.text.ENGLISH_STOP_WORDS is one)"
        )
    words = list(value)
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"stop_words must hold str, got {word!r}")
    if analyzer != "word":
        raise ValueError(f"stop_words are words, and analyzer is {analyzer!r}: leave them out")
    return tuple(sorted({str(word) for word in words}))
