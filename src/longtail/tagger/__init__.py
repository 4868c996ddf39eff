"""Raw text in, label names out, around any model.

::

    fit      texts ──► fields ──► planning ──────────► fitting ──► held_out ──► a fitted Tagger
             labels               choice, best:        the model   probabilities,
                                  which vectoriser                 rules
                                  and model
    answer   texts ──► fields ──► the model ──► answering: rule, tail, threshold ──► names
    measure  answers, truth ──► measuring ──► a report
    beside   explanation, highlight  which words spoke for a label
             growing                 new labels for a fitted tagger
             saving, sharding        to disk and back; labels on several servers

``Tagger`` holds the parameters and what was learned, the other modules are functions on it.
``named_models`` has the models that can be named, ``vectorizers`` what is taken as a vectoriser,
``seen`` knows texts of the training again, ``provenance`` where a model comes from.
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
