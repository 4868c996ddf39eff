"""What is learned from answers to texts that the model has not seen: probabilities, and rules.

With few texts, and nothing but probabilities to learn, the model is fitted again without each of
five parts in turn and asked about that part. Otherwise a copy is fitted without a tenth of them (at
most ``MOST_HELD_OUT``) and asked about those; the curve from its scores to probabilities, and the
decision rule, then serve the model that learned from all.
"""

from __future__ import annotations

import logging
import os
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail._protocols import gives_probabilities, has_parameters
from longtail._validation import as_seed
from longtail.decide.rule import CountingRule, LearningRule
from longtail.features.mapped_rows import take_rows
from longtail.tagger.fitting import copied, fit_ranker
from longtail.tagger.label_rows import LabelRows

__all__ = ["CANDIDATES", "Curve", "learn_from_held_out"]

log = logging.getLogger(__name__)

CANDIDATES = 100  # labels among which a rule or the tail weight chooses
FEWEST = 30  # rows below which nothing can be said
FEW = 2000  # rows up to which five more trainings are nothing
MOST_HELD_OUT = 10_000


class Curve(NamedTuple):
    """From scores to probabilities: the curve, and how it was made; or the fusion of an ensemble,
    whose scores are probabilities.
    """

    calibrator: Any
    calibration: dict[str, Any] | None
    fusion: Any = None

    @classmethod
    def of(cls, model: Any) -> Curve | None:
        """Return the curve of a model; None where it has none."""
        fusion = getattr(model, "fusion_", None)
        if getattr(model, "calibrator_", None) is None and fusion is None:
            return None
        return cls(model.calibrator_, model.calibration_, fusion)


def learn_from_held_out(
    model: Any,
    X: Any,
    Y: sp.csr_matrix,
    *,
    label_rows: LabelRows | None,
    calibrate: bool,
    rule: Any,
    random_state: Any,
    checkpoint: str | os.PathLike[str] | None = None,
    curve: Curve | None = None,
    label_texts: list[str] | None = None,
) -> Any:
    """Calibrate the fitted model, if asked to and it can be; return the rule, fitted if it fits.

    ``X``, ``Y``: the rows the model was fitted on; ``label_rows``: further rows of the training
    that are no texts of the kind it will be asked about, and are never held out. ``curve``: that
    of the same model fitted on a part of these rows, which is taken over. ``label_texts``: as in
    ``fit_ranker``.
    """
    n = X.shape[0]
    if has_parameters(rule) or isinstance(
        rule, type
    ):  # what it learns or counts is the tagger's own
        rule = copied(rule)
    if isinstance(rule, CountingRule):
        rule.reset(Y.shape[1])
    needed = calibrate and hasattr(model, "calibrate") and not gives_probabilities(model)
    learns = isinstance(rule, LearningRule)
    if learns and n < FEWEST:
        raise ValueError(
            f"{type(rule).__name__} learns from held-out texts, and of {n} too few can be held out"
        )
    if n < FEWEST or not (needed or learns):
        return rule
    if curve is not None and not learns:
        log.info("probabilities: from the curve of the model that was measured")
        model.calibrator_, model.calibration_ = curve.calibrator, curve.calibration
        return rule
    seed = as_seed(random_state) % 2**31
    if needed and not learns and n <= FEW and label_rows is None:
        log.info("probabilities: from the answers of five copies, each fitted without a fifth")
        how = {} if label_texts is None else {"label_texts": label_texts}
        model.calibrate(X, Y, folds=5, random_state=seed, **how)
        return rule
    held_out = np.zeros(n, bool)
    size = min(max(n // 10, FEWEST // 3), MOST_HELD_OUT)
    held_out[np.random.default_rng(seed).permutation(n)[:size]] = True
    what = "probabilities" if needed else "the rule"
    log.info("%s: from answers to %s texts of a copy fitted without them", what, f"{size:,}")
    rest = ~held_out
    copy = fit_ranker(
        copied(model), take_rows(X, rest), Y[rest], label_rows, checkpoint, "held-out", label_texts
    )
    if needed:
        copy.calibrate(X[held_out], Y[held_out], random_state=seed)
        model.calibrator_, model.calibration_ = copy.calibrator_, copy.calibration_
    if learns:
        if not gives_probabilities(copy):
            raise TypeError(
                f"{type(rule).__name__} needs probabilities: {type(model).__name__} has none"
            )
        candidates = copy.predict_proba_topk(X[held_out], CANDIDATES)
        rule.fit(candidates, Y[held_out])
    return rule
