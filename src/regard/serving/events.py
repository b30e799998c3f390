"""Server-sent events: the progress of long work, and each result as soon as it is there."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from fastapi import Request
from fastapi.responses import StreamingResponse

from regard.errors import RegardError
from regard.serving.errors import UNEXPECTED, RefusedError, logger

EVENTS = "text/event-stream"
DESCRIPTION = f"With `Accept: {EVENTS}`, results are sent one by one, with the progress."


def wants_events(request: Request) -> bool:
    """Whether a client asks for events instead of one answer."""
    return EVENTS in request.headers.get("accept", "")


def event_response(parts: AsyncIterator[Sequence[Any]], count: int, model: str) -> StreamingResponse:
    """Answer with events: `progress`, a `result` for each of `count` results, and in the end `done` or `error`."""
    return StreamingResponse(_events(parts, count, model), media_type=EVENTS)


async def _events(parts: AsyncIterator[Sequence[Any]], count: int, model: str) -> AsyncIterator[str]:
    done = 0
    yield _event("progress", {"done": 0, "of": count})
    try:
        async for results in parts:
            for result in results:
                yield _event("result", {"number": done, "result": result})
                done += 1
            yield _event("progress", {"done": done, "of": count})
    except (RefusedError, RegardError) as error:
        yield _event("error", {"message": str(error)})
    except Exception:
        # The status has been sent, so that no handler of the application can answer any more.
        logger.exception("An error while results of %s were streamed", model)
        yield _event("error", {"message": UNEXPECTED})
    else:
        yield _event("done", {"model": model})


def _event(name: str, data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
