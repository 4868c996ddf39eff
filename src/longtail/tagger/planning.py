"""What ``Tagger.fit`` is going to fit: texts, labels that can be learned, vectoriser and model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from longtail._validation import check_same_rows
from longtail.tagger.best import best_model, best_parts, check_quality
from longtail.tagger.choice import choose
from longtail.tagger.fields import Columns, as_columns, check_weights, is_matrix, joined
from longtail.tagger.fitting import Plan, copied, named_labels
from longtail.tagger.label_rows import as_targets
from longtail.tagger.named_models import make_model, reads_label_texts
from longtail.tagger.plain_texts import PlainTexts
from longtail.tagger.saving import check_savable
from longtail.tagger.vectorizers import is_fitted, maker_of, own_vectorizer

if TYPE_CHECKING:
    from longtail.tagger.tagger import Tagger

__all__ = ["make_plan"]


def make_plan(
    tagger: Tagger,
    texts: Any,
    labels: Any,
    label_names: Sequence[str] | None,
    label_texts: Sequence[str] | None,
) -> Plan:
    """Return the plan of a tagger; arguments as in ``Tagger.fit``."""
    weights = check_weights(tagger.field_weights)
    columns = as_columns(texts, None if weights is None else list(weights))
    if weights is not None and not isinstance(columns, dict):
        raise ValueError(
            f"field_weights names the fields {', '.join(map(repr, weights))}, "
            "but the texts have no fields"
        )
    whole = joined(columns)
    given = named_labels(labels, label_names, label_texts)
    check_same_rows(len(whole), given.Y.shape[0], "texts", "labels")
    reads = as_targets(tagger.learn_label_texts) is not None or reads_label_texts(tagger.model)
    learned = given.learnable(from_texts=reads)
    n_labels = len(learned.vocabulary)
    if not n_labels:
        raise ValueError("there are no labels: nothing to learn")
    left_out = len(given.vocabulary) - n_labels
    described = learned.texts is not None and any(text.strip() for text in learned.texts)
    parts = _what_to_fit(tagger, columns, whole, n_labels, described)
    return Plan(columns, whole, learned, left_out, *parts)


def _what_to_fit(
    tagger: Tagger, columns: Columns, texts: list[str], n_labels: int, described: bool
) -> tuple[Any, Any, str, str]:
    """Return vectoriser and model, the line that says why these, and what the features are.

    ``described``: whether labels have texts.
    """
    check_quality(tagger)
    if not (tagger.rule is None or hasattr(tagger.rule, "select")):
        raise TypeError(f"rule must have select, as rules of longtail.decide, got {tagger.rule!r}")
    given = is_matrix(columns)
    settings = {
        "random_state": tagger.random_state,
        "n_jobs": tagger.n_jobs,
        "memory_limit": tagger.memory_limit,
    }
    vectorizer = own_vectorizer(tagger.vectorizer, tagger.savable)
    chosen = choose(texts, n_labels, features=given, vectorizer=vectorizer, **settings)
    if given and is_fitted(tagger.vectorizer):
        chosen = replace(chosen, vectorizer=maker_of(columns, tagger.vectorizer))
    vectorizer, over, model = chosen.vectorizer, chosen.over, tagger.model
    if tagger.quality == "best":
        parts = best_parts(
            None if given else vectorizer,
            n_texts=len(texts),
            n_labels=n_labels,
            label_texts=described and not given,
            encoder=None if given else tagger.encoder,
            device=tagger.device,
            **settings,
        )
        model = best_model(parts, tagger.random_state, tagger.n_jobs)
        why = f"{', '.join(model.part_names)}, fused, over {over}"
        vectorizer = vectorizer if given else PlainTexts()
    elif model is None or model == "auto":
        model, why = chosen.model, chosen.why
    elif isinstance(model, str):
        model, why = make_model(model, **settings), f"{model}, as asked, over {over}"
    else:
        model, why = copied(model), f"{type(model).__name__}, as asked, over {over}"
    if not hasattr(model, "predict_topk"):
        raise TypeError(f"model must be a ranker such as XRLinear(), got {tagger.model!r}")
    if tagger.quality != "best" and getattr(model, "reads_texts", False):
        name = type(model).__name__
        if given or tagger.vectorizer is not None:
            what = "features" if given else "vectorizer"
            raise TypeError(f"{name} reads texts: give it texts, no {what}")
        over = f"the texts themselves ({len(texts):,})"
        vectorizer, why = PlainTexts(), f"{name}, over {over}"
    if tagger.savable:
        check_savable("model", model)
        check_savable("rule", tagger.rule)
    return vectorizer, model, why, over
