"""Routes of the page Convolution: tables of editable layer lists, and the feature maps of an image at every layer."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from regard.serving.errors import documented
from regard.serving.inspection.images import ExampleImage, ExampleImages, read_image
from regard.serving.schemas import STRICT, ImageUri
from regard.serving.verbs import REFUSALS, Backend

Side = Annotated[int, Field(ge=1, le=1024)]
Filters = Annotated[int, Field(ge=1, le=4096)]
KINDS = ("recognize", "caption")
"""Systems with a convolutional network."""
EXAMPLE = [{"kind": "conv", "filters": 8, "kernel": 5, "padding": 2}, {"kind": "max_pool", "kernel": 2, "stride": 2}]
"""A list of layers."""
MAX_SIDE = 32
DIGITS = 4


class LayerPart(BaseModel):
    """One layer of a list."""

    model_config = STRICT
    kind: Literal["conv", "max_pool", "average_pool"] = "conv"
    kernel: Side = 3
    stride: Side = 1
    padding: Annotated[int, Field(ge=0, le=1024)] = 0
    filters: Filters = 8
    """conv: number of filters."""
    groups: Filters = 1
    """conv: number of groups."""


class TableRequest(BaseModel):
    """A list of layers, and the size of the images."""

    model_config = STRICT
    channels: Annotated[int, Field(ge=1, le=1024)] = 3
    height: Side = 32
    width: Side = 32
    layers: Annotated[list[LayerPart], Field(max_length=40, examples=[EXAMPLE])]


class RowPart(BaseModel):
    """What one layer makes of the image."""

    output: list[int]
    """Maps, height and width."""
    field: int | None
    """Receptive field in pixels; null for the whole image."""
    parameters: int
    multiply_adds: int
    note: str
    """Which pixels a stride skips, if any."""


class ProblemPart(BaseModel):
    """Why a layer is impossible."""

    layer: int
    """The layer, from 0."""
    message: str


class TableAnswer(BaseModel):
    """A row for each layer up to the first impossible one."""

    rows: list[RowPart]
    parameters: int
    multiply_adds: int
    problem: ProblemPart | None


class NetworkPart(BaseModel):
    """A network of the literature as a list of layers."""

    name: str
    title: str
    channels: int
    height: int
    width: int
    layers: list[LayerPart]


class NetworksAnswer(BaseModel):
    """Lists to start from."""

    networks: list[NetworkPart]


class MapsRequest(BaseModel):
    """An image, and the model whose layers to show."""

    model_config = STRICT
    model: str = "digits"
    input: ImageUri
    max_maps: Annotated[int, Field(ge=1, le=32)] = 16
    """How many maps of a layer to send."""


class MapsPart(BaseModel):
    """The maps of one layer."""

    name: str
    kind: str
    shape: list[int]
    """Number of maps, height and width; at most `max_maps` are sent, and large ones are averaged down."""
    maps: list[list[list[float]]]
    filters: list[list[list[list[float]]]] | None
    """conv: for each of these maps and of the first input maps, the filter."""


class MapsAnswer(BaseModel):
    """The image as the network sees it, the maps after each layer, and what a classifier says."""

    model: str
    image: str
    size: list[int]
    """Channels, height and width."""
    layers: list[MapsPart]
    predictions: list[dict[str, Any]]
    """The most probable classes of a classifier: label and probability."""


def routes(backend: Backend) -> APIRouter:
    """`/v1/convolution/...`."""
    router = APIRouter(prefix="/v1/convolution", tags=["workbench"])

    @router.post("/table", operation_id="convolution_table", responses=documented(*REFUSALS))
    async def table(body: TableRequest) -> TableAnswer:
        """Tabulate a list of layers: output sizes, receptive fields, parameters; or say why it is impossible."""
        return await asyncio.to_thread(_table, body)

    @router.get("/networks", operation_id="convolution_networks", responses=documented(401, 403, 500))
    async def networks() -> NetworksAnswer:
        """Networks of the literature as lists of layers."""
        return await asyncio.to_thread(_networks)

    @router.post("/maps", operation_id="convolution_maps", responses=documented(*REFUSALS))
    async def maps(body: MapsRequest, request: Request) -> MapsAnswer:
        """Show the filters and feature maps of an image at every layer of a network."""
        kinds = {each.name: each.kind for each in backend.models.served}
        kind = kinds.get(body.model, KINDS[0])
        served = backend.models.find(body.model, kind if kind in KINDS else KINDS[0])
        image = await read_image(kind, body.input, backend.settings)
        model = await backend.models.get(served)
        return await backend.run(lambda: _maps(served, model, image, body.max_maps), request)

    @router.get("/examples", operation_id="convolution_examples", responses=documented(401, 403, 500))
    async def examples() -> ExampleImages:
        """Images of digits to try."""
        return await asyncio.to_thread(_examples)

    return router


def _table(body: TableRequest) -> TableAnswer:
    from regard.serving.inspection.layer_list import LayerSpec, tabulate

    layers = [LayerSpec(**layer.model_dump()) for layer in body.layers]
    found = tabulate(layers, (body.channels, body.height, body.width))
    rows = [
        RowPart(
            output=list(row.output), field=row.field, parameters=row.parameters, multiply_adds=row.multiply_adds,
            note=row.note,
        )
        for row in found.table.rows
    ]  # fmt: skip
    problem = None if found.problem is None else ProblemPart(**asdict(found.problem))
    return TableAnswer(
        rows=rows, parameters=found.table.parameters, multiply_adds=found.table.multiply_adds, problem=problem
    )


def _networks() -> NetworksAnswer:
    from regard.serving.inspection.layer_list import known_networks

    def part(net: Any) -> NetworkPart:
        channels, height, width = net.size
        layers = [LayerPart(**layer.to_dict()) for layer in net.layers]
        return NetworkPart(name=net.name, title=net.title, channels=channels, height=height, width=width, layers=layers)

    return NetworksAnswer(networks=[part(net) for net in known_networks()])


def _maps(served: Any, model: Any, image: Any, max_maps: int) -> MapsAnswer:
    from regard.systems.caption import inspection as captioning
    from regard.systems.recognize import inspection as images
    from regard.trace.data_uri import to_data_uri

    is_classifier = served.kind == "recognize"
    inspect = images.layer_maps if is_classifier else captioning.layer_maps
    pixels, layers = inspect(model, image, max_maps=max_maps, max_side=MAX_SIDE)
    shown = pixels.permute(1, 2, 0).contiguous().numpy()
    predictions = [one.to_dict() for one in model.recognize(image, top=10).predictions] if is_classifier else []
    return MapsAnswer(
        model=served.name,
        image=to_data_uri(shown[:, :, 0] if shown.shape[2] == 1 else shown),
        size=list(pixels.shape),
        layers=[
            MapsPart(
                name=each.name,
                kind=each.kind,
                shape=list(each.shape),
                maps=_rounded(each.maps),
                filters=None if each.filters is None else _rounded(each.filters),
            )
            for each in layers
        ],
        predictions=predictions,
    )


def _rounded(tensor: Any) -> Any:
    """A tensor as lists of numbers with few digits, which is all that a picture needs."""
    return tensor.double().numpy().round(DIGITS).tolist()


def _examples() -> ExampleImages:
    from regard.systems.recognize.examples import digit_glyphs
    from regard.trace.data_uri import to_data_uri

    digits: Sequence[Any] = digit_glyphs()
    return ExampleImages(
        examples=[
            ExampleImage(
                name=f"digit-{each.label}",
                image=to_data_uri(each.image),
                model="digits",
                caption=f"the digit {each.label}",
            )
            for each in digits
        ]
    )
