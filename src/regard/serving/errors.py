"""Errors as answers: a status and a JSON body that says what is wrong, without anything about the server's files."""

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from regard.errors import RegardError

logger = logging.getLogger("regard.serving")
UNEXPECTED = "Something went wrong in the server; its log says more."


class RefusedError(Exception):
    """A request that is not served: its status, a message for the client, and seconds after which to try again."""

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after


class ErrorBody(BaseModel):
    """What an error says."""

    type: str
    """A name for the kind of error."""
    message: str
    """What is wrong, and what to do."""


class ErrorResponse(BaseModel):
    """The body of every answer that is not a success."""

    error: ErrorBody


NAMES = {
    401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "method_not_allowed", 413: "too_large",
    415: "unsupported_media_type", 422: "invalid", 429: "too_many_requests", 500: "internal", 503: "unavailable",
}  # fmt: skip


_LIMITED_BY = {"too_long": "--max-inputs", "string_too_long": "--max-characters"}
"""Which option of the server a mistake in the inputs is about."""


def error_response(status: int, message: str, *, retry_after: int | None = None) -> JSONResponse:
    """An answer with the body of an error."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    body = {"error": {"type": NAMES.get(status, "error"), "message": message}}
    return JSONResponse(body, status, headers)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The statuses of a route for its OpenAPI document."""
    return {status: {"model": ErrorResponse, "description": NAMES[status].replace("_", " ")} for status in statuses}


def explained(error: RequestValidationError) -> str:
    """Where the first field is wrong and why; what may be one thing or another has a reason for each."""
    mistakes = error.errors()
    if mistakes[0]["type"] == "json_invalid":
        return f"The body is not JSON: {mistakes[0]['ctx']['error']} at character {mistakes[0]['loc'][-1]}."
    first = [str(part) for part in mistakes[0]["loc"] if part != "body"]
    if first[:1] != ["input"]:
        return f"{'.'.join(first) or 'The body'}: {mistakes[0]['msg']}"
    about = [each for each in mistakes if each["loc"][1:2] == ("input",)]
    options = {_LIMITED_BY[each["type"]] for each in about if each["type"] in _LIMITED_BY}
    hint = f" (the server's {' and '.join(sorted(options))})" if options else ""
    return f"input: {'; or: '.join(dict.fromkeys(each['msg'] for each in about))}{hint}"


def add_handlers(app: FastAPI) -> None:
    """Turn every exception into such an answer."""

    @app.exception_handler(RefusedError)
    async def refused(request: Request, error: RefusedError) -> JSONResponse:
        return error_response(error.status, error.message, retry_after=error.retry_after)

    @app.exception_handler(RegardError)
    async def invalid(request: Request, error: RegardError) -> JSONResponse:
        return error_response(422, str(error))

    @app.exception_handler(RequestValidationError)
    async def unreadable(request: Request, error: RequestValidationError) -> JSONResponse:
        return error_response(422, explained(error))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        return error_response(error.status_code, str(error.detail))

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        logger.exception("An error in %s %s", request.method, request.url.path, exc_info=error)
        return error_response(500, UNEXPECTED)
