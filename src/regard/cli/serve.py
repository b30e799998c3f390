"""The command that serves models and the workbench over HTTP."""

import asyncio
import socket
import sys
import threading
import time
import webbrowser
from typing import Annotated

from cyclopts import Parameter

from regard.cli.io import print_error, print_line
from regard.errors import OptionError, counted
from regard.extras import require
from regard.serving.settings import ServerSettings


def serve(*folders: str, settings: Annotated[ServerSettings | None, Parameter(name="*")] = None) -> None:
    """Serve the workbench, pages to explore each model in the browser, and an HTTP API.

    Parameters
    ----------
    folders
        Model folders to serve in addition to the shipped models, named after the folders.
    """
    require("Serving", "fastapi", "uvicorn", "prometheus_client")
    import uvicorn

    from regard.serving.app import create_app
    from regard.serving.connections import protocol

    settings = settings or ServerSettings()
    app = create_app(settings, folders)
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        bound = socket.create_server((settings.host, settings.port), family=family)
    except OSError as error:
        place = f"{settings.host}, port {settings.port}"
        raise OptionError(
            f"The server cannot listen at {place}: {error.strerror}. Try another --port; 0 takes any free one."
        ) from None
    with bound as listening:
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        port = listening.getsockname()[1]
        address = f"http://{host}:{port}/"
        count = len(app.state.backend.models.served)
        print_line(f"regard serves the workbench and {counted(count, 'model')} at {address}  (Ctrl+C stops)")
        sys.stdout.flush()
        if settings.open:
            # The socket listens already, so that a browser that is quicker than the server waits for it.
            threading.Thread(target=_open_browser, args=(address,), name="open browser", daemon=True).start()
        config = uvicorn.Config(
            app,
            http=protocol(settings.client_timeout),
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=30,
            timeout_keep_alive=10,
        )

        drain = settings.drain

        class Server(uvicorn.Server):
            """On shutdown, refuses queued requests first: open connections would otherwise never close."""

            async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
                app.state.backend.batcher.stop()
                until = time.monotonic() + drain
                while time.monotonic() < until and not self.force_exit:
                    await asyncio.sleep(0.1)
                await super().shutdown(sockets)

        Server(config).run(sockets=[listening])


def _open_browser(address: str) -> None:
    if not webbrowser.open(address):
        print_error(f"regard: there is no browser to open here; open {address} yourself.")
