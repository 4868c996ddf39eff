"""How ``train``, ``compare``, ``tune`` and ``demo`` fit and measure: one way for all.

Where the data has no test split, rows are set aside by a plain draw: every row has the same chance.
Labels whose only rows are drawn are unknown to the model that is measured, and count as missed, as
they will be when new texts bring labels that no training text had. A draw that leaves rare labels
alone would be kinder to the model, and to the number: the rows that are left to measure on are
easier ones. Afterwards the model is fitted again, on all rows.
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longtail.cli.output import note

if TYPE_CHECKING:
    from longtail.data import Dataset, Split

__all__ = [
    "dev_rows",
    "fit_plan",
    "leaning",
    "measure",
    "measured_on",
    "plans",
    "set_aside",
    "told",
]

FEWEST = 10  # rows of which some can be set aside


def set_aside(dataset: Dataset, size: float, seed: int) -> Dataset:
    """Return the data set with a test split drawn at random from its training rows, if it has none.

    ``whole`` of the result are the training rows with those set aside.
    """
    import numpy as np

    n = len(dataset.train)
    if len(dataset.test) or not size:
        return dataset
    if n < FEWEST:
        note(f"{n} rows are too few to set some aside: nothing is measured")
        return dataset
    n_test = max(1, math.floor(size * n + 0.5))
    drawn = np.zeros(n, bool)
    drawn[np.random.default_rng(seed).permutation(n)[:n_test]] = True
    train = _take(dataset.train, np.flatnonzero(~drawn))
    if not train.Y.nnz:
        note("without some of the rows there are no labels to learn: nothing is measured")
        return dataset
    return replace(
        dataset, train=train, test=_take(dataset.train, np.flatnonzero(drawn)), whole=dataset.train
    )


def _take(split: Split, rows: Any) -> Split:
    from longtail.features.mapped_rows import take_rows

    if split.X is None:
        return split.take(rows)
    taken = replace(split, X=None).take(rows)  # mapped features stay on disk
    return replace(taken, X=take_rows(split.X, rows))


def measured_on(dataset: Dataset) -> str:
    """Return what the test split is, in words."""
    if not len(dataset.test):
        return "nothing"
    if dataset.whole is None:
        return f"the test split, {len(dataset.test):,} rows"
    return f"{len(dataset.test):,} of {len(dataset.whole):,} rows, set aside at random"


def plans(dataset: Dataset, params: dict[str, Any]) -> tuple[Any, Any]:
    """Return the plan for the training rows, and the plan for those with the rows set aside.

    Both have the vectoriser and the model that suit all rows, so that what is measured is what is
    fitted in the end. They are the same plan where no rows were set aside.
    """
    from longtail.tagger import Tagger

    if not len(dataset.train):
        raise ValueError(f"{dataset.name} has no training rows")

    def plan(split: Split) -> Any:
        return Tagger(**params).plan(
            split.inputs, split.Y, label_names=dataset.label_names, label_texts=dataset.label_texts
        )

    if dataset.whole is None:
        only = plan(dataset.train)
        return only, only
    whole = plan(dataset.whole)
    return plan(dataset.train).like(whole), whole


def dev_rows(dataset: Dataset, plan: Any, params: dict[str, Any]) -> Any:
    """Return the dev split for a model that learns from one, in the ids of a plan, or None."""
    from longtail.tagger.truth import as_truth

    if dataset.dev is None or not len(dataset.dev) or params.get("quality") != "best":
        return None
    note(f"the parts are weighed on the dev split, {len(dataset.dev):,} rows")
    return dataset.dev.inputs, as_truth(dataset.dev.Y, plan.labels.vocabulary, dataset.label_names)


def fit_plan(
    plan: Any,
    params: dict[str, Any],
    checkpoint: Path | None = None,
    curve: Any = None,
    validation: Any = None,
) -> tuple[Any, float]:
    """Return a tagger fitted by a plan, and the seconds that took."""
    from longtail.tagger import Tagger

    began = time.perf_counter()
    tagger = Tagger(**params)
    rows = tagger.rows(plan)
    tagger.fit_rows(rows, checkpoint=checkpoint, curve=curve, validation=validation)
    return tagger, time.perf_counter() - began


def measure(
    tagger: Any,
    dataset: Dataset,
    top: Any,
    *,
    among: Any = None,
    then: str = "",
    title: str | None = None,
    **options: Any,
) -> Any:
    """Return the report on the answers ``top`` to the test split.

    ``among``: names of the labels to measure among, where these are more than the tagger knows;
    ``then``: what becomes of the model afterwards; ``options`` of ``Tagger.measure``.
    """
    split = dataset.test
    truth = tagger.truth(split.Y, dataset.label_names, split.unknown_labels, among=among)
    measured = tagger.measure(
        truth,
        top,
        seen=tagger.trained_on(split.inputs),
        k=(1, 3, 5),
        title=title or dataset.name,
        **options,
    )
    measured = tagger.with_parts(measured, split.inputs, truth, top)
    return replace(measured, measured_on=measured_on(dataset) + then)


def leaning(tagger: Any, dataset: Dataset, top: Any, *, among: Any = None) -> Any:
    """Return what leaning towards rare labels does on the test split, for the page."""
    split = dataset.test
    truth = tagger.truth(split.Y, dataset.label_names, split.unknown_labels, among=among)
    return tagger.lean_curve(split.inputs, truth, plain=top)


class _Notes(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        own = record.name == "longtail.tagger.tagger"  # it speaks of its choice of a model
        if text not in self.said:  # a model that is fitted twice is announced once
            note(f"model: {text}" if own else text)
        self.said.add(text)


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Print what the tagger says about its choice, as notes, when it says it."""
    handler = _Notes()
    log = logging.getLogger("longtail.tagger")
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
