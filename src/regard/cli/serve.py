"""The command that serves models over HTTP."""

import socket
import sys
from importlib.util import find_spec
from typing import Annotated

from cyclopts import Parameter

from regard.errors import OptionError
from regard.serving.settings import ServerSettings


def serve(*folders: str, settings: Annotated[ServerSettings | None, Parameter(name="*")] = None) -> None:
    """Serve models over HTTP: a route for each verb, with the requests of all clients in shared batches.

    Parameters
    ----------
    folders
        Model folders to serve beside the models that come with regard, under the names of the folders.
    """
    missing = [name for name in ("fastapi", "uvicorn", "prometheus_client") if find_spec(name) is None]
    if missing:
        raise OptionError(f"Serving needs {', '.join(missing)}: pip install 'regard[serve]'.")
    import uvicorn

    from regard.serving.app import create_app
    from regard.systems.output import say

    settings = settings or ServerSettings()
    app = create_app(settings, folders)
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.create_server((settings.host, settings.port), family=family) as listening:
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        port = listening.getsockname()[1]
        say(f"regard serves {len(app.state.backend.models.served)} models at http://{host}:{port}/v1/models")
        sys.stdout.flush()
        config = uvicorn.Config(
            app, log_level="warning", server_header=False, timeout_graceful_shutdown=30, timeout_keep_alive=10
        )
        uvicorn.Server(config).run(sockets=[listening])
