"""The route of trust: how far to trust the attention of one answer."""

import asyncio
from typing import Annotated, Any, Literal, Union

from fastapi import APIRouter, Body, Request
from pydantic import BaseModel, Field, create_model

from regard.serving.errors import documented
from regard.serving.inputs import read_input
from regard.serving.schemas import STRICT, default_model, options_of, request_fields
from regard.serving.verbs import REFUSALS, Backend
from regard.systems import registry


class AblationAnswer(BaseModel):
    """What erasing the attended part of the input costs, beside a part chosen at random."""

    attended: float
    random: float
    unit: str
    method: str


class TrustAnswer(BaseModel):
    """How far to trust the attention of one answer; what a model has no number for is null."""

    model: str
    sentence: str
    """What follows from the numbers, in plain words."""
    entropy: float | None
    """Mean entropy of the attention, in nats."""
    uniform_entropy: float | None
    """The entropy of attention that is spread evenly."""
    parts: str
    """What is attended to, such as "source words"."""
    variation: float | None
    """How much the attention moves between outputs, from 0 to 1."""
    ablation: AblationAnswer | None
    """Faithfulness: what erasing the attended part costs, beside a random one."""
    measured: str
    """How right this model's attention is, where that was measured."""


def routes(backend: Backend) -> APIRouter:
    """`/v1/trust`, for the models of every verb."""
    router = APIRouter()
    bodies = tuple(_body(each, backend) for each in registry.entries())
    asked: Any = Annotated[Union[bodies], Field(discriminator="verb")]  # noqa: UP007

    @router.post("/v1/trust", tags=["workbench"], operation_id="trust", responses=documented(*REFUSALS))
    async def trust(request: Request, body: Annotated[asked, Body()]) -> TrustAnswer:
        """Measure how far the attention of a model explains what it answers for one input."""
        from regard.systems.faithfulness import faithfulness as measure

        given: Any = body
        served = backend.models.find(given.model, given.verb)
        system = registry.entry(served.kind).system
        options_of(system, given.options, trace=True)
        one = await asyncio.to_thread(read_input, system, given.input, "input", backend.settings)
        model = await backend.models.get(served)
        options = given.options.model_dump(exclude_unset=True)
        found = await backend.run(lambda: measure(model, one, **options), request)
        return TrustAnswer(model=served.name, **found.to_dict())

    return router


def _body(each: registry.Entry, backend: Backend) -> type[BaseModel]:
    """The body for one verb: that of its route, with a single input and the verb itself."""
    names = [served.name for served in backend.models.served if served.kind == each.name]
    fields = request_fields(each.system, each.name, names, default_model(each, names), backend.settings)
    verb: Any = Literal[each.name]
    return create_model(
        f"Trust{each.name.capitalize()}Request",
        __config__=STRICT,
        verb=(verb, Field(description="What the model does.")),
        **{name: fields[name] for name in ("model", "input", "options")},
    )
