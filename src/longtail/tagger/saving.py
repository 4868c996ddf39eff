"""A tagger as plain data, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail import persist
from longtail._models import from_state, is_known
from longtail.answers import Vocabulary
from longtail.base import take_names, unfitted
from longtail.data.row_filter import RowFilter
from longtail.exceptions import ModelFormatError
from longtail.report import Report

if TYPE_CHECKING:
    from longtail.tagger.tagger import Tagger

__all__ = ["check_savable", "restore", "to_state"]

_PARTS = ("model", "vectorizer", "rule")


def to_state(tagger: Tagger, state: persist.State) -> persist.State:
    """Fill the state: model, vectoriser and rule as parts, names and report as facts."""
    given = {name: state.params.pop(name) for name in _PARTS}
    if isinstance(given["model"], str):
        state.params["model"] = given["model"]
    if isinstance(given["vectorizer"], Mapping):
        state.params["vectorizer"] = _plain(given["vectorizer"])
    state.meta["chosen"] = [name for name in _PARTS if given[name] is None]
    if tagger.field_weights is not None:
        state.params["field_weights"] = dict(tagger.field_weights)
    parts = {"model": tagger.model_, "vectorizer": tagger.vectorizer_, "rule": tagger.rule_}
    for name, part in parts.items():
        if part is None:
            continue
        check_savable(name, part)
        state.parts[name] = part._get_state()
    state.arrays["label_counts"] = tagger.label_counts_
    state.put_strings("label_name", tagger.vocabulary_)
    state.meta.update(
        label_texts=tagger.label_texts_,
        n_rows=tagger.n_rows_,
        fields=tagger.fields_,
        choice=tagger.choice_,
        report=None if tagger.report_ is None else tagger.report_.to_dict(labels=True),
        provenance=tagger.provenance_,
        examples=tagger.examples_,
    )
    if tagger.seen_ is not None:
        state.arrays["seen_remainders"] = tagger.seen_.remainders
        state.arrays["seen_counts"] = tagger.seen_.counts
        state.meta["seen_step"] = tagger.seen_.step
    return state


def check_savable(name: str, part: Any, reason: str | None = None) -> None:
    """Raise TypeError if a part of a tagger, or an estimator inside it, cannot be saved.

    ``reason``: why a part could not be replaced by one that can.
    """
    foreign = _foreign(part)
    if foreign is None:
        return
    why = f" ({reason})" if reason else ""
    inside = "" if foreign is part else f"it holds {foreign!r}, and "
    raise TypeError(
        f"the {name} cannot be saved: {inside}{type(foreign).__name__} is not an estimator of "
        f"longtail{why}, and saved models hold data, no code. Take one of longtail's"
        f"{_ADVICE.get(name, '')}, or pass savable=False for a tagger that is never saved"
    )


_ADVICE = {
    "vectorizer": ", give the tagger rows of features instead of texts",
    "model": ", register yours (longtail.register_ranker)",
}


def _foreign(part: Any) -> Any:
    """Return what in this estimator is not in the table of types, or None."""
    if part is None or isinstance(part, type):  # a class is refused when it is copied
        return None
    if not is_known(part):
        return part
    for value in part.get_params(deep=False).values():
        for inner in value if isinstance(value, (list, tuple)) else (value,):
            if hasattr(inner, "fit") and not isinstance(inner, type):
                found = _foreign(inner)
                if found is not None:
                    return found
    return None


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of ``Tfidf`` that were given, as JSON keeps them and with tuples
    restored.
    """
    plain = dict(params)
    if plain.get("stop_words") is not None:
        plain["stop_words"] = sorted(plain["stop_words"])
    if "ngram_range" in plain:
        plain["ngram_range"] = tuple(plain["ngram_range"])
    return plain


def restore(tagger: Tagger, state: persist.State) -> Tagger:
    """Take over what ``to_state`` stored."""
    meta = state.meta
    vectorizer, model = (_part(state, name) for name in ("vectorizer", "model"))
    if not hasattr(model, "predict_topk"):
        raise ModelFormatError("the model of a tagger must be a ranker")
    vocabulary = take_names(state, model.n_labels_) or _old_names(meta, model.n_labels_)
    width = getattr(vectorizer, "n_columns_", None)
    if not hasattr(vectorizer, "transform") or width not in (None, model.n_features_in_):
        raise ModelFormatError(f"the vectoriser does not make {model.n_features_in_} features")
    fields, texts = meta.get("fields"), meta.get("label_texts")
    if fields is not None and not _are_strings(fields):
        raise ModelFormatError(f"fields must be names, got {fields!r}")
    if texts is not None and (not _are_strings(texts) or len(texts) != len(vocabulary)):
        raise ModelFormatError(f"label_texts must be {len(vocabulary)} strings")
    chosen = meta.get("chosen") or ()
    tagger.rule_ = None
    if "rule" in state.parts:
        tagger.rule_ = from_state(state.parts["rule"])
        tagger.rule = unfitted(tagger.rule_)
    if "model" not in chosen and tagger.model is None:
        tagger.model = unfitted(model)
    if isinstance(tagger.vectorizer, dict):
        tagger.vectorizer = _plain(tagger.vectorizer)
    elif "vectorizer" not in chosen:
        tagger.vectorizer = unfitted(vectorizer)
    tagger.label_counts_ = state.array("label_counts", np.int64, (len(vocabulary),))
    tagger.n_rows_ = state.count("n_rows")
    tagger.fields_, tagger.label_texts_ = fields, texts
    tagger.choice_ = str(meta.get("choice", ""))
    tagger.seen_ = None
    if "seen_counts" in state.arrays:
        remainders = state.array("seen_remainders", np.uint16, (None,))
        counts = state.array("seen_counts", np.uint16, (None,))
        tagger.seen_ = RowFilter(remainders, counts, state.count("seen_step")).check()
    made = meta.get("provenance")
    tagger.provenance_ = made if isinstance(made, dict) else None
    tagger.examples_ = _examples(meta.get("examples"), fields)
    tagger.report_ = _report(meta.get("report"))
    tagger.vectorizer_, tagger.model_, tagger.vocabulary_ = vectorizer, model, vocabulary
    return tagger


def _old_names(meta: Mapping[str, Any], n_labels: int) -> Vocabulary:
    """Return the names that taggers of 0.1 list in the manifest."""
    names = meta.get("label_names")
    if not isinstance(names, list):
        raise ModelFormatError("a tagger must list its label names")
    if len(names) != n_labels:
        raise ModelFormatError(f"the model has {n_labels} labels, and {len(names)} are named")
    return Vocabulary(names)


def _part(state: persist.State, name: str) -> Any:
    if name not in state.parts:
        raise ModelFormatError(f"a tagger must have a {name}")
    return from_state(state.parts[name])


def _report(found: Any) -> Report | None:
    """Return the report that was kept, from its numbers."""
    if found is None:
        return None
    try:
        return Report.from_dict(found)
    except ValueError as error:
        raise ModelFormatError(f"the report of a tagger cannot be read: {error}") from None


def _examples(found: Any, fields: list[str] | None) -> list[Any]:
    """Return example texts of a state; older ones have none."""
    for text in found if isinstance(found, list) else ():
        plain = isinstance(text, str) if fields is None else isinstance(text, dict)
        if not plain or (isinstance(text, dict) and not _are_strings(list(text.values()))):
            raise ModelFormatError(f"examples must be texts as the model takes them, got {text!r}")
    return found if isinstance(found, list) else []


def _are_strings(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)
