"""``MACH``: labels hashed into buckets, one classifier of buckets per hash."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import __version__, persist
from longtail._native import n_threads, native_info
from longtail._protocols import has_parameters
from longtail._validation import as_k, as_seed, let_pass
from longtail.answers.label_filter import LabelFilter
from longtail.answers.topk import TopK
from longtail.calibrate.ranker import ProbabilityRanker
from longtail.codes import growing
from longtail.codes.estimators import (
    NETWORKS,
    bucket_estimator,
    from_part,
    prototype_of,
    prototype_state,
    rows_for,
    sizes,
)
from longtail.codes.hash_code import HashCode
from longtail.codes.kept_repetitions import Repetition, fit_kept
from longtail.codes.merging import merged
from longtail.codes.repetitions import hashed, numbers, seeds
from longtail.data.tokens import Tokens
from longtail.deep.network import one_label_each
from longtail.exceptions import ModelFormatError
from longtail.linear.train.checkpoint import Checkpoint, fingerprint
from longtail.text import TextNetwork

__all__ = ["MACH"]


class MACH(ProbabilityRanker):
    """Merged averaged classifiers via hashing (Medini et al. 2019): O(log L) outputs.

    R hashes put the L labels into B buckets each. R independent classifiers learn which buckets
    hold a label of a row, and a label is scored by what they say of its R buckets (``HashCode``
    tells how). Outputs number R B instead of L; nothing passes between repetitions, so they can be
    trained anywhere (``fit(X, Y, repetitions=[0, 1])`` here, the others there, then ``merge``) and
    give the same model. Inside ``joblib.parallel_config`` they run on its workers.

    Where every row has exactly one label, a ``Network`` learns a softmax over the buckets, and
    ``aggregation="unbiased"`` estimates class probabilities; otherwise every bucket is a problem of
    its own.

    Parameters
    ----------
    n_buckets, n_repetitions : int or None
        B and R; None for R = 16 with R B = L / 4, but at least 64 buckets (or as many as labels).
    estimator : str, estimator or None
        "linear" (``OneVsAll``), "network" (``longtail.Network``), or one of these, or a
        ``TextNetwork``, with its parameters; None for the network where torch is installed.
    aggregation : str
        "logits" (sum of raw scores, as the authors' code does: it ranks better), "mean" of
        probabilities (the paper), "min", "median", "unbiased".
    candidates, least_hits : int or None; int
        None decodes exactly; a number of buckets decodes as the paper does.
    hashed_features : int or None
        Width to which features are hashed, anew for each repetition; None for none.
    random_state, n_jobs : int, Generator, RandomState or None; int or None
        The same seed gives the same bits for any number of threads.

    After ``fit``: ``code_`` (the hashes; ``code_.n_ties_`` labels cannot be told from another one),
    ``repetitions_`` (fitted classifiers by number).

    Prefer it to ``DECLARE`` where labels come and go (``add_labels``), where there are millions of
    them, or where the rare ones matter: a hash treats all labels alike.

    >>> import longtail as lt
    >>> model = lt.MACH(n_buckets=2, n_repetitions=3, estimator="linear")
    >>> model = model.fit([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]], [[0], [1], [0]])
    >>> model.predict_topk([[0.9, 0.0]], k=1).indices
    array([[0]], dtype=int32)
    """

    type_tag = "mach"
    _not_copied = ("_active_code",)

    code_: HashCode
    repetitions_: dict[int, Any]
    feature_seeds_: np.ndarray
    feature_width_: int | None
    one_label_: bool

    def __init__(
        self,
        *,
        n_buckets: int | None = None,
        n_repetitions: int | None = None,
        estimator: Any = None,
        aggregation: str = "logits",
        candidates: int | None = None,
        least_hits: int = 2,
        hashed_features: int | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_buckets = n_buckets
        self.n_repetitions = n_repetitions
        self.estimator = estimator
        self.aggregation = aggregation
        self.candidates = candidates
        self.least_hits = least_hits
        self.hashed_features = hashed_features
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        Y: Any,
        *,
        repetitions: Iterable[int] | None = None,
        code: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Any:
        """Learn from features ``X`` (n, d) and labels ``Y`` (n, L).

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows of features.
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        repetitions : iterable of int, default=None
            The numbers of those to train; None for all. A model with some of them answers with
            what it has.
        code : HashCode, default=None
            A fitted ``HashCode`` to use, such as an injective one.
        checkpoint : str or path, default=None
            A folder for finished repetitions; a training that was cut short, called again with
            the same folder, data and parameters, goes on from there, also with other
            ``repetitions``; a network keeps what it has learned so far, too. Inside
            ``joblib.parallel_config`` its workers train them; a folder that all of them see
            saves sending rows and weights, and repetitions of a lost worker are done again
            (``longtail.distributed``). Classifiers that read texts are then trained where
            ``fit`` is.
        """
        return self._learn(X, Y, repetitions=repetitions, code=code, checkpoint=checkpoint)

    def _fit(
        self,
        X: Any,
        Y: Any,
        *,
        repetitions: Iterable[int] | None = None,
        code: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        from joblib import Parallel, delayed

        seed = as_seed(self.random_state)
        prototype = bucket_estimator(self.estimator)
        if self.hashed_features is not None:
            as_k(self.hashed_features, "hashed_features")
            if self.reads_texts:
                raise ValueError("hashed_features is for features: this model reads texts")
        code = self._make_code(Y, seed, code)
        wanted = numbers(repetitions, code.n_repetitions_)
        own_seeds = seeds(seed, 1, code.n_repetitions_)
        feature_seeds = seeds(seed, 2, code.n_repetitions_).astype(np.uint32)
        one_label = one_label_each(Y)
        if isinstance(prototype, NETWORKS) and prototype.loss == "auto":
            prototype.set_params(loss="softmax" if one_label else "sigmoid")
        self._check_aggregation(_link(prototype), one_label, code.n_buckets_)
        each = [
            Repetition(
                r,
                prototype,
                self.hashed_features,
                int(feature_seeds[r]),
                int(own_seeds[r]),
                self.n_jobs,
                None if checkpoint is None else os.path.abspath(checkpoint),
            )
            for r in wanted
        ]
        if checkpoint is None:
            fitted = Parallel()(delayed(repetition.fit)(X, Y, code) for repetition in each)
        else:
            fitted = fit_kept(each, X, Y, code, self._checkpoint(checkpoint, X, Y, code, prototype))
        self.__dict__.pop("_active_code", None)
        self.code_, self.feature_seeds_ = code, feature_seeds
        self.feature_width_, self.one_label_ = self.hashed_features, one_label
        self.repetitions_ = dict(zip(wanted, fitted, strict=True))

    def _checkpoint(
        self, folder: str | os.PathLike[str], X: Any, Y: Any, code: HashCode, prototype: Any
    ) -> Checkpoint:
        """Where finished repetitions go; refuses a folder of other data or parameters."""
        arrays = [Y.indptr, Y.indices, Y.data, code.table_]
        if isinstance(X, Tokens):
            arrays += [X.offsets, X.ids]
        else:
            arrays += [X.indptr, X.indices, X.data] if sp.issparse(X) else [X]
        settings = prototype.get_params(deep=True)
        settings = {name: v for name, v in settings.items() if name not in ("n_jobs", "verbose")}
        about = {
            "version": __version__,
            "isa": native_info()["isa"],
            "estimator": prototype.type_tag,
            "params": settings,
            "hashed_features": self.hashed_features,
            "seed": str(as_seed(self.random_state)),
            "shapes": [len(X) if isinstance(X, Tokens) else list(X.shape), list(Y.shape)],
        }
        return Checkpoint(folder, fingerprint(arrays, about))

    def _make_code(self, Y: Any, seed: int, given: Any) -> HashCode:
        code = HashCode(
            n_buckets=self.n_buckets,
            n_repetitions=self.n_repetitions,
            candidates=self.candidates,
            least_hits=self.least_hits,
            random_state=seed,
            n_jobs=self.n_jobs,
            aggregation=self.aggregation,
        )
        code._check_params()
        if given is None:
            return code.fit(Y.shape[1])
        if not isinstance(given, HashCode):
            raise TypeError(f"code must be a HashCode, got {given!r}")
        given._check_fitted()
        if given.n_labels_ != Y.shape[1]:
            raise ValueError(f"the code has {given.n_labels_} labels, Y {Y.shape[1]}")
        code._set(given.table_, given.seeds_, given.n_buckets_)
        return code

    def _check_aggregation(self, link: str, one_label: bool, n_buckets: int) -> None:
        if self.aggregation != "unbiased":
            return
        if link != "softmax" or not one_label:
            raise ValueError(
                "aggregation='unbiased' holds where the outputs of a repetition are probabilities "
                "that sum to 1: one label per row and a Network (loss 'softmax')"
            )
        if n_buckets == 1:
            raise ValueError("aggregation='unbiased' needs at least two buckets")

    @property
    def reads_texts(self) -> bool:  # type: ignore[override]
        """Whether the classifiers read texts."""
        return isinstance(self.estimator, TextNetwork)

    def _rows(self, X: Any, *, fitted: bool = True) -> Any:
        known = self.n_features_in_ if fitted else None
        classifier = next(iter(self.repetitions_.values())) if fitted else None
        return rows_for(bucket_estimator(self.estimator), classifier, X, known)

    def _set_sizes(self, X: Any, Y: Any) -> None:
        width = sizes(next(iter(self.repetitions_.values())))[0]
        self.n_features_in_ = width if self.hashed_features is None else int(X.shape[1])
        self.n_labels_ = int(Y.shape[1])

    def _features(self, X: Any, repetition: int) -> Any:
        """Return what the classifier of one repetition sees of ``X``."""
        seed = int(self.feature_seeds_[repetition])
        return hashed(X, self.feature_width_, seed, n_threads(self.n_jobs))

    @classmethod
    def merge(cls, models: Iterable[MACH]) -> MACH:
        """Return one model of the repetitions that several were fitted with, on the same data and
        with the same parameters; the same bits as fitting them all at once.

        Parameters
        ----------
        models : iterable of MACH
            Models of some repetitions each.
        """
        return merged(cls, list(models))

    def add_labels(
        self,
        X: Any,
        Y: Any = None,
        *,
        Y_old: Any = None,
        negatives: tuple[Any, Any] | None = None,
        names: Sequence[str] | None = None,
    ) -> MACH:
        """Add labels to a fitted model, with no training; their ids follow those it has.

        In each repetition a new label goes to the bucket that stands out most on its rows: the one
        of the largest mean value there, less the mean over all rows given. Those are buckets of
        labels that it resembles. ``fine_tune`` then teaches the difference.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows; or, without ``Y``, a number of labels, which are hashed like the others:
            until they are trained, answers that name them come from whatever shares their buckets.
        Y : matrix of shape (n, m) or None
            What the m new labels are for these rows: column j becomes label ``n_labels_ +
            j``. A label without rows is hashed.
        Y_old : matrix of shape (n, L) or None
            The old labels of the same rows. Linear models learn from them; here they are
            only checked, since nothing is trained.
        negatives : tuple or None
            ``(X, Y)``, further rows without the new labels. They, and rows of ``X`` without new
            labels, are what a bucket must stand out from; without any, a bucket that is probable
            everywhere draws every new label.
        names : sequence of str or None
            Of the new labels, for a model whose labels have names.

        >>> import longtail as lt
        >>> X, Y = [[1.0, 0.0], [0.0, 1.0], [0.9, 0.1]], [[0], [1], [0]]
        >>> model = lt.MACH(n_buckets=4, n_repetitions=2, estimator="linear").fit(X, Y)
        >>> model.add_labels(1).n_labels_
        3
        >>> model.add_labels(X, [[], [0], []], Y_old=Y).n_labels_
        4
        """
        growing.add_labels(self, X, Y, Y_old, negatives, names)
        return self

    def fine_tune(self, X: Any, Y: Any, *, epochs: int = 1) -> MACH:
        """Train the present networks further on ``X`` and ``Y`` (n, L), with all present labels.

        For networks only: linear classifiers have no cheaper way than ``fit``.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows of features.
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        epochs : int, default=1
            Passes over the rows.
        """
        growing.fine_tune(self, X, Y, epochs=epochs)
        return self

    @property
    def missing_repetitions_(self) -> list[int]:
        """Numbers of the repetitions that were not trained."""
        return sorted(set(range(self.code_.n_repetitions_)) - set(self.repetitions_))

    @property
    def n_outputs_(self) -> int:
        """Outputs of all classifiers together: R B."""
        return len(self.repetitions_) * self.code_.n_buckets_

    def bucket_scores(self, X: Any) -> np.ndarray:
        """Return the raw scores (n, R, B) of the trained repetitions, in order of their numbers.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows of features.
        """
        self._check_fitted()
        X = let_pass(self._rows(X))
        out = np.empty((X.shape[0], len(self.repetitions_), self.code_.n_buckets_), np.float32)
        for slot, (r, classifier) in enumerate(self.repetitions_.items()):
            classifier.n_jobs = self.n_jobs
            out[:, slot] = classifier.decision_function(self._features(X, r))
        return out

    def _predict_topk(self, X: Any, k: int) -> TopK:
        return self._decode(self._decoding_code(), X, k)

    def _predict_allowed(self, X: Any, k: int, labels: LabelFilter) -> TopK:
        """Decode the allowed labels alone, and exactly: the best buckets may hold none of them."""
        code = self._decoding_code()
        return labels.best(
            k, lambda rows, ids, wanted: self._decode(code.restricted(ids), X[rows], wanted)
        )

    def _decode(self, code: HashCode, X: Any, k: int) -> TopK:
        """In parts: as many rows at a time as have ``CHUNK`` bucket scores and answers."""
        step = max(1, min(max(64, growing.CHUNK // self.n_outputs_), growing.CHUNK // k))
        parts = [
            code.decode(self.bucket_scores(let_pass(X[begin : begin + step])), k)
            for begin in range(0, max(1, X.shape[0]), step)
        ]
        return TopK.stacked(parts, self.n_labels_)

    def _decoding_code(self) -> HashCode:
        """Return the code of the trained repetitions, with the present options."""
        trained = list(self.repetitions_)
        self._check_aggregation(self._bucket_link(), self.one_label_, self.code_.n_buckets_)
        options = {
            "aggregation": self.aggregation,
            "candidates": self.candidates,
            "least_hits": self.least_hits,
            "n_jobs": self.n_jobs,
            "link": self._bucket_link(),
        }
        code = self.__dict__.get("_active_code")
        if code is None:
            code = HashCode(random_state=0)
            code._set(
                np.ascontiguousarray(self.code_.table_[:, trained]),
                self.code_.seeds_[trained],
                self.code_.n_buckets_,
            )
            self.__dict__["_active_code"] = code
        if code.get_params() != {**code.get_params(), **options}:
            code.set_params(**options)
        return code  # type: ignore[no-any-return]

    def _scores_are_probabilities(self) -> bool:
        """Where the values of buckets are (a ``Network``, or a ``OneVsAll`` with the logistic loss)
        and are averaged as such. A bucket is at least as likely as each of its labels, so all but
        "unbiased" (here clipped to [0, 1]) err on the high side; ``calibrate`` puts that right.
        A softmax shares 1 among the labels of a row: a probability where there is one of them.
        """
        if self.aggregation == "logits":
            return False
        link = self._bucket_link()
        return link == "sigmoid" or (link == "softmax" and self.one_label_)

    def _proba_topk(self, X: Any, k: int = 5, **how: Any) -> TopK:
        top = super()._proba_topk(X, k, **how)
        if self.calibrator_ is not None or self.aggregation != "unbiased":
            return top
        scores = np.where(top.indices >= 0, np.clip(top.scores, 0, 1), top.scores)
        ids = np.where(top.indices >= 0, top.indices, np.iinfo(np.int32).max)
        order = np.lexsort((ids, -scores), axis=1)
        return TopK._trusted(
            np.take_along_axis(top.indices, order, axis=1),
            np.take_along_axis(scores, order, axis=1),
            top.n_labels,
        )

    def _bucket_link(self) -> str:
        return _link(next(iter(self.repetitions_.values())))

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        estimator = state.params.pop("estimator")
        state.meta["estimator"] = _named(estimator)
        if has_parameters(estimator):
            state.parts["estimator"] = prototype_state(estimator)
        state.parts["code"] = self.code_._get_state()
        state.arrays["feature_seeds"] = self.feature_seeds_
        state.meta["repetitions"] = list(self.repetitions_)
        state.meta["hashed_features"] = self.feature_width_
        state.meta["one_label"] = self.one_label_
        for r, classifier in self.repetitions_.items():
            state.parts[f"repetition{r}"] = classifier._get_state()
        return state

    def _set_state(self, state: persist.State) -> None:
        super()._set_state(state)
        self.estimator = state.meta.get("estimator")
        if "estimator" in state.parts:
            self.estimator = prototype_of(state.parts["estimator"])
        self.code_ = HashCode._from_state(state.parts["code"])
        R = self.code_.n_repetitions_
        self.feature_seeds_ = state.array("feature_seeds", np.uint32, (R,))
        trained = state.meta.get("repetitions")
        valid = isinstance(trained, list) and all(type(r) is int and 0 <= r < R for r in trained)
        if not valid or not trained or self.code_.n_labels_ != self.n_labels_:
            raise ModelFormatError("the code and the repetitions of the model do not fit together")
        self.repetitions_ = {r: from_part(state.parts[f"repetition{r}"]) for r in trained}
        self.feature_width_ = state.meta.get("hashed_features", self.hashed_features)
        self.one_label_ = state.meta.get("one_label", True) is True
        width = self.n_features_in_ if self.feature_width_ is None else self.feature_width_
        for r, classifier in self.repetitions_.items():
            if (classifier.n_features_in_, classifier.n_labels_) != (width, self.code_.n_buckets_):
                raise ModelFormatError(f"repetition {r} has other sizes than the model")


def _link(classifier: Any) -> str:
    """How a raw score of the classifier becomes the value of a bucket."""
    if isinstance(classifier, NETWORKS):
        return {"softmax": "softmax", "sigmoid": "sigmoid"}.get(classifier.loss, "hinge")
    return "sigmoid" if classifier.loss == "logistic" else "hinge"


def _named(estimator: Any) -> str | None:
    if has_parameters(estimator):
        return None
    if estimator is None or isinstance(estimator, str):
        return estimator
    raise TypeError(f"parameter estimator cannot be saved: {estimator!r}")
