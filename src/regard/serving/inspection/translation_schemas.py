"""Typed requests and answers of the Translate page."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from regard.serving.schemas import STRICT

MAX_TARGET = 300
"""Most tokens of a translation."""
Token = Annotated[int, Field(ge=0, le=10_000_000)]
Weight = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Alignment = Literal["", "softmax", "hard", "local_m", "sparsemax", "uniform"]
HeadName = Annotated[str, Field(max_length=40, examples=["cross 1.2"])]
Pair = Annotated[list[int], Field(min_length=2, max_length=2)]


class SearchBody(BaseModel):
    """How translations are searched for."""

    model_config = STRICT
    beam: Annotated[int, Field(ge=1, le=8)] = 5
    max_length: Annotated[int, Field(ge=1, le=MAX_TARGET)] | None = None
    length_penalty: Annotated[float, Field(ge=-5, le=5, allow_inf_nan=False)] = 1.0


class StepAttention(BaseModel):
    """Where one step attends."""

    model_config = STRICT
    step: Annotated[int, Field(ge=0, le=MAX_TARGET)]
    """The step, counted from 0."""
    weights: Annotated[list[Weight], Field(min_length=1, max_length=200)]
    """A weight for each source token, that of the end included."""


class ChangeBody(BaseModel):
    """What is to be different."""

    model_config = STRICT
    prefix: Annotated[list[Token], Field(max_length=MAX_TARGET)] = []
    """Target tokens that the translation must begin with."""
    word: Annotated[str, Field(max_length=100)] = ""
    """A text that follows the prefix."""
    attention: Annotated[list[StepAttention], Field(max_length=64)] = []
    heads: Annotated[list[HeadName], Field(max_length=256)] = []
    """Heads of a Transformer to remove."""
    align: Alignment = ""
    """Another alignment in place of that of the model."""


class SentenceRequest(BaseModel):
    """A sentence for a translator."""

    model_config = STRICT
    model: Annotated[str, Field(max_length=200)] = "en-fr"
    input: Annotated[str, Field(max_length=20_000, examples=["He is happy."])]
    sentence: Annotated[int, Field(ge=0, le=10_000)] = 0
    """Which sentence of the text, counted from 0."""
    search: SearchBody = SearchBody()
    change: ChangeBody = ChangeBody()


class InspectRequest(SentenceRequest):
    """A sentence to look into."""

    words: Annotated[int, Field(ge=0, le=10)] = 5
    """How many of the likeliest words to report at each step."""


class NextWordView(BaseModel):
    """A word that could stand at a place."""

    text: str
    tokens: list[int]
    probability: float
    begins: bool
    """Whether a space stands before it."""


class WordView(BaseModel):
    """A word of a translation."""

    text: str
    tokens: list[int]
    first: int
    """The step that predicts its first token."""
    step: int
    """The step whose attention is shown for it."""
    begins: bool
    probability: float
    likeliest: list[NextWordView]


class SourceWord(BaseModel):
    """A word of the source, and the places of its tokens."""

    text: str
    places: list[int]


class TranslationView(BaseModel):
    """A translation with everything that can be asked about it."""

    source_words: list[SourceWord]
    text: str
    tokens: list[int]
    log_prob: float
    score: float
    finished: bool
    unknown: bool
    """Whether the source has a piece that the vocabulary does not know."""
    words: list[WordView]
    trace: dict[str, Any] | None


class Edit(BaseModel):
    """A run of words that stayed, went or came."""

    kind: Literal["same", "removed", "added"]
    words: list[str]


class Difference(BaseModel):
    """A translation after a change, beside the original."""

    after: TranslationView
    edits: list[Edit]
    before_under_change: float
    """The log-probability of the original translation with the change."""
    after_unchanged: float
    """The log-probability of the new translation by the model as it is."""


class InspectAnswer(BaseModel):
    """A translation, and what a change makes of it."""

    model: str
    architecture: str
    sentences: list[str]
    sentence: int
    heads: list[str]
    """The heads that can be removed."""
    alignments: list[str]
    """The alignments that can take the place of that of the model; none where it cannot be replaced."""
    alignment: str
    """That of the model."""
    before: TranslationView
    difference: Difference | None
    """None where nothing is changed."""


class TreeNode(BaseModel):
    """A hypothesis of the search: that of its parent, and one token more."""

    parent: int | None
    depth: int
    token: int | None
    label: str
    begins: bool
    log_prob: float
    total: float
    fate: Literal["root", "kept", "pruned", "finished", "cut"]
    rank: int | None
    score: float | None
    attention: int | None
    """The row of `weights` of the step that predicted the token."""


class TreeAnswer(BaseModel):
    """The beam search as a tree."""

    model: str
    sentence: str
    source: dict[str, Any]
    """The axis of the source tokens, as a trace has it."""
    nodes: list[TreeNode]
    weights: list[list[float]]
    shifted: bool
    """Whether the attention of a token is that of the next step, which reads it."""


class SecondModel(BaseModel):
    """The model to compare with: another one, or the same with a change."""

    model_config = STRICT
    model: Annotated[str, Field(max_length=200)] = "en-fr"
    align: Alignment = ""
    heads: Annotated[list[HeadName], Field(max_length=256)] = []


class CompareRequest(BaseModel):
    """A sentence for two models."""

    model_config = STRICT
    model: Annotated[str, Field(max_length=200)] = "en-fr"
    second: SecondModel = SecondModel(align="hard")
    input: Annotated[str, Field(max_length=20_000, examples=["He is happy."])]
    sentence: Annotated[int, Field(ge=0, le=10_000)] = 0
    search: SearchBody = SearchBody()


class CompareAnswer(BaseModel):
    """What two models make of a sentence."""

    first: TranslationView
    second: TranslationView
    edits: list[Edit]
    log_prob_by_second: float
    """The log-probability of the first translation by the second model."""
    trace: dict[str, Any] | None
    """The attention of both, word by word, while each is given the first translation; the main map is the first minus
    the second."""


class GoldRequest(BaseModel):
    """An example of the world babel."""

    model_config = STRICT
    model: Annotated[str, Field(max_length=200)] = "en-fr"
    direction: Annotated[str, Field(pattern="^(en|fr|de|fa)-(en|fr|de|fa)$")] = "en-fr"
    number: Annotated[int, Field(ge=0, le=199)] = 0


class GoldAnswer(BaseModel):
    """The attention of a model beside the right word links. Links are pairs of a source word and a target word."""

    model: str
    source: list[str]
    target: list[str]
    sure: list[Pair]
    possible: list[Pair]
    links: list[Pair]
    """Each target word with the source word that it attends to most."""
    error_rate: float
    precision: float
    recall: float
    trace: dict[str, Any]
