"""The routes of the systems: one for each verb, those of their endpoints and examples, and faithfulness for all."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar, Union, get_origin, get_type_hints

from fastapi import APIRouter, Body, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from regard.data.images import ImageInput
from regard.serving import schemas
from regard.serving.batching import Batcher
from regard.serving.budget import check_work
from regard.serving.disconnect import cancel_on_disconnect
from regard.serving.errors import documented
from regard.serving.events import DESCRIPTION, event_response, wants_events
from regard.serving.inputs import read_image, read_input, read_inputs
from regard.serving.metrics import ServerMetrics
from regard.serving.models import Models, Served
from regard.serving.settings import ServerSettings
from regard.systems import registry
from regard.systems.endpoint import Streamed
from regard.systems.faithfulness import faithfulness
from regard.systems.predictor import Result
from regard.systems.system import System

Value = TypeVar("Value")
EVENT_INPUTS = 8
"""Inputs that are answered between two events of progress."""
REFUSALS = (401, 403, 404, 413, 422, 429, 500, 503)
OPEN_REFUSALS = (401, 403, 500)
"""What routes without a body may answer beside a success."""


@dataclass(frozen=True)
class Backend:
    """What all routes share."""

    settings: ServerSettings
    models: Models
    batcher: Batcher
    metrics: ServerMetrics

    async def answer(self, model: System, options: Any, inputs: Sequence[Any], request: Request) -> list[Any]:
        """The results of a model for a request, in order, in batches with those of other requests."""
        answers = self.batcher.answer(model, options, inputs, client=client_of(request))
        return await cancel_on_disconnect(answers, request)

    async def call(self, function: Callable[[], Value], request: Request) -> Value:
        """The value of a function that asks a model; it waits its turn."""
        return await cancel_on_disconnect(self.batcher.run(function, client=client_of(request)), request)

    def names(self, verb: str) -> list[str]:
        """The names of the models of a system."""
        return [served.name for served in self.models.served if served.verb == verb]


def system_routes(backend: Backend) -> APIRouter:
    """The routes of all systems."""
    router = APIRouter(prefix="/v1")
    for each in registry.entries():
        _add_verb(router, each, backend)
        for function in each.endpoints:
            _add_endpoint(router, each, function, backend)
        if each.examples is not None:
            _add_examples(router, each, each.examples)
    _add_faithfulness(router, backend)
    return router


def _add_verb(router: APIRouter, each: registry.Entry, backend: Backend) -> None:
    system, verb = each.system, each.name
    asked = schemas.verb_request(each, backend.names(verb), backend.settings)

    async def answer(body: asked, request: Request) -> Response:  # type: ignore[valid-type]
        given: Any = body
        served = backend.models.find(given.model, verb)
        options = given.options if given.trace else replace(given.options, traces="none")
        inputs = await asyncio.to_thread(read_inputs, system, given.input, backend.settings)
        call = _Call(backend, served, options, inputs, given.trace, request)
        if wants_events(request):
            return event_response(call.parts(min(EVENT_INPUTS, backend.settings.batch)), len(inputs), served.name)
        results = [each async for part in call.parts(max(1, len(inputs))) for each in part]
        return JSONResponse({"model": served.name, "results": results})

    router.add_api_route(
        f"/{verb}",
        answer,
        methods=["POST"],
        name=verb,
        operation_id=verb,
        summary=verb.capitalize(),
        description=f"{schemas.description(system)} {DESCRIPTION}",
        response_model=schemas.verb_response(each),
        responses=documented(*REFUSALS),
        tags=["verbs"],
    )


@dataclass(frozen=True)
class _Call:
    """A validated request to a verb."""

    backend: Backend
    served: Served
    options: Any
    inputs: list[Any]
    trace: bool
    request: Request

    async def parts(self, size: int) -> AsyncIterator[list[dict[str, Any]]]:
        """The results as plain values, at most so many at a time; all of it counts as one request."""
        with self.backend.metrics.request(self.served.verb):
            model: System = await self.backend.models.get(self.served)
            await asyncio.to_thread(check_work, model, self.inputs, self.options, self.backend.settings)
            for start in range(0, len(self.inputs), size):
                inputs = self.inputs[start : start + size]
                results = await self.backend.answer(model, self.options, inputs, self.request)
                yield await asyncio.to_thread(plain_results, results, self.trace)


def plain_results(results: list[Result], trace: bool) -> list[dict[str, Any]]:
    """Results as JSON has them, with or without their traces and those of their alternatives."""
    found = [each.to_dict() for each in results]
    for values in found if not trace else ():
        for each in (values, *values.get("alternatives", [])):
            each["trace"] = None
    return found


def _add_endpoint(router: APIRouter, each: registry.Entry, function: Callable[..., Any], backend: Backend) -> None:
    """The route of a function that is marked as an endpoint; one without parameters is a GET."""
    point, kinds = function.endpoint, schemas.parameters(function)  # type: ignore[attr-defined]
    name = f"{each.name}/{point.name}"
    models = {given: kind for given, (kind, _) in kinds.items() if schemas.is_system(kind)}
    images = [given for given, (kind, _) in kinds.items() if kind == ImageInput]
    streams = get_origin(get_type_hints(function)["return"]) is Streamed

    def plain(found: Any) -> dict[str, Any]:
        values = schemas.plain(found)
        return {point.answer: values} if point.answer else values

    async def answered(given: dict[str, Any], request: Request) -> Response:
        served = {parameter: backend.models.find(given[parameter], kind.kind) for parameter, kind in models.items()}
        if point.input:
            given[point.input] = given.pop("input")
        for image in images:
            given[image] = await asyncio.to_thread(read_image, given[image], "input", backend.settings)
        about = {"model": next(iter(served.values())).name} if served else {}
        if streams:
            return await streamed(given, served, about, request)
        with backend.metrics.request(name):
            given |= {parameter: await backend.models.get(each) for parameter, each in served.items()}
            if not served:
                return JSONResponse(plain(await asyncio.to_thread(function, **given)))
            return JSONResponse(about | await backend.call(lambda: plain(function(**given)), request))

    async def streamed(
        given: dict[str, Any], served: dict[str, Served], about: dict[str, str], request: Request
    ) -> Response:
        given |= {parameter: await backend.models.get(each) for parameter, each in served.items()}
        found: Streamed[Any] = function(**given)

        async def parts() -> AsyncIterator[list[Any]]:
            """One value after the other; other requests may be answered between two."""
            with backend.metrics.request(name):
                for _ in range(found.count):
                    yield [await backend.call(lambda: schemas.plain(next(found.values)), request)]

        if wants_events(request):
            return event_response(parts(), found.count, about.get("model", name))
        return JSONResponse(about | {point.answer: [value async for part in parts() for value in part]})

    described: dict[str, Any] = {
        "operation_id": name.replace("/", "_"),
        "summary": point.name.capitalize(),
        "description": f"{schemas.description(function)} {DESCRIPTION}" if streams else schemas.description(function),
        "response_model": schemas.endpoint_response(each, function),
        "tags": [each.name],
    }
    if not kinds:

        async def get(request: Request) -> Response:
            return await answered({}, request)

        router.add_api_route(f"/{name}", get, responses=documented(*OPEN_REFUSALS), **described)
        return
    asked = schemas.endpoint_request(each, function, backend.names, backend.settings)

    async def post(body: asked, request: Request) -> Response:  # type: ignore[valid-type]
        return await answered(dict(body), request)

    router.add_api_route(f"/{name}", post, methods=["POST"], responses=documented(*REFUSALS), **described)


def _add_examples(router: APIRouter, each: registry.Entry, list_examples: Callable[[], Sequence[Any]]) -> None:
    """The inputs to try that a system brings."""

    async def examples() -> Response:
        return JSONResponse({"examples": await asyncio.to_thread(lambda: schemas.plain(list_examples()))})

    router.add_api_route(
        f"/{each.name}/examples",
        examples,
        operation_id=f"{each.name}_examples",
        description="Inputs to try, each with what it shows and a model for it.",
        responses=documented(*OPEN_REFUSALS),
        response_model=schemas.examples_response(each),
        tags=[each.name],
    )


def _add_faithfulness(router: APIRouter, backend: Backend) -> None:
    """`/v1/faithfulness`, for the models of every verb."""
    every = registry.entries()
    bodies = [schemas.faithfulness_request(each, backend.names(each.name), backend.settings) for each in every]
    asked: Any = Annotated[Union[tuple(bodies)], Field(discriminator="verb")]  # noqa: UP007

    async def measured(request: Request, body: Annotated[asked, Body()]) -> Response:
        """Measure how far the attention of a model explains what it answers for one input."""
        given: Any = body
        served = backend.models.find(given.model, given.verb)
        system = registry.entry(given.verb).system
        one = await asyncio.to_thread(read_input, system, given.input, "input", backend.settings)
        with backend.metrics.request("faithfulness"):
            model = await backend.models.get(served)
            await asyncio.to_thread(check_work, model, [one], given.options, backend.settings)
            found = await backend.call(lambda: schemas.plain(faithfulness(model, one, given.options)), request)
        return JSONResponse({"model": served.name} | found)

    router.add_api_route(
        "/faithfulness",
        measured,
        methods=["POST"],
        operation_id="faithfulness",
        response_model=schemas.faithfulness_response(),
        responses=documented(*REFUSALS),
        tags=["verbs"],
    )


def client_of(request: Request) -> str:
    """Whom a request counts for: its address."""
    return request.client.host if request.client else ""
