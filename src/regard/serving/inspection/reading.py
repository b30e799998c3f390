"""The route of the page Read: what a language model expects in the place of each word."""

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from regard.serving.errors import documented
from regard.serving.verbs import REFUSALS, Backend

KIND = "read"


class ExpectedRequest(BaseModel):
    """A text to read."""

    model_config = ConfigDict(strict=True, extra="forbid")
    model: str = "reader-en"
    input: Annotated[str, Field(max_length=4000, examples=["The dog is running."])]
    top: Annotated[int, Field(ge=1, le=50)] = 5
    """Words to report for each place."""


class ExpectedWord(BaseModel):
    """A word, and how probable it is."""

    word: str
    probability: float


class ExpectedAnswer(BaseModel):
    """What was expected in the place of each word, and in the end after the text."""

    model: str
    expected: list[list[ExpectedWord]]
    """The most probable first."""


def routes(backend: Backend) -> APIRouter:
    """`/v1/read/expected`, for language models."""
    router = APIRouter()

    @router.post("/v1/read/expected", tags=["workbench"], operation_id="read_expected", responses=documented(*REFUSALS))
    async def expected(body: ExpectedRequest, request: Request) -> ExpectedAnswer:
        """Report the words that a language model expects in the place of each word of a text."""
        from regard.systems.read.inspection import expected_words

        served = backend.models.find(body.model, KIND)
        model: Any = await backend.models.get(served)
        found = await backend.run(lambda: expected_words(model, body.input, top=body.top), request)
        rows = [[ExpectedWord(word=one.word, probability=one.probability) for one in row] for row in found]
        return ExpectedAnswer(model=served.name, expected=rows)

    return router
