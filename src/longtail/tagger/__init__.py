"""Raw text in, label names out, around any model.

``Tagger`` is the object; ``fields`` turns texts of one or several fields into rows, ``choose``
picks vectoriser and model from the data, ``tail`` leans answers towards rare labels,
``explanation`` and ``highlight`` tell which words spoke for a label, ``truth`` matches the labels
of evaluation data.
"""

from longtail.tagger.choose import MODELS, Choice, choose, make_model
from longtail.tagger.explanation import Explanation
from longtail.tagger.given import GivenFeatures
from longtail.tagger.tagger import Tagger

__all__ = ["MODELS", "Choice", "Explanation", "GivenFeatures", "Tagger", "choose", "make_model"]
