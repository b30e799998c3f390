"""Build ONNX graphs: values with operators, parameters in float32 or int8, and the file."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from regard import __version__
from regard.extras import require
from regard.files import write_bytes

Precision = Literal["float32", "int8"]
Shape = Sequence[int | str]
"""The sizes of a tensor; a text names one that changes from call to call."""
OPSET, MICROSOFT, IR_VERSION = 21, "com.microsoft", 10
BLOCK = 64
"""Columns of an int8 matrix whose inputs are rounded together: the fastest size of those that were measured."""
MIN_INT8 = 1 << 12
"""Matrices with fewer elements stay in float32: they take no space, and rounding their inputs would take longer."""
LEVELS = 127
"""An int8 matrix has this many steps on each side of 0."""
ZERO = 128
"""What stands for 0 in 8 bits without a sign."""
ACCURACY_INT8 = 4
"""The accuracy level of MatMulNBits at which it rounds its inputs to 8 bits too."""


class Value:
    """A tensor in a graph, by its name; numbers and arrays in an expression become constants."""

    def __init__(self, graph: "Graph", name: str) -> None:
        self.graph, self.name = graph, name

    def __add__(self, other: Any) -> "Value":
        return self.graph.Add(self, other)

    def __radd__(self, other: Any) -> "Value":
        return self.graph.Add(other, self)

    def __sub__(self, other: Any) -> "Value":
        return self.graph.Sub(self, other)

    def __rsub__(self, other: Any) -> "Value":
        return self.graph.Sub(other, self)

    def __mul__(self, other: Any) -> "Value":
        return self.graph.Mul(self, other)

    def __rmul__(self, other: Any) -> "Value":
        return self.graph.Mul(other, self)

    def __truediv__(self, other: Any) -> "Value":
        return self.graph.Div(self, other)

    def __matmul__(self, other: Any) -> "Value":
        return self.graph.MatMul(self, other)


Step = Callable[["Graph", list[Value], list[Value]], tuple[list[Value], list[Value]]]
"""One step of a loop: from its graph, the state and the inputs to the next state and results."""
Parts = dict[str, tuple[Value, list[int | str]]]
"""Values by name, each with its shape after the first axis."""


class Graph:
    """An ONNX graph that grows by its operators: `graph.Softmax(logits, axis=-1)` adds a node and returns its value.

    With the precision int8, matrices are stored as the nearest of 255 steps of each row, as `store="int8"` stores the
    models of regard themselves: of a model stored so, the exported parameters are exactly its own.
    """

    def __init__(self, precision: Precision = "float32", *, prefix: str = "") -> None:
        self.onnx = require("Exporting", "onnx", "onnxruntime")
        self.precision, self._prefix = precision, prefix
        self._nodes: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._computed: set[str] = set()
        self._named: dict[str, str] = {}
        """The names of values that are outputs: the nodes that compute them give them these names in the end."""
        self._constants: dict[Any, Value] = {}
        self._arrays: list[Any] = []
        self._kept: list[Any] = []  # what keys of _constants identify must stay in memory

    def __getattr__(self, operator: str) -> Callable[..., Value]:
        if not operator[0].isupper():
            raise AttributeError(operator)
        return lambda *inputs, **attributes: self.nodes(operator, *inputs, outputs=1, **attributes)[0]

    def nodes(
        self, operator: str, *inputs: Any, outputs: int, domain: str = "", **attributes: Any
    ) -> tuple[Value, ...]:
        """Add a node with this many outputs, and return their values; None skips an input."""
        given = ["" if each is None else self.value(each).name for each in inputs]
        name = f"{self._prefix}{operator.lower()}_{len(self._nodes)}"
        names = [name + (f"_{each}" if each else "") for each in range(outputs)]
        self._nodes.append(self.onnx.helper.make_node(operator, given, names, domain=domain, **attributes))
        self._computed.update(names)
        return tuple(Value(self, name) for name in names)

    def value(self, given: Any) -> Value:
        """A value as it is; a number, an array or a tensor as a constant, float32 or int64."""
        return given if isinstance(given, Value) else self.constant(given)

    def constant(self, given: Any, name: str = "") -> Value:
        """A constant; equal small ones, and the same tensor, are stored once."""
        is_tensor = isinstance(given, Tensor)
        array = given.detach().cpu().numpy() if is_tensor else np.asarray(given)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        place = given.data_ptr() if is_tensor else id(given)
        key = (array.dtype.str, array.shape, array.tobytes() if array.size <= BLOCK else (place, array.strides))
        if key not in self._constants:
            name = name or f"{self._prefix}constant_{len(self._arrays)}"
            self._arrays.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
            self._constants[key] = Value(self, name)
            self._kept.append(given)
        return self._constants[key]

    def scan(self, step: "Step", state: Sequence[Value], inputs: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        """Run a step for each entry of the second axis of the inputs; return the last state, and the results stacked.

        `step` gets the graph of the step, the state and the entries, and returns the next state and results. It may use
        values of this graph, except for those that are outputs of it.
        """
        body = Graph(self.precision, prefix=f"{self._prefix}step_{len(self._nodes)}_")
        kind = self.onnx.TensorProto.FLOAT
        given = [Value(body, f"{body._prefix}given_{number}") for number in range(len(state) + len(inputs))]
        after, found = step(body, given[: len(state)], given[len(state) :])
        results = [body.Identity(value) for value in (*after, *found)]
        shapeless = [
            [self.onnx.helper.make_tensor_value_info(value.name, kind, None) for value in values]
            for values in (given, results)
        ]
        proto = self.onnx.helper.make_graph(body._nodes, "step", *shapeless, body._arrays)
        axes: dict[str, Any] = {"scan_input_axes": [1] * len(inputs), "scan_output_axes": [1] * len(found)}
        values = self.nodes(
            "Scan", *state, *inputs, outputs=len(results), body=proto, num_scan_inputs=len(inputs), **axes
        )
        return list(values[: len(after)]), list(values[len(after) :])

    def tensor(self, numbers: Sequence[float]) -> Any:
        """Numbers as the attribute of an operator."""
        return self.onnx.numpy_helper.from_array(np.asarray(numbers, np.float32))

    def input(self, name: str, shape: Shape, dtype: str = "float32") -> Value:
        """An input of the graph."""
        self._inputs.append(self._info(name, shape, dtype))
        return Value(self, name)

    def output(self, name: str, value: Value, shape: Shape, dtype: str = "float32") -> None:
        """Make a value an output of the graph."""
        if value.name in self._named or value.name not in self._computed:
            value = self.Identity(value)
        self._named[value.name] = name
        self._outputs.append(self._info(name, shape, dtype))

    def _info(self, name: str, shape: Shape, dtype: str) -> Any:
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.onnx.helper.make_tensor_value_info(name, kind, list(shape))

    # Parameters

    def linear(self, inputs: Value, weight: Tensor, bias: Tensor | None = None) -> Value:
        """inputs weight' + bias, for a matrix (out, in), with products in float32."""
        product = inputs @ self.Transpose(self.matrix(weight), perm=[1, 0])
        return product if bias is None else product + bias

    def rounded_linear(self, inputs: Value, weight: Tensor, bias: Tensor | None = None) -> Value:
        """inputs weight' + bias, in an int8 graph with inputs in 8 bits too: for layers that no state depends on."""
        if not self._is_int8(weight):
            return self.linear(inputs, weight, bias)
        packed, scales = self._packed(weight)
        given = [inputs, packed, scales, *([] if bias is None else [None, None, bias])]
        sizes = {"K": weight.shape[1], "N": len(weight), "bits": 8, "block_size": BLOCK}
        return self.MatMulNBits(*given, domain=MICROSOFT, accuracy_level=ACCURACY_INT8, **sizes)

    def matrix(self, weight: Tensor) -> Value:
        """A matrix as float32; an int8 graph stores it in int8, and it is widened once, when the graph is loaded."""
        if not self._is_int8(weight):
            return self.constant(weight)
        key = ("matrix", weight.data_ptr(), weight.shape)
        if key not in self._constants:
            steps, scale = _in_steps(weight)
            self._kept.append(weight)
            self._constants[key] = self.Cast(steps, to=self.onnx.TensorProto.FLOAT) * scale
        return self._constants[key]

    def kernel(self, weight: Tensor) -> Value:
        """The kernel of a convolution as float32; an int8 graph stores it in float16, as the shipped models do."""
        if self.precision == "float32":
            return self.constant(weight)
        key = ("kernel", weight.data_ptr(), weight.shape)
        if key not in self._constants:
            self._constants[key] = self.Cast(weight.detach().half(), to=self.onnx.TensorProto.FLOAT)
            self._kept.append(weight)
        return self._constants[key]

    def embedding(self, weight: Tensor, ids: Value) -> Value:
        """The rows of a matrix with these numbers, along a new last axis."""
        if not self._is_int8(weight):
            return self.Gather(self.matrix(weight), ids)
        packed, scales = self._packed(weight)
        chosen = self.Cast(self.Gather(packed, ids), to=self.onnx.TensorProto.FLOAT) - float(ZERO)
        wide = chosen * self.Unsqueeze(self.Gather(scales, ids), [-1])
        flat = self.Reshape(wide, self.Concat(self.Shape(ids), [-1], axis=0))
        return flat if weight.shape[1] % BLOCK == 0 else self.Slice(flat, [0], [weight.shape[1]], [-1])

    def _is_int8(self, weight: Tensor) -> bool:
        return self.precision == "int8" and weight.numel() >= MIN_INT8

    def _packed(self, weight: Tensor) -> tuple[Value, Value]:
        """A matrix in 8 bits without a sign, (rows, blocks, columns of a block), and the scale of each block."""
        key = ("int8", weight.data_ptr(), weight.shape)
        if key not in self._constants:
            steps, scale = _in_steps(weight)
            blocks = -(-weight.shape[1] // BLOCK)
            packed = np.full((len(weight), blocks * BLOCK), ZERO, np.uint8)
            packed[:, : weight.shape[1]] = steps.numpy().astype(np.int16) + ZERO
            self._constants[key] = self.constant(packed.reshape(len(weight), blocks, BLOCK))
            self._constants["scale", *key] = self.constant(scale.expand(-1, blocks).contiguous())
            self._kept.append(weight)
        return self._constants[key], self._constants["scale", *key]

    def save(self, path: Path) -> None:
        """Check the graph and write it."""
        helper = self.onnx.helper
        for node in self._nodes:
            for names in (node.input, node.output):
                names[:] = [self._named.get(name, name) for name in names]
        graph = helper.make_graph(self._nodes, path.stem, self._inputs, self._outputs, self._arrays)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="regard")
        model.producer_version = __version__
        self.onnx.checker.check_model(model)
        write_bytes(path, model.SerializeToString())


def _in_steps(weight: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest steps of each row of a matrix, int8, and the size of a step of each row, (rows, 1)."""
    wide = weight.detach().cpu().float()
    scale = wide.abs().amax(1, keepdim=True).clamp_min(1e-12) / LEVELS
    return (wide / scale).round().to(torch.int8), scale
