"""Routes of the page Glimpse: glimpses that the user puts somewhere, and the rest as the model then chooses."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from regard.serving.errors import documented
from regard.serving.inspection.images import BoxPart, Edge, ExampleImage, read_image
from regard.serving.schemas import STRICT, ImageUri
from regard.serving.verbs import REFUSALS, Backend

KIND = "glimpse"
MAX_GLIMPSES = 32


class Place(BaseModel):
    """Where a glimpse looks, in fractions of the square that the model sees."""

    model_config = STRICT
    glimpse: Annotated[int, Field(ge=0, lt=MAX_GLIMPSES)]
    """The number of the glimpse, from 0."""
    x: Edge
    y: Edge


class GlimpseAtRequest(BaseModel):
    """An image to look at, with some glimpses forced."""

    model_config = STRICT
    model: str = "glimpse-digits"
    input: ImageUri
    places: Annotated[list[Place], Field(max_length=MAX_GLIMPSES)] = []
    """The forced glimpses; the model chooses all others."""
    num_glimpses: Annotated[int, Field(ge=0, le=MAX_GLIMPSES)] = 0
    """How many glimpses to take; 0 for as many as in training."""


class GlimpseAtAnswer(BaseModel):
    """What the model says, and what it believed after each glimpse."""

    model: str
    label: str
    probability: float
    labels: list[str]
    beliefs: list[list[float]]
    """The probability of each class after each glimpse."""
    trace: dict[str, Any]


class ExampleDigit(ExampleImage):
    """An image with a digit, and where the digit is."""

    box: BoxPart


class ExampleDigits(BaseModel):
    """Images to try."""

    examples: list[ExampleDigit]


def routes(backend: Backend) -> APIRouter:
    """`/v1/glimpse/at` and `/v1/glimpse/examples`."""
    router = APIRouter(prefix="/v1/glimpse", tags=["workbench"])

    @router.post("/at", operation_id="glimpse_at", responses=documented(*REFUSALS))
    async def at(body: GlimpseAtRequest, request: Request) -> GlimpseAtAnswer:
        """Look at an image with some glimpses at given places, and the others where the model then chooses."""
        from regard.systems.glimpse.inspection import glimpse_at

        served = backend.models.find(body.model, KIND)
        image = await read_image(KIND, body.input, backend.settings)
        model = await backend.models.get(served)
        places = {place.glimpse: (place.x, place.y) for place in body.places}

        def looked() -> GlimpseAtAnswer:
            found = glimpse_at(model, image, places, num_glimpses=body.num_glimpses)
            values = found.to_dict()
            return GlimpseAtAnswer(
                model=served.name, **{name: values[name] for name in GlimpseAtAnswer.model_fields if name != "model"}
            )

        return await backend.run(looked, request)

    @router.get("/examples", operation_id="glimpse_examples", responses=documented(401, 403, 500))
    async def examples() -> ExampleDigits:
        """Generated images to try: a digit among pieces of others."""
        return await asyncio.to_thread(_examples)

    return router


def _examples() -> ExampleDigits:
    from regard.systems.glimpse.examples import digit_examples
    from regard.trace.data_uri import to_data_uri

    return ExampleDigits(
        examples=[
            ExampleDigit(
                name=each.name,
                image=to_data_uri(each.image),
                model="glimpse-digits",
                caption=f"the digit {each.label}",
                box=BoxPart(**dict(zip(("left", "top", "right", "bottom"), each.box, strict=True))),
            )
            for each in digit_examples()
        ]
    )
