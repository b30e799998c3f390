"""The application: routes of systems and models, health and metrics, and the workbench."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel
from starlette.middleware.cors import CORSMiddleware

from regard import __version__
from regard.serving import limits, schemas
from regard.serving.batching import Batcher
from regard.serving.endpoints import Backend, system_routes
from regard.serving.errors import add_handlers
from regard.serving.metrics import ServerMetrics
from regard.serving.models import Models
from regard.serving.open_inference import open_inference_routes
from regard.serving.security import Security
from regard.serving.settings import MEBIBYTE, ServerSettings
from regard.serving.workbench import add_workbench


class Health(BaseModel):
    """Body of GET /health."""

    status: str
    version: str
    waiting: int
    """Inputs that wait."""


def create_app(settings: ServerSettings | None = None, folders: Sequence[str] = ()) -> FastAPI:
    """The server as an ASGI application; `folders` are models to serve beside those that come with regard."""
    settings = settings or ServerSettings()
    models = Models(folders, device=settings.device or None, memory=settings.memory * MEBIBYTE)
    batcher = Batcher(
        queue=settings.queue, per_client=settings.per_client, batch=settings.batch, deadline=settings.deadline
    )
    backend = Backend(settings, models, batcher, ServerMetrics(batcher, models))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await batcher.close()

    about = limits.described(settings.max_inputs, settings.max_characters, settings.max_megapixels)
    app = FastAPI(
        title="regard", version=__version__, description=about, docs_url=None, redoc_url=None, lifespan=lifespan
    )
    add_handlers(app)
    app.include_router(_general_routes(backend))
    app.include_router(system_routes(backend))
    app.include_router(open_inference_routes(backend))
    pages = add_workbench(app)
    app.add_middleware(Security, settings=settings, pages=pages)
    if settings.cors:
        # Outermost, so that it answers what browsers ask before a request, and refusals can be read by the page.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors,
            allow_methods=("GET", "POST"),
            allow_headers=("Authorization", "Content-Type", "Accept"),
            expose_headers=("Retry-After",),
        )
    app.state.backend = backend
    return app


def _general_routes(backend: Backend) -> APIRouter:
    router = APIRouter()

    @router.get("/health", tags=["server"], response_model=Health)
    async def health() -> Response:
        """Whether the server answers; 503 when it is about to stop, so that a load balancer asks another one."""
        stops = backend.batcher.is_stopped
        body = Health(status="stopping" if stops else "ok", version=__version__, waiting=backend.batcher.waiting)
        return JSONResponse(body.model_dump(), 503 if stops else 200, {"Retry-After": "1"} if stops else None)

    @router.get("/metrics", tags=["server"], response_class=PlainTextResponse)
    async def metrics() -> Any:
        """Counts of requests, batches and models, for Prometheus."""
        return PlainTextResponse(backend.metrics.text(), media_type="text/plain; version=0.0.4")

    @router.get("/v1/models", tags=["models"], response_model=schemas.models_response())
    async def models() -> Response:
        """The models that can be asked for."""
        loaded = backend.models.loaded
        listed = [schemas.plain(each) | {"loaded": each.name in loaded} for each in backend.models.served]
        return JSONResponse({"models": listed})

    return router
