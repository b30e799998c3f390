"""The workbench: pages for the browser, as plain ES modules without a build step."""

import mimetypes
from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, Response
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from regard.serving.errors import error_response

PAGES = ("", "translate", "caption", "document", "read", "tape", "glimpse", "convolution")
"""The paths of the pages; "" is the home page."""
FOLDERS = {"/pages": "regard.serving:pages", "/web": "regard.viewing:web"}
"""Static files: the modules of the pages, and the web components that draw attention."""


def add_workbench(app: FastAPI) -> None:
    """Add the pages and their files to an application."""
    # Some systems do not know that .js is JavaScript, and a browser refuses modules of another type.
    mimetypes.add_type("text/javascript", ".js")
    mimetypes.add_type("image/svg+xml", ".svg")
    index = _folder(FOLDERS["/pages"]) / "index.html"

    async def page() -> FileResponse:
        return FileResponse(index)

    for name in PAGES:
        app.add_api_route(f"/{name}", page, methods=["GET"], include_in_schema=False)
    for path, place in FOLDERS.items():
        app.mount(path, StaticFiles(directory=_folder(place)))

    @app.exception_handler(404)
    async def missing(request: Request, error: HTTPException) -> Response:
        """Who follows an old or mistyped link in a browser gets a page with the way home."""
        if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
            return FileResponse(index, 404)
        return error_response(404, str(error.detail))


def is_static(path: str) -> bool:
    """Whether a path leads to a page or a static file, which are the same for everybody and need no token."""
    return path.removeprefix("/") in PAGES or path.startswith(tuple(f"{folder}/" for folder in FOLDERS))


def _folder(place: str) -> Path:
    package, _, name = place.partition(":")
    return Path(str(files(package).joinpath(name)))
