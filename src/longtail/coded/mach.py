"""``MACH``: labels hashed into buckets, one classifier of buckets per hash."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import persist
from longtail._native import core, n_threads
from longtail._validation import as_features, as_k, as_seed
from longtail.calibrate.ranker import ProbabilityRanker
from longtail.coded.estimators import bucket_estimator, from_part
from longtail.coded.growing import CHUNK, GrowingBuckets
from longtail.codes import HashCode
from longtail.data.topk import TopK
from longtail.deep import Network
from longtail.exceptions import ModelFormatError

__all__ = ["MACH"]


class MACH(GrowingBuckets, ProbabilityRanker):
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
    n_buckets, n_repetitions : B and R; None for R = 16 with R B = L / 4
    estimator : "linear" (``OneVsAll``), "network" (``longtail.Network``), or one of these with its
        parameters; None for the network where torch is installed
    aggregation : "logits" (sum of raw scores, as the authors' code does: it ranks better), "mean"
        of probabilities (the paper), "min", "median", "unbiased"
    candidates, least_hits : None decodes exactly; a number of buckets decodes as the paper does
    hashed_features : width to which features are hashed, anew for each repetition; None for none
    random_state, n_jobs : the same seed gives the same bits for any number of threads

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

    code_: HashCode
    repetitions_: dict[int, Any]
    feature_seeds_: np.ndarray

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
        self, X: Any, Y: Any, *, repetitions: Iterable[int] | None = None, code: Any = None
    ) -> Any:
        """Learns from features ``X`` (n, d) and labels ``Y`` (n, L).

        ``repetitions``: the numbers of those to train; None for all. A model with some of them
        answers with what it has. ``code``: a fitted ``HashCode`` to use, such as an injective one.
        """
        self._wanted, self._given_code = repetitions, code
        try:
            return super().fit(X, Y)
        finally:
            del self._wanted, self._given_code

    def _fit(self, X: Any, Y: Any) -> None:
        from joblib import Parallel, delayed

        threads = n_threads(self.n_jobs)
        seed = as_seed(self.random_state)
        prototype = bucket_estimator(self.estimator)
        if self.hashed_features is not None:
            as_k(self.hashed_features, "hashed_features")
        code = self._make_code(Y, seed)
        wanted = range(code.n_repetitions_) if self._wanted is None else sorted(set(self._wanted))
        if not len(wanted) or wanted[0] < 0 or wanted[-1] >= code.n_repetitions_:
            raise ValueError(
                f"repetitions must lie between 0 and {code.n_repetitions_ - 1}, got {list(wanted)}"
            )
        seeds = _seeds(seed, 1, code.n_repetitions_)
        feature_seeds = _seeds(seed, 2, code.n_repetitions_).astype(np.uint32)
        if isinstance(prototype, Network) and prototype.loss == "auto":
            prototype.set_params(loss="softmax" if _one_label_each(Y) else "sigmoid")
        self._check_aggregation(prototype)
        fitted = Parallel()(
            delayed(_fit_repetition)(
                type(prototype)(**prototype.get_params(deep=False)),
                self._hashed(X, int(feature_seeds[r]), threads),
                code.encode_repetition(Y, r),
                int(seeds[r]),
                self.n_jobs,
            )
            for r in wanted
        )
        self.__dict__.pop("_active_code", None)
        self.code_, self.feature_seeds_ = code, feature_seeds
        self.repetitions_ = dict(zip(wanted, fitted, strict=True))

    def _make_code(self, Y: Any, seed: int) -> HashCode:
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
        if self._given_code is None:
            return code.fit(Y.shape[1])
        if self._given_code.n_labels_ != Y.shape[1]:
            raise ValueError(f"the code has {self._given_code.n_labels_} labels, Y {Y.shape[1]}")
        code._set(self._given_code.table_, self._given_code.seeds_, self._given_code.n_buckets_)
        return code

    def _check_aggregation(self, prototype: Any) -> None:
        if self.aggregation == "unbiased" and _link(prototype) != "softmax":
            raise ValueError(
                "aggregation='unbiased' holds where the outputs of a repetition are probabilities "
                "that sum to 1: one label per row and a Network (loss 'softmax')"
            )

    def _hashed(self, X: Any, feature_seed: int, threads: int) -> Any:
        """Features hashed for one repetition."""
        if self.hashed_features is None:
            return X
        X = X if sp.issparse(X) else sp.csr_matrix(X)
        width, seeds = int(self.hashed_features), np.array([feature_seed], np.uint32)
        place = core.hash_labels(0, X.shape[1], seeds, width, threads)[:, 0]
        arrays = (X.data.copy(), place[X.indices], X.indptr.copy())  # summing changes them
        out = sp.csr_matrix(arrays, shape=(X.shape[0], width))
        out.sum_duplicates()
        return out

    @classmethod
    def merge(cls, models: Iterable[MACH]) -> MACH:
        """One model of the repetitions that several were fitted with, on the same data and with the
        same parameters; the same bits as fitting them all at once.
        """
        models = list(models)
        if not models:
            raise ValueError("nothing to merge")
        for model in models:
            model._check_fitted()
        first = models[0]
        out = cls(**first.get_params(deep=False))
        repetitions: dict[int, Any] = {}
        for model in models:
            same = (
                model.n_features_in_ == first.n_features_in_
                and np.array_equal(model.code_.table_, first.code_.table_)
                and np.array_equal(model.feature_seeds_, first.feature_seeds_)
            )
            if not same:
                raise ValueError("these models were fitted with other hashes or on other data")
            repetitions.update(model.repetitions_)
        out.code_, out.feature_seeds_ = first.code_, first.feature_seeds_
        out.repetitions_ = dict(sorted(repetitions.items()))
        out.n_features_in_, out.n_labels_ = first.n_features_in_, first.n_labels_
        out.label_names_ = first.label_names_
        return out

    @property
    def missing_repetitions_(self) -> list[int]:
        """Numbers of the repetitions that were not trained."""
        return sorted(set(range(self.code_.n_repetitions_)) - set(self.repetitions_))

    @property
    def n_outputs_(self) -> int:
        """Outputs of all classifiers together: R B."""
        return len(self.repetitions_) * self.code_.n_buckets_

    def bucket_scores(self, X: Any) -> np.ndarray:
        """Raw scores (n, R, B) of the trained repetitions, in order of their numbers."""
        self._check_fitted()
        X, threads = as_features(X, n_features=self.n_features_in_), n_threads(self.n_jobs)
        out = np.empty((X.shape[0], len(self.repetitions_), self.code_.n_buckets_), np.float32)
        for slot, (r, classifier) in enumerate(self.repetitions_.items()):
            classifier.n_jobs = self.n_jobs
            hashed = self._hashed(X, int(self.feature_seeds_[r]), threads)
            out[:, slot] = classifier.decision_function(hashed)
        return out

    def _predict_topk(self, X: Any, k: int) -> TopK:
        code = self._decoding_code()
        step = max(64, CHUNK // self.n_outputs_)
        parts = [
            code.decode(self.bucket_scores(X[begin : begin + step]), k)
            for begin in range(0, max(1, X.shape[0]), step)
        ]
        return TopK._trusted(
            np.concatenate([part.indices for part in parts]),
            np.concatenate([part.scores for part in parts]),
            self.n_labels_,
        )

    def _decoding_code(self) -> HashCode:
        """The code of the trained repetitions, with the present options."""
        trained = list(self.repetitions_)
        self._check_aggregation(self.repetitions_[trained[0]])
        options = {
            "aggregation": self.aggregation,
            "candidates": self.candidates,
            "least_hits": self.least_hits,
            "n_jobs": self.n_jobs,
            "link": _link(self.repetitions_[trained[0]]),
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
        """
        return self._bucket_link() in ("sigmoid", "softmax") and self.aggregation != "logits"

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

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_active_code"}

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        estimator = state.params.pop("estimator")
        state.meta["estimator"] = _named(estimator)
        if hasattr(estimator, "get_params"):
            state.parts["estimator"] = persist.State(
                estimator.type_tag, estimator.get_params(deep=False)
            )
        state.parts["code"] = self.code_._get_state()
        state.arrays["feature_seeds"] = self.feature_seeds_
        state.meta["repetitions"] = list(self.repetitions_)
        for r, classifier in self.repetitions_.items():
            state.parts[f"repetition{r}"] = classifier._get_state()
        return state

    def _set_state(self, state: persist.State) -> None:
        super()._set_state(state)
        self.estimator = state.meta.get("estimator")
        if "estimator" in state.parts:
            part = state.parts["estimator"]
            self.estimator = type(bucket_estimator(_by_tag(part.type)))(**part.params)
        self.code_ = HashCode._from_state(state.parts["code"])
        R = self.code_.n_repetitions_
        self.feature_seeds_ = state.array("feature_seeds", np.uint32, (R,))
        trained = state.meta.get("repetitions")
        valid = isinstance(trained, list) and all(type(r) is int and 0 <= r < R for r in trained)
        if not valid or not trained or self.code_.n_labels_ != self.n_labels_:
            raise ModelFormatError("the code and the repetitions of the model do not fit together")
        self.repetitions_ = {r: from_part(state.parts[f"repetition{r}"]) for r in trained}
        width = self.n_features_in_ if self.hashed_features is None else self.hashed_features
        for r, classifier in self.repetitions_.items():
            if (classifier.n_features_in_, classifier.n_labels_) != (width, self.code_.n_buckets_):
                raise ModelFormatError(f"repetition {r} has other sizes than the model")


def _fit_repetition(classifier: Any, X: Any, targets: Any, seed: int, n_jobs: int | None) -> Any:
    classifier.set_params(random_state=seed, n_jobs=n_jobs)
    return classifier.fit(X, targets)


def _seeds(seed: int, purpose: int, count: int) -> np.ndarray:
    """A seed per repetition, below 2^32; those of the first r do not depend on how many."""
    drawn = [np.random.SeedSequence([seed, purpose, r]).generate_state(1) for r in range(count)]
    return np.concatenate(drawn)


def _one_label_each(Y: sp.csr_matrix) -> bool:
    return bool((np.diff(Y.indptr) == 1).all() and (Y.data == 1).all())


def _link(classifier: Any) -> str:
    """How a raw score of the classifier becomes the value of a bucket."""
    if isinstance(classifier, Network):
        return "softmax" if classifier.loss == "softmax" else "sigmoid"
    return "sigmoid" if classifier.loss == "logistic" else "hinge"


def _named(estimator: Any) -> str | None:
    if hasattr(estimator, "get_params"):
        return None
    if estimator is None or isinstance(estimator, str):
        return estimator
    raise TypeError(f"parameter estimator cannot be saved: {estimator!r}")


def _by_tag(tag: str) -> str:
    return "network" if tag == Network.type_tag else "linear"
