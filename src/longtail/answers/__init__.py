"""What a ranker answers with, and what may be asked of it.

``TopK`` is the answer of every ranker: label ids and scores, best first. ``LabelFilter`` says which
labels a row may be answered with, ``Vocabulary`` what labels are called, and ``AnswerOptions`` how
texts are to be answered.
"""

from longtail.answers.label_filter import LabelFilter
from longtail.answers.options import AnswerOptions
from longtail.answers.topk import TopK
from longtail.answers.vocabulary import Vocabulary

__all__ = ["AnswerOptions", "LabelFilter", "TopK", "Vocabulary"]
