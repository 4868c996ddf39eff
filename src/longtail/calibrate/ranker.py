"""``ProbabilityRanker``: a ranker whose scores can be calibrated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from longtail import persist
from longtail._native import core, csr_args, n_threads
from longtail._validation import as_k, as_labels
from longtail.answers.topk import TopK
from longtail.base import Ranker
from longtail.calibrate.calibrator import Calibrator
from longtail.calibrate.choice import METHODS, choose
from longtail.calibrate.out_of_fold import cross_fit
from longtail.exceptions import ModelFormatError

__all__ = ["ProbabilityRanker"]

Self = TypeVar("Self", bound="ProbabilityRanker")


class ProbabilityRanker(Ranker):
    """A ``Ranker`` with ``calibrate`` and, once that was called, ``predict_proba_topk``.

    After ``calibrate``: ``calibrator_`` and ``calibration_``, a dictionary that says how it was
    made (method, k, pairs, held-out log-loss of every method). Both are saved; ``fit`` forgets
    them.
    """

    calibrator_: Calibrator | None = None
    calibration_: dict[str, Any] | None = None

    def calibrate(
        self: Self,
        X: Any,
        Y: Any,
        *,
        k: int = 5,
        method: str = "auto",
        folds: int | None = None,
        random_state: int = 0,
        **fit_options: Any,
    ) -> Self:
        """Learn what scores mean, so that ``predict_proba_topk`` can tell.

        On rows the model has not seen, its k best answers are compared with the truth, and a rising
        curve from score to probability is fitted to these pairs (``longtail.calibrate``).

        Parameters
        ----------
        X, Y : matrices of shape (n, d) and (n, L)
            Held-out rows; or, with ``folds``, the rows the model was fitted on: copies of it are
            fitted without each fold in turn and asked about it (cross-fitting), which costs
            ``folds`` trainings and no data.
        k : int
            Answers per row. Among pairs of equal score those far down are right less often, so
            calibrate with the k you will ask for.
        method : str
            "platt", "beta", "isotonic", or "auto": the least held-out log-loss.
        folds : int or None
            Parts of the rows; None asks the model itself, about held-out rows.
        random_state : int, Generator, RandomState or None
            Seed of the folds.
        **fit_options : object
            With ``folds``, what else the copies' ``fit`` takes (``label_features``);
            ``sample_weight`` and ``extra_rows`` are cut to the rows of each copy.

        >>> import longtail as lt
        >>> data = lt.data.make_longtail(n=600, d=100, L=30, n_test=300, random_state=0)
        >>> model = lt.OneVsAll().fit(data.train.X, data.train.Y)
        >>> model = model.calibrate(data.train.X, data.train.Y, folds=3)
        >>> proba = model.predict_proba_topk(data.test.X, k=3).scores
        >>> bool(proba.min() >= 0 and proba.max() <= 1)
        True
        """
        self._check_fitted()
        k = min(as_k(k), self.n_labels_)
        X = self._rows(X)
        Y = as_labels(Y, n_rows=X.shape[0], n_labels=self.n_labels_)
        if folds is not None:
            top = cross_fit(self, X, Y, k, folds, random_state, **fit_options)
        elif fit_options:
            raise TypeError(f"{', '.join(fit_options)}: only with folds is anything fitted")
        else:
            top = self.predict_topk(X, k)
        hits = core.match_gains(csr_args(Y), top.indices, n_threads(None))
        answered = top.indices >= 0
        rows = np.broadcast_to(np.arange(len(top))[:, None], answered.shape)[answered]
        choice = choose(
            top.scores[answered], hits[answered], rows, method=method, random_state=random_state
        )
        self.calibrator_ = choice.calibrator
        self.calibration_ = {
            "method": choice.calibrator.name,
            "k": k,
            "n_rows": len(top),
            "n_pairs": len(rows),
            "folds": folds,
            "held_out_log_loss": choice.losses,
        }
        return self

    @property
    def predict_proba_topk(self) -> Callable[..., TopK]:
        """The k most probable labels: ``model.predict_proba_topk(X, k=5)``, with the keywords of
        ``predict_topk``.

        Only after ``calibrate``, or where the scores are estimates of probabilities themselves;
        else there is no such attribute. The order is that of ``predict_topk``, except that equal
        probabilities go to the smaller label id. Probabilities of a row need not add up to
        anything: labels do not exclude one another. Their sum is the expected number of true labels
        among the answers.
        """
        if self.calibrator_ is None and not self._scores_are_probabilities():
            raise AttributeError(self._why_no_probabilities())
        return self._proba_topk

    def _proba_topk(self, X: Any, k: int = 5, **how: Any) -> TopK:
        top = self.predict_topk(X, k, **how)
        if self.calibrator_ is None:
            return top
        answered = top.indices >= 0
        proba = self.calibrator_.transform(np.where(answered, top.scores, 0)).astype(np.float32)
        proba[~answered] = -np.inf
        # Curves rise, but for the last bit of rounding.
        proba = np.minimum.accumulate(proba, axis=1)
        if (proba[:, 1:] < proba[:, :-1]).all():
            return TopK._trusted(top.indices, proba, top.n_labels)  # no ties: the order stands
        order = np.lexsort((np.where(answered, top.indices, self.n_labels_), -proba), axis=1)
        return TopK._trusted(
            np.take_along_axis(top.indices, order, axis=1),
            np.take_along_axis(proba, order, axis=1),
            top.n_labels,
        )

    def _scores_are_probabilities(self) -> bool:
        """Return whether scores estimate probabilities without calibration."""
        return False

    def _why_no_probabilities(self) -> str:
        return (
            f"scores of this {type(self).__name__} are not probabilities: call calibrate first, "
            "with rows the model has not seen"
        )

    def _forget(self) -> None:
        super()._forget()
        self.calibrator_ = self.calibration_ = None

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        if self.calibrator_ is not None:
            state.meta["calibration"] = self.calibration_
            for name, array in self.calibrator_.arrays().items():
                state.arrays[f"calibrator_{name}"] = array
        return state

    def _set_state(self, state: persist.State) -> None:
        super()._set_state(state)
        made = state.meta.get("calibration")
        if made is None:
            return
        kind = METHODS.get(str(made.get("method"))) if isinstance(made, dict) else None
        if kind is None:
            raise ModelFormatError(f"unknown calibration {made!r}")
        prefix = "calibrator_"
        arrays = {
            name.removeprefix(prefix): array
            for name, array in state.arrays.items()
            if name.startswith(prefix)
        }
        self.calibrator_, self.calibration_ = kind.from_arrays(arrays), made
