"""``Tagger``: vectoriser, model, decision rule and label names in one object."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import persist
from longtail._validation import as_k, as_labels, check_same_rows
from longtail.base import Estimator
from longtail.data import TopK, Vocabulary
from longtail.propensity import JainPropensity
from longtail.report import Report, evaluate
from longtail.tagger.abilities import allowed, cannot, searching, without
from longtail.tagger.choose import choose, make_model
from longtail.tagger.explanation import explain_row
from longtail.tagger.fields import Columns, as_columns, check_weights, is_matrix, joined, rows_of
from longtail.tagger.given import GivenFeatures
from longtail.tagger.names import find_label, label_ids
from longtail.tagger.probabilities import calibrate
from longtail.tagger.saving import restore, to_state
from longtail.tagger.tail import check_tail, inverse_propensity, lean
from longtail.tagger.truth import Truth, as_truth, unknown_note

__all__ = ["Tagger"]

log = logging.getLogger(__name__)

_CANDIDATES = 100  # labels among which a rule or the tail weight chooses


class Tagger(Estimator):
    """Text in, label names out: a vectoriser, a model and the label names as one estimator.

    Left to itself it chooses vectoriser and model from the data (``longtail.tagger.choose``) and
    says in ``choice_``, and to the log, what it chose and why.

    Parameters
    ----------
    model : a ranker, a name (``longtail.tagger.MODELS``), or None to choose
    vectorizer : anything with ``fit_transform`` and ``transform`` from texts to rows; None to
        choose a ``Tfidf``
    rule : a decision rule with ``select`` (``longtail.decide``), applied to the 100 best candidates
        of a text; None for the k best
    field_weights : weight of each text field, for texts with several (``longtail.tagger.fields``)
    calibrate : whether to turn scores into probabilities (``longtail.tagger.probabilities``), which
        about doubles the time of training; without it scores are the model's own
    learn_label_texts : whether the text of each label is learned from as one more text with that
        label: rare labels are found more often, frequent ones lose precision
    random_state, n_jobs : for what is chosen here; a model that is given keeps its own

    After ``fit``: ``vectorizer_``, ``model_``, ``vocabulary_`` (label names), ``label_counts_``
    (L,) training texts of each label, ``n_rows_``, ``fields_``, ``choice_``.

    >>> import longtail as lt
    >>> texts = ["paper jam in tray two", "cannot log in", "the tray is jammed", "log in fails"]
    >>> labels = [["printer"], ["login", "account"], ["printer"], ["login"]]
    >>> tagger = lt.Tagger().fit(texts, labels)
    >>> [name for name, score in tagger.predict(["jammed paper"], k=1)[0]]
    ['printer']
    """

    type_tag = "tagger"

    vectorizer_: Any
    model_: Any
    vocabulary_: Vocabulary
    label_counts_: np.ndarray
    n_rows_: int
    fields_: list[str] | None
    choice_: str
    label_texts_: list[str] | None
    report_: dict[str, Any] | None  # of ``keep_report``: {"summary": …, "html": …}

    def __init__(
        self,
        *,
        model: Any = None,
        vectorizer: Any = None,
        rule: Any = None,
        field_weights: Mapping[str, float] | None = None,
        calibrate: bool = True,
        learn_label_texts: bool = False,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.vectorizer = vectorizer
        self.rule = rule
        self.field_weights = field_weights
        self.calibrate = calibrate
        self.learn_label_texts = learn_label_texts
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        texts: Any,
        labels: Any,
        *,
        label_names: Sequence[str] | None = None,
        label_texts: Sequence[str] | None = None,
    ) -> Tagger:
        """Learns from texts and their labels.

        ``texts``: a list of strings; with several fields a mapping from field to list, or one
        mapping a text; or features (n, d). ``labels``: one list of names a text; or a label matrix
        (n, L) with ``label_names`` in column order. ``label_texts``: what each label is called in
        words, in the order of ``label_names``, shown beside the name.
        """
        weights = check_weights(self.field_weights)
        columns = as_columns(texts, None if weights is None else list(weights))
        if weights is not None and not isinstance(columns, dict):
            raise ValueError(
                f"field_weights names the fields {', '.join(map(repr, weights))}, "
                "but the texts have no fields"
            )
        whole = joined(columns)
        vocabulary, Y = _labels(labels, label_names)
        check_same_rows(len(whole), Y.shape[0], "texts", "labels")
        if label_texts is not None and len(label_texts) != len(vocabulary):
            raise ValueError(
                f"there are {len(label_texts)} label_texts for {len(vocabulary)} labels"
            )
        if not len(vocabulary):
            raise ValueError("there are no labels: nothing to learn")
        vectorizer, model, why = self._parts(columns, whole, len(vocabulary))
        log.info("%s", why)
        if isinstance(columns, dict):
            X = rows_of(columns, vectorizer.fit(whole), weights)
        else:
            X = vectorizer.fit_transform(columns)
        extra = _label_rows(vectorizer, label_texts if self.learn_label_texts else None, Y.shape[1])
        if extra[0].shape[0]:
            model.fit(sp.vstack([X, extra[0]]).tocsr(), sp.vstack([Y, extra[1]]).tocsr())
        else:
            model.fit(X, Y)
        if self.calibrate:
            calibrate(model, X, Y, extra=extra, random_state=self.random_state)
        self.vectorizer_, self.model_, self.vocabulary_, self.choice_ = (
            vectorizer,
            model,
            vocabulary,
            why,
        )
        self.fields_ = list(columns) if isinstance(columns, dict) else None
        self.label_counts_ = np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.int64)
        self.n_rows_ = int(Y.shape[0])
        self.label_texts_ = None if label_texts is None else list(label_texts)
        self.report_ = None
        return self

    def _parts(self, columns: Columns, texts: list[str], n_labels: int) -> tuple[Any, Any, str]:
        """Vectoriser and model to fit, and the line that says why these."""
        given = is_matrix(columns)
        chosen = choose(
            texts, n_labels, features=given, random_state=self.random_state, n_jobs=self.n_jobs
        )
        model = self.model
        if model is None or model == "auto":
            model, why = chosen.model, chosen.why
        elif isinstance(model, str):
            model, why = make_model(model, self.random_state, self.n_jobs), f"{model}, as asked"
        else:
            model, why = _copy(model), f"{type(model).__name__}, as asked"
        vectorizer = (
            chosen.vectorizer if self.vectorizer is None or given else _copy(self.vectorizer)
        )
        if not hasattr(model, "predict_topk"):
            raise TypeError(f"model must be a ranker such as XRLinear(), got {self.model!r}")
        return vectorizer, model, why

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names in label-id order."""
        self._check_fitted()
        return self.vocabulary_.names

    @property
    def has_probabilities(self) -> bool:
        """Whether the scores of this tagger are probabilities."""
        self._check_fitted()
        return hasattr(self.model_, "predict_proba_topk")

    def transform(self, texts: Any) -> sp.csr_matrix:
        """Features (n, d) of texts, as the model sees them."""
        self._check_fitted()
        return rows_of(self._columns(texts), self.vectorizer_, check_weights(self.field_weights))

    def _columns(self, texts: Any) -> Columns:
        columns = as_columns(texts, self.fields_)
        if self.fields_ is None and isinstance(columns, dict):
            raise ValueError("this tagger was fitted on texts without fields: give strings")
        return columns

    def predict_topk(
        self,
        texts: Any,
        k: int = 5,
        *,
        threshold: float | None = None,
        include: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        tail: float = 0.0,
    ) -> TopK:
        """Label ids and scores, best first: ``predict`` without the names, for programs."""
        return self.rank(
            self.transform(texts),
            k,
            threshold=threshold,
            include=include,
            exclude=exclude,
            tail=tail,
        )

    def rank(
        self,
        X: sp.csr_matrix,
        k: int = 5,
        *,
        threshold: float | None = None,
        include: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        tail: float = 0.0,
    ) -> TopK:
        """The same for rows that ``transform`` made."""
        self._check_fitted()
        k, tail = as_k(k), check_tail(tail)
        search = searching(self.model_)
        filters = {}
        for name, names in (("include", include), ("exclude", exclude)):
            if names is not None:
                filters[name] = label_ids(self.vocabulary_, names, name)
        allowed(self.model_, filters)
        if self.rule is None and not tail:
            top = search(X, k, **filters)
        else:
            top = search(X, max(k, _CANDIDATES), **filters)
            if self.rule is not None:
                top = self.rule.select(top)
            if tail:
                # Reported scores stay those of the model; only the order is the leaning one.
                top, scores = lean(top, self._inverse(), tail, k)
                top = TopK._trusted(top.indices, scores, top.n_labels)
            top = top.head(k)
        return top if threshold is None else without(top, threshold)

    def predict(
        self,
        texts: Any,
        k: int = 5,
        *,
        threshold: float | None = None,
        include: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        tail: float = 0.0,
    ) -> list[list[tuple[str, float]]]:
        """``[(name, score), …]`` of each text, best first.

        ``threshold``: answers with a lower score are left out. ``include``, ``exclude``: names of
        the only labels to answer with, or of those never to. ``tail``: from 0 (best score first) to
        1 (rare labels come forward, see ``longtail.tagger.tail``); scores stay as they are.
        """
        top = self.predict_topk(
            texts, k, threshold=threshold, include=include, exclude=exclude, tail=tail
        )
        return self.named(top)

    def named(self, top: TopK) -> list[list[tuple[str, float]]]:
        """Answers with label names, in the order given."""
        names = self.label_names
        return [
            [(names[i], s) for i, s in zip(ids, scores, strict=True) if i >= 0]
            for ids, scores in zip(top.indices.tolist(), top.scores.tolist(), strict=True)
        ]

    def evaluate(
        self,
        texts: Any,
        labels: Any,
        *,
        label_names: Sequence[str] | None = None,
        unknown: Any = None,
        k: int | Sequence[int] = (1, 3, 5),
        title: str = "Evaluation",
        n_resamples: int = 1000,
        tail: float = 0.0,
    ) -> Report:
        """Answers the texts and measures the answers: ``longtail.evaluate``, head to tail.

        ``labels`` and ``label_names`` as in ``fit``. True labels that the model does not know are
        counted, and the report says so; ``unknown`` (n,) adds those that the data counted already.
        """
        truth = self.truth(labels, label_names, unknown)
        most = max([k] if isinstance(k, int) else k)
        top = self.predict_topk(texts, most, tail=tail)
        # Leaning answers are out of the order of their probabilities; a rule's are its own.
        plain = self.has_probabilities and not tail and self.rule is None
        return self.measure(
            truth, top, k=k, title=title, n_resamples=n_resamples, probabilities=plain
        )

    def truth(
        self, labels: Any, label_names: Sequence[str] | None = None, unknown: Any = None
    ) -> Truth:
        """Labels of evaluation data, in the label ids of this tagger."""
        self._check_fitted()
        return as_truth(labels, self.vocabulary_, label_names, unknown)

    def measure(self, truth: Truth, top: TopK, **options: Any) -> Report:
        """The report on answers that were made already; options of ``longtail.evaluate``."""
        check_same_rows(len(top), truth.Y.shape[0], "texts", "labels")
        report = evaluate(
            truth.Y,
            top,
            propensity=JainPropensity().fit_counts(self.label_counts_, self.n_rows_),
            train_Y=_with_counts(self.label_counts_, self.n_rows_),
            label_names=self.label_names,
            **options,
        )
        note = unknown_note(truth, top, max(report.ks))
        return report if note is None else replace(report, warnings=(note, *report.warnings))

    def keep_report(self, report: Report) -> None:
        """Keeps a report with the tagger, so that it is saved, shown and served with it."""
        self.report_ = {"summary": report.to_dict(), "html": report.to_html()}

    def explain(
        self, text: Any, label: str | Sequence[str] | None = None, *, n_terms: int = 10
    ) -> Any:
        """Which words of one text speak for a label, an ``Explanation``; a list for a list.

        Without ``label``, for the best one. ``longtail.tagger.explanation`` tells how.
        """
        self._check_fitted()
        columns = self._columns([text])
        x = rows_of(columns, self.vectorizer_, check_weights(self.field_weights))
        if label is None:
            label = self.named(self.rank(x, 1))[0][0][0]
        names = [label] if isinstance(label, str) else list(label)
        ids = {name: find_label(self.vocabulary_, name) for name in names}
        found = explain_row(
            self.model_, self.vectorizer_, x, joined(columns)[0], ids, as_k(n_terms, "n_terms")
        )
        return found[0] if isinstance(label, str) else found

    def add_labels(self, texts: Any, labels: Any) -> Tagger:
        """Teaches new labels from some texts, without training the others again.

        ``labels``: one list of names a text. Known names in them are not trained again, but tell
        what else the texts are about; texts that have only known labels serve as negatives, and
        keep the new labels from being answered everywhere: give some. Needs a model that can
        (``model.add_labels``).
        """
        self._check_fitted()
        if not hasattr(self.model_, "add_labels"):
            raise cannot(self.model_, "learn new labels")
        lists = [list(row) for row in labels]
        found = Vocabulary.from_lists(lists)
        new = [name for name in found if name not in self.vocabulary_]
        if not new:
            raise ValueError("no label is new: all of them are known to this model")
        X = self.transform(texts)
        check_same_rows(X.shape[0], len(lists), "texts", "labels")
        added = Vocabulary(new)
        Y = added.encode(lists, unknown="ignore")
        known = self.vocabulary_.encode(lists, unknown="ignore")
        self.model_.add_labels(X, Y, Y_old=known)
        counts = np.bincount(Y.indices, minlength=len(new)).astype(np.int64)
        self.vocabulary_ = Vocabulary([*self.vocabulary_.names, *new])
        self.label_counts_ = np.concatenate([self.label_counts_, counts])
        self.n_rows_ += X.shape[0]
        if self.label_texts_ is not None:
            self.label_texts_ = [*self.label_texts_, *([""] * len(new))]
        self.__dict__.pop("_inverse_propensity", None)
        self.report_ = None  # it spoke of another label set
        return self

    def _inverse(self) -> np.ndarray:
        inverse: np.ndarray | None = self.__dict__.get("_inverse_propensity")
        if inverse is None:
            inverse = inverse_propensity(self.label_counts_, self.n_rows_)
            self.__dict__["_inverse_propensity"] = inverse
        return inverse

    def _get_state(self) -> persist.State:
        return to_state(self, super()._get_state())

    @classmethod
    def _from_state(cls, state: persist.State) -> Tagger:
        return restore(cls(**state.params), state)


def _labels(labels: Any, names: Sequence[str] | None) -> tuple[Vocabulary, sp.csr_matrix]:
    if names is not None:
        vocabulary = Vocabulary(names)
        if sp.issparse(labels) or hasattr(labels, "shape"):
            return vocabulary, as_labels(labels, n_labels=len(vocabulary), name="labels")
        return vocabulary, vocabulary.encode(labels)
    if sp.issparse(labels) or hasattr(labels, "shape"):
        raise TypeError("labels is a matrix: say what its columns are called with label_names=")
    lists = [row if isinstance(row, str) else list(row) for row in labels]
    vocabulary = Vocabulary.from_lists(lists)
    return vocabulary, vocabulary.encode(lists)


def _label_rows(
    vectorizer: Any, texts: Sequence[str] | None, n_labels: int
) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """A further row for every label whose text has a known word, with that label alone."""
    if texts is None or isinstance(vectorizer, GivenFeatures):
        return sp.csr_matrix((0, 0)), sp.csr_matrix((0, n_labels))
    rows = sp.csr_matrix(vectorizer.transform(texts))
    used = np.flatnonzero(np.diff(rows.indptr))
    own = sp.csr_matrix(
        (np.ones(len(used), np.float32), used, np.arange(len(used) + 1)),
        shape=(len(used), n_labels),
    )
    return rows[used], own


def _with_counts(counts: np.ndarray, n_rows: int) -> sp.csc_matrix:
    """A label matrix with these counts: all that an evaluation asks of the training labels."""
    counts = np.minimum(counts, n_rows)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    rows = np.arange(indptr[-1]) - np.repeat(indptr[:-1], counts)
    ones = np.ones(len(rows), np.float32)
    return sp.csc_matrix((ones, rows, indptr), shape=(n_rows, len(counts)))


def _copy(estimator: Any) -> Any:
    """The same estimator, not fitted."""
    if not hasattr(estimator, "get_params"):
        raise TypeError(f"expected an estimator, got {estimator!r}")
    return type(estimator)(**estimator.get_params(deep=False))
