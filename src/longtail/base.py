"""What every estimator shares: parameters, saved state, and the contract of a ranker.

Parameters follow the protocol of scikit-learn, written here rather than inherited: importing it
takes longer than most of our commands run, and its ``clone``, pipelines and grid search need only
these methods, not its base class.
"""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

import numpy as np

from longtail import persist
from longtail._protocols import has_parameters
from longtail._validation import as_features, as_labels, as_width, let_pass
from longtail.answers.label_filter import LabelFilter
from longtail.answers.topk import TopK
from longtail.answers.vocabulary import Vocabulary
from longtail.exceptions import ModelFormatError

__all__ = ["Estimator", "NotFittedError", "Ranker", "take_names", "unfitted"]

Self = TypeVar("Self", bound="Estimator")
SomeEstimator = TypeVar("SomeEstimator")
SomeRanker = TypeVar("SomeRanker", bound="Ranker")


class NotFittedError(ValueError, AttributeError):
    """``fit`` has not been called. What is raised is scikit-learn's error of this name as well."""


def _not_fitted(message: str) -> NotFittedError:
    """Return the error, for code that expects ours and for code that expects scikit-learn's.

    scikit-learn is imported here, when something went wrong, and not with this module.
    """
    error: NotFittedError = _not_fitted_type()(message)
    return error


@lru_cache(maxsize=1)
def _not_fitted_type() -> Any:
    try:
        from sklearn.exceptions import NotFittedError as Theirs
    except ImportError:
        return NotFittedError

    def reduce(self: NotFittedError) -> Any:  # a class made here has no address to be pickled by
        return _not_fitted, self.args

    members = {"__reduce__": reduce, "__module__": __name__, "__doc__": NotFittedError.__doc__}
    return type("NotFittedError", (NotFittedError, Theirs), members)


def unfitted(estimator: SomeEstimator, /, **changes: Any) -> SomeEstimator:
    """Return a copy of an estimator that has learned nothing, with some parameters changed.

    Parameters
    ----------
    estimator : object with ``get_params``
        One of this library, or anybody's; it stays as it is. Nested estimators are shared.
    **changes : object
        Parameters of the copy in place of those of ``estimator``.
    """
    params: dict[str, Any] = estimator.get_params(deep=False)  # type: ignore[attr-defined]
    return type(estimator)(**{**params, **changes})


class Estimator:
    """Parameters stored by ``__init__``; learned state in attributes whose names end in ``_``.

    ``__init__`` stores its arguments under their own names and does nothing else; ``fit`` checks
    them. A subclass sets ``type_tag`` (its name in saved files, listed in ``longtail._models``) and
    extends ``_get_state`` and ``_set_state``.
    """

    type_tag: ClassVar[str]
    _defaults: ClassVar[dict[str, Any]] = {}  # parameters of __init__ by name, in order
    _n_positional: ClassVar[int] = 0  # how many of them may come without a name
    _not_copied: ClassVar[tuple[str, ...]] = ()  # attributes made from the others when needed

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        signature = inspect.signature(cls.__init__)
        named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        own = [p for p in list(signature.parameters.values())[1:] if p.kind in named]
        cls._defaults = {p.name: p.default for p in own}
        cls._n_positional = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in own)
        # So that help() and editors show the parameters, and not those of __new__ below.
        cls.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]

    def __new__(cls, *args: Any, **params: Any) -> Any:
        """Refuse unknown and unnamed parameters with a message that names the known ones."""
        if len(args) > cls._n_positional:
            raise TypeError(
                f"{cls.__name__} takes its parameters by name: write {cls.__name__}(name=value)"
            )
        for name in params:
            if name not in cls._defaults:
                raise TypeError(_unknown(cls, name))
        return super().__new__(cls)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return parameters by name; with ``deep``, those of nested estimators as
        ``outer__inner``.

        Parameters
        ----------
        deep : bool, default=True
            Also those of nested estimators.
        """
        out: dict[str, Any] = {}
        for name in self._defaults:
            value = getattr(self, name)
            out[name] = value
            if deep and has_parameters(value):
                out.update({f"{name}__{key}": inner for key, inner in value.get_params().items()})
        return out

    def set_params(self: Self, **params: Any) -> Self:
        """Set parameters by name (``outer__inner`` for nested estimators).

        Unknown names are refused before any is set. Learned state stays until the next ``fit``.

        Parameters
        ----------
        **params : object
            Parameters by name.
        """
        for name in params:
            if name.partition("__")[0] not in self._defaults:
                raise ValueError(_unknown(type(self), name))
        nested: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            head, _, tail = name.partition("__")
            if tail:
                nested.setdefault(head, {})[tail] = value
            else:
                setattr(self, name, value)
        for head, inner in nested.items():  # after the plain ones, which may replace the estimator
            estimator = getattr(self, head)
            if not hasattr(estimator, "set_params"):
                raise ValueError(
                    f"cannot set {head}__{next(iter(inner))}: "
                    f"{head} of {type(self).__name__} is {estimator!r}, which has no parameters"
                )
            estimator.set_params(**inner)
        return self

    def __repr__(self) -> str:
        """Return the call that makes this estimator; parameters at their defaults are left out."""
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if repr(value) != repr(self._defaults[name])
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in self._not_copied}

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True, multi_output=True),
            classifier_tags=ClassifierTags(multi_label=True),
            input_tags=InputTags(sparse=True),
        )

    def __sklearn_is_fitted__(self) -> bool:
        # From the last attribute on: parameters are set first, and this is asked in every call.
        return any(n.endswith("_") and not n.startswith("_") for n in reversed(vars(self)))

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise _not_fitted(f"this {type(self).__name__} is not fitted yet: call fit first")

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fitted estimator to the directory ``path``, all of it or nothing.

        Parameters
        ----------
        path : str or path
            ``longtail.load`` reads it back; ``longtail.persist`` tells the format.
        overwrite : bool
            Whether to replace a model that is there. Without it, a folder that is not empty is
            refused.
        """
        self._check_fitted()
        persist.save(path, self._get_state(), overwrite=overwrite)

    def _get_state(self) -> persist.State:
        """Return the type tag and parameters; subclasses add what they have learned."""
        return persist.State(self.type_tag, self.get_params(deep=False))

    @classmethod
    def _from_state(cls: type[Self], state: persist.State) -> Self:
        self: Self = cls(**state.params)
        self._set_state(state)
        return self

    def _set_state(self, state: persist.State) -> None:
        """Take over what ``_get_state`` stored, read through the checks of ``persist.State``."""
        raise NotImplementedError(f"{type(self).__name__} cannot be loaded")


class Ranker(Estimator):
    """An estimator that ranks labels.

    Subclasses implement ``_fit(X, Y, **options)`` and ``_predict_topk(X, k)``, whose arguments are
    canonical (see ``longtail._validation``) and 1 <= k <= ``n_labels_``; ``_fit`` sets its
    attributes last, so that an interrupted ``fit`` leaves the estimator as it was. A subclass whose
    ``fit`` takes options passes them on to ``_learn``. ``_predict_allowed`` is the search under a
    label filter; one that looks inside the model is quicker than the one here. ``_rows`` is the
    door for inputs: features here, texts for the rankers of ``longtail.text``.

    After ``fit``: ``n_features_in_``, ``n_labels_``.
    """

    reads_texts: ClassVar[bool] = False
    reads_blocks: ClassVar[bool] = (
        False  # rows of ``longtail.features.beside`` as they are, not as CSR
    )
    n_features_in_: int
    n_labels_: int
    label_names_: Vocabulary | None = None

    def fit(self: SomeRanker, X: Any, Y: Any) -> SomeRanker:
        """Learn from features ``X`` (n, d) and labels ``Y`` (n, L).

        Parameters
        ----------
        X : sparse matrix, array or data frame of shape (n, d)
            Features; any format of SciPy will do.
        Y : matrix of shape (n, L), or list of lists of int
            An indicator matrix of any of these kinds, or the label ids of each row.

        Returns
        -------
        self
        """
        return self._learn(X, Y)

    def _learn(self: SomeRanker, X: Any, Y: Any, **options: Any) -> SomeRanker:
        """``fit``: bring the data into canonical form, and hand it to ``_fit`` with the options."""
        X = self._rows(X, fitted=False)
        Y = as_labels(Y, n_rows=X.shape[0])
        if X.shape[0] == 0:
            raise ValueError("X has no rows: nothing to learn from")
        if Y.shape[1] == 0:
            raise ValueError("Y has no labels: nothing to learn")
        self._fit(let_pass(X), let_pass(Y, labels=True), **options)
        self._forget()
        self._set_sizes(X, Y)
        return self

    def _rows(self, X: Any, *, fitted: bool = True) -> Any:
        """Return inputs in canonical form; those of a fitted ranker must fit it."""
        n_features = self.n_features_in_ if fitted else None
        return as_features(X, n_features=n_features, blocks=self.reads_blocks)

    def _set_sizes(self, X: Any, Y: Any) -> None:
        self.n_features_in_, self.n_labels_ = int(X.shape[1]), int(Y.shape[1])

    def _forget(self) -> None:
        """Drop what belongs to an earlier ``fit`` and is not learned by this one."""
        self.label_names_ = None

    def predict_topk(self, X: Any, k: int = 5, *, include: Any = None, exclude: Any = None) -> TopK:
        """Return the k best labels of each row, best first.

        Parameters
        ----------
        X : sparse matrix, array or data frame of shape (n, d)
            Features, as wide as those of ``fit``.
        k : int
            Answers per row. A k above the number of labels and above 1,000 is refused.
        include, exclude : list of labels, one such list per row, mask (L,) or matrix (n, L)
            Labels to choose from, and labels to leave out: ids, or names after ``name_labels``. In
            a sequence of lists, None stands for no list. If k labels are left, k come back.

        Returns
        -------
        TopK
            Equal scores go to the smaller label id. A row with fewer than k answers is padded with
            -1.
        """
        return self._rank(X, k, self._predict_topk, self._predict_allowed, include, exclude)

    def _rank(
        self,
        X: Any,
        k: int,
        search: Callable[[Any, int], TopK],
        filtered: Callable[[Any, int, LabelFilter], TopK] | None = None,
        include: Any = None,
        exclude: Any = None,
    ) -> TopK:
        """Check the arguments, call ``search(X, k)`` or, where there are lists of labels,
        ``filtered(X, k, labels)`` on their canonical form, and pads.
        """
        self._check_fitted()
        k = as_width(k, self.n_labels_)
        X = self._rows(X)
        most = min(k, self.n_labels_)
        labels = LabelFilter.of(
            include,
            exclude,
            n_rows=X.shape[0],
            n_labels=self.n_labels_,
            names=self.label_names_,
        )
        if labels is None:
            found = search(X, most)
        else:
            assert filtered is not None
            found = filtered(X, most, labels)
        return found.padded(k)

    def _predict_allowed(self, X: Any, k: int, labels: LabelFilter) -> TopK:
        """Return the k best allowed labels: asks for more and more answers until they hold
        enough.
        """
        owed = np.minimum(labels.counts(), k)
        wanted = k
        while True:
            wanted = min(self.n_labels_, 2 * wanted)
            found = labels.keep(self._predict_topk(X, wanted), k)
            if wanted == self.n_labels_ or ((found.indices >= 0).sum(axis=1) >= owed).all():
                return found

    def name_labels(self: SomeRanker, names: Any) -> SomeRanker:
        """Give the labels names, in id order; they are saved with the model.

        Label lists may then hold names instead of ids. ``fit`` forgets them.

        Parameters
        ----------
        names : sequence of str
            Names of labels, in the order of their ids.

        >>> from longtail.baselines import Popularity
        >>> model = Popularity().fit([[1.0], [1.0]], [[0, 1], [1]]).name_labels(["cat", "dog"])
        >>> model.predict_topk([[1.0]], k=1, exclude=["dog"]).indices
        array([[0]], dtype=int32)
        """
        self._check_fitted()
        names = names if isinstance(names, Vocabulary) else Vocabulary(names)
        if len(names) != self.n_labels_:
            raise ValueError(
                f"{len(names)} names were given, but there are {self.n_labels_} labels"
            )
        self.label_names_ = names
        return self

    def predict(self, X: Any, k: int = 5) -> Any:
        """Return the k best labels of each row as a binary CSR matrix (n, L), as scikit-learn
        expects.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows of features.
        k : int, default=5
            Answers per row.
        """
        return self.predict_topk(X, k).to_csr(binary=True)

    def score(self, X: Any, Y: Any, k: int = 1) -> float:
        """Return precision at k, the mean share of the k best labels that are true.

        This is what grid search maximises.

        ``longtail.evaluate`` says much more, also about rare labels.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows of features.
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        k : int, default=1
            Answers per row.
        """
        top = self.predict_topk(X, k)
        Y = as_labels(Y, n_rows=len(top))
        if not len(top):
            return 0.0
        width = max(self.n_labels_, Y.shape[1])  # labels the model has never seen are missed
        chosen = top.to_csr(binary=True)
        chosen.resize(len(top), width)
        Y = Y.copy()
        Y.resize(len(top), width)
        return float(chosen.multiply(Y).sum() / (len(top) * k))

    def _fit(self, X: Any, Y: Any, *args: Any, **options: Any) -> None:
        raise NotImplementedError

    def _predict_topk(self, X: Any, k: int) -> TopK:
        raise NotImplementedError

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        state.meta.update(n_features=self.n_features_in_, n_labels=self.n_labels_)
        if self.label_names_ is not None:
            state.put_strings("label_name", self.label_names_)
        return state

    def _set_state(self, state: persist.State) -> None:
        self.n_features_in_ = state.count("n_features")
        self.n_labels_ = state.count("n_labels")
        self.label_names_ = take_names(state, self.n_labels_)


def _unknown(cls: type[Estimator], name: str) -> str:
    known = list(cls._defaults)
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    has = f"it has {', '.join(known)}" if known else "it has none"
    return f"{cls.__name__} has no parameter {name!r}: {has}{hint}"


def take_names(state: persist.State, n_labels: int) -> Vocabulary | None:
    """Return the label names of a state, or None where it has none.

    Parameters
    ----------
    state : State
        A saved ranker.
    n_labels : int
        How many names there must be.
    """
    if "label_names" not in state.arrays:
        return None
    try:
        return Vocabulary(state.strings("label_name", n_labels))
    except ValueError as error:
        raise ModelFormatError(f"label names cannot be read: {error}") from None
