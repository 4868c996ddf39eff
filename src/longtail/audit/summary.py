"""``Audit``: what an audit found, as plain data, with its renderings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from longtail.audit.ceiling import FrequencyGroup
from longtail.audit.missing import Suspect
from longtail.report.formatting import count_range, per_cent, printable
from longtail.report.plain import to_plain
from longtail.report.psp import PSPDiagnostic
from longtail.report.templates import Rendered

__all__ = ["Audit", "PropensityFit"]


@dataclass(frozen=True)
class PropensityFit:
    """How a propensity model agrees with the answers: ``groups`` from head to tail, and the share
    ``above`` of examined pairs whose probability of being observed exceeds the propensity.
    """

    model: str
    groups: tuple[FrequencyGroup, ...]
    above: float

    @property
    def is_refuted(self) -> bool:
        """Whether labels of some frequency are observed more often than the model allows."""
        return any(group.is_refuted for group in self.groups)


@dataclass(frozen=True, repr=False)
class Audit(Rendered):
    """The result of ``longtail.audit.find_missing``. Printing it gives a table.

    ``missing``: the suspects, most probable first; ``expected_missing``: how many of the
    ``n_examined`` pairs are relevant but absent, under the ``propensity`` model named; ``psp``:
    normalised against unnormalised PSP of the out-of-fold answers; ``fits``: one
    ``PropensityFit`` a propensity model; ``warnings``: what contradicts itself.
    """

    title: str
    n_rows: int
    n_labels: int
    n_positives: float
    n_examined: int
    propensity: str
    expected_missing: float
    missing: tuple[Suspect, ...]
    psp: PSPDiagnostic
    fits: tuple[PropensityFit, ...]
    settings: dict[str, Any]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Contradictions between the propensities and the data, in words."""
        out = list(self.psp.warnings)
        for fit in self.fits:
            for group in fit.groups:
                if group.is_refuted:
                    counts = count_range(group.min_count, group.max_count)
                    out.append(
                        f"{printable(fit.model)}: of the {group.n_confident:,} most confident "
                        f"answers among labels with {counts} positives, "
                        f"{per_cent(group.hit_rate)}% are observed, but their propensities allow "
                        f"{per_cent(group.ceiling)}% at most. Fewer labels are missing there than "
                        "this model says."
                    )
        return tuple(out)

    def _shown(self) -> tuple[str, dict[str, Any]]:
        sure = sum(suspect.probability >= 0.5 for suspect in self.missing)
        return "audit", {
            "title": self.title,
            "audit": self,
            "share": per_cent(self.expected_missing / self.n_positives),
            "n_sure": sure,
            "suspect_rows": _suspect_rows,
            "group_rows": _group_rows,
            "sortable": bool(self.missing),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        plain = to_plain(self)
        for fit, shown in zip(self.fits, plain["fits"], strict=True):
            for group, values in zip(fit.groups, shown["groups"], strict=True):
                values["is_refuted"] = group.is_refuted
        return {**plain, "warnings": list(self.warnings)}


def _suspect_rows(suspects: Sequence[Suspect]) -> list[list[str]]:
    """Return the names of the columns, then the cells of every suspect."""
    rows = [["label", "row", "missing", "observed", "propensity"]]
    for s in suspects:
        name = f"label {s.label}" if s.name is None else s.name
        shares = (s.probability, s.proba, s.propensity)
        rows.append([name, str(s.row), *(f"{value:.3f}" for value in shares)])
    return rows


def _group_rows(fit: PropensityFit, *, short: bool = False) -> list[list[str]]:
    """Return the names of the columns, then the cells of every group of labels; a refuted one ends
    in "!".
    """
    counted = ["training count", "observed", "implied missing", "found", "confident pairs"]
    if short:
        counted = ["count", "observed", "implied", "found", "confident"]
    rows = [["labels", *counted, "of them observed", "at most"]]
    for g in fit.groups:
        counts = [f"{n:,.0f}" for n in (g.observed, g.implied, g.found, g.n_confident)]
        ceiling = per_cent(g.ceiling) + (" !" if g.is_refuted else "")
        span = count_range(g.min_count, g.max_count)
        rows.append([g.name, span, *counts, per_cent(g.hit_rate), ceiling])
    return rows
