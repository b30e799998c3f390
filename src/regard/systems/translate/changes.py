"""What can be changed about one translation: its first words, the attention of a step, heads, the alignment.

A `Change` collects them; `regard.systems.translate.inspection` decodes with one. `without_heads` and
`with_alignment` return whole models, which share their parameters with the original.
"""

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import torch
from torch import nn

from regard.attention import align
from regard.attention.heads import MultiHead
from regard.errors import OptionError
from regard.kernels.linear import Linear
from regard.systems.translate.model import Translator

Alignment = Literal["softmax", "hard", "local_m", "sparsemax", "uniform"]
ALIGNMENTS: tuple[str, ...] = get_args(Alignment)
"""Alignments without parameters, which can take the place of another one in a trained model."""
LOCAL_WINDOW = 3
"""Source tokens that local_m then sees on each side of position t at step t."""
_HEAD = re.compile(r"(encoder|decoder|cross) (\d+)\.(\d+)")


@dataclass(frozen=True)
class Change:
    """Changes to a translation, all of which hold at once."""

    prefix: tuple[int, ...] = ()
    """Target tokens that the translation must begin with."""
    word: str = ""
    """A text that follows the prefix."""
    attention: Mapping[int, Sequence[float]] = field(default_factory=dict)
    """The attention of single steps, counted from 0: a weight for each source token, that of the end included. Step t
    predicts token t. A Transformer applies it to all heads of the layer that its trace reports."""
    heads: tuple[str, ...] = ()
    """Heads of a Transformer to remove, named as in its trace: "encoder 1.2", "decoder 1.2" or "cross 1.2" for layer 1,
    head 2."""
    align: Literal[""] | Alignment = ""
    """Another alignment, one of ALIGNMENTS, in place of that of the model."""

    @property
    def changes_model(self) -> bool:
        """Whether it changes the probability of any word, rather than only which words come first."""
        return bool(self.attention or self.heads or self.align)

    def apply(self, model: Translator) -> Translator:
        """The model with other heads and another alignment; the model itself where neither changes."""
        model = without_heads(model, self.heads) if self.heads else model
        return with_alignment(model, self.align) if self.align else model


UNCHANGED = Change()


def head_names(model: Translator) -> list[str]:
    """The names of all heads of a Transformer, as in its trace; none for other models."""
    if not model.has_heads:
        return []
    config = model.config
    decoder_layers = config.decoder_layers or config.layers
    layers = {"encoder": config.layers, "decoder": decoder_layers, "cross": decoder_layers}
    return [
        f"{part} {layer}.{head}"
        for part, count in layers.items()
        for layer in range(1, count + 1)
        for head in range(1, config.heads + 1)
    ]


def without_heads(model: Translator, heads: Sequence[str]) -> Translator:
    """A Transformer without some of its heads: what they read contributes nothing to the output of their layer.

    The columns of W_o that belong to the heads are 0 (Michel et al. 2019, section 2.2). Everything else is shared with
    the model, which stays as it is.
    """
    known = head_names(model)
    if not known:
        raise OptionError(f"Only a Transformer has heads to remove; this is a model of {model.config.architecture}.")
    if wrong := [name for name in heads if name not in known]:
        raise OptionError(f"This model has no head {wrong[0]!r}; its heads are {known[0]!r} to {known[-1]!r}.")
    changed = _shared_copy(model)
    for name in dict.fromkeys(heads):
        part, layer, head = _HEAD.fullmatch(name).groups()  # type: ignore[union-attr]
        _remove_head(_heads_of(changed, part, int(layer) - 1), int(head) - 1)
    return changed


def with_alignment(model: Translator, name: str) -> Translator:
    """A model of RNNsearch or Luong with another alignment: hard attention instead of soft, for example.

    The parameters are shared with the model, which stays as it is; none of them was trained with the new alignment.
    """
    if name not in ALIGNMENTS:
        raise OptionError(f"The alignment must be one of {', '.join(ALIGNMENTS)}; got {name!r}.")
    attention = getattr(model.decoder, "attention", None)
    if attention is None:
        raise OptionError(
            f"Only RNNsearch and Luong's models have an alignment to replace; this is a model of "
            f"{model.config.architecture}."
        )
    changed = _shared_copy(model)
    chosen = align.LocalMonotonic(LOCAL_WINDOW) if name == "local_m" else align.ALIGNMENTS[name]()
    changed.decoder.attention.align = chosen.eval()  # type: ignore[union-attr]
    return changed


def _shared_copy(model: Translator) -> Translator:
    """A copy of the modules of a model, with the same parameters and assets."""
    shared: list[Any] = [*model.parameters(), *model.buffers(), model.config, model.metrics]
    shared += [getattr(model, name) for name in model.assets]
    return copy.deepcopy(model, {id(each): each for each in shared})


def _heads_of(model: Translator, part: str, layer: int) -> MultiHead:
    if part == "encoder":
        found = model.encoder.layers[layer].heads
    else:
        of_layer: Any = model.decoder.layers[layer]  # type: ignore[index]
        found = of_layer.to_self if part == "decoder" else of_layer.to_source
    heads: MultiHead = found
    return heads


def _remove_head(heads: MultiHead, head: int) -> None:
    old, size = heads.output_layer, heads.dim // heads.num_heads
    weight = old.weight.detach().clone()
    weight[:, head * size : (head + 1) * size] = 0
    new = Linear(old.in_features, old.out_features, bias=False, device="meta")
    new.weight = nn.Parameter(weight, requires_grad=False)
    new.bias = old.bias
    heads.output_layer = new.train(old.training)


def check_attention(change: Change, source_length: int) -> dict[int, torch.Tensor]:
    """The attention of a change as tensors, checked to have a weight for each source token."""
    found: dict[int, torch.Tensor] = {}
    for step, weights in change.attention.items():
        row = torch.as_tensor(weights, dtype=torch.float32)
        if row.shape != (source_length,) or not torch.isfinite(row).all() or (row < 0).any():
            raise OptionError(
                f"The attention of step {step} needs {source_length} weights, one for each source token with the end, "
                f"each 0 or more; got {tuple(row.shape)} {list(weights)!r:.100}."
            )
        if step < 0:
            raise OptionError(f"Steps are counted from 0; got {step}.")
        found[step] = row
    return found
