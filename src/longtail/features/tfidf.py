"""``Tfidf``: raw texts to sparse rows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._csr import csr
from longtail._native import core, n_threads
from longtail.base import Estimator
from longtail.exceptions import ModelFormatError
from longtail.features.characters import character_table
from longtail.features.tfidf_params import TfidfParams, check_texts
from longtail.persist import State
from longtail.persist import load as load_state
from longtail.persist import save as save_state

__all__ = ["Tfidf"]

_COUNTS = ("terms", "term_offsets", "columns", "n_texts", "n_times")


class Tfidf(Estimator):
    """Texts to rows of term weights, in the core and on all cores.

    The value of term t in text d, where n_t of n texts hold t; rows are then divided by their
    norm::

        tf(t, d) * idf(t),   tf = 1 + log(times t occurs in d),   idf = 1 + log((1 + n) / (1 + n_t))

    ``fit_transform`` reads the texts once and returns a CSR float32 matrix (n_texts, n_terms), one
    column per term in the order of the terms' characters. With the same parameters it is the matrix
    of scikit-learn's ``TfidfVectorizer``; the defaults are what serves linear models over many
    labels: sublinear tf, terms of at least two texts, unit rows. Results do not depend on
    ``n_jobs``.

    Parameters
    ----------
    analyzer : str
        ``"word"`` (runs of letters, digits and underscores, in any script), ``"char"``
        (characters), or ``"char_wb"`` (characters of words, each padded by spaces).
    ngram_range : tuple
        Shortest and longest n-gram, in words or characters.
    lowercase : bool
        Apply ``str.lower`` first.
    strip_accents : str or None
        Then ``"unicode"`` (decompose and drop the marks: é to e, ﬁ to fi) or ``"ascii"`` (and drop
        all that is not ASCII); None for neither.
    min_word_length : int
        Leave shorter words out, in characters; for ``analyzer="word"``. The default is that of
        scikit-learn and loses the 2 of "type 2"; 1 keeps all words, and is what a ``Tagger``
        chooses.
    stop_words : collection of str or None
        Words to leave out, spelled as they are after the steps above; None for none.
    min_df, max_df : int or float
        Keep terms that occur in at least, at most so many texts (an int) or so large a part of them
        (a float).
    max_features : int or None
        Keep at most so many terms, those that occur most often in all; ties to the term that sorts
        first.
    n_features : int or None
        Hash terms to so many columns instead of keeping a vocabulary (MurmurHash3, as
        ``HashingVectorizer`` with ``alternate_sign=False``); ``min_df`` and ``max_df`` then apply
        to columns. For vocabularies that outgrow memory.
    binary : bool
        Tf is 1 for every term that occurs.
    sublinear_tf : bool
        Tf is 1 + log(count), otherwise the count.
    use_idf, smooth_idf : bool
        Weigh by idf; without smoothing it is 1 + log(n / n_t).
    norm : str or None
        ``"l2"``, ``"l1"`` or None.
    n_jobs : int or None
        Threads; None is all cores.

    After ``fit``: ``n_columns_``; ``idf_`` float32, one per term, which is 1 without ``use_idf``;
    ``terms_`` uint8 and ``term_offsets_`` int64, the vocabulary as UTF-8: term i is
    ``terms_[term_offsets_[i]:term_offsets_[i + 1]]``. In hashing mode ``idf_`` belongs to
    ``columns_`` (int32, ascending), 0 for columns left out, and all other columns weigh
    ``other_idf_``, so that memory follows what occurs in the texts and not ``n_features``.

    Refuses anything but ``str`` as a text (decode bytes, replace missing texts by ``""``), one
    string in place of a list, and a fit that leaves no term.

    >>> texts = ["rare labels matter", "labels with few texts", "rare texts, rare labels"]
    >>> v = Tfidf()
    >>> X = v.fit_transform(texts)
    >>> v.get_feature_names_out().tolist()
    ['labels', 'rare', 'texts']
    >>> X.toarray().round(2)
    array([[0.61, 0.79, 0.  ],
           [0.61, 0.  , 0.79],
           [0.37, 0.8 , 0.47]], dtype=float32)
    """

    type_tag = "tfidf"
    _not_copied = ("_transformer",)

    n_columns_: int
    idf_: np.ndarray
    columns_: np.ndarray
    other_idf_: float
    terms_: np.ndarray
    term_offsets_: np.ndarray
    _transformer: Any

    def __init__(
        self,
        *,
        analyzer: str = "word",
        ngram_range: tuple[int, int] = (1, 1),
        lowercase: bool = True,
        strip_accents: str | None = None,
        min_word_length: int = 2,
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
        self.min_word_length = min_word_length
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
        """Learn the vocabulary and idf. ``y`` is ignored; it is there for pipelines.

        Parameters
        ----------
        texts : iterable of str
            Texts.
        y : object, default=None
            Ignored; for scikit-learn.
        """
        self._fit(texts, rows=False)
        return self

    def fit_shards(self, shards: Iterable[Iterable[str]]) -> Tfidf:
        """Learn from shards of texts, one in memory at a time: bit for bit ``fit`` on all of them.

        What a shard's terms count goes to a temporary file (``TMPDIR``); what stays in memory is
        the vocabulary that is kept. ``longtail.features.vectorize_files`` does this for files.

        Parameters
        ----------
        shards : iterable of iterables of str
            Texts, a shard at a time.

        >>> shards = [["rare labels matter", "labels with few texts"], ["rare texts, rare labels"]]
        >>> Tfidf().fit_shards(iter(shards)).get_feature_names_out().tolist()
        ['labels', 'rare', 'texts']
        """
        with tempfile.TemporaryDirectory(prefix="longtail-") as folder:
            paths = []
            for i, texts in enumerate(shards):
                paths.append(os.path.join(folder, str(i)))
                save_state(paths[-1], self.count_terms(texts))
            return self.fit_counts([load_state(path) for path in paths])

    def count_terms(self, texts: Iterable[str]) -> State:
        """Return what these texts count, for ``fit_counts``; nothing is learned.

        The state has every term in order, in how many texts it occurs and, where ``max_features``
        asks for it, how often. Other shards may be counted on other machines.

        Parameters
        ----------
        texts : iterable of str
            Texts.
        """
        params = self._checked()
        listed = check_texts(texts)
        arrays = core.tfidf_count(
            _analyzer(params),
            listed,
            n_features=params.n_features or 0,
            times=params.max_features is not None and not params.binary,
            n_threads=n_threads(self.n_jobs),
        )
        return State("term-counts", {}, dict(zip(_COUNTS, arrays, strict=True)), {"n": len(listed)})

    def fit_counts(self, counts: Sequence[State]) -> Tfidf:
        """Learn the vocabulary and idf from what ``count_terms`` returned for shards of texts.

        Mapped states (``longtail.persist.load``) are read page by page. The order of shards does
        not matter.

        Parameters
        ----------
        counts : sequence of State
            What ``count_terms`` returned, in the order of the texts.
        """
        params = self._checked()
        n_texts = sum(state.count("n") for state in counts)
        if not n_texts:
            raise ValueError("there are no texts: nothing to learn from")
        min_texts, max_texts = params.limits(n_texts)
        self._keep(
            params,
            *core.tfidf_merge(
                [tuple(state.arrays[name] for name in _COUNTS) for state in counts],
                n_texts,
                min_texts=min_texts,
                max_texts=max_texts,
                max_terms=-1 if params.max_features is None else params.max_features,
                n_features=params.n_features or 0,
                binary=params.binary,
                idf=params.use_idf,
                smooth=params.smooth_idf,
            ),
        )
        return self

    def fit_transform(self, texts: Iterable[str], y: Any = None) -> sp.csr_matrix:
        """Learn the terms and return the rows of the texts, in one reading of them.

        Parameters
        ----------
        texts : iterable of str
            Texts.
        y : object, default=None
            Ignored; for scikit-learn.
        """
        return self._csr(self._fit(texts, rows=True))

    def transform(self, texts: Iterable[str]) -> sp.csr_matrix:
        """Return the rows of ``texts``; terms that are not in the vocabulary are dropped.

        Parameters
        ----------
        texts : iterable of str
            Texts.
        """
        native = self._native()
        return self._csr(native.transform(check_texts(texts), n_threads(self.n_jobs)))

    def transform_one(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """Return columns (int32, ascending) and values (float32) of one text.

        For servers: it takes microseconds, where the matrix around a row takes longer to build than
        its text to read.

        Parameters
        ----------
        text : str
            One text.

        >>> v = Tfidf(min_df=1).fit(["one text", "another text"])
        >>> v.transform_one("text upon text")
        (array([2], dtype=int32), array([1.], dtype=float32))
        """
        native = self._native()
        _check_text(text)
        columns, values = native.transform_one(text)
        return columns, values

    def analyze(self, text: str) -> list[str]:
        """Return the n-grams of a text, in order and with repetitions, in the vocabulary or not.

        Parameters
        ----------
        text : str
            One text.

        >>> Tfidf(ngram_range=(1, 2)).analyze("It's a Straße")
        ['it', 'straße', 'it straße']
        >>> Tfidf(min_word_length=1).analyze("Vitamin C")
        ['vitamin', 'c']
        """
        _check_text(text)
        return list(_analyzer(self._checked()).ngrams(text))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the term of each column, an object array of str. ``input_features`` is ignored.

        Parameters
        ----------
        input_features : object, default=None
            Ignored; for scikit-learn.
        """
        self._check_fitted()
        if self.n_features is not None:
            raise ValueError("hashed columns have no names: with n_features no vocabulary is kept")
        raw, bounds = self.terms_.tobytes(), self.term_offsets_.tolist()
        out = np.empty(len(bounds) - 1, dtype=object)
        out[:] = [raw[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(bounds)]
        return out

    @property
    def vocabulary_(self) -> dict[str, int]:
        """Column of each term; made anew at every access."""
        return {term: i for i, term in enumerate(self.get_feature_names_out())}

    def _fit(self, texts: Iterable[str], rows: bool) -> Any:
        params = self._checked()
        listed = check_texts(texts)
        if not listed:
            raise ValueError("there are no texts: nothing to learn from")
        min_texts, max_texts = params.limits(len(listed))
        *learned, out = core.tfidf_fit(
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
        self._keep(params, *learned)
        return out

    def _keep(
        self,
        params: TfidfParams,
        terms: np.ndarray,
        offsets: np.ndarray,
        columns: np.ndarray,
        idf: np.ndarray,
        other_idf: float,
        n_seen: int,
    ) -> None:
        """Keep what the core has learned, unless that is nothing."""
        if n_seen == 0:
            raise ValueError(
                "the texts hold no terms: they are empty, or hold nothing but punctuation, stop "
                "words and words shorter than min_word_length"
            )
        if not idf.any() and not other_idf:
            raise ValueError(
                f"of {n_seen} terms none is left: lower min_df (now {self.min_df}) "
                f"or raise max_df (now {self.max_df})"
            )
        self.terms_, self.term_offsets_, self.idf_ = terms, offsets, idf
        self.columns_, self.other_idf_ = columns, other_idf
        self.n_columns_ = params.n_features or len(idf)

    def _checked(self) -> TfidfParams:
        return TfidfParams.check(self.get_params(deep=False))

    def _native(self) -> Any:
        """Return what finds the terms, built on first use from the arrays that are saved."""
        try:
            return self._transformer
        except AttributeError:
            self._check_fitted()
        params = self._checked()
        self._transformer = core.TfidfTransformer(
            _analyzer(params),
            self.terms_,
            self.term_offsets_,
            self.columns_,
            self.idf_,
            self.other_idf_,
            n_features=params.n_features or 0,
            binary=params.binary,
            sublinear=params.sublinear_tf,
            norm=params.norm or "",
        )
        return self._transformer

    def _csr(self, arrays: Any) -> sp.csr_matrix:
        indptr, indices, values = arrays
        return csr(indptr, indices, values, self.n_columns_)

    def _get_state(self) -> State:
        params = {**self._checked().as_json(), "n_jobs": self.n_jobs}
        arrays = {"idf": self.idf_}
        if self.n_features is None:
            arrays |= {"terms": self.terms_, "term_offsets": self.term_offsets_}
            return State(self.type_tag, params, arrays)
        arrays["columns"] = self.columns_
        return State(self.type_tag, params, arrays, {"other_idf": self.other_idf_})

    def _set_state(self, state: State) -> None:
        self.ngram_range = self._checked().ngram_range  # a list, in JSON
        if self.n_features is None:
            terms = state.array("terms", np.uint8, (None,))
            offsets = state.array("term_offsets", np.int64, (None,))
            n_columns = len(offsets) - 1
            if n_columns < 1 or offsets[0] != 0 or (offsets[1:] < offsets[:-1]).any():
                raise ModelFormatError("term_offsets must ascend from 0")
            if offsets[-1] != len(terms):
                raise ModelFormatError(f"term_offsets end at {offsets[-1]}, terms at {len(terms)}")
            columns, other_idf = np.empty(0, np.int32), 0.0
            idf = state.array("idf", np.float32, (n_columns,))
        else:
            terms, offsets = np.empty(0, np.uint8), np.zeros(1, np.int64)
            n_columns = self.n_features
            columns, idf, other_idf = _hashed_idf(state, n_columns)
        if not (np.isfinite(idf).all() and (idf >= 0).all()):
            raise ModelFormatError("idf holds values that are negative or not finite")
        self.terms_, self.term_offsets_, self.idf_ = terms, offsets, idf
        self.columns_, self.other_idf_, self.n_columns_ = columns, other_idf, n_columns

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "_transformer":  # made from parameters and arrays: when one changes, it goes
            vars(self).pop("_transformer", None)
        super().__setattr__(name, value)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(two_d_array=False, string=True),
        )


def _hashed_idf(state: State, n_columns: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Columns, their idf and that of all other columns; older models have an idf per column."""
    if "columns" not in state.arrays:
        idf = state.array("idf", np.float32, (n_columns,))
        columns = np.flatnonzero(idf).astype(np.int32)
        return columns, idf[columns], 0.0
    columns = state.array("columns", np.int32, (None,))
    if len(columns) and (
        columns[0] < 0 or columns[-1] >= n_columns or (np.diff(columns) < 1).any()
    ):
        raise ModelFormatError(f"columns must ascend within [0, {n_columns})")
    other = state.meta.get("other_idf")
    if not isinstance(other, float) or not 0 <= other < np.inf:
        raise ModelFormatError(f"other_idf must be a number that is not negative, got {other!r}")
    return columns, state.array("idf", np.float32, (len(columns),)), other


def _analyzer(params: TfidfParams) -> Any:
    return core.TextAnalyzer(
        params.analyzer,
        *params.ngram_range,
        params.lowercase,
        params.min_word_length,
        *character_table(params.lowercase, params.strip_accents),
        *params.stop_arrays(),
    )


def _check_text(text: Any) -> None:
    if not isinstance(text, str):
        raise TypeError(f"text must be str, got {type(text).__name__}")
