"""The contract of the service: what is asked and what is answered."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

__all__ = [
    "MOST_NAMES",
    "Contribution",
    "Explained",
    "Found",
    "Health",
    "Label",
    "Labels",
    "ModelFacts",
    "Prediction",
    "Predictions",
    "Problem",
    "Question",
    "Source",
    "Version",
    "Why",
]

MOST_NAMES = 10_000  # in a filter of labels
Name = Annotated[str, Field(max_length=10_000)]
Text = str | dict[str, str]


class Question(BaseModel):
    """Texts to label, and how: ``texts``, or one ``text``."""

    model_config = ConfigDict(
        extra="forbid",
        allow_inf_nan=False,
        strict=True,
        json_schema_extra={"oneOf": [{"required": ["texts"]}, {"required": ["text"]}]},
    )

    texts: list[Text] = Field(
        default_factory=list,
        min_length=1,
        fail_fast=True,
        description="Texts; or one object of fields each, where the model was trained on fields.",
        examples=[["first text", "second text"]],
    )
    text: Text = Field(
        default="", description="One text, instead of a list of one.", examples=["a text"]
    )
    k: int = Field(5, ge=1, le=1000, description="Labels for each text.")
    threshold: float | None = Field(None, description="Leave out labels with a lower score.")
    include: list[Name] | None = Field(
        None, max_length=MOST_NAMES, fail_fast=True, description="Only these labels."
    )
    exclude: list[Name] | None = Field(
        None, max_length=MOST_NAMES, fail_fast=True, description="Never these labels."
    )
    tail: float | None = Field(
        None, ge=0, le=1, description="From 0, best score first, to 1, rare labels first."
    )
    explain: bool = Field(
        False,
        description="Which words spoke for each label; at most 16 texts then, and words times "
        "labels are bounded.",
    )

    @model_validator(mode="after")
    def _one_or_the_other(self) -> Question:
        given = self.model_fields_set & {"texts", "text"}
        if len(given) != 1:
            raise PydanticCustomError("texts", "give texts, a list, or text, a single one")
        if "text" in given:
            self.texts = [self.text]
        return self


class Why(BaseModel):
    """A text, and the label to explain."""

    model_config = ConfigDict(extra="forbid", strict=True)

    text: str | dict[str, str] = Field(
        description="A text; or an object of fields, where the model was trained on fields.",
        examples=["paper jam"],
    )
    label: Name = Field(description="Name of a label; it need not be among the answers.")


class Contribution(BaseModel):
    """A term and what it contributed to the score."""

    term: str
    weight: float


class Source(BaseModel):
    """What a part of a fused model says about a label; ``rank`` from 1, null where the label is not
    among its answers.
    """

    part: str
    probability: float
    rank: int | None


class Explained(BaseModel):
    """Words that spoke for a label. ``spans`` are (start, end, weight), in code points."""

    method: str
    terms: list[Contribution]
    spans: list[tuple[int, int, float]]
    sources: list[Source] | None = Field(
        None,
        description="Of a fused model: what every part says. The words are those of the part that "
        "is surest, among those to whom a word matters.",
    )


class Label(BaseModel):
    """One answer."""

    label: str
    score: float
    text: str | None = None
    explanation: Explained | None = None


class Prediction(BaseModel):
    """Answers for one text, best first; ``known_terms`` of it were seen in training (null where the
    model reads the text itself).
    """

    labels: list[Label]
    known_terms: int | None


class Predictions(BaseModel):
    """Answers in the order of the texts; ``scores`` says what a score is."""

    results: list[Prediction]
    scores: str = Field(description="probability or score")


class Found(BaseModel):
    """A label that matched a search."""

    label: str
    text: str | None = None
    training_texts: int


class Labels(BaseModel):
    """Labels that matched, best matches first."""

    labels: list[Found]
    total: int = Field(description="Labels of the model.")


class Health(BaseModel):
    """``reload_error`` tells why a newer model on disk was not taken."""

    status: str
    reload_error: str | None = None


class Version(BaseModel):
    """Of the library, and since when the model is in use."""

    longtail: str
    model: str
    since: str


class ModelFacts(BaseModel):
    """What the page says about the model."""

    name: str
    choice: str
    about: str = Field(description="What the model is and does, in a few plain sentences.")
    created: str | None = Field(description="When it was trained (UTC), where that is known.")
    examples: list[Text] = Field(description="Texts to try.")
    n_labels: int
    n_rows: int
    scores: str
    fields: list[str] | None
    tail: float
    can_filter: bool
    metrics: dict[str, float] | None = Field(
        description='Where measured; a name with "present" is over the labels in the test rows.'
    )
    lean_curve: list[dict[str, float]] | None = Field(
        description="What tail does to precision, recall and coverage (over the labels present in "
        "the test rows), where that was measured."
    )
    measured_on: str | None = Field(
        description="Which rows these numbers were measured on, and what the saved model learned."
    )
    has_report: bool


class Problem(BaseModel):
    """Any error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
