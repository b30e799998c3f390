"""What the pages with images share: images and boxes in requests, examples in answers."""

import asyncio
from typing import Annotated, Any

from pydantic import BaseModel, Field

from regard.serving.inputs import read_inputs
from regard.serving.schemas import STRICT
from regard.serving.settings import ServerSettings
from regard.systems import registry

Edge = Annotated[float, Field(ge=0, le=1)]
Seed = Annotated[int, Field(ge=0, le=2**32 - 1)]


class BoxPart(BaseModel):
    """A part of an image, in fractions of its width and height from the upper left corner."""

    model_config = STRICT
    left: Annotated[Edge, Field(examples=[0.25])]
    top: Annotated[Edge, Field(examples=[0.25])]
    right: Annotated[Edge, Field(examples=[0.5])]
    bottom: Annotated[Edge, Field(examples=[0.75])]


class ExampleImage(BaseModel):
    """An image to try, and what is known about it."""

    name: str
    image: str
    """The image as a data URI."""
    model: str
    """A model that was made for such images."""
    caption: str
    """What the image shows."""


class ExampleImages(BaseModel):
    """Images to try."""

    examples: list[ExampleImage]


async def read_image(kind: str, uri: str, settings: ServerSettings) -> Any:
    """The image of a request, decoded as the systems of this kind take it."""
    (image,) = await asyncio.to_thread(read_inputs, registry.entry(kind).system, uri, settings)
    return image
