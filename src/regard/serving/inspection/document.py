"""The route of the page Document: a text classified without some of its words."""

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from regard.serving.errors import documented
from regard.serving.verbs import REFUSALS, Backend

KIND = "classify"
MAX_WORDS = 20_000


class WithoutRequest(BaseModel):
    """A text, and the words to remove."""

    model_config = ConfigDict(strict=True, extra="forbid")
    model: str = "reviews-en"
    input: Annotated[str, Field(max_length=20_000, examples=["I loved this film. The music was awful."])]
    removed: Annotated[
        list[Annotated[int, Field(ge=0, lt=MAX_WORDS)]], Field(max_length=MAX_WORDS, examples=[[1]])
    ] = []
    """Words to remove, counted from 0 over the whole text."""


class WithoutAnswer(BaseModel):
    """A text before and after some of its words were removed."""

    model: str
    words: list[str]
    sentences: list[int]
    """The sentence of each word, counted from 0."""
    removed: list[int]
    label: str
    """The class of the whole text."""
    before: dict[str, float]
    """The probability of each class for the whole text."""
    after: dict[str, float]
    """The same without the removed words."""
    word_weights: list[float]
    """The attention to each word within its sentence; 0 for removed words."""
    sentence_weights: list[float]
    """The attention to each sentence; 0 where no word is left."""
    sentence_drops: list[float]
    """How far the probability of the class falls when each sentence is removed as well."""


def routes(backend: Backend) -> APIRouter:
    """`/v1/classify/without`, for document classifiers."""
    router = APIRouter()

    @router.post(
        "/v1/classify/without", tags=["workbench"], operation_id="classify_without", responses=documented(*REFUSALS)
    )
    async def without(body: WithoutRequest, request: Request) -> WithoutAnswer:
        """Classify a text without some of its words, and report what each sentence contributes."""
        from regard.systems.classify.inspection import without_words

        served = backend.models.find(body.model, KIND)
        model: Any = await backend.models.get(served)
        found = await backend.run(lambda: without_words(model, body.input, body.removed), request)
        return WithoutAnswer(model=served.name, **found.to_dict())

    return router
