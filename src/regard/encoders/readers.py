"""Readers: networks that read a sentence word by word and say what each word attended to.

    LSTMReader           remembers in one vector, attends to nothing: the baseline
    LSTMNReader          attends to the tapes of what it has read, Cheng et al. 2016 (lstmn_reader.py)
    SelfAttentionReader  attends to the other words, Vaswani et al. 2017
    Bidirectional        two readers, one of which reads the sentences from their ends

A reader of one direction reads whole sentences with `forward` and, for language models, one word at a time with `step`;
both compute the same states.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.attention import mask
from regard.attention.attend import Attention
from regard.attention.memory import Memory
from regard.errors import OptionError
from regard.layers.cells import uniform_
from regard.layers.dropout import LockedDropout
from regard.layers.lstmn import Tapes
from regard.layers.transformer import LayerNorm, SelfAttentionBlock, sinusoids


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


class Bidirectional(nn.Module):
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
        order = reversed_order(words, lengths)
        ahead = self.forward_reader(words, lengths, weights=weights)
        back = self.backward_reader(take_words(words, order), lengths, weights=weights)
        behind = (take_words(take_words(each[:, 0], order), order, axis=2).unsqueeze(1) for each in back.maps)
        maps = tuple(torch.cat(pair, dim=1) for pair in zip(ahead.maps, behind, strict=True))
        states = torch.cat([ahead.states, take_words(back.states, order)], dim=-1)
        return Sentences(states, maps, exists=ahead.exists)

    def step(self, words: Tensor, state: Any) -> Any:
        """Raise an OptionError: a bidirectional reader cannot read word by word."""
        raise OptionError("A bidirectional reader cannot read word by word: it needs the words that follow.")


def existing_words(words: Float[Tensor, "b n e"], lengths: Int[Tensor, "b"] | None) -> Bool[Tensor, "b 1 n"] | None:
    """Return which words of padded sentences exist; None where all do."""
    if lengths is None:
        return None
    return mask.padding(lengths, words.shape[1]).to(words.device, non_blocking=words.is_cuda)


def reversed_order(words: Tensor, lengths: Tensor | None) -> Int[Tensor, "b n"]:
    """The positions of the words in reversed sentences; padding stays where it is."""
    positions = torch.arange(words.shape[1], device=words.device).expand(words.shape[:2])
    ends = words.shape[1] if lengths is None else lengths.to(words.device).unsqueeze(1)
    return torch.where(positions < ends, ends - 1 - positions, positions)


def take_words(tensor: Tensor, order: Int[Tensor, "b n"], axis: int = 1) -> Tensor:
    """Put the words of each sentence, along an axis, in another order."""
    shape = [1] * tensor.ndim
    shape[0], shape[axis] = order.shape
    return tensor.gather(axis, order.view(shape).expand_as(tensor))


class LSTMReader(nn.Module):
    """A stack of LSTM layers, left to right."""

    layers: Sequence[nn.LSTM]

    def __init__(
        self,
        input_dim: int,
        hidden: int,
        *,
        num_layers: int = 1,
        skip: bool = False,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.dim, self.skip, self.recurrent_dropout = hidden, skip, recurrent_dropout
        sizes = input_sizes(input_dim, hidden, num_layers, skip)
        self.layers = nn.ModuleList(  # type: ignore[assignment]
            nn.LSTM(size, hidden, batch_first=True) for size in sizes
        )
        self.dropout = LockedDropout(dropout)
        for layer in self.layers:
            word, recurrent, bias, other_bias = layer.parameters()
            nn.init.xavier_uniform_(word)
            with torch.no_grad():
                for block in recurrent.split(hidden):
                    nn.init.orthogonal_(block)
                bias.zero_()
                other_bias.zero_()
                bias[hidden : 2 * hidden] = 1.0  # the forget gate starts open

    def forward(
        self,
        words: Float[Tensor, "b n e"],
        lengths: Int[Tensor, "b"] | None = None,
        source: Sentences | None = None,
        *,
        weights: bool = False,
    ) -> Sentences:
        """Read whole sentences."""
        states = words
        for index, layer in enumerate(self.layers):
            states = self._run(layer, layer_inputs(states, words, index, self.skip, self.dropout), None)[0]
        return Sentences(states, exists=existing_words(words, lengths))

    def step(self, words: Float[Tensor, "b e"], state: Any) -> tuple[Float[Tensor, "b d"], Any]:
        """Read one word of each sentence; `state` is None before the first."""
        states = first = words.unsqueeze(1)
        new = []
        for index, layer in enumerate(self.layers):
            old = None if state is None else tuple(part.transpose(0, 1).contiguous() for part in state[index])
            states, after = self._run(layer, layer_inputs(states, first, index, self.skip, self.dropout), old)
            new.append(tuple(part.transpose(0, 1) for part in after))
        return states[:, 0], tuple(new)

    def _run(self, layer: nn.LSTM, inputs: Tensor, state: Any) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        if not self.training or not self.recurrent_dropout:
            found: tuple[Tensor, tuple[Tensor, Tensor]] = layer(inputs, state)
            return found
        start = inputs.new_zeros(1, len(inputs), self.dim)
        word, recurrent, *biases = layer.parameters()
        parts = [word, functional.dropout(recurrent, self.recurrent_dropout), *biases]
        with scattered_parameters():
            # Inputs, first state, parameters, has_biases, num_layers, dropout, train, bidirectional, batch_first.
            states, hidden, memory = torch._VF.lstm(inputs, (start, start), parts, True, 1, 0.0, True, False, True)
        return states, (hidden, memory)


def input_sizes(input_dim: int, hidden: int, num_layers: int, skip: bool) -> Iterator[int]:
    """The size of what each layer reads; one after the other, so that an absurd number of layers takes no memory."""
    yield input_dim
    yield from (hidden + (input_dim if skip else 0) for _ in range(num_layers - 1))


def layer_inputs(states: Tensor, words: Tensor, index: int, skip: bool, dropout: nn.Module) -> Tensor:
    """What enters a layer: the words, or the states of the layer below and, with `skip`, the words beside them."""
    if not index:
        return words
    states = dropout(states)
    return torch.cat([states, words], dim=-1) if skip else states


@contextmanager
def scattered_parameters() -> Iterator[None]:
    """Let parameters be tensors apart from each other, which cuDNN has to copy together, as it warns."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not part of single contiguous chunk.*")
        yield


class SelfAttentionReader(nn.Module):
    """Layers of self-attention and feed-forward network, in which no word attends to itself.

    Left to right, a word attends to the words before it, and the first to none; bidirectional, to all others. Its own
    features reach the next layer through the residual connection. `span` bounds how far away a word can attend (0: not
    at all).

    From the second layer on, what is attended to are the states of words, and a state may hold what its word has
    gathered from others: the weights then do not say where the information comes from. With `attend_to_words`, every
    layer attends to the words as they entered the first, and the weights say so. With `look_back`, the last layer of a
    bidirectional reader attends to earlier words only: the others tell a word what to look for. `attention` makes the
    score and the alignment of the heads of each layer.
    """

    layers: Sequence[SelfAttentionBlock]

    def __init__(
        self,
        input_dim: int,
        dim: int,
        *,
        num_layers: int = 1,
        num_heads: int = 1,
        feedforward_dim: int | None = None,
        span: int = 0,
        attend_to_words: bool = False,
        bidirectional: bool = False,
        look_back: bool = False,
        dropout: float = 0.0,
        attention: Callable[[], Attention] = Attention,
    ) -> None:
        super().__init__()
        self.look_back = look_back
        self.dim, self.bidirectional, self.span, self.attend_to_words = dim, bidirectional, span, attend_to_words
        self.enter = uniform_(nn.Linear(input_dim, dim))
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(  # type: ignore[assignment]
            SelfAttentionBlock(dim, num_heads, feedforward_dim or 4 * dim, dropout, prenorm=True, attention=attention())
            for _ in range(num_layers)
        )
        self.norm = LayerNorm(dim)

    def forward(
        self,
        words: Float[Tensor, "b n e"],
        lengths: Int[Tensor, "b"] | None = None,
        source: Sentences | None = None,
        *,
        weights: bool = False,
    ) -> Sentences:
        """Read whole sentences."""
        exists = existing_words(words, lengths)
        states = entered = self.positioned(words, 0)
        maps: list[Tensor] = []
        for index, layer in enumerate(self.layers):
            both = self.bidirectional and not (self.look_back and index == len(self.layers) - 1)
            allowed = self._allowed(words.shape[1], words.device, both=both)
            allowed = allowed if exists is None else allowed & exists
            memory = layer.remember(entered if self.attend_to_words else states)
            states, attended = layer(states, memory, mask=allowed, weights=weights)
            maps += [] if attended.weights is None else [attended.weights]
        return Sentences(self.norm(states), tuple(maps), attended=attended.context, exists=exists)

    def step(
        self, words: Float[Tensor, "b e"], state: tuple[Memory, ...] | None
    ) -> tuple[Float[Tensor, "b d"], tuple[Memory, ...]]:
        """Read one word of each sentence; `state` is None before the first."""
        if self.bidirectional:
            raise OptionError("A bidirectional reader cannot read word by word: it needs the words that follow.")
        past = 0 if state is None else len(state[0])
        states = entered = self.positioned(words.unsqueeze(1), past)
        positions = torch.arange(-past, 1, device=words.device)
        allowed = (positions < 0) & (positions >= -self.span if self.span else True)
        new = []
        for index, layer in enumerate(self.layers):
            source = entered if self.attend_to_words else states
            new.append(layer.remember(source, after=None if state is None else state[index]))
            states, _ = layer(states, new[-1], mask=allowed.view(1, 1, -1))
        return self.norm(states)[:, 0], tuple(new)

    def _allowed(self, length: int, device: torch.device, *, both: bool) -> Bool[Tensor, "1 n n"]:
        """Which words each word may attend to."""
        if both:
            allowed = ~torch.eye(length, dtype=torch.bool, device=device)
        else:
            allowed = mask.causal(length, strict=True, device=device)
        if self.span:
            allowed = allowed & mask.window(length, length, before=self.span, device=device)
        return allowed.unsqueeze(0)

    def positioned(self, words: Float[Tensor, "b n e"], first: int) -> Float[Tensor, "b n d"]:
        """Compute what enters the first layer: the projected words at the positions from `first` on."""
        positions = sinusoids(words.shape[1], self.dim, first=first, device=words.device)
        # Scaled as by Vaswani et al. 2017, section 3.4: otherwise a word is hard to see beside its position.
        entered: Tensor = self.dropout(math.sqrt(self.dim) * self.enter(words) + positions)
        return entered
