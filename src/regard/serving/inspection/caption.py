"""Routes of the page Caption: hide a part of the image, give a caption, draw hard attention again, gold boxes."""

import asyncio
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from regard.serving.errors import RefusedError, documented
from regard.serving.inspection.images import BoxPart, ExampleImage, ExampleImages, Seed, read_image
from regard.serving.schemas import STRICT, ImageUri
from regard.serving.verbs import REFUSALS, Backend

KIND = "caption"
Beam = Annotated[int, Field(ge=1, le=16, description="Number of hypotheses of the search; 1 is greedy search.")]
Example = Annotated[
    str, Field(max_length=40, description="The example that the image is, whose gold boxes are added; none for others.")
]


class LookRequest(BaseModel):
    """An image to caption; or a caption of it to read; or a seed with which hard attention draws its cells."""

    model_config = STRICT
    model: str = "photo-en"
    input: ImageUri
    text: Annotated[str, Field(max_length=400, examples=["a dog runs"])] = ""
    """A caption to read instead of the model's own."""
    seed: Seed | None = None
    """Seed of the cells that hard attention draws; without one, it takes the most probable cells."""
    beam: Beam = 5
    example: Example = ""


class HideRequest(BaseModel):
    """An image, and the boxes of it to hide."""

    model_config = STRICT
    model: str = "photo-en"
    input: ImageUri
    boxes: Annotated[list[BoxPart], Field(min_length=1, max_length=8)]
    beam: Beam = 5
    example: Example = ""


class CaptionPart(BaseModel):
    """A caption."""

    text: str
    score: float
    """Log-probability divided by a power of the length."""
    finished: bool
    trace: dict[str, Any] | None
    """What each word attended to; null for a model without attention."""


class LookAnswer(BaseModel):
    """A caption with what each word attended to."""

    model: str
    caption: CaptionPart
    unknown: list[str] = []
    """Words of a given caption that the model does not know."""


class WordPart(BaseModel):
    """A word of the first caption, and its log-probability with the whole image and with the boxes hidden."""

    word: str
    before: float
    after: float


class EditPart(BaseModel):
    """Words that both captions have, or only one of them."""

    kind: Literal["kept", "removed", "added"]
    text: str


class HideAnswer(BaseModel):
    """The caption before and after, and what changed."""

    model: str
    before: CaptionPart
    after: CaptionPart
    words: list[WordPart]
    edits: list[EditPart]
    change: float
    """How much the log-probability of the first caption changes."""


def routes(backend: Backend) -> APIRouter:
    """`/v1/caption/look`, `/v1/caption/hide` and `/v1/caption/examples`."""
    router = APIRouter(prefix="/v1/caption", tags=["workbench"])

    @router.post("/look", operation_id="caption_look", responses=documented(*REFUSALS))
    async def look(body: LookRequest, request: Request) -> LookAnswer:
        """Caption an image, read a given caption, or draw the cells of hard attention by a seed."""
        from regard.systems.caption.inspection import caption_given, resample, unknown_words

        if body.text and body.seed is not None:
            raise RefusedError(422, "Give a text to read, or a seed to draw with, not both.")
        served = backend.models.find(body.model, KIND)
        image = await read_image(KIND, body.input, backend.settings)
        model = await backend.models.get(served)

        def captioned() -> CaptionPart:
            if body.seed is not None:
                caption = resample(model, image, seed=body.seed)
            elif body.text:
                caption = caption_given(model, image, body.text)
            else:
                caption = model.caption(image, beam=body.beam)
            return _part(caption, body.example)

        caption = await backend.run(captioned, request)
        return LookAnswer(model=served.name, caption=caption, unknown=list(unknown_words(model, body.text)))

    @router.post("/hide", operation_id="caption_hide", responses=documented(*REFUSALS))
    async def hide(body: HideRequest, request: Request) -> HideAnswer:
        """Caption an image with and without some parts of it, and compare."""
        from regard.systems.caption.inspection import caption_without

        served = backend.models.find(body.model, KIND)
        image = await read_image(KIND, body.input, backend.settings)
        model = await backend.models.get(served)
        boxes = [(box.left, box.top, box.right, box.bottom) for box in body.boxes]

        def compared() -> HideAnswer:
            found = caption_without(model, image, boxes, beam=body.beam)
            return HideAnswer(
                model=served.name,
                before=_part(found.before, body.example),
                after=_part(found.after, body.example),
                words=[WordPart(**asdict(word)) for word in found.words],
                edits=[EditPart(**asdict(edit)) for edit in found.edits],
                change=found.change,
            )

        return await backend.run(compared, request)

    @router.get("/examples", operation_id="caption_examples", responses=documented(401, 403, 500))
    async def examples() -> ExampleImages:
        """Images to try: generated scenes, and photographs where scikit-image is installed."""
        return await asyncio.to_thread(lambda: ExampleImages(examples=[_example(each) for each in _all_examples()]))

    return router


def _all_examples() -> tuple[Any, ...]:
    from regard.systems.caption.examples import photographs, scene_examples

    return (*scene_examples(), *photographs())


def _example(each: Any) -> ExampleImage:
    from regard.trace.data_uri import to_data_uri

    return ExampleImage(name=each.name, image=to_data_uri(each.image), model=each.model, caption=each.caption)


def _part(caption: Any, example: str) -> CaptionPart:
    """A caption as an answer has it, with the gold boxes of an example."""
    from regard.systems.caption.inspection import with_gold

    found = next((each for each in _all_examples() if each.name == example), None) if example else None
    if found is not None and caption.trace is not None:
        caption = replace(caption, trace=with_gold(caption.trace, found.words, found.gold))
    trace = None if caption.trace is None else caption.trace.to_dict()
    return CaptionPart(text=caption.text, score=caption.score, finished=caption.finished, trace=trace)
