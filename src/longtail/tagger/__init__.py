"""Raw text in, label names out, around any model.

``Tagger`` is the object, ``answering`` the half of it that asks; ``fields`` turns texts of one or
several fields into rows, ``choice`` picks vectoriser and model from the data, ``named_models`` has
those that can be named, ``held_out`` learns
probabilities and rules from texts that the model has not seen, ``tail`` leans answers towards rare
labels, ``explanation`` and ``highlight`` tell which words spoke for a label, ``truth`` and
``measuring`` compare answers with evaluation data, ``growing`` teaches new labels.
"""

from longtail.tagger.choice import Choice, choose
from longtail.tagger.explanation import Explanation
from longtail.tagger.given import GivenFeatures
from longtail.tagger.named_models import MODELS, make_model
from longtail.tagger.plain_texts import PlainTexts
from longtail.tagger.tagger import Tagger

__all__ = [
    "MODELS",
    "Choice",
    "Explanation",
    "GivenFeatures",
    "PlainTexts",
    "Tagger",
    "choose",
    "make_model",
]
