"""Connections of slow clients: how long a request may take to arrive, and an answer to be taken."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_UNFINISHED = 500
"""Connections whose request is not there yet; of more, the oldest are closed, so that files remain for others."""
BURST_SECONDS = 1.0
"""How old a connection must be to be closed for that: a client that has just connected may be about to send."""
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_COMPLETE = (h11.DONE, h11.MUST_CLOSE, h11.CLOSED, h11.ERROR, h11.SWITCHED_PROTOCOL)
"""The states of a client that has sent all of its request."""


def protocol(seconds: float) -> type[H11Protocol]:
    """The protocol of a server whose clients have so many seconds to send a request, and to go on taking its answer."""
    unfinished: dict[_Timed, float] = {}

    class _Timed(H11Protocol):
        """Closes its connection where the client takes longer, from its opening or the first byte of a request."""

        sending: asyncio.TimerHandle | None = None
        taking: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._begin()
            oldest, began = next(iter(unfinished.items()))
            if len(unfinished) > MAX_UNFINISHED and self.loop.time() - began > BURST_SECONDS:
                oldest.too_slow()

        def data_received(self, data: bytes) -> None:
            if self.sending is None and self.conn.their_state is h11.IDLE:
                self._begin()
            super().data_received(data)
            if self.conn.their_state in _COMPLETE:
                self._end()

        def connection_lost(self, exc: Exception | None) -> None:
            self._end()
            self.resume_writing()
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            super().pause_writing()
            self.taking = self.loop.call_later(seconds, self.transport.abort)

        def resume_writing(self) -> None:
            if self.taking is not None:
                self.taking.cancel()
                self.taking = None
            super().resume_writing()

        def too_slow(self) -> None:
            """Close the connection, with a status where no answer has begun."""
            self._end()
            if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                self.transport.write(TOO_SLOW)
            self.transport.close()

        def _begin(self) -> None:
            unfinished[self] = self.loop.time()
            self.sending = self.loop.call_later(seconds, self.too_slow)

        def _end(self) -> None:
            unfinished.pop(self, None)
            if self.sending is not None:
                self.sending.cancel()
                self.sending = None

    return _Timed
