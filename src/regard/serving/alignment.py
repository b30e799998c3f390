"""The route of word alignment: which word of a given translation belongs to which word of its source."""

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from regard.serving.errors import RefusedError, documented
from regard.serving.verbs import REFUSALS, Backend

Sentence = Annotated[str, Field(min_length=1, max_length=4000)]


class AlignRequest(BaseModel):
    """A sentence pair to align."""

    model_config = ConfigDict(strict=True, extra="forbid")
    model: str = "en-fr"
    source: Annotated[Sentence, Field(examples=["He is happy ."])]
    target: Annotated[Sentence, Field(examples=["Il est heureux ."])]
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Links with a smaller weight are left out."""


class AlignAnswer(BaseModel):
    """The words of both sentences, separated by spaces, and the links between them."""

    model: str
    source: list[str]
    target: list[str]
    links: list[Annotated[list[int], Field(min_length=2, max_length=2)]]
    """Pairs of a source word and a target word, counted from 0."""
    trace: dict[str, Any]
    """The attention from word to word."""


def align_route(backend: Backend) -> APIRouter:
    """`/v1/align`, for translators."""
    router = APIRouter()

    @router.post("/v1/align", tags=["verbs"], operation_id="align", responses=documented(*REFUSALS))
    async def align(body: AlignRequest, request: Request) -> AlignAnswer:
        """Link the words of a sentence pair by the attention of a translator."""
        from regard.systems.system import Result
        from regard.systems.translate.alignment import align_pairs

        source, target = body.source.split(), body.target.split()
        if not source or not target:
            raise RefusedError(422, "Both sentences need a word.")
        served = backend.models.find(body.model, "translate")
        model = await backend.models.get(served)

        def aligned() -> Any:
            return align_pairs(model, [(source, target)], threshold=body.threshold)[0]

        pair = await backend.run(aligned, request)
        trace = model.with_attention_quality(Result(trace=pair.trace)).trace
        links = sorted([int(one), int(other)] for one, other in pair.links)
        return AlignAnswer(model=served.name, source=source, target=target, links=links, trace=trace.to_dict())

    return router
