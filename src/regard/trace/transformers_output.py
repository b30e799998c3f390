"""The attention in an output of Hugging Face Transformers, as axes and maps. Transformers itself is not imported."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from regard.errors import OptionError, ShapeError
from regard.trace.elements import Axis, Map, to_array
from regard.trace.subwords import plain_tokens

Layer = Float[np.ndarray, "heads _ _"]
# From the fields of an output to the names of maps.
_FIELDS = {
    "cross_attentions": "cross",
    "attentions": "self",
    "encoder_attentions": "encoder",
    "decoder_attentions": "decoder",
}


def axes_and_maps(
    output: Any, inputs: Any, tokenizer: Any, target: Any, example: int
) -> tuple[tuple[Axis, ...], tuple[Map, ...]]:
    """The axes and maps of one example: first the mean of the main attention, then every layer and head."""
    found = _attentions(output, example)
    tokens, kept = _tokens(inputs, tokenizer, example)
    if target is None:
        if "self" not in found:
            raise OptionError(
                "This output has an encoder and a decoder: give target=, the ids of the decoder's tokens."
            )
        count = found["self"][0].shape[1]
        tokens = _fitting(tokens, count, "inputs")
        indices = [index for index in kept if index < count]
        axis = _axis("tokens", [tokens[index] for index in indices])
        return (axis,), tuple(_maps("self", axis.name, axis.name, _cut(found["self"], indices, indices)))
    name = "cross" if "cross" in found else "decoder"
    if name not in found:
        raise OptionError("target= is for models with an encoder and a decoder; this output has self-attention only.")
    count = found[name][0].shape[1]
    given, _ = _tokens(target, tokenizer, example)
    # `generate` returns what the decoder starts with, too; labels are without it.
    start, outputs = (given[0], given[1:]) if len(given) == count + 1 else ("<s>", _fitting(given, count, "target"))
    axes = {
        "source": _axis("source", [tokens[index] for index in kept]),
        "target": _axis("target", outputs),
        "history": _axis("history", [start, *outputs[:-1]]),
    }
    all_outputs = list(range(count))
    sides = {
        "cross": ("target", "source", all_outputs, kept),
        "encoder": ("source", "source", kept, kept),
        "decoder": ("history", "history", all_outputs, all_outputs),
    }
    maps: list[Map] = []
    for each, (rows, columns, row_positions, column_positions) in sides.items():
        if each in found:
            layers = _cut(found[each], row_positions, column_positions)
            maps += _maps(each, rows, columns, layers)[0 if not maps else 1 :]
    used = {side for each in maps for side in (each.rows, each.columns)}
    return tuple(axis for axis in axes.values() if axis.name in used), tuple(maps)


def _attentions(output: Any, example: int) -> dict[str, list[Layer]]:
    """For each kind of attention its layers, each (heads, rows, columns)."""
    if isinstance(output, tuple | list) and output and _is_tensor(output[0]):
        values: dict[str, Any] = {"self": output}
    else:
        fields = output if isinstance(output, Mapping) else {name: getattr(output, name, None) for name in _FIELDS}
        values = {name: fields.get(field) for field, name in _FIELDS.items()}
    beams = getattr(output, "beam_indices", None)
    found = {
        name: _layers(value, example, beams)
        for name, value in values.items()
        if value is not None and len(value) and value[0] is not None
    }
    if not found:
        raise OptionError(
            f"This {type(output).__name__} has no attention weights. Load the model with attn_implementation='eager' "
            "and call it with output_attentions=True (generate also with return_dict_in_generate=True)."
        )
    return found


def _layers(value: Any, example: int, beams: Any) -> list[Layer]:
    """The layers of an output; of `generate`, which has a tuple of layers per step, joined over the steps."""
    if _is_tensor(value[0]):
        return [_one(layer, example) for layer in value]
    joined = []
    for layer in range(len(value[0])):
        rows = []
        for step, layers in enumerate(value):
            row = example if beams is None else max(0, int(beams[example][step]))
            rows.append(_one(layers[layer], row))
        width = max(each.shape[2] for each in rows)
        padded = [np.pad(each, ((0, 0), (0, 0), (0, width - each.shape[2]))) for each in rows]
        joined.append(np.concatenate(padded, axis=1))
    return joined


def _one(weights: Any, example: int) -> Layer:
    table = to_array(weights, "The attention of a layer")
    if table.ndim != 4:
        raise ShapeError(f"The attention of a layer must be (batch, heads, rows, columns); got shape {table.shape}.")
    if not 0 <= example < len(table):
        raise OptionError(f"example must be from 0 to {len(table) - 1}, the size of the batch; got {example}.")
    return np.asarray(table[example])


def _tokens(given: Any, tokenizer: Any, example: int) -> tuple[list[str], list[int]]:
    """The tokens of one example, and the positions of those that are not padding."""
    mask = None
    if isinstance(given, Mapping):
        mask, given = given.get("attention_mask"), given["input_ids"]
    ids = _example(given, example)
    if ids and not isinstance(ids[0], str):
        if tokenizer is None:
            raise OptionError(
                "Ids need the tokenizer that made them: Trace.from_transformers(output, inputs, tokenizer)."
            )
        ids = tokenizer.convert_ids_to_tokens(ids)
    kept = list(range(len(ids)))
    if mask is not None:
        row = _example(mask, example)
        kept = [index for index in kept if row[index]]
    return [str(token) for token in ids], kept


def _example(given: Any, example: int) -> list[Any]:
    """One example of a batch; what has no batch dimension is one example."""
    if not hasattr(given, "tolist") and (isinstance(given, str) or not isinstance(given, Iterable)):
        raise OptionError(f"A batch of tokens must be a tensor or lists of ids or of texts; got {given!r:.80}.")
    rows = given.tolist() if hasattr(given, "tolist") else list(given)
    rows = rows if isinstance(rows, list) else [rows]
    return list(rows[example]) if rows and isinstance(rows[0], list | tuple) else rows


def _fitting(tokens: list[str], count: int, name: str) -> list[str]:
    # The last token that `generate` returns was never an input.
    if len(tokens) not in (count, count + 1):
        raise ShapeError(f"{name} has {len(tokens)} tokens, but the attention has {count} rows.")
    return tokens[:count]


def _axis(name: str, tokens: list[str]) -> Axis:
    labels, text = plain_tokens(tokens)
    return Axis(name, "tokens", tuple(labels), text=text)


def _cut(layers: list[Layer], rows: list[int], columns: list[int]) -> list[Layer]:
    height, width = layers[0].shape[1:]
    if max(rows, default=0) >= height or max(columns, default=0) >= width:
        raise ShapeError(
            f"The attention is {height} x {width}, but there are {max(rows, default=0) + 1} x "
            f"{max(columns, default=0) + 1} tokens. Give the inputs and the target of this output."
        )
    return [layer[:, rows][:, :, columns] for layer in layers]


def _maps(name: str, rows: str, columns: str, layers: list[Layer]) -> list[Map]:
    """The mean of all layers and heads, then each of them."""
    mean = np.mean([layer.mean(0) for layer in layers], axis=0)
    return [Map(name, rows, columns, mean)] + [
        Map(f"{name} {number}.{head}", rows, columns, weights, number, head)
        for number, layer in enumerate(layers, 1)
        for head, weights in enumerate(layer, 1)
    ]


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "shape")
