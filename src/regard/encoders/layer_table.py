"""A layer list that explains itself: sizes, receptive fields, weights, work, and pixels that a stride leaves out."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from regard.errors import RegardError, ShapeError
from regard.layers.convolution import output_size, uncovered

_WINDOWED = (nn.Conv2d, nn.MaxPool2d, nn.AvgPool2d)
_ADAPTIVE = (nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d)


@dataclass(frozen=True)
class Row:
    """One layer."""

    name: str
    """Where it stands in the network, as in its state dict."""
    kind: str
    output: tuple[int, ...]
    """Channels, height and width; of a linear layer its features."""
    field: int | None
    """Pixels of the picture, in height or width, that one number of the output can depend on; None for all of them."""
    parameters: int
    multiply_adds: int
    """Of one picture."""
    kernel: tuple[int, int] | None = None
    """Height and width; None for a layer without windows."""
    stride: tuple[int, int] | None = None
    padding: tuple[int, int] | None = None
    note: str = ""
    """Where a stride leaves pixels out."""


@dataclass(frozen=True)
class LayerTable:
    """The layers of a network on a picture of one size; print it, or go through its rows."""

    rows: list[Row]
    size: tuple[int, int, int]

    @property
    def parameters(self) -> int:
        """Weights of all layers."""
        return sum(row.parameters for row in self.rows)

    @property
    def multiply_adds(self) -> int:
        """Work of all layers for one picture."""
        return sum(row.multiply_adds for row in self.rows)

    def __str__(self) -> str:
        heads = [
            "layer",
            "kind",
            "kernel",
            "stride",
            "padding",
            "output",
            "field",
            "parameters",
            "multiply-adds",
            "note",
        ]
        begin = ["picture", "", "", "", "", _times(self.size), "1", "", "", ""]
        total = ["all", "", "", "", "", "", "", f"{self.parameters:,}", f"{self.multiply_adds:,}", ""]
        lines = [heads, begin, *map(_cells, self.rows), total]
        widths = [max(len(line[place]) for line in lines) for place in range(len(heads))]
        is_number = [name in ("field", "parameters", "multiply-adds") for name in heads]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(line, widths, is_number, strict=True)
            ).rstrip()
            for line in lines
        )


def layer_table(net: nn.Module, size: tuple[int, int, int] = (3, 32, 32)) -> LayerTable:
    """Table what each layer of a network does to a picture of (channels, height, width).

    The output size is w_out = floor((w_in + 2p - k) / s) + 1; the receptive field grows by (k - 1) times the pixels
    between two cells, which each stride multiplies. Nothing is computed but sizes, so large networks take no time.
    """
    watch = _Watch(size)
    layers = [(name, layer) for name, layer in net.named_modules() if not list(layer.children())]
    hooks = [layer.register_forward_hook(watch.hook(name)) for name, layer in layers]
    was_training = net.training
    try:
        state = {**dict(net.named_parameters()), **dict(net.named_buffers())}
        empty = {name: torch.empty_like(tensor, device="meta") for name, tensor in state.items()}
        with torch.no_grad():
            functional_call(net.eval(), empty, (watch.picture,))
    except RegardError:
        raise
    except RuntimeError as error:
        raise ShapeError(
            f"{type(net).__name__} does not take a picture of {_times(size)}: {str(error).splitlines()[0]}"
        ) from error
    finally:
        net.train(was_training)
        for hook in hooks:
            hook.remove()
    return LayerTable(watch.rows, size)


@dataclass(frozen=True)
class _Seen:
    """How many pixels a cell depends on, and how many lie between two cells; no number for all of them."""

    field: int | None
    jump: int


class _Watch:
    """Takes note of each layer as the picture goes through."""

    def __init__(self, size: tuple[int, int, int]) -> None:
        self.rows: list[Row] = []
        self.picture = torch.empty(1, *size, device="meta")
        # The tensors are kept, since the number that tells them apart would be given to others after them.
        self._seen: dict[int, tuple[Tensor, _Seen]] = {id(self.picture): (self.picture, _Seen(1, 1))}

    def hook(self, name: str) -> Callable[[nn.Module, tuple[Any, ...], Any], None]:
        """What to call after a layer."""

        def look(layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
            if inputs and isinstance(inputs[0], Tensor) and isinstance(output, Tensor):
                self._look(name, layer, inputs[0], output)

        return look

    def _look(self, name: str, layer: nn.Module, given: Tensor, output: Tensor) -> None:
        before = self._before(given)
        after = before
        windows: dict[str, Any] = {}
        if isinstance(layer, _WINDOWED):
            after, windows = _windowed(layer, given, output, before)
        elif isinstance(layer, _ADAPTIVE):
            after = _averaged(before, given.shape[-1], output.shape[-1])
        elif isinstance(layer, nn.Linear):
            after = _Seen(None, before.jump)
        self._seen[id(output)] = (output, after)
        parameters = sum(weight.numel() for weight in layer.parameters(recurse=False))
        if parameters or isinstance(layer, (*_WINDOWED, *_ADAPTIVE)):
            shape = tuple(output.shape[1:])
            row = Row(name or "net", type(layer).__name__, shape, after.field, parameters, _work(layer, output))
            self.rows.append(replace(row, **windows))

    def _before(self, given: Tensor) -> _Seen:
        """What is known of the input; of a sum or another form of maps, what is known of the widest of their size."""
        if id(given) in self._seen:
            return self._seen[id(given)][1]
        known = [seen for maps, seen in self._seen.values() if maps.shape[2:] == given.shape[2:]]
        known = known or [seen for _, seen in self._seen.values()]
        return max(known, key=lambda seen: float("inf") if seen.field is None else seen.field)


def _windowed(
    layer: nn.Conv2d | nn.MaxPool2d | nn.AvgPool2d, given: Tensor, output: Tensor, before: _Seen
) -> tuple[_Seen, dict[str, Any]]:
    kernel, stride = _pair(layer.kernel_size), _pair(layer.stride)
    padding = (0, 0) if isinstance(layer.padding, str) else _pair(layer.padding)
    if layer.padding == "same":
        padding = (kernel[0] // 2, kernel[1] // 2)
    dilation = _pair(getattr(layer, "dilation", 1))
    notes = []
    for side, place in (("rows at the bottom", 0), ("columns on the right", 1)):
        line = {"stride": stride[place], "padding": padding[place], "dilation": dilation[place]}
        length = given.shape[2 + place]
        # Where there is one window more than the formula has, the last of them reaches beyond the picture.
        left = uncovered(length, kernel[place], **line)
        if left and output.shape[2 + place] == output_size(length, kernel[place], **line):
            notes.append(f"{left} of {length} {side}")
        if stride[place] > kernel[place]:
            gap = stride[place] - kernel[place]
            notes.append(f"{gap} of {stride[place]} {side.split()[0]} between windows")
    span = (kernel[1] - 1) * dilation[1]
    field = None if before.field is None else before.field + span * before.jump
    note = "leaves out " + ", ".join(notes) if notes else ""
    windows = {"kernel": kernel, "stride": stride, "padding": padding, "note": note}
    return _Seen(field, before.jump * stride[1]), windows


def _averaged(before: _Seen, given: int, made: int) -> _Seen:
    """An adaptive pooling has windows of given / made cells, rounded up, and one cell more where that is not whole."""
    if before.field is None or made == 1:
        return _Seen(None, before.jump)
    window = -(-given // made) + (1 if given % made else 0)
    return _Seen(before.field + (min(window, given) - 1) * before.jump, before.jump * max(1, given // made))


def _work(layer: nn.Module, output: Tensor) -> int:
    """Multiplications that are added up; a maximum has none."""
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


def _cells(row: Row) -> list[str]:
    windows = ["" if pair is None else _times(pair) for pair in (row.kernel, row.stride, row.padding)]
    field = "all" if row.field is None else str(row.field)
    work = [f"{row.parameters:,}", f"{row.multiply_adds:,}"]
    return [row.name, row.kind, *windows, _times(row.output), field, *work, row.note]
