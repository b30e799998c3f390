"""The Open Inference Protocol, version 2, which KServe, Triton and their clients speak: `/v2/models/NAME/infer`.

Every model has one input, "input", of the type BYTES: texts, or images as files or data URIs. Its outputs are "text",
what the command of its verb prints, and "json", the whole result. The options of the verb are parameters of the
request, beside "trace". Inputs may be binary (the protocol's binary tensor data); outputs are always JSON.
"""

import asyncio
import base64
import json
import struct
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field, ValidationError

from regard import __version__
from regard.bounds import BOUNDS, LONGEST
from regard.errors import RegardError
from regard.serving import limits, schemas
from regard.serving.endpoints import Backend, plain_results
from regard.serving.errors import RefusedError, documented, explained
from regard.serving.inputs import read_inputs
from regard.serving.models import Served
from regard.systems import registry

HEADER = "Inference-Header-Content-Length"
"""The number of bytes of a body that are JSON; binary inputs follow."""
TEXT, WHOLE = "text", "json"
SIGNATURES = {b"\x89PNG": "png", b"\xff\xd8": "jpeg", b"GIF8": "gif", b"RIFF": "webp", b"BM": "bmp"}
"""What the files of images begin with."""
Name = Annotated[str, Field(max_length=LONGEST["name"])]
Parameters = Annotated[dict[str, Any], Field(default_factory=dict, max_length=limits.ENTRIES)]
ELEMENTS = BOUNDS["max_inputs"][0]
"""The most elements of an input of any server; its own setting, max_inputs, is held to when they are read."""


class Tensor(BaseModel):
    """An input or an output: its elements, row by row."""

    name: Name
    datatype: Name = "BYTES"
    shape: Annotated[list[Annotated[int, Field(ge=0, le=ELEMENTS)]], Field(max_length=limits.COLUMNS)]
    data: Annotated[list[Any], Field(default_factory=list, max_length=ELEMENTS)]
    parameters: Parameters


class Wanted(BaseModel):
    """An output that is asked for."""

    name: Name
    parameters: Parameters


class Infer(BaseModel):
    """The body of a request."""

    id: Name = ""
    parameters: Parameters
    inputs: Annotated[list[Tensor], Field(min_length=1, max_length=1)]
    outputs: Annotated[list[Wanted], Field(default_factory=list, max_length=2)]


class Mistake(BaseModel):
    """What is wrong with a request, as clients of the protocol read it."""

    error: str


def open_inference_routes(backend: Backend) -> APIRouter:
    """The routes of the protocol."""
    router = APIRouter(prefix="/v2", tags=["open inference protocol"])
    mistakes = documented(401, 403, 500) | {404: {"model": Mistake, "description": "not found"}}

    def find(name: str) -> Served:
        for served in backend.models.served:
            if served.name == name:
                return served
        raise RefusedError(404, f"There is no model {name!r}.")

    @router.get("", responses=mistakes)
    async def server() -> dict[str, Any]:
        """What the server is."""
        return {"name": "regard", "version": __version__, "extensions": ["binary_tensor_data"]}

    @router.get("/health/live", responses=mistakes)
    async def live() -> dict[str, bool]:
        """Whether the server answers."""
        return {"live": True}

    @router.get("/health/ready", responses=mistakes)
    async def ready() -> dict[str, bool]:
        """Whether its models can be asked; each is loaded when it is first asked for."""
        return {"ready": True}

    @router.get("/models/{name}", responses=mistakes)
    async def metadata(name: str) -> Response:
        """The inputs and outputs of a model."""
        try:
            served = find(name)
        except RefusedError as error:
            return _mistake(error.status, error.message)
        tensor = {"datatype": "BYTES", "shape": [-1]}
        return JSONResponse({
            "name": served.name,
            "versions": ["1"],
            "platform": f"regard_{served.verb}",
            "inputs": [{"name": "input", **tensor}],
            "outputs": [{"name": TEXT, **tensor}, {"name": WHOLE, **tensor}],
        })  # fmt: skip

    @router.get("/models/{name}/ready", responses=mistakes)
    async def model_ready(name: str) -> Response:
        """Whether a model can be asked."""
        try:
            return JSONResponse({"name": find(name).name, "ready": True})
        except RefusedError as error:
            return _mistake(error.status, error.message)

    @router.post(
        "/models/{name}/infer",
        responses=mistakes | documented(413) | {status: {"model": Mistake} for status in (422, 429, 503)},
        openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": _schema()}}}},
    )
    async def infer(
        name: str, request: Request, header: Annotated[int | None, Header(alias=HEADER, ge=0)] = None
    ) -> Response:
        """Ask a model; the options of its verb are parameters."""
        try:
            served = find(name)
            given = read(await request.body(), header)
            answered = await _answers(backend, served, given, request)
        except RefusedError as error:
            return _mistake(error.status, error.message, error.retry_after)
        except ValidationError as error:
            located = [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
            return _mistake(422, explained(RequestValidationError(located)))
        except RegardError as error:
            return _mistake(422, str(error))
        wanted = [each.name for each in given.outputs] or [TEXT, WHOLE]
        outputs = [
            {"name": each, "datatype": "BYTES", "shape": [len(answered[each])], "data": answered[each]}
            for each in wanted
        ]
        about = {"model_name": served.name, "model_version": "1", "outputs": outputs}
        return JSONResponse(about | ({"id": given.id} if given.id else {}))

    return router


def read(body: bytes, header: int | None) -> Infer:
    """The request in a body, whose binary inputs follow `header` bytes of JSON; RefusedError where it is damaged."""
    content = body if header is None else body[:header]
    try:
        given = Infer.model_validate(json.loads(content))
    except (ValueError, RecursionError) as error:
        if isinstance(error, ValidationError):
            raise
        raise RefusedError(422, f"The body is not JSON: {error}.") from None
    rest = b"" if header is None else body[header:]
    for tensor in given.inputs:
        size = tensor.parameters.get("binary_data_size")
        if size is not None:
            if not isinstance(size, int) or size != len(rest):
                raise RefusedError(422, f"binary_data_size is {size!r:.40}, and {len(rest)} bytes follow the JSON.")
            tensor.data = _elements(rest)
        if tensor.datatype != "BYTES":
            raise RefusedError(422, f"Inputs are of the datatype BYTES; got {tensor.datatype!r:.40}.")
        count = 1
        for each in tensor.shape:
            count *= each
        if count != len(tensor.data):
            raise RefusedError(422, f"The shape {tensor.shape} has {count} elements; the data has {len(tensor.data)}.")
    return given


def _elements(content: bytes) -> list[Any]:
    """The elements of a binary tensor of BYTES, each after its length in four bytes."""
    found, start = [], 0
    while start < len(content):
        if start + 4 > len(content):
            raise RefusedError(422, "The binary data ends inside a length.")
        (size,) = struct.unpack_from("<I", content, start)
        start += 4
        if start + size > len(content):
            raise RefusedError(422, f"The binary data ends inside an element of {size} bytes.")
        found.append(content[start : start + size])
        start += size
    return found


def _text(element: Any, *, is_image: bool) -> Any:
    """An element as the other routes take it: a text, or an image as a data URI."""
    if not isinstance(element, bytes):
        return element
    kind = next((kind for start, kind in SIGNATURES.items() if element.startswith(start)), "")
    if is_image and kind:
        return f"data:image/{kind};base64,{base64.b64encode(element).decode()}"
    try:
        return element.decode()
    except UnicodeDecodeError:
        raise RefusedError(422, "An input is neither a text in UTF-8 nor the file of an image.") from None


async def _answers(backend: Backend, served: Served, given: Infer, request: Request) -> dict[str, list[str]]:
    """The outputs of a model by their names."""
    for wanted in given.outputs:
        if wanted.name not in (TEXT, WHOLE):
            raise RefusedError(422, f"There is no output {wanted.name!r:.40}; choose from {TEXT}, {WHOLE}.")
    each = registry.entry(served.verb)
    options = {name: value for name, value in given.parameters.items() if name not in ("trace", "binary_data_output")}
    texts = [_text(element, is_image=each.system.takes_images) for element in given.inputs[0].data]
    # Options and inputs have the bounds of the route of the verb.
    asked: Any = schemas.verb_request(each, backend.names(each.name), backend.settings)
    trace = given.parameters.get("trace", False)
    checked = asked.model_validate({"model": served.name, "input": texts, "options": options, "trace": trace})
    chosen = checked.options if checked.trace else replace(checked.options, traces="none")
    inputs = await asyncio.to_thread(read_inputs, each.system, checked.input, backend.settings)
    with backend.metrics.request(served.verb):
        model = await backend.models.get(served)
        results = await backend.answer(model, chosen, inputs, request)
        plain = await asyncio.to_thread(plain_results, results, checked.trace)
    return {
        TEXT: [model.as_text(result, chosen) for result in results],
        WHOLE: [json.dumps(result, ensure_ascii=False) for result in plain],
    }


def _mistake(status: int, message: str, retry_after: int | None = None) -> JSONResponse:
    """An error as clients of the protocol read it."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return JSONResponse({"error": message}, status, headers)


def _schema() -> dict[str, Any]:
    """The schema of a request, with its parts in it, and an example."""
    schema = Infer.model_json_schema()
    parts = schema.pop("$defs")
    schema["properties"]["inputs"]["items"] = parts["Tensor"]
    schema["properties"]["outputs"]["items"] = parts["Wanted"]
    example = {"inputs": [{"name": "input", "datatype": "BYTES", "shape": [1], "data": ["He is happy."]}]}
    return schema | {"examples": [example]}
