"""Cases of the public Python interface: in each right call, each argument is replaced by each wrong value."""

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cache, partial
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import torch
from helpers.models import small_captioner, small_classifier, small_document_classifier, small_reader, small_translator
from torch import nn

import regard
from abuse.cases import Case, Verdict, conforms, judged
from regard import align, mask, metrics, score, viewing  # noqa: F401 - metrics are reached by regard.evaluate
from regard.trace import Axis, Map, Trace
from regard.viewing.view import SIZES

QUERY, KEY = torch.linspace(-1, 1, 30).reshape(2, 3, 5), torch.linspace(1, -1, 70).reshape(2, 7, 5)
IMAGE = np.linspace(0, 255, 9 * 11 * 3).reshape(9, 11, 3).astype(np.uint8)
LONG = "a" * 100_000


WRONG: dict[str, Any] = {
    "None": None,
    "True": True,
    "-1": -1,
    "0": 0,
    "2.5": 2.5,
    "nan": math.nan,
    "inf": math.inf,
    "-inf": -math.inf,
    "10**9": 10**9,
    "10**18": 10**18,
    "10**400": 10**400,
    "''": "",
    "'x'": "x",
    "bytes": b"a",
    "NUL": "a\0b",
    "surrogate": "\ud800",
    "escape": "\x1b]0;PWN\x07",
    "long text": LONG,
    "[]": [],
    "[None]": [None],
    "[[]]": [[]],
    "{}": {},
    "a set": {1},
    "a function": lambda *_: None,
    "a class": int,
    "an object": object(),
    "complex": 1j,
    "a generator": (each for each in ()),
    "an array": np.zeros((0, 4)),
    "array of objects": np.array([None, "a"], dtype=object),
    "a tensor": torch.zeros(3),
}
"""What stands in for any argument."""


def _nested(right: torch.Tensor) -> torch.Tensor:
    return torch.nested.as_nested_tensor([right[0], right[0][:1]])


_TENSORS: dict[str, Callable[[torch.Tensor], Any]] = {
    "None": lambda _: None,
    "3": lambda _: 3,
    "'x'": lambda _: "x",
    "a list": lambda right: right.tolist(),
    "an array": lambda right: right.numpy(),
    "scalar": lambda _: torch.tensor(1.0),
    "one axis fewer": lambda right: right[0],
    "one axis more": lambda right: right.unsqueeze(0),
    "no rows": lambda right: right[:0],
    "no columns": lambda right: right[..., :0],
    "a column fewer": lambda right: right[..., 1:],
    "a row fewer": lambda right: right[..., 1:, :],
    "another batch": lambda right: right[:1].expand(3, *right.shape[1:]),
    "int64": lambda right: right.long(),
    "bool": lambda right: right.bool(),
    "float64": lambda right: right.double(),
    "float16": lambda right: right.half(),
    "complex64": lambda right: right.to(torch.complex64),
    "meta": lambda right: right.to("meta"),
    "sparse": lambda right: right.to_sparse(),
    "sparse rows": lambda right: right.reshape(-1, right.shape[-1]).float().to_sparse_csr(),
    "nested": _nested,
    "uint8": lambda right: right.to(torch.uint8),
    "nan": lambda right: torch.full_like(right, math.nan, dtype=torch.float32),
    "infinite": lambda right: torch.full_like(right, math.inf, dtype=torch.float32),
    "transposed": lambda right: right.mT,
    "a parameter": lambda right: nn.Parameter(right.float()),
    "a class": lambda _: torch.Tensor,
}
"""What stands in for a tensor: of other sizes, dtypes, layouts and devices, and with other values."""


@dataclass(frozen=True)
class Right:
    """A right call: a function with its arguments; `folder` in them is replaced by the folder of the case."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Any]
    options: type | None = None
    """The dataclass of the options that it takes as keywords."""
    skip: tuple[str, ...] = ()
    """Arguments that are anything at all."""


FOLDER = object()
"""Stands for the folder of the case."""


class Given:
    """The models and traces that calls are made on, built once."""

    def __init__(self) -> None:
        self.models = {
            "translate": small_translator(),
            "caption": small_captioner(),
            "recognize": small_classifier(),
            "classify": small_document_classifier(),
            "read": small_reader("lstmn_model"),
            "glimpse": regard.load("glimpse-digits", device="cpu"),
            "tape": regard.load("tape-copy", device="cpu"),
        }
        self.inputs: dict[str, Any] = {
            "translate": "a dog",
            "caption": IMAGE,
            "recognize": IMAGE,
            "classify": "good. bad.",
            "read": "a dog",
            "glimpse": IMAGE,
            "tape": "01100110",
        }
        self.trace = Trace.from_weights(["a", "b"], ["c"], [[0.9, 0.1]])
        self.traces = {
            "text": self.trace,
            **{
                name: self.models[name].predict(each).trace for name, each in self.inputs.items() if name != "recognize"
            },
        }


@cache
def given() -> Given:
    """What every case of this process shares."""
    return Given()


def right_calls() -> Iterator[Right]:
    """Every public function and constructor with right arguments."""
    sizes = {"query_dim": 5, "key_dim": 5}
    for name, arguments in {
        "Additive": {**sizes, "dim": 4},
        "Concat": {**sizes, "dim": 4},
        "General": sizes,
        "Cosine": {"strength": 2.0},
        "Context": {"num_queries": 2, "key_dim": 5, "hidden": 3},
        "Location": {"query_dim": 5, "max_length": 9},
        "MLP": {**sizes, "dims": (4, 3), "activation": torch.tanh},
        "ScoreFunction": {"function": torch.add},
        "codes": {"texts": ["ab", "c"]},
        "TanhSum": {**sizes, "dim": 4},
    }.items():
        yield Right(f"score.{name}", getattr(score, name), arguments)
    for name, arguments in {
        "Hard": {"sample": True, "temperature": 1.0, "generator": None},
        "LocalMonotonic": {"window": 2},
        "LocalPredictive": {"query_dim": 5, "dim": 4, "window": 2},
        "Spatial": {"window": 2},
        "Addressing": {"gate": torch.ones(2, 3, 1), "shift": torch.ones(2, 3, 3) / 3, "sharpen": torch.ones(2, 3, 1)},
        "AlignFunction": {"function": torch.add},
    }.items():
        function = getattr(align, name, None)
        if function is not None:
            yield Right(f"align.{name}", function, arguments)
    yield Right("mask.causal", mask.causal, {"n": 3, "strict": False, "past": 2, "device": "cpu"})
    window = {"num_queries": 3, "num_keys": 4, "before": 1, "after": 1, "device": "cpu"}
    yield Right("mask.window", mask.window, window)
    yield Right("mask.padding", mask.padding, {"lengths": torch.tensor([3, 5]), "size": 6})
    yield Right("mask.unpadded_length", mask.unpadded_length, {"mask": torch.ones(2, 3, dtype=torch.bool)})
    open_mask = torch.ones(2, 3, 7, dtype=torch.bool)
    call = {
        "query": QUERY,
        "key": KEY,
        "value": KEY,
        "score": score.scaled_dot,
        "align": align.softmax,
        "mask": open_mask,
        "bias": torch.zeros(2, 3, 7),
        "dropout": 0.1,
        "grouped": False,
        "weights": True,
        "kernel": "auto",
        "state": None,
        "soft": False,
        "check_finite": True,
    }
    yield Right("attend", regard.attend, call, skip=("state",))
    for name, part in {"hard": align.Hard(), "local_m": align.LocalMonotonic(2), "sparsemax": align.sparsemax}.items():
        some = {each: call[each] for each in ("query", "key", "value", "mask", "bias", "soft")}
        yield Right(f"attend {name}", partial(regard.attend, align=part), some)
    yield Right("Attention", regard.Attention, {"score": score.dot, "align": align.softmax, "dropout": 0.1})
    attention = regard.Attention(score.Additive(5, 5, 4))
    states = {"states": KEY, "mask": open_mask[:, :1], "values": KEY}
    yield Right("Attention.remember", attention.remember, states)
    memory = attention.remember(KEY)
    asked = {
        "query": QUERY,
        "memory": memory,
        "mask": open_mask,
        "bias": torch.zeros(2, 3, 7),
        "weights": True,
        "kernel": "auto",
        "state": None,
        "override": torch.ones(2, 3, 7),
        "soft": False,
    }
    yield Right("Attention()", attention.forward, asked, skip=("state",))
    heads = {
        "dim": 6,
        "num_heads": 2,
        "num_key_heads": 1,
        "kdim": 5,
        "vdim": 5,
        "bias": True,
        "dropout": 0.1,
        "score": score.scaled_dot,
        "align": align.softmax,
    }
    yield Right("MultiHead", regard.MultiHead, heads)
    multi = regard.MultiHead(4, 2, kdim=5, vdim=5).eval()
    yield Right("MultiHead.remember", multi.remember, {**states, "after": None})
    query = torch.linspace(-1, 1, 24).reshape(2, 3, 4)
    several = {**asked, "query": query, "memory": multi.remember(KEY), "causal": True, "override": None}
    yield Right("MultiHead()", multi.forward, several, skip=("state",))
    yield Right("MultiHead.from_torch", regard.MultiHead.from_torch, {"other": nn.MultiheadAttention(4, 2)})
    yield from _models()
    yield from _traces()
    yield Right("layer_table", regard.layer_table, {"net": given().models["recognize"], "size": (1, 28, 28)})
    yield Right("load", regard.load, {"name": "tape-copy", "device": "cpu", "trust": False})
    options = {each.name: each.default for each in fields(regard.Search)}
    yield Right("Search", regard.Search, options)
    yield Right("evaluate", regard.evaluate, {"model": "tape-copy", "count": 2, "lengths": (3,), "per_length": 2})


def _models() -> Iterator[Right]:
    for verb, model in given().models.items():
        options = {each.name: each.default for each in fields(model.Options)} | _quick(verb)
        one = {"inputs": given().inputs[verb]}
        yield Right(verb, getattr(model, verb), one | options, options=model.Options)
        yield Right(f"{verb}, several", getattr(model, verb), {"inputs": [given().inputs[verb]]} | _quick(verb))
        streamed = partial(_streamed, model)
        yield Right(f"{verb}.stream", streamed, {"inputs": [given().inputs[verb]], "read_ahead": 2} | _quick(verb))
        yield Right(f"{verb}.save", model.save, {"folder": FOLDER, "store": "float32", "metrics": None, "card": None})
        yield Right(f"{verb}.load", type(model).load, {"name": FOLDER, "device": "cpu", "trust": False})
        if verb != "recognize":
            yield Right(f"faithfulness {verb}", _asked, {"model": model, "given": given().inputs[verb]})
        config = {each.name: getattr(model.config, each.name) for each in fields(model.config)}
        yield Right(f"{type(model).__name__}.Config", model.Config, config)


def _asked(model: Any, given: Any, **options: Any) -> Any:
    return regard.faithfulness(model, given, **options)


def _quick(verb: str) -> dict[str, Any]:
    return {"translate": {"max_length": 3, "beam": 2}, "caption": {"max_length": 3, "beam": 2}}.get(verb, {})


def _streamed(model: Any, inputs: Any, read_ahead: Any = 2, **options: Any) -> list[Any]:
    return list(model.stream(inputs, read_ahead=read_ahead, **options))


def _traces() -> Iterator[Right]:
    made = {
        "source": ["a", "b"],
        "target": ["c"],
        "weights": [[0.9, 0.1]],
        "kind": "text",
        "names": None,
        "log_probs": [0.5],
        "source_text": "a b",
        "target_text": "c",
    }
    yield Right("Trace.from_weights", Trace.from_weights, made)
    seen = {
        "image": IMAGE,
        "words": ["a"],
        "weights": np.full((1, 4), 0.25),
        "grid": (2, 2),
        "names": None,
        "gates": [0.5],
        "choices": [1],
        "log_probs": [-1.0],
        "text": "a",
    }
    yield Right("Trace.from_image", Trace.from_image, seen)
    heads = (torch.full((1, 2, 3, 3), 1 / 3),)
    yield Right(
        "Trace.from_transformers", Trace.from_transformers, {"output": heads, "inputs": ["a", "b", "c"], "example": 0}
    )
    trace = given().trace
    yield Right("Trace.from_dict", Trace.from_dict, {"fields": trace.to_dict()})
    yield Right("Trace.from_json", Trace.from_json, {"text": trace.to_json()})
    yield Right("Trace.load", Trace.load, {"path": FOLDER})
    for name in ("save", "to_csv"):
        yield Right(f"Trace.{name}", getattr(trace, name), {"path": FOLDER})
    yield Right("Trace.select", trace.select, {"layer": None, "head": None, "name": "attention"})
    for name, right in {"axis": "source", "map": "attention", "values": "x"}.items():
        yield Right(f"Trace.{name}", getattr(trace, name), {"name": right})
    axes = (Axis("source", "tokens", ("a", "b")), Axis("target", "tokens", ("c",)))
    maps = (Map("attention", "target", "source", np.array([[0.9, 0.1]])),)
    yield Right(
        "Trace",
        Trace,
        {"kind": "text", "axes": axes, "maps": maps, "series": (), "boxes": (), "image": None, "extras": {}},
    )
    yield Right("Axis", Axis, {"name": "a", "kind": "tokens", "labels": ("a",), "text": "a"})
    weights = np.array([[0.9, 0.1]])
    yield Right("Map", Map, {"name": "a", "rows": "r", "columns": "c", "weights": weights, "layer": 1, "head": 1})
    yield Right("view", regard.view, {"result": trace})
    for name, each in given().traces.items():
        shown = regard.view(each)
        for method, path in (("save", "x.html"), ("save", "x.png"), ("figure", None), ("show", None)):
            names = shown.options("x.png" if method == "figure" else path)
            taken = inspect.signature(shown.terminal if method == "show" else shown.figure).parameters
            options = {name: taken[name].default if name in taken else None for name in names}
            options = {name: value for name, value in options.items() if method != "figure" or name not in SIZES}
            function = partial(_saved, shown, file=path) if method == "save" else getattr(shown, method)
            if method == "show":
                function = partial(_shown, shown)
            yield Right(
                f"view {name}.{method} {path or ''}",
                function,
                options | ({"folder": FOLDER} if method == "save" else {}),
                skip=("folder",),
            )


def _saved(shown: Any, *, file: str, folder: Path, **options: Any) -> Any:
    return shown.save(folder / file, **{key: value for key, value in options.items() if value is not None})


def _shown(shown: Any, **options: Any) -> Any:
    import io

    from rich.console import Console

    given_options = {key: value for key, value in options.items() if value is not None}
    return shown.show(Console(file=io.StringIO(), width=80), **given_options)


def cases() -> Iterator[Case]:
    """Each right call, and each with one argument wrong; and calls with unknown and missing arguments."""
    for right in right_calls():
        yield Case("library", f"{right.name}, right", partial(_right, right))
        hints = _hints(right)
        for name, value in right.arguments.items():
            if name in right.skip:
                continue
            if isinstance(value, torch.Tensor) and value.ndim >= 2:
                replaced = {label: make(value) for label, make in _TENSORS.items()}
            else:
                replaced = WRONG
            for label, wrong in replaced.items():
                must_refuse = not conforms(wrong, hints.get(name, Any))
                yield Case("library", f"{right.name}({name}={label})", partial(_wrong, right, name, wrong, must_refuse))
        yield Case("library", f"{right.name}(nonsense=1)", partial(_unknown, right))


def _hints(right: Right) -> dict[str, Any]:
    function = right.function
    while isinstance(function, partial):
        function = function.func
    try:
        hints = get_type_hints(function.__init__ if inspect.isclass(function) else function, include_extras=True)
    except (NameError, TypeError):
        hints = {}
    if right.options is not None:
        hints |= get_type_hints(right.options, include_extras=True)
    return hints


def _arguments(right: Right, folder: Path) -> dict[str, Any]:
    return {name: folder if value is FOLDER else value for name, value in right.arguments.items()}


def _called(right: Right, arguments: dict[str, Any]) -> Any:
    """The call, with what a function takes by position alone given so."""
    function = right.function
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        parameters = {}
    alone = [name for name, each in parameters.items() if each.kind is each.POSITIONAL_ONLY]
    if right.options is not None or "several" in right.name or ".stream" in right.name:
        alone = ["inputs"]
    first = [arguments[name] for name in alone if name in arguments]
    return function(*first, **{name: value for name, value in arguments.items() if name not in alone})


def _right(right: Right, folder: Path) -> Verdict:
    verdict = judged(lambda: _called(right, _arguments(right, folder / "new" if ".save" in right.name else folder)))
    is_fine = verdict.kind == "answered" or FOLDER in right.arguments.values()
    return verdict if is_fine else Verdict("silent", f"a right call fails: {verdict}")


def _unknown(right: Right, folder: Path) -> Verdict:
    """An unknown argument is refused, as Python does it where the function has no options."""
    try:
        return judged(lambda: _called(right, _arguments(right, folder) | {"nonsense": 1}), python=TypeError)
    except TypeError as error:
        return Verdict("refused", str(error))


def _wrong(right: Right, name: str, wrong: Any, must_refuse: bool, folder: Path) -> Verdict:
    with torch.no_grad():
        arguments = _arguments(right, folder) | {name: wrong}
        return judged(lambda: _called(right, arguments), must_refuse=must_refuse)
