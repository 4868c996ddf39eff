"""``Tfidf``: raw texts to sparse rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._native import core, n_threads
from longtail.base import Estimator
from longtail.exceptions import ModelFormatError
from longtail.features.characters import character_table
from longtail.features.tfidf_params import TfidfParams, check_texts
from longtail.persist import State

__all__ = ["Tfidf"]

_DTYPES = {"terms": np.uint8, "term_offsets": np.int64, "idf": np.float32}
_NO_TERMS = {"terms": np.empty(0, np.uint8), "term_offsets": np.zeros(1, np.int64)}


class Tfidf(Estimator):
    """Texts to rows of term weights, in the core and on all cores.

    The value of term t in text d, for n texts of which n_t hold t (and each row then divided by its norm)::

        tf(t, d) * idf(t)        tf = 1 + log(times t occurs in d)      idf = 1 + log((1 + n) / (1 + n_t))

    ``fit_transform`` reads the texts once and returns a CSR float32 matrix (n_texts, n_terms) with one column per term, in
    the order of the terms' characters. With the same parameters it is the matrix of scikit-learn's ``TfidfVectorizer``;
    the defaults are those that serve linear models over many labels: sublinear tf, terms of at least two texts, unit rows.
    The result does not depend on ``n_jobs``.

    Parameters
    ----------
    analyzer : ``"word"`` (runs of two or more letters, digits and underscores, in any script), ``"char"`` (characters), or
        ``"char_wb"`` (characters within words padded by a space).
    ngram_range : shortest and longest n-gram, in words or characters.
    lowercase : apply ``str.lower`` first.
    strip_accents : then ``"unicode"`` (decompose and drop the marks: é to e, ﬁ to fi), ``"ascii"`` (and drop all that is
        not ASCII), or None.
    stop_words : words to leave out, as they look after the steps above; None for none.
    min_df, max_df : keep terms that occur in at least, at most so many texts (int) or so large a part of them (float).
    max_features : keep at most so many terms: those that occur most often, ties to the term that sorts first.
    n_features : hash terms to so many columns instead of keeping a vocabulary (MurmurHash3, as scikit-learn's
        ``HashingVectorizer`` with ``alternate_sign=False``). ``min_df`` and ``max_df`` then apply to columns.
    binary : tf is 1 for every term that occurs.
    sublinear_tf : tf is 1 + log(count), otherwise the count.
    use_idf, smooth_idf : weigh by idf; without smoothing it is 1 + log(n / n_t).
    norm : ``"l2"``, ``"l1"`` or None.
    n_jobs : threads; None is all cores.

    After ``fit``: ``idf_`` (n_columns,) float32 (ones without ``use_idf``; in hashing mode 0 marks columns that were left
    out); ``terms_`` uint8 and ``term_offsets_`` int64, the vocabulary as UTF-8: term i is
    ``terms_[term_offsets_[i]:term_offsets_[i + 1]]``.

    Refuses anything but ``str`` as a text (decode bytes first; replace missing texts by ``""``), a single string in place
    of a list, and a fit that leaves no term.

    >>> texts = ["rare labels matter", "labels with few texts", "rare texts, rare labels"]
    >>> v = Tfidf()
    >>> X = v.fit_transform(texts)
    >>> v.get_feature_names_out().tolist()
    ['labels', 'rare', 'texts']
    >>> X.toarray().round(2)
    array([[0.61, 0.79, 0.  ],
           [0.61, 0.  , 0.79],
           [0.38, 0.78, 0.49]], dtype=float32)
    """

    type_tag = "tfidf"

    idf_: np.ndarray
    terms_: np.ndarray
    term_offsets_: np.ndarray

    def __init__(
        self,
        *,
        analyzer: str = "word",
        ngram_range: tuple[int, int] = (1, 1),
        lowercase: bool = True,
        strip_accents: str | None = None,
        stop_words: Collection[str] | None = None,
        min_df: int | float = 2,
        max_df: int | float = 1.0,
        max_features: int | None = None,
        n_features: int | None = None,
        binary: bool = False,
        sublinear_tf: bool = True,
        use_idf: bool = True,
        smooth_idf: bool = True,
        norm: str | None = "l2",
        n_jobs: int | None = None,
    ) -> None:
        self.analyzer = analyzer
        self.ngram_range = ngram_range
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.stop_words = stop_words
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.n_features = n_features
        self.binary = binary
        self.sublinear_tf = sublinear_tf
        self.use_idf = use_idf
        self.smooth_idf = smooth_idf
        self.norm = norm
        self.n_jobs = n_jobs

    def fit(self, texts: Iterable[str], y: Any = None) -> Tfidf:
        """Learns the vocabulary and idf. ``y`` is ignored; it is there for pipelines."""
        self._fit(texts, rows=False)
        return self

    def fit_transform(self, texts: Iterable[str], y: Any = None) -> sp.csr_matrix:
        """``fit(texts)`` and ``transform(texts)`` in one reading of the texts."""
        return self._csr(self._fit(texts, rows=True))

    def transform(self, texts: Iterable[str]) -> sp.csr_matrix:
        """Rows of ``texts``; terms that are not in the vocabulary are dropped."""
        self._check_fitted()
        return self._csr(self._native().transform(check_texts(texts), n_threads(self.n_jobs)))

    def transform_one(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """Columns (int32, ascending) and values (float32) of one text, in microseconds: the row without the matrix.

        >>> v = Tfidf(min_df=1).fit(["one text", "another text"])
        >>> columns, values = v.transform_one("text upon text")
        >>> columns, values
        (array([2], dtype=int32), array([1.], dtype=float32))
        """
        try:
            native = self._transformer
        except AttributeError:
            self._check_fitted()
            native = self._native()
        if not isinstance(text, str):
            raise TypeError(f"text must be str, got {type(text).__name__}")
        columns, values = native.transform_one(text)
        return columns, values

    def analyze(self, text: str) -> list[str]:
        """The n-grams of a text, in order and with repetitions, whether or not they are in the vocabulary.

        >>> Tfidf(ngram_range=(1, 2)).analyze("It's a Straße")
        ['it', 'straße', 'it straße']
        """
        return list(_analyzer(self._checked()).ngrams(text))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Term of each column, an object array of str. ``input_features`` is ignored."""
        self._check_fitted()
        if self.n_features is not None:
            raise ValueError("hashed columns have no names: n_features is set, so no vocabulary is kept")
        bounds = self.term_offsets_.tolist()
        raw = self.terms_.tobytes()
        names = [raw[a:b].decode("utf-8", "surrogatepass") for a, b in zip(bounds, bounds[1:])]
        out = np.empty(len(names), dtype=object)
        out[:] = names
        return out

    @property
    def vocabulary_(self) -> dict[str, int]:
        """Column of each term; built at every access."""
        return {term: i for i, term in enumerate(self.get_feature_names_out())}

    def _fit(self, texts: Iterable[str], rows: bool) -> Any:
        params = self._checked()
        listed = check_texts(texts)
        if not listed:
            raise ValueError("there are no texts: nothing to learn from")
        min_texts, max_texts = params.limits(len(listed))
        terms, offsets, idf, n_seen, out = core.tfidf_fit(
            _analyzer(params),
            listed,
            min_texts=min_texts,
            max_texts=max_texts,
            max_terms=-1 if params.max_features is None else params.max_features,
            n_features=params.n_features or 0,
            binary=params.binary,
            sublinear=params.sublinear_tf,
            norm=params.norm or "",
            idf=params.use_idf,
            smooth=params.smooth_idf,
            rows=rows,
            n_threads=n_threads(self.n_jobs),
        )
        if n_seen == 0:
            raise ValueError(
                "the texts hold no terms: they are empty, or hold only stop words or single characters"
            )
        if not idf.any():
            raise ValueError(
                f"no terms are left of {n_seen}: lower min_df (now {self.min_df}) or raise max_df (now {self.max_df})"
            )
        self.terms_, self.term_offsets_, self.idf_ = terms, offsets, idf
        return out

    def _checked(self) -> TfidfParams:
        return TfidfParams.check(self.get_params(deep=False))

    def _native(self) -> Any:
        """The table that finds terms, built on first use from the arrays that are saved."""
        try:
            return self._transformer
        except AttributeError:
            params = self._checked()
            self._transformer = core.TfidfTransformer(
                _analyzer(params),
                self.terms_,
                self.term_offsets_,
                self.idf_,
                hashing=params.n_features is not None,
                binary=params.binary,
                sublinear=params.sublinear_tf,
                norm=params.norm or "",
            )
            return self._transformer

    def _get_state(self) -> State:
        arrays = {"idf": self.idf_}
        if self.n_features is None:
            arrays |= {"terms": self.terms_, "term_offsets": self.term_offsets_}
        return State(self.type_tag, self._checked().as_json() | {"n_jobs": self.n_jobs}, arrays)

    def _set_state(self, state: State) -> None:
        self.ngram_range = self._checked().ngram_range
        arrays = {**_NO_TERMS, **state.arrays} if self.n_features is not None else state.arrays
        for name in ("terms", "term_offsets", "idf"):
            array = arrays.get(name)
            if array is None or array.ndim != 1 or array.dtype != _DTYPES[name]:
                raise ModelFormatError(
                    f"a saved Tfidf needs the array {name!r}: one dimension, {_DTYPES[name].__name__}"
                )
            setattr(self, f"{name}_", array)
        offsets, n_columns = self.term_offsets_, len(self.idf_)
        if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(self.terms_):
            raise ModelFormatError("term_offsets do not span the terms")
        if (np.diff(offsets) < 0).any():
            raise ModelFormatError("term_offsets do not ascend")
        expected = len(offsets) - 1 if self.n_features is None else self.n_features
        if n_columns != expected or n_columns == 0:
            raise ModelFormatError(f"idf has {n_columns} entries where {expected} are expected")
        if not (np.isfinite(self.idf_).all() and (self.idf_ >= 0).all()):
            raise ModelFormatError("idf holds values that are negative or not finite")

    def _csr(self, arrays: Any) -> sp.csr_matrix:
        indptr, indices, values = arrays
        out = sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, len(self.idf_)))
        out.has_canonical_format = True
        return out

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "_transformer":  # a parameter or an array changes: the table may not fit any more
            vars(self).pop("_transformer", None)
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_transformer"}

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(two_d_array=False, string=True),
        )


def _analyzer(params: TfidfParams) -> Any:
    return core.TextAnalyzer(
        params.analyzer,
        *params.ngram_range,
        params.lowercase,
        *character_table(params.lowercase, params.strip_accents),
        *params.stop_arrays(),
    )
