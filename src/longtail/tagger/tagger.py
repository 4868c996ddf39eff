"""``Tagger``: vectoriser, model, decision rule and label names in one object."""

from __future__ import annotations

import logging
import numbers
import os
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import persist
from longtail._protocols import gives_probabilities
from longtail._validation import as_k, check_same_rows
from longtail.answers import AnswerOptions, TopK, Vocabulary
from longtail.base import Estimator
from longtail.data.row_filter import Overlap, RowFilter
from longtail.metrics import precision_at_k
from longtail.report import Report
from longtail.tagger.answering import rank, rank_texts
from longtail.tagger.expected import expected_minutes, in_words
from longtail.tagger.explanation import Explanation, explain_steps
from longtail.tagger.fields import (
    Columns,
    as_columns,
    check_weights,
    is_matrix,
    joined,
    rows_of,
    vectorize,
)
from longtail.tagger.fitting import Plan, Rows, copied, described, fit_ranker
from longtail.tagger.given import GivenFeatures
from longtail.tagger.growing import announce, teach
from longtail.tagger.held_out import Curve, learn_from_held_out
from longtail.tagger.label_rows import as_targets, label_rows
from longtail.tagger.measuring import lean_curve, part_results, report_on
from longtail.tagger.names import find_label
from longtail.tagger.planning import make_plan
from longtail.tagger.provenance import made_now
from longtail.tagger.saving import restore, to_state
from longtail.tagger.seen import row_keys
from longtail.tagger.tail import inverse_propensity
from longtail.tagger.truth import Truth, as_pair, as_truth

__all__ = ["Tagger"]

log = logging.getLogger(__name__)


class Tagger(Estimator):
    """Text in, label names out: a vectoriser, a model and the label names as one estimator.

    Left to itself it chooses vectoriser and model from the data (``longtail.tagger.choose``) and
    says in ``choice_``, and to the log, what it chose and why.

    Parameters
    ----------
    model : ranker, str or None
        A ranker, a name (``longtail.tagger.MODELS``), or None to choose.
    quality : str
        What is chosen where ``model`` is None: "fast", one linear model or a few trees, or "best",
        every kind of model that the data and the machine allow, fused (``longtail.tagger.best``),
        at several times the training.
    encoder, device : str, path or None; str or None
        With "best", the folder (or name) of a pretrained encoder for the models that read texts,
        and where they are trained; without an encoder, "best" needs no torch.
    vectorizer : Tfidf, mapping or None
        A ``Tfidf``, or None to choose its parameters; a mapping, such as ``{"min_df": 1}``, names
        those that are not to be chosen. A ``TfidfVectorizer``, ``CountVectorizer`` or
        ``HashingVectorizer`` of scikit-learn is read as the ``Tfidf`` that makes the same matrix.
        With features in place of texts, the fitted ``Tfidf`` that made them (``vectorize_files``):
        the tagger then answers texts. Anything else with ``fit_transform`` and ``transform`` from
        texts to rows needs ``savable=False``.
    rule : decision rule or None
        A decision rule of ``longtail.decide``, or anything with its ``select``, that chooses among
        the 100 most probable labels of each text, and how many; None for the k best. A rule that
        learns (``FrankWolfe``, ``Threshold``) does so on texts held out of the training.
        ``BlockCoordinateAscent`` decides the texts of one call together.
    field_weights : mapping or None
        Weight of each text field, for texts with several (``longtail.tagger.fields``).
    calibrate : bool
        Whether to turn scores into probabilities (``longtail.tagger.held_out``), which about
        doubles the time of training; without it scores are the model's own.
    learn_label_texts : bool, float or str
        Whether the text of each label is learned from as one more text: rare labels are found more
        often, frequent ones may lose precision. True: with that label alone; "co-occurrence": with
        the labels that often occur with it too, as Gandalf has it, or a number, the share of its
        texts from which on they count; or another graph of ``longtail.augment.gandalf``.
    memory_limit : int, float, str or None
        Bytes, or a text like "2GB", that the training of a tree or of one-vs-all plans for.
    savable : bool
        Whether ``fit`` refuses, before it trains, a vectoriser, model or rule that could not be
        saved: a saved model holds data and no code, so they have to be Longtail's own. False takes
        any object with the methods; ``save`` then raises TypeError.
    random_state, n_jobs : int, Generator, RandomState or None; int or None
        For what is chosen here, as ``memory_limit`` is; a model that is given keeps its own.

    After ``fit``: ``vectorizer_``, ``model_``, ``rule_``, ``vocabulary_`` (names of the labels that
    at least one text has), ``label_counts_`` (L,) training texts of each label, ``n_rows_``,
    ``fields_``, ``choice_``, ``seen_`` (a fingerprint of the training texts, for ``trained_on``),
    ``provenance_`` (``longtail.tagger.provenance``), ``examples_`` (texts to try, for the page).

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
    rule_: Any
    vocabulary_: Vocabulary
    label_counts_: np.ndarray
    n_rows_: int
    fields_: list[str] | None
    choice_: str
    label_texts_: list[str] | None
    # Of the training rows; None in models of older versions, and where their texts were not there.
    seen_: RowFilter | None
    report_: Report | None  # of ``keep_report``
    provenance_: dict[str, Any] | None  # None in models of older versions
    examples_: list[Any]  # texts, or texts by field

    def __init__(
        self,
        *,
        model: Any = None,
        quality: str = "fast",
        encoder: str | os.PathLike[str] | None = None,
        device: str | None = None,
        vectorizer: Any = None,
        rule: Any = None,
        field_weights: Mapping[str, float] | None = None,
        calibrate: bool = True,
        learn_label_texts: bool | float | str = False,
        memory_limit: int | float | str | None = None,
        savable: bool = True,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.quality = quality
        self.encoder = encoder
        self.device = device
        self.vectorizer = vectorizer
        self.rule = rule
        self.field_weights = field_weights
        self.calibrate = calibrate
        self.learn_label_texts = learn_label_texts
        self.memory_limit = memory_limit
        self.savable = savable
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        texts: Any,
        labels: Any,
        *,
        label_names: Sequence[str] | None = None,
        label_texts: Sequence[str] | None = None,
        validation: tuple[Any, Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Tagger:
        """Learn from texts and their labels.

        Labels that no text has are left out, and the log says how many; not so those that a model
        can learn from what they are called.

        Parameters
        ----------
        texts : list of str, mapping of field to list of str, list of mappings, or matrix
            A list of strings; with several fields a mapping from field to list, or one mapping
            per text; or features (n, d).
        labels : list of lists of str, Series, array, or matrix of shape (n, L)
            One list, tuple, set or array of names per text (a list of them, a pandas Series, an
            array of NumPy or pyarrow), where whole numbers are names as in ``load_dataset`` (7
            is "7") and a missing row has none; or a label matrix (n, L) with ``label_names`` in
            column order.
        label_names : sequence of str, default=None
            Names of the columns of a label matrix.
        label_texts : sequence of str, default=None
            What each label is called in words, in the order of ``label_names``, shown beside
            the name; a model that reads them (``DualEncoder``, ``UniDEC``) takes names where
            there are none.
        validation : tuple, default=None
            Further texts and their labels, on which ``quality="best"`` learns which of its
            models to believe, and which these do not learn from; without them a tenth of the
            texts is held out, and the models are trained again on all.
        checkpoint : str or path, default=None
            A folder for finished parts of the training; a ``fit`` that was cut short, called
            again with the same folder, data and parameters, goes on from there
            (``longtail.linear.train.checkpoint``).
        """
        plan = self.plan(texts, labels, label_names=label_names, label_texts=label_texts)
        if validation is not None:
            if self.quality != "best":
                raise ValueError('validation goes with quality="best"')
            validation = as_pair(validation)
            validation = validation[0], as_truth(validation[1], plan.labels.vocabulary, label_names)
        return self.fit_rows(self.rows(plan), validation=validation, checkpoint=checkpoint)

    def plan(
        self,
        texts: Any,
        labels: Any,
        *,
        label_names: Sequence[str] | None = None,
        label_texts: Sequence[str] | None = None,
    ) -> Plan:
        """Return what ``fit`` would fit, and on what, without doing it; arguments as there.

        Parameters
        ----------
        texts : list of str, mapping or matrix
            Texts, as in ``fit``.
        labels : list of lists of str, or matrix
            Labels, as in ``fit``.
        label_names : sequence of str, default=None
            Names of the columns of a label matrix.
        label_texts : sequence of str, default=None
            What labels are called in words, in the order of their ids.
        """
        return make_plan(self, texts, labels, label_names, label_texts)

    def rows(self, plan: Plan) -> Rows:
        """Fit the vectoriser of a plan and return its rows of features: one half of ``fit``.

        Parameters
        ----------
        plan : Plan
            Of ``plan``.
        """
        log.info("%s", plan.why)
        if plan.n_left_out:
            log.info("%d labels have no text among these rows and are left out", plan.n_left_out)
        columns, weights = plan.columns, check_weights(self.field_weights)
        X = vectorize(columns, plan.vectorizer, weights)
        targets = as_targets(self.learn_label_texts)
        learned = label_rows(plan.vectorizer, X, plan.labels.texts, targets, self.random_state)
        if is_matrix(columns) and not isinstance(plan.vectorizer, GivenFeatures):
            return Rows(plan, X, learned, None)  # of texts that are not here
        keys, known = row_keys(columns, weights)
        return Rows(plan, X, learned, RowFilter.of(keys[known]))

    def fit_rows(
        self,
        rows: Rows,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        curve: Curve | None = None,
        validation: tuple[Any, Truth] | None = None,
    ) -> Tagger:
        """Fit the model of a plan on its rows: the other half of ``fit``.

        Parameters
        ----------
        rows : Rows
            Of ``rows``.
        checkpoint : str or path, default=None
            Folder for what is finished: a call that was cut short goes on from there.
        curve : Curve, default=None
            From scores to probabilities, as ``longtail.tagger.held_out.Curve.of`` takes it from
            the same model fitted on a part of the rows: no other one is learned then. A rule
            that learns does so anew.
        validation : tuple, default=None
            Texts and their labels, in the ids of the plan.
        """
        began = time.perf_counter()
        plan, X = rows.plan, rows.X
        learned, n_labels = plan.labels, len(plan.labels.vocabulary)
        texts = described(plan.model, learned)
        how: dict[str, Any] = {}
        if curve is not None and curve.fusion is not None:
            how["fusion"] = curve.fusion
        elif validation is not None:
            how["validation"] = self._validation(rows, validation)
        if self.quality == "best":
            minutes = expected_minutes(plan.model, X, learned.Y, texts, twice=not how)
            log.info("%s", in_words(minutes))
        model = fit_ranker(
            copied(plan.model),
            X,
            learned.Y,
            rows.label_rows,
            checkpoint,
            "model",
            texts,
            **how,
        )
        self.rule_ = learn_from_held_out(
            model,
            X,
            learned.Y,
            label_rows=rows.label_rows,
            calibrate=self.calibrate,
            rule=self.rule,
            random_state=self.random_state,
            checkpoint=checkpoint,
            curve=curve,
            label_texts=texts,
        )
        self.vectorizer_, self.model_, self.choice_ = plan.vectorizer, model, plan.why
        self.vocabulary_, self.label_texts_ = learned.vocabulary, learned.texts
        self.fields_ = list(plan.columns) if isinstance(plan.columns, dict) else None
        self.label_counts_ = np.bincount(learned.Y.indices, minlength=n_labels).astype(np.int64)
        self.n_rows_ = int(learned.Y.shape[0])
        self.seen_ = rows.seen
        self.report_, self.examples_ = None, []
        seconds = round(time.perf_counter() - began, 3)
        self.provenance_ = made_now(rows=self.n_rows_, seconds=seconds)
        self.__dict__.pop("_inverse_propensity", None)
        return self

    def _validation(self, rows: Rows, validation: tuple[Any, Truth]) -> tuple[Any, Any]:
        """Return validation rows as the model takes them, and their labels."""
        texts, truth = validation
        fields = list(rows.plan.columns) if isinstance(rows.plan.columns, dict) else None
        columns = as_columns(texts, fields)
        return rows_of(columns, rows.plan.vectorizer, check_weights(self.field_weights)), truth.Y

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names in label-id order."""
        self._check_fitted()
        return self.vocabulary_.names

    @property
    def has_probabilities(self) -> bool:
        """Whether the scores of this tagger are probabilities."""
        self._check_fitted()
        return gives_probabilities(self.model_)

    def transform(self, texts: Any) -> sp.csr_matrix:
        """Return features (n, d) of texts, as the model sees them.

        Parameters
        ----------
        texts : list of str, mapping or matrix
            Texts, as in ``fit``.
        """
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
        """Return the label ids and scores, best first: ``predict`` without the names, for
        programs.

        Parameters
        ----------
        texts : list of str, mapping or matrix
            Texts, as in ``fit``.
        k : int, default=5
            Answers per row.
        threshold : float, default=None
            Answers with a lower score are left out.
        include : iterable of str, default=None
            Names of the only labels to answer with.
        exclude : iterable of str, default=None
            Names of labels never to answer with.
        tail : float, default=0.0
            From 0, best score first, to 1, where rare labels come forward.
        """
        options = AnswerOptions(k, threshold, include, exclude, tail)
        self._check_fitted()
        return rank_texts(self, texts, options)

    def rank(self, X: sp.csr_matrix, options: AnswerOptions | int = 5, **old: Any) -> TopK:
        """Return ``predict_topk`` of rows that ``transform`` made.

        Parameters
        ----------
        X : csr_matrix of shape (n, d)
            What ``transform`` has returned.
        options : AnswerOptions or int
            A number k stands for ``AnswerOptions(k=k)``.
        **old : object
            The options by name, as 0.1 had them; with a warning, until 0.2.
        """
        self._check_fitted()
        if not isinstance(options, AnswerOptions):
            options = AnswerOptions(k=options)
        if old:
            warnings.warn(
                f"Tagger.rank takes AnswerOptions({', '.join(f'{name}=…' for name in old)}) of "
                "longtail.answers now; options by name go in 0.2",
                DeprecationWarning,
                stacklevel=2,
            )
            options = replace(options, **old)
        return rank(self, X, options)

    def predict(
        self,
        texts: Any,
        k: int = 5,
        *,
        threshold: float | None = None,
        include: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        tail: float = 0.0,
        as_frame: bool = False,
    ) -> Any:
        """Return ``[(name, score), …]`` of each text, best first.

        Parameters
        ----------
        texts : list of str, mapping or matrix
            Texts, as in ``fit``.
        k : int, default=5
            Answers per row.
        threshold : float, default=None
            Answers with a lower score are left out.
        include : iterable of str, default=None
            Names of the only labels to answer with.
        exclude : iterable of str, default=None
            Names of labels never to answer with.
        tail : float, default=0.0
            From 0 (best score first) to 1 (rare labels come forward, see
            ``longtail.tagger.tail``); scores stay as they are. With a ``rule``, its labels are
            answered, at most k of them, in its order.
        as_frame : bool, default=False
            A pandas DataFrame instead, with one line per answer and the columns ``row``,
            ``rank``, ``label`` and ``score``; ``row`` is the index of a Series that is asked
            about, so that the answers join back (``TopK.to_frame``).

        >>> import longtail as lt, pandas
        >>> tagger = lt.Tagger().fit(["paper jam", "log in"] * 5, [["printer"], ["login"]] * 5)
        >>> tickets = pandas.DataFrame({"text": ["a paper jam", "log"]}, index=["T7", "T9"])
        >>> best = tagger.predict(tickets["text"], k=1, as_frame=True).set_index("row")
        >>> print(tickets.join(best[["label"]]))
                   text    label
        T7  a paper jam  printer
        T9          log    login
        """
        top = self.predict_topk(
            texts, k, threshold=threshold, include=include, exclude=exclude, tail=tail
        )
        if not as_frame:
            return self.named(top)
        index = getattr(texts, "index", None)  # of a Series or a DataFrame; a list has a method
        return top.to_frame(self.label_names, rows=None if callable(index) else index)

    def named(self, top: TopK) -> list[list[tuple[str, float]]]:
        """Return answers with label names, in the order given.

        Parameters
        ----------
        top : TopK
            Answers.
        """
        names = self.label_names
        return [
            [(names[i], s) for i, s in zip(ids, scores, strict=True) if i >= 0]
            for ids, scores in zip(top.indices.tolist(), top.scores.tolist(), strict=True)
        ]

    def inverse_propensity(self) -> np.ndarray:
        """Return how much rarer labels weigh, (L,), by their training rows; see
        ``longtail.tagger.tail``.
        """
        inverse: np.ndarray | None = self.__dict__.get("_inverse_propensity")
        if inverse is None:
            inverse = inverse_propensity(self.label_counts_, self.n_rows_)
            self.__dict__["_inverse_propensity"] = inverse
        return inverse

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
        """Answer the texts and measure the answers: ``longtail.evaluate``, head to tail.

        ``labels`` and ``label_names`` as in ``fit``. True labels that the model does not know are
        counted, and the report says so; ``unknown`` (n,) adds those that the data counted already.

        Parameters
        ----------
        texts : list of str, mapping or matrix
            Texts, as in ``fit``.
        labels : list of lists of str, or matrix
            True labels, as in ``fit``.
        label_names : sequence of str, default=None
            Names of the columns of a label matrix.
        unknown : array of shape (n,), default=None
            How many true labels of each row the data could not name.
        k : int or sequence of int, default=(1, 3, 5)
            Cut-offs.
        title : str, default="Evaluation"
            What the report is called.
        n_resamples : int, default=1000
            Resamples of the bootstrap; 0 for no intervals.
        tail : float, default=0.0
            From 0, best score first, to 1, where rare labels come forward.
        """
        truth = self.truth(labels, label_names, unknown)
        most = max([k] if isinstance(k, int) else k)
        top = self.predict_topk(texts, most, tail=tail)
        # Leaning answers are out of the order of their probabilities.
        options: dict[str, Any] = {"probabilities": False} if tail else {}
        options.update(k=k, title=title, n_resamples=n_resamples, seen=self.trained_on(texts))
        report = self.measure(truth, top, **options)
        return report if tail else self.with_parts(report, texts, truth, top)

    def trained_on(self, texts: Any) -> Overlap | None:
        """Return which of these texts this tagger was trained on; None where it does not know.

        Texts are compared by their fingerprints (``longtail.data.row_filter``): case and white
        space do not matter, and a text that is none of the training texts is taken for one with a
        probability of about 1 in 4,096, which ``Overlap.n_rows`` allows for. Models that were
        saved before fingerprints were kept do not know.

        Parameters
        ----------
        texts : list of str, mapping or matrix
            Texts, as in ``fit``.
        """
        self._check_fitted()
        columns = self._columns(texts)
        made = is_matrix(columns) and not isinstance(self.vectorizer_, GivenFeatures)
        if self.seen_ is None or made:  # rows do not tell which text they were
            return None
        return self.seen_.overlap(*row_keys(columns, check_weights(self.field_weights)))

    def score(
        self, texts: Any, labels: Any, k: int = 1, *, label_names: Sequence[str] | None = None
    ) -> float:
        """Return precision at k, the mean share of the k best labels that are true; for
        cross-validation.

        ``labels`` and ``label_names`` as in ``fit``; labels that this tagger does not know are
        missed. ``evaluate`` says much more, also about rare labels.

        Parameters
        ----------
        texts : list of str, mapping or matrix
            Texts, as in ``fit``.
        labels : list of lists of str, or matrix
            True labels, as in ``fit``.
        k : int, default=1
            Answers per row.
        label_names : sequence of str, default=None
            Names of the columns of a label matrix.

        >>> from sklearn.model_selection import cross_val_score
        >>> texts, labels = ["paper jam", "no wifi"] * 30, [["printer"], ["network"]] * 30
        >>> cross_val_score(Tagger(), texts, labels, cv=3)
        array([1., 1., 1.])
        """
        truth = self.truth(labels, label_names)
        top = self.predict_topk(texts, k)
        check_same_rows(len(top), truth.Y.shape[0], "texts", "labels")
        return float(precision_at_k(truth.Y, top, k=k)) if len(top) else 0.0

    def truth(
        self,
        labels: Any,
        label_names: Sequence[str] | None = None,
        unknown: Any = None,
        *,
        among: Sequence[str] | None = None,
    ) -> Truth:
        """Return labels of evaluation data, in the label ids of this tagger.

        Parameters
        ----------
        labels : list of lists of str, or matrix
            True labels, as in ``fit``.
        label_names : sequence of str, default=None
            Names of the columns of a label matrix.
        unknown : array of shape (n,), default=None
            How many true labels of each row the data could not name.
        among : sequence of str, default=None
            Names of more labels than this tagger knows, its own included, among which to
            measure it: labels that it does not know then count as missed, instead of being left
            out.
        """
        self._check_fitted()
        if among is None:
            return as_truth(labels, self.vocabulary_, label_names, unknown)
        wide = Vocabulary(among)
        return replace(as_truth(labels, wide, label_names, unknown), vocabulary=wide)

    def measure(
        self, truth: Truth, top: TopK, *, seen: Overlap | None = None, **options: Any
    ) -> Report:
        """Return the report on answers that were made already; options of ``longtail.evaluate``.

        Parameters
        ----------
        truth : Truth
            True labels, of ``Tagger.truth``.
        top : TopK
            Answers.
        seen : Overlap, default=None
            Of ``trained_on``, so that the report says how many rows were trained on.
        **options : object
            Those of ``longtail.evaluate``.
        """
        # What a rule chose is not the most probable.
        options.setdefault("probabilities", self.has_probabilities and self.rule_ is None)
        return report_on(self, truth, top, seen, **options)

    def with_parts(self, report: Report, texts: Any, truth: Truth, top: TopK) -> Report:
        """Return the report with what every part of a fused model adds, right after ``fit``; the
        same report for other models.

        Parameters
        ----------
        report : Report
            The report.
        texts : list of str, mapping or matrix
            Texts, as in ``fit``.
        truth : Truth
            True labels, of ``Tagger.truth``.
        top : TopK
            The answers to the texts, which the report is about.
        """
        return replace(report, parts=part_results(self, texts, truth, top))

    def lean_curve(
        self, texts: Any, truth: Truth, *, k: int = 5, plain: TopK | None = None
    ) -> list[dict[str, float]]:
        """Return what ``tail`` from 0 to 1 does to precision, recall and coverage on these texts.

        Parameters
        ----------
        texts : list of str, mapping or matrix
            Texts, as in ``fit``.
        truth : Truth
            True labels, of ``Tagger.truth``.
        k : int, default=5
            Answers per row.
        plain : TopK, default=None
            Their answers without a lean, where they are there already.
        """
        return lean_curve(self, texts, truth, k=k, plain=plain)

    def keep_report(
        self, report: Report, lean_curve: Sequence[Mapping[str, float]] | None = None
    ) -> None:
        """Keep a report with the tagger, so that it is saved, shown and served with it.

        Parameters
        ----------
        report : Report
            The report.
        lean_curve : list of dict, default=None
            Of ``lean_curve``.
        """
        curve = tuple(dict(point) for point in lean_curve or ())
        self.report_ = replace(report, lean_curve=curve, provenance=None)

    def report_page(self) -> str:
        """Return the report that was kept, as an HTML page that also tells where the model comes
        from. Raises ValueError if none was kept.
        """
        if self.report_ is None:
            raise ValueError("this model was saved without an evaluation")
        return replace(self.report_, provenance=self.provenance_).to_html()

    def explain(
        self,
        text: Any,
        label: str | int | Sequence[str | int] | None = None,
        *,
        n_terms: int = 10,
    ) -> Any:
        """Return which words of one text speak for a label, an ``Explanation``; a list for a list.

        Without ``label``, for the best one. ``longtail.tagger.explanation`` tells how.

        Parameters
        ----------
        text : str or mapping
            One text, or its fields.
        label : str, int or sequence of these, default=None
            A label, or several; None is the best one.
        n_terms : int, default=10
            Most terms to name.
        """
        self._check_fitted()
        if label is None:
            best = self.predict_topk([text], 1).indices[0, 0]
            if best < 0:
                raise ValueError("this text gets no label: name the one to explain")
            label = self.label_names[best]
        one = isinstance(label, (str, numbers.Integral))
        wanted: Any = [label] if one else label
        found = [w for w in self.explain_steps(text, wanted, n_terms=n_terms) if w is not None]
        return found[0] if one else found

    def explain_steps(
        self, text: Any, labels: Sequence[str], *, n_terms: int = 10
    ) -> Iterator[Explanation | None]:
        """Yield the explanations of several labels, with a None after every step of the work.

        For servers, which have other things to do in between, or stop.

        Parameters
        ----------
        text : str or mapping
            One text, or its fields.
        labels : sequence of str
            Labels to explain.
        n_terms : int, default=10
            Most terms to name.
        """
        self._check_fitted()
        columns = self._columns([text])
        x = rows_of(columns, self.vectorizer_, check_weights(self.field_weights))
        label_ids = [find_label(self.vocabulary_, name) for name in labels]
        ids = {self.label_names[i]: i for i in label_ids}
        return explain_steps(
            self.model_, self.vectorizer_, x, joined(columns)[0], ids, as_k(n_terms, "n_terms")
        )

    def add_labels(
        self,
        texts: Any = None,
        labels: Any = None,
        *,
        label_texts: Mapping[str, str] | None = None,
    ) -> Tagger:
        """Teach new labels from some texts, without training the others again; or, a model that
        reads label texts, from what they are called: ``add_labels(label_texts={name: text})``.

        Parameters
        ----------
        texts : list of str, mapping or matrix, default=None
            Texts that have the new labels, as in ``fit``.
        labels : list of lists of str, default=None
            One list of names a text. Known names in them are not trained again, but tell what
            else the texts are about; texts that have only known labels serve as negatives, and
            keep the new labels from being answered everywhere: give some.
        label_texts : mapping of str to str, default=None
            What new labels are called, by name.

        Needs a model that can (``model.add_labels``).
        """
        self._check_fitted()
        if texts is None and labels is None and label_texts is not None:
            announce(self, label_texts)
        else:
            teach(self, texts, labels, label_texts)
        return self

    def _get_state(self) -> persist.State:
        return to_state(self, super()._get_state())

    @classmethod
    def _from_state(cls, state: persist.State) -> Tagger:
        return restore(cls(**state.params), state)
