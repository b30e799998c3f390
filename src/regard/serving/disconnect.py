"""Clients that disconnect: what they asked for is not worked on."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import Request

from regard.serving.errors import RefusedError

Value = TypeVar("Value")
DISCONNECTED = 499
"""Status logged for a request whose client disconnected."""


async def cancel_on_disconnect(work: Coroutine[Any, Any, Value], request: Request) -> Value:
    """The value of `work`, which is cancelled when the client closes its connection before that."""
    task, gone = asyncio.create_task(work), asyncio.create_task(_disconnected(request))
    gone.add_done_callback(lambda _: task.cancel())
    try:
        return await task
    except asyncio.CancelledError:
        if not gone.done():
            raise
        raise RefusedError(DISCONNECTED, "The client has disconnected.") from None
    finally:
        gone.cancel()


async def _disconnected(request: Request) -> None:
    """Wait until the connection is closed; the body has been read before."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
