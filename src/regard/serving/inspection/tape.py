"""Routes of the page Tape: random tapes of any length, and how well tapes of each length are answered."""

from collections.abc import AsyncIterator
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from regard.serving.errors import RefusedError, documented
from regard.serving.events import DESCRIPTION, event_response, wants_events
from regard.serving.inspection.images import Seed
from regard.serving.schemas import STRICT
from regard.serving.verbs import REFUSALS, Backend

KIND = "tape"


class RandomTapeRequest(BaseModel):
    """A random tape to answer."""

    model_config = STRICT
    model: str = "tape-copy"
    length: Annotated[int | None, Field(ge=0, le=1000, examples=[40])] = None
    """Length of the sequence; by default the longest of the training."""
    seed: Seed = 1
    """Seed of the sequence."""
    slots: Annotated[int, Field(ge=0, le=512)] = 0
    """Slots of the memory; 0 for as many as in training, or more where the sequence needs them."""


class TapePart(BaseModel):
    """The answer to a tape."""

    text: str
    """The answer as text: rows of 0 and 1, separated by spaces."""
    wrong: int
    """Number of wrong bits."""
    bits: float
    """Bits that it takes to correct the answer."""
    sequence: list[list[float]]
    """The rows of the sequence."""
    trace: dict[str, Any] | None


class RandomTapeAnswer(BaseModel):
    """The answer to a random tape, and what lengths the machine knows."""

    model: str
    task: str
    unit: str
    """What a length counts."""
    length: int
    shortest: int
    """Shortest sequence that the task is defined for."""
    trained: Annotated[list[int], Field(min_length=2, max_length=2)]
    """Shortest and longest sequence of the training."""
    longest: int
    """Longest sequence that may be asked for here."""
    slots: int
    """Slots of the memory, which grows with a long sequence."""
    result: TapePart


class LengthsRequest(BaseModel):
    """Which machine to measure, and on how many tapes."""

    model_config = STRICT
    model: str = "tape-copy"
    per_length: Annotated[int, Field(ge=1, le=16, examples=[4])] = 8
    seed: Seed = 1


class LengthPart(BaseModel):
    """How well tapes of one length are answered."""

    length: int
    bits_right: float
    """Percent of the bits."""
    exact: float
    """Percent of the tapes without a wrong bit."""
    bits: float
    """Bits to correct the answer to a tape."""


class LengthsAnswer(BaseModel):
    """Scores by length."""

    model: str
    scores: list[LengthPart]


def routes(backend: Backend) -> APIRouter:
    """`/v1/tape/random` and `/v1/tape/lengths`."""
    router = APIRouter(prefix="/v1/tape", tags=["workbench"])

    @router.post("/random", operation_id="tape_random", responses=documented(*REFUSALS))
    async def random(body: RandomTapeRequest, request: Request) -> RandomTapeAnswer:
        """Answer a random tape of any length, also beyond the lengths of the training."""
        served = backend.models.find(body.model, KIND)
        model = await backend.models.get(served)
        answer = await backend.run(lambda: _random(model, body, served.name), request)
        return answer

    @router.post(
        "/lengths",
        operation_id="tape_lengths",
        response_model=LengthsAnswer,
        responses=documented(*REFUSALS),
        description="Measure random tapes of several lengths, from the longest of the training to multiples of it. "
        + DESCRIPTION,
    )
    async def measure_lengths(body: LengthsRequest, request: Request) -> Response:
        from regard.systems.tape.inspection import default_lengths, length_scores

        served = backend.models.find(body.model, KIND)
        model = await backend.models.get(served)
        lengths = default_lengths(model)

        async def parts() -> AsyncIterator[list[dict[str, Any]]]:
            """The score of each length; other requests may be answered between two lengths."""
            with backend.measures.request("tape/lengths"):
                for length in lengths:
                    measure = partial(length_scores, model, [length], per_length=body.per_length, seed=body.seed)
                    scores = await backend.call(measure, request)
                    yield [asdict(score) for score in scores]

        if wants_events(request):
            return event_response(parts(), len(lengths), served.name)
        scores = [score async for part in parts() for score in part]
        return JSONResponse({"model": served.name, "scores": scores})

    return router


def _random(model: Any, body: RandomTapeRequest, name: str) -> RandomTapeAnswer:
    from regard.systems.tape.inspection import LONGEST, needed_slots, random_tape

    task = model.task
    longest = LONGEST * task.max_length
    length = task.max_length if body.length is None else body.length
    if length > longest:
        raise RefusedError(422, f"This server answers tapes of {name} of at most {longest} {task.unit}; got {length}.")
    slots = body.slots or needed_slots(model, length)
    found = random_tape(model, length, seed=body.seed, slots=slots)
    result = found.to_dict()
    return RandomTapeAnswer(
        model=name,
        task=task.name,
        unit=task.unit,
        length=length,
        shortest=task.shortest,
        trained=[task.min_length, task.max_length],
        longest=longest,
        slots=slots,
        result=TapePart(**{name: result[name] for name in TapePart.model_fields}),
    )
