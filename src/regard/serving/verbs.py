"""One route for each verb, generated from the systems' contract: `/v1/translate`, `/v1/caption`, ..."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from regard.serving.batching import Batcher
from regard.serving.errors import documented
from regard.serving.events import DESCRIPTION, event_response, wants_events
from regard.serving.inputs import read_inputs
from regard.serving.leaving import unless_gone
from regard.serving.measures import Measures
from regard.serving.models import Models, Served
from regard.serving.schemas import answer_model, default_model, options_of, request_model
from regard.serving.settings import ServerSettings
from regard.systems import registry
from regard.systems.system import Result, System

Value = TypeVar("Value")
EVENT_INPUTS = 8
"""Inputs that are answered between two events of progress."""
REFUSALS = (401, 403, 404, 413, 422, 429, 500, 503)


@dataclass(frozen=True)
class Backend:
    """What all routes share."""

    settings: ServerSettings
    models: Models
    batcher: Batcher
    measures: Measures

    async def answer(self, model: System, options: Any, inputs: Sequence[Any], request: Request) -> list[Any]:
        """The results of a model for a request, in order, in batches with those of other requests."""
        answers = self.batcher.answer(model, options, inputs, client=client_of(request))
        return await unless_gone(answers, request)

    async def call(self, function: Callable[[], Value], request: Request) -> Value:
        """The value of a function that asks a model; it waits its turn."""
        return await unless_gone(self.batcher.run(function, client=client_of(request)), request)

    async def run(self, function: Callable[[], Value], request: Request) -> Value:
        """Answer a whole request with `call`, and count the request in the server's metrics."""
        with self.measures.request(request.url.path.removeprefix("/v1/")):
            return await self.call(function, request)


def verb_routes(backend: Backend) -> APIRouter:
    """The routes of all systems."""
    router = APIRouter(prefix="/v1")
    for each in registry.entries():
        _add_route(router, each, backend)
    return router


def _add_route(router: APIRouter, each: registry.Entry, backend: Backend) -> None:
    system, verb = each.system, each.name
    names = [served.name for served in backend.models.served if served.kind == verb]
    asked = request_model(system, verb, names, default_model(each, names), backend.settings)

    async def answer(body: asked, request: Request) -> Response:  # type: ignore[valid-type]
        served = backend.models.find(body.model, verb)  # type: ignore[attr-defined]
        options = options_of(system, body.options, trace=body.trace)  # type: ignore[attr-defined]
        inputs = await asyncio.to_thread(read_inputs, system, body.input, backend.settings)  # type: ignore[attr-defined]
        call = _Call(backend, served, options, inputs, bool(body.trace), request)  # type: ignore[attr-defined]
        if wants_events(request):
            return event_response(call.parts(min(EVENT_INPUTS, backend.settings.batch)), len(inputs), served.name)
        results = [each async for part in call.parts(max(1, len(inputs))) for each in part]
        return JSONResponse({"model": served.name, "results": results})

    first = (system.__doc__ or "").strip().splitlines()[0] if system.__doc__ else ""
    router.add_api_route(
        f"/{verb}",
        answer,
        methods=["POST"],
        name=verb,
        operation_id=verb,
        summary=verb.capitalize(),
        description=f"{first} {DESCRIPTION}",
        response_model=answer_model(system, verb),
        responses=documented(*REFUSALS),
        tags=["verbs"],
    )


@dataclass(frozen=True)
class _Call:
    """One request, understood."""

    backend: Backend
    served: Served
    options: Any
    inputs: list[Any]
    trace: bool
    request: Request

    async def parts(self, size: int) -> AsyncIterator[list[dict[str, Any]]]:
        """The results as plain values, at most so many at a time; all of it counts as one request."""
        with self.backend.measures.request(self.served.verb):
            model: System = await self.backend.models.get(self.served)
            for start in range(0, len(self.inputs), size):
                inputs = self.inputs[start : start + size]
                results = await self.backend.answer(model, self.options, inputs, self.request)
                yield await asyncio.to_thread(_plain_values, results, self.trace)


def plain(result: Result, *, trace: bool) -> dict[str, Any]:
    """A result as JSON has it, with or without its trace and those of its alternatives."""
    values = result.to_dict()
    if not trace:
        values["trace"] = None
        for each in values.get("alternatives", []):
            each["trace"] = None
    return values


def _plain_values(results: list[Result], trace: bool) -> list[dict[str, Any]]:
    return [plain(each, trace=trace) for each in results]


def client_of(request: Request) -> str:
    """Whom a request counts for: its address."""
    return request.client.host if request.client else ""
