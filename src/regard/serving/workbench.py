"""The workbench: pages for the browser, as plain ES modules without a build step."""

import mimetypes
import os
from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from regard.serving.errors import error_response
from regard.systems import registry

FOLDERS = {"/pages": "regard.serving:pages", "/web": "regard.viewing:web"}
"""Static files: the modules of the workbench, and the web components that draw attention."""
OF_SYSTEMS = "/systems"
"""Where the pages of systems are, each below the name of its system."""

ATTENTION = "/attention"
"""The page that shows one step of attention in numbers. It belongs to no system: the browser computes it."""


class SystemEntry(BaseModel):
    """A system with a page in the workbench."""

    name: str
    """Its verb: the last part of its route, and the path of its page."""
    summary: str
    model: str
    """The model that answers where none is named."""
    examples: bool
    """Whether there are inputs to try below its route, at `examples`."""
    page: str
    """The module of its page, whose default export is a Page."""


class SystemList(BaseModel):
    """The systems with a page, in the order of the navigation."""

    systems: list[SystemEntry]


def add_workbench(app: FastAPI) -> frozenset[str]:
    """Add the pages and their files to an application; returns the paths of the pages."""
    # Some systems do not know that .js is JavaScript, and a browser refuses modules of another type.
    mimetypes.add_type("text/javascript", ".js")
    mimetypes.add_type("image/svg+xml", ".svg")
    index = _folder(FOLDERS["/pages"]) / "index.html"
    pages = {each: each.page for each in registry.entries() if each.page is not None}
    listed = [
        SystemEntry(
            name=each.name,
            summary=each.declaration.summary,
            model=each.declaration.default_model,
            examples=each.examples is not None,
            page=f"{OF_SYSTEMS}/{each.name}/{page.name}",
        )
        for each, page in pages.items()
    ]
    paths = frozenset(("/", ATTENTION, *(f"/{each.name}" for each in listed)))

    @app.get("/v1/systems", tags=["server"])
    async def systems() -> SystemList:
        """The systems that have a page in the workbench."""
        return SystemList(systems=listed)

    async def page() -> FileResponse:
        return FileResponse(index)

    for path in paths:
        app.add_api_route(path, page, methods=["GET"], include_in_schema=False)
    for path, place in FOLDERS.items():
        app.mount(path, StaticFiles(directory=_folder(place)))
    for each, module in pages.items():
        app.mount(f"{OF_SYSTEMS}/{each.name}", _PageFiles(directory=module.parent))

    @app.exception_handler(404)
    async def missing(request: Request, error: HTTPException) -> Response:
        """Who follows an old or mistyped link in a browser gets a page with the way home."""
        if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
            return FileResponse(index, 404)
        return error_response(404, str(error.detail))

    return paths


def is_file(path: str) -> bool:
    """Whether a path leads to the files of pages."""
    return path.startswith(("/pages/", "/web/", "/systems/"))


class _PageFiles(StaticFiles):
    """The modules and styles in the folder of a system; its other files are not served."""

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        """Where a file is; nothing for files of other kinds."""
        return super().lookup_path(path) if path.endswith((".js", ".css")) else ("", None)


def _folder(place: str) -> Path:
    package, _, name = place.partition(":")
    return Path(str(files(package).joinpath(name)))
