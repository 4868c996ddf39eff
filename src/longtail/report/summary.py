"""``Report``: everything an evaluation found, as plain data, with its renderings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from longtail.report.alternatives import PartResult, RuleResult
from longtail.report.calibration import Calibration
from longtail.report.catalogue import CATALOGUE
from longtail.report.facts import Facts
from longtail.report.measure import Measurement
from longtail.report.plain import from_plain, to_plain
from longtail.report.slices import Bin, Label
from longtail.report.templates import Rendered
from longtail.report.trust import Note

__all__ = ["Report"]

_KNOWN = {entry.symbol: entry.meaning for entry in CATALOGUE}


@dataclass(frozen=True, repr=False)
class Report(Rendered):
    """The result of ``longtail.evaluate``. Printing it gives a table; values are fractions.

    ``metrics`` maps names such as ``P@1`` to a ``Measurement``; ``report["P@1"]`` is its value.
    ``bins`` go from head to tail; ``missed`` and ``overpredicted`` list single labels;
    ``propensity`` holds the constants behind propensity-scored numbers; ``warnings`` what not to
    trust; ``settings`` how the intervals and bins were made; ``calibration`` how far the scores can
    be trusted as probabilities, where they were said to be some; ``rules`` what other decision
    rules make of the same rows, the report's own answers first; ``parts`` what every part of a
    fused model adds, the whole first; ``labels`` the table of single labels, from frequent to rare;
    ``lean_curve`` what leaning towards rare labels does, where a tagger measured it;
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
    lean_curve: tuple[dict[str, float], ...] = ()
    measured_on: str = ""
    provenance: dict[str, Any] | None = None

    def __getitem__(self, name: str) -> float:
        try:
            return self.metrics[name].value
        except KeyError:
            known = ", ".join(self.metrics)
            raise KeyError(f"this report has no {name!r}; it has {known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def _shown(self) -> tuple[str, dict[str, Any]]:
        from longtail.report.rendering import shown

        return "report", shown(self)

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
        plain = to_plain(self)
        plain["k"], plain["data"] = plain.pop("ks"), plain.pop("facts")
        plain["metrics"] = {
            name: {"value": m.value, "ci": None if m.low is None else [m.low, m.high]}
            for name, m in self.metrics.items()
        }
        plain["meanings"] = {m.symbol: _KNOWN[m.symbol] for m in self.metrics.values()}
        table = {"table": plain["labels"]} if labels else {}
        plain["labels"] = {name: plain.pop(name) for name in ("missed", "overpredicted")} | table
        return plain

    @classmethod
    def from_dict(cls, values: Any) -> Report:
        """Return the report that ``to_dict(labels=True)`` turned into plain values.

        Metrics that this version does not know are left out. Raises ValueError if the values are
        not those of a report, or if some that belong together do not fit.

        Parameters
        ----------
        values : dict
            What ``to_dict`` returned, from JSON too.

        >>> from longtail.report import evaluate
        >>> report = evaluate([[0], [1]], [[0, 1], [1, 0]], k=1, n_resamples=0)
        >>> Report.from_dict(report.to_dict(labels=True)) == report
        True
        """
        try:
            fields = {**values, **values["labels"]}
            fields |= {"ks": values["k"], "facts": values["data"]}
            fields["labels"] = fields.get("table", ())
            measured = values["metrics"]
            fields["metrics"] = {
                f"{symbol}@{k}": _measurement(symbol, k, measured[f"{symbol}@{k}"])
                for symbol in _KNOWN
                for k in values["k"]
                if f"{symbol}@{values['k'][0]}" in measured
            }
            report = from_plain(cls, fields)
            _check(report)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"these are not the values of a report: {error}") from None
        return report


def _measurement(symbol: str, k: int, values: dict[str, Any]) -> dict[str, Any]:
    low, high = values["ci"] or (None, None)
    return {"symbol": symbol, "k": k, "value": values["value"], "low": low, "high": high}


def _check(report: Report) -> None:
    """Raise ValueError if values that are shown together do not belong together."""
    ks, k = report.ks, max(report.ks, default=0)
    of_rules = {f"P@{k}", f"R@{k}", f"macro-F1@{k}", f"coverage@{k}", "answers a row"}
    of_parts = report.parts[0].alone.keys() if report.parts else set()
    calibration, settings = report.calibration, report.settings
    numbers = [settings[n] for n in ("confidence", "n_resamples", "n_resamples_by_label")]
    fits = (
        ks == tuple(sorted(set(ks))) and min(ks, default=0) > 0,
        all({*ks} <= {*b.recall} & {*b.coverage} & {*b.contribution} for b in report.bins),
        all(of_rules <= {*r.metrics} and len(r.bins) == len(report.bins) for r in report.rules),
        all(k in b.recall and k in b.coverage for rule in report.rules for b in rule.bins),
        all(p.alone.keys() == of_parts for p in report.parts),
        all(p.without.keys() == of_parts or not p.without for p in report.parts),
        all(len(label.rules) == max(len(report.rules) - 1, 0) for label in report.labels),
        *(
            len({label.train_count is None for label in labels}) < 2
            for labels in (report.labels, report.missed, report.overpredicted)
        ),
        calibration is None
        or len(calibration.proba) == len(calibration.hit_rate) == len(calibration.counts),
        settings["bins_from"] in ("train", "test"),
        all(isinstance(n, (int, float)) and 0 <= n < 2**53 for n in numbers),
        isinstance(settings["longtail"], str),
    )
    if not all(fits):
        raise ValueError("some of them do not belong together")
