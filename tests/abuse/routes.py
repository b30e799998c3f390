"""Cases of the server: in the example of each route, each field is replaced by each wrong value; and wrong requests."""

import copy
import json
import os
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from abuse.cases import Case, Verdict, judged_message
from regard.serving.app import create_app

WRONG: dict[str, Any] = {
    "null": None,
    "true": True,
    "-1": -1,
    "0": 0,
    "1.5": 1.5,
    "10**9": 10**9,
    "10**18": 10**18,
    "10**400": 10**400,
    "''": "",
    "'x'": "x",
    "NUL": "a\0b",
    "surrogate": "\ud800",
    "escape": "\x1b[31m",
    "markup": "<script>alert(1)</script>",
    "a path": "/etc/passwd",
    "long": "a" * 100_000,
    "a long word": "qx" * 10_000,
    "[]": [],
    "[null]": [None],
    "{}": {},
    "deep": [[[[[[[["a"]]]]]]]],
    "many": ["a"] * 500,
    "a URL": "http://127.0.0.1:1/",
    "an image": "data:image/png;base64,AAAA",
}
"""What stands in for any value of a request."""
BODIES = {
    "empty": b"",
    "no JSON": b"{",
    "NaN": b'{"input": NaN}',
    "a list": b"[]",
    "text": b'"x"',
    "binary": bytes(range(256)),
    "UTF-16": '{"input": "a"}'.encode("utf-16"),
    "deep": b"[" * 100_000,
    "a number": b"9" * 10_000,
    "twice": b'{"input":"a","input":3}',
}
"""Bodies that are no requests."""
HEADERS = {
    "another host": {"Host": "example.com"},
    "another origin": {"Origin": "http://example.com"},
    "another type": {"Content-Type": "text/plain"},
    "a wrong length": {"Content-Length": "99999999999999"},
    "no length": {"Content-Length": "x"},
    "events": {"Accept": "text/event-stream"},
    "a token": {"Authorization": "Bearer x"},
}


def client() -> TestClient:
    """A server in this process, whose models are loaded once; the threads of another process do not live here."""
    return _client(os.getpid())


@cache
def _client(process: int) -> TestClient:
    return TestClient(create_app(), base_url="http://localhost", raise_server_exceptions=False).__enter__()


@cache
def _routes() -> dict[str, dict[str, Any]]:
    """The routes that take a body, each with its example."""
    document = create_app().openapi()
    examples = {}
    for path, methods in document["paths"].items():
        if "post" in methods and "{" not in path:
            schema = methods["post"]["requestBody"]["content"]["application/json"]["schema"]
            example = _example(schema, document["components"]["schemas"])
            if isinstance(example, dict):
                examples[path] = example
    return examples


def _example(schema: dict[str, Any], parts: dict[str, Any]) -> Any:
    if "$ref" in schema:
        schema = parts[schema["$ref"].rsplit("/", 1)[1]]
    if "examples" in schema:
        return schema["examples"][0]
    for each in schema.get("oneOf", schema.get("anyOf", [])):
        return _example(each, parts)
    return None


def cases() -> Iterator[Case]:
    """Wrong values, bodies, headers, methods and paths."""
    for path, example in _routes().items():
        for place in _places(example):
            for name, value in WRONG.items():
                yield Case(
                    "routes", f"{path} {'.'.join(map(str, place))}={name}", partial(_field, path, example, place, value)
                )
        yield Case("routes", f"{path} nonsense", partial(_field, path, example, ("nonsense",), 1))
        for name in example:
            body = {key: value for key, value in example.items() if key != name}
            yield Case("routes", f"{path} without {name}", partial(_post, path, json.dumps(body).encode(), {}))
        for name, body in BODIES.items():
            yield Case("routes", f"{path} body {name}", partial(_post, path, body, {}))
        for name, headers in HEADERS.items():
            yield Case("routes", f"{path} {name}", partial(_post, path, json.dumps(example).encode(), headers))
        for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            yield Case("routes", f"{method} {path}", partial(_other, method, path))
    for path in (
        "/../etc/passwd",
        "/v1/%2e%2e/x",
        "/static/..%2f..%2fetc/passwd",
        "/v1/" + "x" * 5000,
        "/%00",
        "//",
        "/v1/translate/",
    ):
        yield Case("routes", f"GET {path[:40]}", partial(_other, "GET", path))


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield (*place, key)
            yield from _places(each, (*place, key))
    elif isinstance(value, list) and value:
        yield (*place, 0)
        yield from _places(value[0], (*place, 0))


def _field(path: str, example: dict[str, Any], place: tuple[Any, ...], value: Any, folder: Path) -> Verdict:
    body = copy.deepcopy(example)
    holder: Any = body
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    return _post(path, json.dumps(body).encode(), {}, folder)


def _post(path: str, body: bytes, headers: dict[str, str], folder: Path) -> Verdict:
    return _judged(client().post(path, content=body, headers={"Content-Type": "application/json", **headers}))


def _other(method: str, path: str, folder: Path) -> Verdict:
    return _judged(client().request(method, path))


def _judged(answer: Any) -> Verdict:
    """An answer: a success that is JSON without NaN, or an error with a status of its own and a message."""
    said = answer.text
    if answer.status_code >= 500 and answer.status_code != 503:
        return Verdict("traceback", f"{answer.status_code}: {said[:200]}")
    if "Traceback" in said or "/src/regard/" in said or "site-packages" in said:
        return Verdict("traceback", said[:300])
    if answer.status_code < 400:
        if "json" in answer.headers.get("content-type", ""):
            try:
                json.loads(said, parse_constant=_refuse)
            except ValueError as error:
                return Verdict("silent", str(error))
        return Verdict("answered")
    try:
        return judged_message(json.loads(said)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return Verdict("unclear", f"{answer.status_code}: {said[:200]}")


def _refuse(name: str) -> Any:
    raise ValueError(f"the answer holds {name}")
