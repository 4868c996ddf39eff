"""What normalisation hides: propensity-scored precision as estimated, and as reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longtail import metrics
from longtail.metrics.propensity_scored import inverse_propensities
from longtail.propensity.base import model_name
from longtail.report.formatting import per_cent, printable
from longtail.report.measure import as_ks
from longtail.report.plain import to_plain
from longtail.report.templates import render

__all__ = ["PSPDiagnostic", "PSPRow", "psp_diagnostic"]


@dataclass(frozen=True)
class PSPRow:
    """PSP of one propensity model at one k.

    ``unnormalised``: the estimate of P@k on complete labels. ``ideal``: the same for the ranking
    that PSP likes best; ``normalised`` = unnormalised / ideal, what the literature reports.
    ``complete``: P@k on complete labels, where known.
    """

    model: str
    k: int
    normalised: float
    unnormalised: float
    ideal: float
    complete: float | None


@dataclass(frozen=True, repr=False)
class PSPDiagnostic:
    """Rows by model and k, and per model what it claims of the data.

    ``implied_labels``: relevant labels per row, by model, if its propensities were right (mean of
    the sum of 1/p over observed labels); ``observed_labels`` per row. ``warnings`` say in words
    what contradicts itself.
    """

    rows: tuple[PSPRow, ...]
    observed_labels: float
    implied_labels: dict[str, float]
    warnings: tuple[str, ...]

    def as_rows(self) -> list[list[str]]:
        """Return the names of the columns, then the cells of every row, in per cent."""
        known = any(row.complete is not None for row in self.rows)
        heads = ["model", "k", "normalised", "unnormalised", "best possible"]
        table = [heads + ["P, complete labels"] * known]
        for row in self.rows:
            values = [per_cent(v) for v in (row.normalised, row.unnormalised, row.ideal)]
            if known:
                values.append("" if row.complete is None else per_cent(row.complete))
            table.append([row.model, str(row.k), *values])
        return table

    def __str__(self) -> str:
        return render("psp.txt", psp=self)

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return to_plain(self)


def psp_diagnostic(
    Y_true: Any,
    top: Any,
    propensity: Any,
    *,
    k: int | Sequence[int] = (1, 3, 5),
    Y_complete: Any = None,
) -> PSPDiagnostic:
    """Set normalised against unnormalised PSP, for one or several propensity models.

    If labels go missing as a model says, unnormalised PSP@k on observed labels is an unbiased
    estimate of P@k on complete ones. A precision cannot exceed 1: an estimate above 1 on many rows
    shows that the model is wrong. The literature divides by the best possible value, which hides
    this (PfastreXML on Amazon-670K: 326% at k = 1 becomes 29.9%). The divisor is the same for
    every ranking, so comparisons of models on one data set stand; their meaning does not.

    Parameters
    ----------
    Y_true : matrix of shape (n, L), or list of lists of int
        True labels of the rows.
    top : TopK, matrix of scores, or lists of ids
        The answers, best first.
    propensity : model, array of shape (L,), or mapping of str to these
        A fitted model, a vector, or a mapping from names to either.
    k : int or sequence of int, default=(1, 3, 5)
        Cut-offs.
    Y_complete : matrix of shape (n, L), default=None
        Complete labels of the same rows, where some were queried; then the estimate can be
        checked.

    >>> found = psp_diagnostic([[0], [1]], [[0.9, 0.1], [0.2, 0.8]], {"even": [0.5, 0.5]}, k=1)
    >>> [(row.normalised, row.unnormalised) for row in found.rows]
    [(1.0, 2.0)]
    >>> found.warnings[0].startswith("even: ")
    True

    E. Schultheis, Addressing statistical and computational challenges in extreme multilabel
    classification, doctoral thesis, Aalto University 2025, section 3.4 and table 3.1.
    """
    ks = as_ks(k)
    models = propensity if isinstance(propensity, Mapping) else {model_name(propensity): propensity}
    if not models:
        raise ValueError("propensity is an empty mapping: give at least one model")
    matches = metrics.match(Y_true, top, max(ks))
    complete = None
    if Y_complete is not None:
        truth = metrics.match(Y_complete, matches.top, max(ks))
        complete = {k: metrics.precision_at_k(None, truth, k=k) for k in ks}
    counts = matches.label_counts(ks[0]).positives
    n_rows = max(matches.n_rows, 1)
    rows, implied, warnings = [], {}, []
    for name, model in models.items():
        inverse = inverse_propensities(model, matches.n_labels)
        implied[str(name)] = float(counts @ inverse) / n_rows
        beyond = []
        for k in ks:
            terms = metrics.ps_precision_at_k.rows(None, matches, model, k=k)
            assert terms.denominator is not None  # it is normalised
            unnormalised = float(terms.numerator.sum()) / n_rows
            ideal = float(terms.denominator.sum()) / n_rows
            known = None if complete is None else complete[k]
            rows.append(PSPRow(str(name), k, terms.value(), unnormalised, ideal, known))
            if unnormalised > 1.0:
                beyond.append(f"{100 * unnormalised:.1f}% at k = {k}")
        if beyond:
            warnings.append(
                f"{printable(str(name))}: unnormalised PSP is {', '.join(beyond)}. A precision "
                "cannot exceed 100%: these propensities do not fit the data."
            )
    return PSPDiagnostic(tuple(rows), float(counts.sum()) / n_rows, implied, tuple(warnings))
