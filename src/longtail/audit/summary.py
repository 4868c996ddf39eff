"""``Audit``: what an audit found, as plain data, with its renderings."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

from longtail.audit.ceiling import FrequencyGroup
from longtail.audit.missing import Suspect
from longtail.report.psp import PSPDiagnostic
from longtail.report.table import align, bullet, count_range, per_cent, printable

__all__ = ["Audit", "PropensityFit", "group_rows"]

_SHOWN = 10


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
class Audit:
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

    def __str__(self) -> str:
        rate = self.expected_missing / self.n_positives
        lines = [
            printable(self.title),
            f"{self.n_rows:,} rows, {self.n_labels:,} labels, {self.n_positives:,.0f} observed "
            f"positives, {self.n_examined:,} pairs examined",
            f"Probably missing, under {printable(self.propensity)}: {self.expected_missing:,.0f} "
            f"({per_cent(rate)}% of what is observed)",
        ]
        if self.missing:
            lines += ["", f"The {min(_SHOWN, len(self.missing))} most suspicious", self._suspects()]
        for fit in self.fits:
            lines += ["", f"{printable(fit.model)}, head to tail, in per cent", _groups(fit)]
        lines += ["", str(self.psp)]
        known = set(self.psp.warnings)
        lines += [bullet(text) for text in self.warnings if text not in known]
        return "\n".join(lines)

    __repr__ = __str__

    def _suspects(self) -> str:
        rows = [["label", "row", "missing", "observed", "propensity"]]
        for s in self.missing[:_SHOWN]:
            name = f"label {s.label}" if s.name is None else printable(s.name)
            rows.append(
                [
                    name,
                    str(s.row),
                    f"{s.probability:.3f}",
                    f"{s.proba:.3f}",
                    f"{s.propensity:.3f}",
                ]
            )
        return align(rows)

    def _repr_html_(self) -> str:
        from longtail.audit.page import fragment

        return fragment(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "title": self.title,
            "n_rows": self.n_rows,
            "n_labels": self.n_labels,
            "n_positives": self.n_positives,
            "n_examined": self.n_examined,
            "propensity": self.propensity,
            "expected_missing": self.expected_missing,
            "missing": [asdict(suspect) for suspect in self.missing],
            "psp": self.psp.to_dict(),
            "fits": [
                {
                    "model": fit.model,
                    "above": fit.above,
                    "groups": [
                        {**asdict(group), "is_refuted": group.is_refuted} for group in fit.groups
                    ],
                }
                for fit in self.fits
            ],
            "warnings": list(self.warnings),
            "settings": dict(self.settings),
        }

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return a page with no outside address; also written to ``path`` if one is given.

        Parameters
        ----------
        path : str or path, default=None
            Where to write it; None only returns it.
        """
        from longtail.audit.page import page
        from longtail.report.markup import written

        return written(page(self), path)


def group_rows(fit: PropensityFit) -> list[list[str]]:
    """Return the cells of every group of labels, its name first; a refuted one ends in "!"."""
    return [
        [
            g.name,
            count_range(g.min_count, g.max_count),
            f"{g.observed:,.0f}",
            f"{g.implied:,.0f}",
            f"{g.found:,.0f}",
            f"{g.n_confident:,}",
            per_cent(g.hit_rate),
            per_cent(g.ceiling) + (" !" if g.is_refuted else ""),
        ]
        for g in fit.groups
    ]


def _groups(fit: PropensityFit) -> str:
    heads = "labels,count,observed,implied,found,confident,of them observed,at most"
    return align([heads.split(","), *group_rows(fit)])
