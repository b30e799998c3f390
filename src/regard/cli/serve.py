"""The command that serves models over HTTP."""

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
    shown = f"[{settings.host}]" if ":" in settings.host else settings.host
    say(f"regard serves {len(app.state.kitchen.models.served)} models at http://{shown}:{settings.port}/v1/models")
    uvicorn.run(
        app,
        host=settings.host,
        port=settings.port,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=30,
        timeout_keep_alive=10,
    )
