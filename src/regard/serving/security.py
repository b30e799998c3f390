"""Who may ask, and what a browser may do with an answer: tokens, hosts, origins, sizes and headers."""

import hmac
import re
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from regard.serving.errors import error_response
from regard.serving.settings import MEBIBYTE, ServerSettings
from regard.serving.workbench import is_file

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
_ENCODED = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
OPEN = ("/health", "/v1/systems", "/v2/health/live", "/v2/health/ready")
"""Routes that need no token, beside the pages and their files: what they answer is the same for everybody."""
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


class Security:
    """An ASGI middleware that checks each request before it is read, and adds headers to each answer."""

    def __init__(self, app: App, settings: ServerSettings, pages: frozenset[str]) -> None:
        self._app, self._settings, self._pages = app, settings, pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                # Static files are asked for again each time, which costs nothing where they have not changed.
                caching = (b"cache-control", b"no-cache" if is_static else b"no-store")
                message["headers"] = [*message.get("headers", []), *_ENCODED, caching]
            await send(message)

        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        # A page or a static file is the same for everybody, and needs no token.
        is_static = scope["path"] in self._pages or is_file(scope["path"])
        refused = self._refused(scope["path"] in OPEN or is_static, headers)
        if refused is not None:
            await error_response(*refused)(scope, receive, send_with_headers)
            return
        body = _LimitedBody(receive, self._settings.max_body * MEBIBYTE)

        async def send_unless_too_large(message: MutableMapping[str, Any]) -> None:
            if body.left >= 0:
                await send_with_headers(message)

        # A route may have caught the error, and answered something else.
        with suppress(_TooLargeError):
            await self._app(scope, body.receive, send_unless_too_large)
        if body.left < 0:
            await error_response(413, self._too_large)(scope, receive, send_with_headers)

    @property
    def _too_large(self) -> str:
        return f"A request may have {self._settings.max_body} MiB (the server's --max-body)."

    def _refused(self, is_open: bool, headers: dict[str, str]) -> tuple[int, str] | None:
        """Status and message of a refusal, or nothing."""
        host = headers.get("host", "")
        if self._settings.is_local and _name_of(host) not in (*LOCAL_NAMES, self._settings.host):
            # A page elsewhere may give its own name the address of this machine.
            return 403, "This server only answers to its own name; open it as localhost."
        origin = headers.get("origin")
        is_own = origin is None or origin.partition("://")[2] == host
        if not is_own and not {"*", origin} & set(self._settings.cors):
            return 403, "Pages of this origin may not use the server; its option --cors names those that may."
        if self._settings.secret and not is_open and not self._has_token(headers):
            return 401, "Send the token of this server as `Authorization: Bearer TOKEN`."
        length = headers.get("content-length", "0")
        if not re.fullmatch("[0-9]{1,15}", length) or int(length) > self._settings.max_body * MEBIBYTE:
            return 413, self._too_large
        return None

    def _has_token(self, headers: dict[str, str]) -> bool:
        kind, _, token = headers.get("authorization", "").partition(" ")
        expected = self._settings.secret.encode()
        return kind.lower() == "bearer" and hmac.compare_digest(token.strip().encode("latin-1"), expected)


class _TooLargeError(Exception):
    """A body without a length that turned out to be too large."""


class _LimitedBody:
    """Counts what is received."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive, self.left = receive, limit
        """Bytes that may still come; below 0 where more came than is allowed."""

    async def receive(self) -> MutableMapping[str, Any]:
        """The next message."""
        message = await self._receive()
        self.left -= len(message.get("body", b""))
        if self.left < 0:
            raise _TooLargeError
        return message


def _name_of(host: str) -> str:
    """A host without its port."""
    return host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() and not host.endswith("]") else host
