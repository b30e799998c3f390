"""A table of the layers of a network: sizes, receptive fields, parameters, work, and pixels that a stride skips."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from regard.arguments import checked
from regard.config import PositiveInt
from regard.errors import OptionError, RegardError, ShapeError, counted

_WINDOWED = (nn.Conv2d, nn.MaxPool2d, nn.AvgPool2d)
_ADAPTIVE = (nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d)


@dataclass(frozen=True)
class LayerRow:
    """One layer of a table."""

    name: str
    """Name of the layer in the network, as in its state dict."""
    kind: str
    """Class of the layer."""
    output: tuple[int, ...]
    """Channels, height and width of the output; the features of a linear layer."""
    field: int | None
    """Receptive field: width in pixels of the part of the image that one output depends on; None for all of it."""
    parameters: int
    """Number of parameters."""
    multiply_adds: int
    """Number of multiply-adds for one image."""
    kernel: tuple[int, int] | None = None
    """Height and width of the window; None for a layer without windows."""
    stride: tuple[int, int] | None = None
    padding: tuple[int, int] | None = None
    note: str = ""
    """Which pixels a stride skips, if any."""


@dataclass(frozen=True)
class LayerTable:
    """The layers of a network for images of one size; print it, or iterate over its rows."""

    rows: list[LayerRow]
    size: tuple[int, int, int]
    """Channels, height and width of the image."""

    @property
    def parameters(self) -> int:
        """Number of parameters of all layers."""
        return sum(row.parameters for row in self.rows)

    @property
    def multiply_adds(self) -> int:
        """Number of multiply-adds of all layers for one image."""
        return sum(row.multiply_adds for row in self.rows)

    def __str__(self) -> str:
        names = ("layer", "kind", "kernel", "stride", "padding", "output")
        numbers = ("field", "parameters", "multiply-adds")
        aligns = dict.fromkeys(names, "<") | dict.fromkeys(numbers, ">") | {"note": "<"}
        first = ["image", "", "", "", "", _times(self.size), "1", "", "", ""]
        total = ["total", "", "", "", "", "", "", f"{self.parameters:,}", f"{self.multiply_adds:,}", ""]
        lines = [list(aligns), first, *map(_cells, self.rows), total]
        widths = [max(len(line[index]) for line in lines) for index in range(len(aligns))]
        columns = [f"{{:{align}{width}}}" for align, width in zip(aligns.values(), widths, strict=True)]
        return "\n".join("  ".join(columns).format(*line).rstrip() for line in lines)


@checked
def layer_table(net: nn.Module, size: tuple[PositiveInt, PositiveInt, PositiveInt] = (3, 32, 32)) -> LayerTable:
    """Tabulate what each layer of a network does to an image of (channels, height, width).

    The output size is w_out = floor((w_in + 2p - k) / s) + 1. The receptive field grows by (k - 1) times the distance
    in pixels between two cells, which each stride multiplies. Only sizes are computed, on the meta device, so that
    large networks take no time.
    """
    size = tuple(size)  # type: ignore[assignment]
    if len(size) != 3:
        raise OptionError(f"size must be (channels, height, width) of an image; got {size!r:.80}.")
    recorder = _Recorder(size)
    layers = [(name, layer) for name, layer in net.named_modules() if not list(layer.children())]
    hooks = [layer.register_forward_hook(recorder.hook(name)) for name, layer in layers]
    modes = [(module, module.training) for module in net.modules()]
    try:
        state = {**dict(net.named_parameters()), **dict(net.named_buffers())}
        empty = {name: torch.empty_like(tensor, device="meta") for name, tensor in state.items()}
        with torch.no_grad():
            functional_call(net.eval(), empty, (recorder.image,))
    except RegardError:
        raise
    except Exception as error:  # whatever the network raises
        raise ShapeError(
            f"{type(net).__name__} does not accept an image of {_times(size)}: {str(error).partition(chr(10))[0]}"
        ) from error
    finally:
        for module, mode in modes:
            module.training = mode
        for hook in hooks:
            hook.remove()
    return LayerTable(recorder.rows, size)


def output_size(size: int, kernel: int, *, stride: int = 1, padding: int = 0, dilation: int = 1) -> int:
    """Return the number of windows: w_out = floor((w_in + 2p - k) / s) + 1, where a dilated k is d (k - 1) + 1."""
    if min(size, kernel, stride, dilation) < 1 or padding < 0:
        raise OptionError(
            f"Sizes, kernels, strides and dilations must be 1 or more and padding 0 or more; got size={size}, "
            f"kernel={kernel}, stride={stride}, padding={padding}, dilation={dilation}."
        )
    spare = size + 2 * padding - (dilation * (kernel - 1) + 1)
    if spare < 0:
        raise ShapeError(
            f"A kernel of {kernel} (dilation {dilation}) does not fit on {counted(size, 'pixel')} with a "
            f"padding of {padding}. Use a larger image or more padding."
        )
    return spare // stride + 1


def uncovered(size: int, kernel: int, *, stride: int = 1, padding: int = 0, dilation: int = 1) -> int:
    """Return the number of pixels at the end of a line that no window covers, because of the stride."""
    windows = output_size(size, kernel, stride=stride, padding=padding, dilation=dilation)
    reached = (windows - 1) * stride + dilation * (kernel - 1) + 1 - padding
    return max(0, size - reached)


@dataclass(frozen=True)
class _Cell:
    """How many pixels a cell depends on (None for all of them), and the distance between two cells in pixels."""

    field: int | None
    jump: int


class _Recorder:
    """Records each layer as an image passes through the network."""

    def __init__(self, size: tuple[int, int, int]) -> None:
        self.rows: list[LayerRow] = []
        self.image = torch.empty(1, *size, device="meta")
        # The tensors are kept alive, since the id of a deleted tensor may be reused.
        self._cells: dict[int, tuple[Tensor, _Cell]] = {id(self.image): (self.image, _Cell(1, 1))}

    def hook(self, name: str) -> Callable[[nn.Module, tuple[Any, ...], Any], None]:
        """Return the forward hook of a layer."""

        def record(layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
            if inputs and isinstance(inputs[0], Tensor) and isinstance(output, Tensor):
                self._record(name, layer, inputs[0], output)

        return record

    def _record(self, name: str, layer: nn.Module, given: Tensor, output: Tensor) -> None:
        before = self._before(given)
        after = before
        windows: dict[str, Any] = {}
        if isinstance(layer, _WINDOWED):
            after, windows = _windowed(layer, given, output, before)
        elif isinstance(layer, _ADAPTIVE):
            after = _pooled(before, given.shape[-1], output.shape[-1])
        elif isinstance(layer, nn.Linear):
            after = _Cell(None, before.jump)
        self._cells[id(output)] = (output, after)
        parameters = sum(part.numel() for part in layer.parameters(recurse=False))
        if parameters or isinstance(layer, (*_WINDOWED, *_ADAPTIVE)):
            shape = tuple(output.shape[1:])
            row = LayerRow(name or "net", type(layer).__name__, shape, after.field, parameters, _work(layer, output))
            self.rows.append(replace(row, **windows))

    def _before(self, given: Tensor) -> _Cell:
        """Return the cell of an input; for a sum or a reshaped input, the largest cell among maps of its size."""
        if id(given) in self._cells:
            return self._cells[id(given)][1]
        known = [cell for maps, cell in self._cells.values() if maps.shape[2:] == given.shape[2:]]
        known = known or [cell for _, cell in self._cells.values()]
        return max(known, key=lambda cell: float("inf") if cell.field is None else cell.field)


def _windowed(
    layer: nn.Conv2d | nn.MaxPool2d | nn.AvgPool2d, given: Tensor, output: Tensor, before: _Cell
) -> tuple[_Cell, dict[str, Any]]:
    kernel, stride = _pair(layer.kernel_size), _pair(layer.stride)
    padding = (0, 0) if isinstance(layer.padding, str) else _pair(layer.padding)
    if layer.padding == "same":
        padding = (kernel[0] // 2, kernel[1] // 2)
    dilation = _pair(getattr(layer, "dilation", 1))
    notes = []
    for side, index in (("rows at the bottom", 0), ("columns on the right", 1)):
        line = {"stride": stride[index], "padding": padding[index], "dilation": dilation[index]}
        length = given.shape[2 + index]
        # Where there is one window more than the formula says, the last window extends beyond the image.
        left = uncovered(length, kernel[index], **line)
        if left and output.shape[2 + index] == output_size(length, kernel[index], **line):
            notes.append(f"{left} of {length} {side}")
        if stride[index] > kernel[index]:
            gap = stride[index] - kernel[index]
            notes.append(f"{gap} of {stride[index]} {side.split()[0]} between windows")
    span = (kernel[1] - 1) * dilation[1]
    field = None if before.field is None else before.field + span * before.jump
    note = "skips " + ", ".join(notes) if notes else ""
    windows = {"kernel": kernel, "stride": stride, "padding": padding, "note": note}
    return _Cell(field, before.jump * stride[1]), windows


def _pooled(before: _Cell, size: int, output_size: int) -> _Cell:
    """Return the cell after an adaptive pooling, whose windows have size / output_size cells, rounded up.

    Where that is not a whole number, a window may cover one cell more.
    """
    if before.field is None or output_size == 1:
        return _Cell(None, before.jump)
    window = -(-size // output_size) + (1 if size % output_size else 0)
    return _Cell(before.field + (min(window, size) - 1) * before.jump, before.jump * max(1, size // output_size))


def _work(layer: nn.Module, output: Tensor) -> int:
    """Return the number of multiply-adds; a maximum has none."""
    if isinstance(layer, nn.Conv2d):
        return output[0].numel() * layer.in_channels // layer.groups * layer.kernel_size[0] * layer.kernel_size[1]
    if isinstance(layer, nn.Linear):
        return output[0].numel() * layer.in_features
    if isinstance(layer, nn.BatchNorm2d):
        return output[0].numel()
    return 0


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def _times(sizes: tuple[int, ...]) -> str:
    return " x ".join(map(str, sizes))


def _cells(row: LayerRow) -> list[str]:
    windows = ["" if pair is None else _times(pair) for pair in (row.kernel, row.stride, row.padding)]
    field = "all" if row.field is None else str(row.field)
    work = [f"{row.parameters:,}", f"{row.multiply_adds:,}"]
    return [row.name, row.kind, *windows, _times(row.output), field, *work, row.note]
