"""A load balancer for tests: one address in front of several servers, of which it asks those that say they are well."""

import asyncio
import itertools
import threading
from collections.abc import Sequence
from contextlib import suppress

from helpers.served import ask

HEALTH_SECONDS = 0.2
"""How often each server is asked for its health."""


class Balancer:
    """Passes each connection to the next server that is well; it repeats no request."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._backends, self._well = list(ports), set(ports)
        self._turn = itertools.count()
        self._loop = asyncio.new_event_loop()
        self._ended = threading.Event()
        self.port = 0

    def __enter__(self) -> "Balancer":
        listening = asyncio.run_coroutine_threadsafe(self._listen(), self._loop)
        self._threads = [threading.Thread(target=target) for target in (self._loop.run_forever, self._watch)]
        for thread in self._threads:
            thread.start()
        self.port = listening.result(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._loop.call_soon_threadsafe(self._loop.stop)
        for thread in self._threads:
            thread.join()

    def is_well(self, port: int) -> bool:
        """Whether a server answered its last question for its health."""
        return port in self._well

    async def _listen(self) -> int:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=4096)
        return int(server.sockets[0].getsockname()[1])

    def _watch(self) -> None:
        while not self._ended.wait(HEALTH_SECONDS):
            for port in self._backends:
                try:
                    status = ask(port, "/health", timeout=60)[0]
                except OSError:
                    status = 0
                (self._well.add if status == 200 else self._well.discard)(port)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        start = next(self._turn)
        turns = [self._backends[(start + place) % len(self._backends)] for place in range(len(self._backends))]
        for port in sorted(turns, key=lambda port: port not in self._well):
            try:
                there, back = await asyncio.open_connection("127.0.0.1", port)
            except OSError:  # it does not listen: it is the turn of the next one
                continue
            asking = asyncio.create_task(_pass_on(reader, back))
            await _pass_on(there, writer)
            asking.cancel()
            back.close()
            break
        writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while part := await reader.read(2**16):
            writer.write(part)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
