"""``Report``: everything an evaluation found, as plain data, with its renderings."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from longtail.report.calibration import Calibration
from longtail.report.facts import Facts
from longtail.report.measure import Measurement
from longtail.report.parts import PartResult
from longtail.report.rules import RuleResult
from longtail.report.slices import Bin, Label
from longtail.report.trust import Note

__all__ = ["Report"]


@dataclass(frozen=True, repr=False)
class Report:
    """The result of ``longtail.evaluate``. Printing it gives a table; values are fractions.

    ``metrics`` maps names such as ``P@1`` to a ``Measurement``; ``report["P@1"]`` is its value.
    ``bins`` go from head to tail; ``missed`` and ``overpredicted`` list single labels;
    ``propensity`` holds the constants behind propensity-scored numbers; ``warnings`` what not to
    trust; ``settings`` how the intervals and bins were made; ``calibration`` how far the scores can
    be trusted as probabilities, where they were said to be some; ``rules`` what other decision
    rules make of the same rows, the report's own answers first; ``parts`` what every part of a
    fused model adds, the whole first; ``labels`` the table of single labels, from frequent to rare;
    ``measured_on`` says in words which rows these are, where that is known; ``provenance`` when and
    by which command it was made, of which file, where a command made it.
    """

    title: str
    ks: tuple[int, ...]
    facts: Facts
    metrics: dict[str, Measurement]
    bins: tuple[Bin, ...]
    missed: tuple[Label, ...]
    overpredicted: tuple[Label, ...]
    propensity: dict[str, Any] | None
    warnings: tuple[Note, ...]
    settings: dict[str, Any]
    calibration: Calibration | None = None
    rules: tuple[RuleResult, ...] = ()
    parts: tuple[PartResult, ...] = ()
    labels: tuple[Label, ...] = ()
    measured_on: str = ""
    provenance: dict[str, Any] | None = None

    def __getitem__(self, name: str) -> float:
        if name.startswith("abandonment@"):
            new = name.replace("abandonment", "hit rate")
            text = f"{name!r} is called {new!r} now; the old name will go"
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            name = new
        try:
            return self.metrics[name].value
        except KeyError:
            known = ", ".join(self.metrics)
            raise KeyError(f"this report has no {name!r}; it has {known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def __str__(self) -> str:
        from longtail.report.table import text

        return text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from longtail.report.page import fragment

        return fragment(self)

    def to_dict(self, *, labels: bool = False) -> dict[str, Any]:
        """Return plain JSON values. ``metrics`` maps ``P@1`` to ``{"value": 0.8, "ci": [0.78,
        0.82]}``, ``meanings`` its symbol ``P`` to what it says; with ``labels``, the table of
        single labels too. Coverage of a bin, and of a bin of a rule, is over its labels present in
        the test rows.

        Parameters
        ----------
        labels : bool, default=False
            Also the table of single labels.
        """
        from longtail.report.catalogue import CATALOGUE

        used = {m.symbol for m in self.metrics.values()}
        listed = {"table": [_plain(asdict(label)) for label in self.labels]} if labels else {}
        return {
            "title": self.title,
            "measured_on": self.measured_on,
            "k": list(self.ks),
            "metrics": {
                name: {"value": m.value, "ci": None if m.low is None else [m.low, m.high]}
                for name, m in self.metrics.items()
            },
            "meanings": {e.symbol: e.meaning for e in CATALOGUE if e.symbol in used},
            "bins": [_plain(asdict(b)) for b in self.bins],
            "labels": {
                "missed": [_plain(asdict(label)) for label in self.missed],
                "overpredicted": [_plain(asdict(label)) for label in self.overpredicted],
                **listed,
            },
            "rules": [_plain(asdict(rule)) for rule in self.rules],
            "parts": [_plain(asdict(part)) for part in self.parts],
            "data": _plain(asdict(self.facts)),
            "propensity": self.propensity,
            "calibration": None if self.calibration is None else _plain(asdict(self.calibration)),
            "warnings": [_plain(asdict(note)) for note in self.warnings],
            "settings": dict(self.settings),
            "provenance": None if self.provenance is None else dict(self.provenance),
        }

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return a page without any outside address; also written to ``path`` if one is given.

        Parameters
        ----------
        path : str or path, default=None
            Where to write it; None only returns it.
        """
        from longtail.report.markup import written
        from longtail.report.page import page

        return written(page(self), path)


def _plain(value: Any) -> Any:
    """JSON knows neither tuples nor keys that are numbers."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
