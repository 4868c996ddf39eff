"""The settings that ``longtail tune`` tries, in which order, and what they make of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from longtail.cli.models import make_models

__all__ = ["Search", "shown"]

_TERMS: dict[str, tuple[int, ...]] = {"ngrams": (1, 2), "min_df": (1, 2, 5)}  # of words


@dataclass(frozen=True)
class Search:
    """Settings of some models, and what they make of a plan. Refuses unknown models when made."""

    models: list[str]
    seed: int = 0
    jobs: int | None = None
    device: str | None = None
    encoder: str | None = None
    tfidf: dict[str, Any] = field(default_factory=dict)  # choices about the texts that are given
    learn_label_texts: bool | float | str = False

    def __post_init__(self) -> None:
        make_models(self.models, device=self.device, encoder=self.encoder)

    @property
    def params(self) -> dict[str, Any]:
        """What a tagger of the search is made with; scores are enough to rank by."""
        return {
            "vectorizer": self.tfidf or None,
            "random_state": self.seed,
            "n_jobs": self.jobs,
            "calibrate": False,
            "learn_label_texts": self.learn_label_texts,
        }

    def model(self, name: str) -> Any:
        """Return the model of a name, with its defaults."""
        names = [name, *self.models]
        how = {"device": self.device, "encoder": self.encoder}
        return make_models(names, random_state=self.seed, n_jobs=self.jobs, **how)[name]

    def settings(self, plan: Any, most: int) -> Iterator[dict[str, Any]]:
        """Yield what ``train`` trains, the defaults of other models, then the rest at random."""
        import numpy as np

        from longtail.tagger.choice import choose_model

        chosen, _, _ = choose_model(len(plan.texts), len(plan.labels.vocabulary))
        named = dict.fromkeys(chosen if name == "auto" else name for name in self.models)
        names = sorted(named, key=lambda name: name != chosen)  # the chosen one first
        first, rest = [], []
        for name in names:
            default, *others = self._grid(name, plan)
            first.append(default)
            rest += others
        order = np.random.default_rng(self.seed).permutation(len(rest))
        yield from (first + [rest[i] for i in order])[:most]

    def _grid(self, name: str, plan: Any) -> list[dict[str, Any]]:
        """Return all settings of a model, its default first: that of the table, for this data."""
        from longtail.tagger import MODELS
        from longtail.tagger.named_models import members

        own = members(self.model(name))[0].get_params(deep=False)
        values = {p: _with_default(own[p], tried) for p, tried in MODELS[name].tries.items()}
        reads_texts = getattr(self.model(name), "reads_texts", False)
        if not reads_texts and getattr(plan.vectorizer, "analyzer", None) == "word":
            terms = plan.vectorizer.get_params(deep=False)
            defaults = {"ngrams": terms["ngram_range"][1], "min_df": terms["min_df"]}
            given = {"ngrams": "ngram_range" in self.tfidf, "min_df": "min_df" in self.tfidf}
            values |= {
                p: _with_default(defaults[p], tried) for p, tried in _TERMS.items() if not given[p]
            }
        return [
            {"model": name, **dict(zip(values, chosen, strict=True))}
            for chosen in product(*values.values())
        ]

    def planned(self, plan: Any, setting: dict[str, Any]) -> Any:
        """Return the plan with a setting in place of its model and vectoriser."""
        from longtail.tagger.fitting import copied
        from longtail.tagger.named_models import members
        from longtail.tagger.plain_texts import PlainTexts

        model, vectorizer = self.model(setting["model"]), copied(plan.vectorizer)
        own = {p: v for p, v in setting.items() if p not in ("model", *_TERMS)}
        for member in members(model):
            member.set_params(**own)
        if "ngrams" in setting:
            vectorizer.set_params(ngram_range=(plan.vectorizer.ngram_range[0], setting["ngrams"]))
        if "min_df" in setting:
            vectorizer.set_params(min_df=setting["min_df"])
        if getattr(model, "reads_texts", False):
            vectorizer = PlainTexts()
        return replace(plan, vectorizer=vectorizer, model=model, why=shown(setting))

    def given(self, plan: Any) -> dict[str, Any]:
        """Return the parameters of a tagger that fits this setting whenever it is fitted."""
        from longtail.tagger.fitting import copied

        words = getattr(plan.vectorizer, "analyzer", None) == "word"
        vectorizer = copied(plan.vectorizer) if words else self.tfidf or None
        if getattr(plan.model, "reads_texts", False):
            vectorizer = None
        return {"model": plan.model, "vectorizer": vectorizer}


def _with_default(default: Any, values: tuple[Any, ...]) -> list[Any]:
    """Return the default, then the others."""
    return [default, *(value for value in values if value != default)]


def shown(setting: dict[str, Any]) -> str:
    """Return a setting in a line."""
    values = {name: "auto" if value is None else value for name, value in setting.items()}
    return ", ".join(f"{name}={value}" for name, value in values.items())
