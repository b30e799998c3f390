"""Readers: networks that read a sentence word by word and say what each word attended to.

    LSTMReader           remembers in one vector, attends to nothing: the baseline (recurrent_readers.py)
    LSTMNReader          attends to the tapes of what it has read, Cheng et al. 2016 (recurrent_readers.py)
    SelfAttentionReader  attends to the other words, Vaswani et al. 2017 (self_attention_reader.py)

A reader of one direction reads whole sentences with `forward` and, for language models, one word at a time with `step`;
both compute the same states.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention import mask
from regard.errors import OptionError
from regard.layers.lstmn import Tapes


@dataclass(frozen=True)
class Sentences:
    """Sentences as a reader has read them."""

    states: Float[Tensor, "b n d"]
    """The states of the words; those of padding mean nothing."""
    maps: tuple[Float[Tensor, "b h n n"], ...] = ()
    """What each word attended to, for each layer, where the call asked for it and the reader attends."""
    source_maps: tuple[Float[Tensor, "b h n m"], ...] = ()
    """Deep fusion: what each word attended to in the other sentence."""
    attended: Float[Tensor, "b n d"] | None = None
    """SelfAttentionReader: what each word read from the words that it attended to in the last layer."""
    tapes: tuple[Tapes, ...] = ()
    """LSTMNReader: the tapes of each layer, for deep fusion."""
    exists: Bool[Tensor, "b 1 n"] | None = None
    """Which words exist; None where all do."""


class BothWays(nn.Module):
    """Two readers, one of which reads the sentences from their ends; their states are joined."""

    def __init__(self, forward_reader: nn.Module, backward_reader: nn.Module) -> None:
        super().__init__()
        self.forward_reader, self.backward_reader = forward_reader, backward_reader
        self.dim = int(forward_reader.dim) + int(backward_reader.dim)  # type: ignore[arg-type]

    def forward(
        self,
        words: Float[Tensor, "b n e"],
        lengths: Int[Tensor, "b"] | None = None,
        source: Sentences | None = None,
        *,
        weights: bool = False,
    ) -> Sentences:
        """Read whole sentences; the maps of a layer have two heads, the forward and the backward reader."""
        order = _reversed_order(words, lengths)
        ahead = self.forward_reader(words, lengths, weights=weights)
        back = self.backward_reader(_take(words, order), lengths, weights=weights)
        behind = (_take(_take(each[:, 0], order), order, axis=2).unsqueeze(1) for each in back.maps)
        maps = tuple(torch.cat(pair, dim=1) for pair in zip(ahead.maps, behind, strict=True))
        states = torch.cat([ahead.states, _take(back.states, order)], dim=-1)
        return Sentences(states, maps, exists=ahead.exists)

    def step(self, words: Tensor, state: Any) -> Any:
        """Refused: the words that follow are not known."""
        raise OptionError("A reader of both ways cannot read word by word: it needs the words that follow.")


def existing_words(words: Float[Tensor, "b n e"], lengths: Int[Tensor, "b"] | None) -> Bool[Tensor, "b 1 n"] | None:
    """Return which words of padded sentences exist; None where all do."""
    if lengths is None:
        return None
    return mask.padding(lengths.cpu(), words.shape[1]).to(words.device, non_blocking=words.is_cuda)


def _reversed_order(words: Tensor, lengths: Tensor | None) -> Int[Tensor, "b n"]:
    """The places of the words in reversed sentences; padding stays where it is."""
    places = torch.arange(words.shape[1], device=words.device).expand(words.shape[:2])
    ends = words.shape[1] if lengths is None else lengths.to(words.device).unsqueeze(1)
    return torch.where(places < ends, ends - 1 - places, places)


def _take(tensor: Tensor, order: Int[Tensor, "b n"], axis: int = 1) -> Tensor:
    shape = [1] * tensor.ndim
    shape[0], shape[axis] = order.shape
    return tensor.gather(axis, order.view(shape).expand_as(tensor))
