"""Slow clients are disconnected, and keep nobody else waiting."""

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest
import uvicorn

from regard.serving import connections
from regard.serving.connections import protocol

HEAD = b"POST / HTTP/1.1\r\nhost: localhost\r\n"
SECONDS = 0.2
LOST = threading.Event()
"""That the server has told the application, which sends an endless answer, that the connection is lost."""


async def app(scope, receive, send) -> None:
    """Answers once it has the body; at /endless, until the connection is lost."""
    while (message := await receive()).get("more_body"):
        pass
    if message["type"] == "http.disconnect":
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/endless":
        lost = asyncio.create_task(receive())
        while not lost.done():
            await send({"type": "http.response.body", "body": b"x" * 2**20, "more_body": True})
            await asyncio.sleep(0)
        LOST.set()
        return
    await send({"type": "http.response.body", "body": b"xx"})


@pytest.fixture
def port(request) -> Iterator[int]:
    config = uvicorn.Config(app, http=protocol(getattr(request, "param", SECONDS)), log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield listening.getsockname()[1]
        server.should_exit = True
        thread.join()


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def received(client: socket.socket) -> bytes:
    """All that comes until the server closes the connection."""
    parts = []
    try:
        while part := client.recv(2**16):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


@pytest.mark.parametrize(
    "sent", [b"", b"POST", HEAD, HEAD + b"content-length: 9\r\n\r\n", HEAD + b"content-length: 9\r\n\r\nabc"]
)
def test_a_request_that_does_not_arrive_ends_with_a_status(port, sent):
    with connect(port) as client:
        client.sendall(sent)
        assert received(client).startswith(b"HTTP/1.1 408 ")


def test_the_second_request_of_a_connection_must_arrive_too(port):
    with connect(port) as client:
        client.sendall(HEAD + b"content-length: 0\r\n\r\n")
        assert client.recv(2**16).startswith(b"HTTP/1.1 200 ")
        client.sendall(b"POST / HT")
        assert b"HTTP/1.1 408 " in received(client)


def test_a_client_that_takes_no_answer_is_disconnected(port):
    with connect(port) as client:
        client.sendall(b"POST /endless HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n")
        assert LOST.wait(60), "the server still waits for a client that takes nothing"
        assert received(client).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("port", [60.0], indirect=True)
def test_of_too_many_connections_without_a_request_the_oldest_is_closed(port, monkeypatch):
    monkeypatch.setattr(connections, "MAX_UNFINISHED", 5)
    monkeypatch.setattr(connections, "BURST_SECONDS", 0.0)
    clients = [connect(port) for _ in range(6)]
    assert received(clients[0]).startswith(b"HTTP/1.1 408 ")
    clients[-1].sendall(HEAD + b"content-length: 0\r\nconnection: close\r\n\r\n")
    assert received(clients[-1]).startswith(b"HTTP/1.1 200 ")
    for client in clients:
        client.close()
