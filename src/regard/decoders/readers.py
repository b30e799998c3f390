"""Readers: networks that read a sentence word by word and say what each word attended to.

    LSTMReader           remembers in one vector, attends to nothing: the baseline
    LSTMNReader          attends to the tapes of what it has read (Cheng et al. 2016)
    SelfAttentionReader  attends to the other words with several heads (Vaswani et al. 2017)

A reader of one direction reads whole sentences with `forward` and, for language models, one word at a time with `step`;
both compute the same states.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.attention import mask
from regard.attention.heads import MultiHead
from regard.attention.interfaces import Attended
from regard.attention.memory import Memory
from regard.decoders.cuda_graphs import KEY_MULTIPLE, ROW_MULTIPLE, STEP_MULTIPLE, GraphedLoop, pad_axes, round_up
from regard.errors import OptionError
from regard.layers.cells import uniform_
from regard.layers.dropout import LockedDropout
from regard.layers.feedforward import FeedForward, Residual
from regard.layers.lstmn import LSTMN, Tape, Tapes
from regard.layers.position import sinusoids


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


class LSTMReader(nn.Module):
    """A stack of LSTM layers, left to right."""

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
        self.layers = nn.ModuleList(
            nn.LSTM(size, hidden, batch_first=True) for size in _input_sizes(input_dim, hidden, num_layers, skip)
        )
        self.dropout = LockedDropout(dropout)
        for layer in self._layers():
            nn.init.xavier_uniform_(layer.weight_ih_l0)
            for block in layer.weight_hh_l0.data.split(hidden):
                nn.init.orthogonal_(block)
            nn.init.zeros_(layer.bias_ih_l0)
            nn.init.zeros_(layer.bias_hh_l0)
            with torch.no_grad():
                layer.bias_ih_l0[hidden : 2 * hidden] = 1.0  # the forget gate starts open

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
        for index, layer in enumerate(self._layers()):
            states = self._run(layer, _entering(states, words, index, self.skip, self.dropout), None)[0]
        return Sentences(states, exists=_exists(words, lengths))

    def step(self, words: Float[Tensor, "b e"], state: Any) -> tuple[Float[Tensor, "b d"], Any]:
        """Read one word of each sentence; `state` is None before the first."""
        states = first = words.unsqueeze(1)
        new = []
        for index, layer in enumerate(self._layers()):
            old = None if state is None else tuple(part.transpose(0, 1).contiguous() for part in state[index])
            states, after = self._run(layer, _entering(states, first, index, self.skip, self.dropout), old)
            new.append(tuple(part.transpose(0, 1) for part in after))
        return states[:, 0], tuple(new)

    def _run(self, layer: nn.LSTM, inputs: Tensor, state: Any) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        if not self.training or not self.recurrent_dropout:
            found: tuple[Tensor, tuple[Tensor, Tensor]] = layer(inputs, state)
            return found
        start = inputs.new_zeros(1, len(inputs), self.dim)
        dropped = functional.dropout(layer.weight_hh_l0, self.recurrent_dropout)
        parts = [layer.weight_ih_l0, dropped, layer.bias_ih_l0, layer.bias_hh_l0]
        with _scattered_parameters():
            # Inputs, first state, parameters, has_biases, num_layers, dropout, train, bidirectional, batch_first.
            states, hidden, memory = torch._VF.lstm(inputs, (start, start), parts, True, 1, 0.0, True, False, True)  # type: ignore[attr-defined]
        return states, (hidden, memory)

    def _layers(self) -> list[nn.LSTM]:
        return [layer for layer in self.layers if isinstance(layer, nn.LSTM)]


class LSTMNReader(nn.Module):
    """A stack of long short-term memory networks, left to right. With `skip`, the words enter every layer.

    With `fusion`, layer k also attends to the tapes of layer k of another reader of this class, which has read another
    sentence (Cheng et al. 2016, section 4, deep fusion). On a GPU, training records the recurrences as CUDA graphs.
    """

    def __init__(
        self,
        input_dim: int,
        hidden: int,
        *,
        num_layers: int = 1,
        attention_dim: int | None = None,
        span: int = 0,
        skip: bool = False,
        fusion: bool = False,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.dim, self.skip = hidden, skip
        self.layers = nn.ModuleList(
            LSTMN(
                size,
                hidden,
                attention_dim=attention_dim,
                span=span,
                fusion=fusion,
                recurrent_dropout=recurrent_dropout,
            )
            for size in _input_sizes(input_dim, hidden, num_layers, skip)
        )
        self.dropout = LockedDropout(dropout)
        self._graphs = [GraphedLoop() for _ in range(num_layers)]

    def forward(
        self,
        words: Float[Tensor, "b n e"],
        lengths: Int[Tensor, "b"] | None = None,
        source: Sentences | None = None,
        *,
        weights: bool = False,
    ) -> Sentences:
        """Read whole sentences; with deep fusion, beside the sentences of `source`."""
        tapes: list[Tapes] = []
        states = words
        for index, layer in enumerate(self._layers()):
            entering = _entering(states, words, index, self.skip, self.dropout)
            tapes.append(self._read(index, layer, entering, _remembered(layer, index, source), weights=weights))
            states = tapes[-1].hidden
        own, other = (
            tuple(each.unsqueeze(1) for each in parts if each is not None)
            for parts in ([part.weights for part in tapes], [part.source_weights for part in tapes])
        )
        return Sentences(states, own, other, tapes=tuple(tapes), exists=_exists(words, lengths))

    def step(
        self, words: Float[Tensor, "b e"], state: tuple[Tape, ...] | None
    ) -> tuple[Float[Tensor, "b d"], tuple[Tape, ...]]:
        """Read one word of each sentence; `state` is None before the first."""
        states = first = words.unsqueeze(1)
        new = []
        for index, layer in enumerate(self._layers()):
            tape = layer.start(len(words)) if state is None else state[index]
            tape, *_ = layer.step(_entering(states, first, index, self.skip, self.dropout)[:, 0], tape)
            states = tape.hidden[:, -1:]
            new.append(tape)
        return states[:, 0], tuple(new)

    def _read(self, index: int, layer: LSTMN, words: Tensor, source: Memory | None, *, weights: bool) -> Tapes:
        inputs, recurrent = layer.project(words), layer.dropped()
        fused = None if layer.fusion is None else layer.fusion.word_layer(words)
        if inputs.is_cuda and inputs.requires_grad and not weights:
            return self._recorded(index, layer, inputs, recurrent, fused, source)
        return layer.recur(inputs, recurrent, fused, source, weights=weights)

    def _recorded(
        self,
        index: int,
        layer: LSTMN,
        inputs: Tensor,
        recurrent: Tensor,
        fused: Tensor | None,
        source: Memory | None,
    ) -> Tapes:
        """Run the recurrence as a CUDA graph, with its sizes rounded up."""
        batch, length, _ = inputs.shape
        rows, steps = round_up(batch, ROW_MULTIPLE), round_up(length, STEP_MULTIPLE)
        tensors = [pad_axes(inputs, rows, steps), recurrent]
        if fused is not None and source is not None and source.mask is not None:
            words = round_up(len(source), KEY_MULTIPLE)
            beside = (pad_axes(part, rows, words) for part in (source.keys, source.values, source.mask[:, 0]))
            tensors += [pad_axes(fused, rows, steps), *beside]

        def loop(inputs: Tensor, recurrent: Tensor, *parts: Tensor) -> tuple[Tensor, ...]:
            if not parts:
                tapes = layer.recur(inputs, recurrent)
            else:
                fused, keys, values, allowed = parts
                tapes = layer.recur(inputs, recurrent, fused, Memory(keys, values, allowed.unsqueeze(1)))
            return tapes.hidden.contiguous(), tapes.memory.contiguous()

        inside = ("key_layer.weight", "direction", "fusion.recurrent.weight", "fusion.direction")
        parameters = {name: part for name, part in layer.named_parameters() if name in inside}
        found = self._graphs[index](layer, loop, tensors, parameters)
        return Tapes(*(part[:batch, :length] for part in found))

    def _layers(self) -> list[LSTMN]:
        return [layer for layer in self.layers if isinstance(layer, LSTMN)]


class SelfAttentionReader(nn.Module):
    """Layers of self-attention and feed-forward network, in which no word attends to itself.

    Left to right, a word attends to the words before it, and the first to none; both ways, to all others. Its own
    features reach the next layer through the residual connection. `span` bounds how far away a word can attend (0: not
    at all).

    From the second layer on, what is attended to are the states of words, and a state may hold what its word has gathered
    from others: the weights then do not say where the information comes from. With `attend_to_words`, every layer attends
    to the words as they entered the first, and the weights say so. With `look_back`, the last layer of a reader of both
    ways attends to earlier words only: the others tell a word what to look for.
    """

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
        both_ways: bool = False,
        look_back: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.look_back = look_back
        self.dim, self.both_ways, self.span, self.attend_to_words = dim, both_ways, span, attend_to_words
        self.enter = uniform_(nn.Linear(input_dim, dim))
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            SelfAttentionLayer(dim, num_heads, feedforward_dim or 4 * dim, dropout) for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(dim)

    def forward(
        self,
        words: Float[Tensor, "b n e"],
        lengths: Int[Tensor, "b"] | None = None,
        source: Sentences | None = None,
        *,
        weights: bool = False,
    ) -> Sentences:
        """Read whole sentences."""
        exists = _exists(words, lengths)
        states = entered = self._positioned(words, 0)
        maps: list[Tensor] = []
        for index, layer in enumerate(self.layers):
            both = self.both_ways and not (self.look_back and index == len(self.layers) - 1)
            allowed = self._allowed(words.shape[1], words.device, both=both)
            allowed = allowed if exists is None else allowed & exists
            memory = layer.remember(entered if self.attend_to_words else states, None)
            states, attended = layer(states, memory, allowed, weights=weights)
            maps += [] if attended.weights is None else [attended.weights]
        return Sentences(self.norm(states), tuple(maps), attended=attended.context, exists=exists)

    def step(
        self, words: Float[Tensor, "b e"], state: tuple[Memory, ...] | None
    ) -> tuple[Float[Tensor, "b d"], tuple[Memory, ...]]:
        """Read one word of each sentence; `state` is None before the first."""
        if self.both_ways:
            raise OptionError("A reader of both ways cannot read word by word: it needs the words that follow.")
        past = 0 if state is None else len(state[0])
        states = entered = self._positioned(words.unsqueeze(1), past)
        places = torch.arange(-past, 1, device=words.device)
        allowed = (places < 0) & (places >= -self.span if self.span else True)
        new = []
        for index, layer in enumerate(self.layers):
            source = entered if self.attend_to_words else states
            new.append(layer.remember(source, None if state is None else state[index]))
            states, _ = layer(states, new[-1], allowed.view(1, 1, -1), weights=False)
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

    def _positioned(self, words: Tensor, first: int) -> Tensor:
        positions = sinusoids(words.shape[1], self.dim, first=first, device=words.device)
        positioned: Tensor = self.dropout(self.enter(words) + positions)
        return positioned


class SelfAttentionLayer(nn.Module):
    """Self-attention, then a feed-forward network, each normalised before and added to what enters."""

    def __init__(self, dim: int, num_heads: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.heads = MultiHead(dim, num_heads)
        self.feed_forward = FeedForward(dim, inner, dropout)
        self.around_heads, self.around_feed_forward = (Residual(dim, dropout, prenorm=True) for _ in range(2))

    def remember(self, words: Float[Tensor, "b n d"], after: Memory | None) -> Memory:
        """Prepare words to be attended to, after earlier ones."""
        return self.heads.remember(self.around_heads.norm(words), after=after)

    def forward(
        self, states: Float[Tensor, "b n d"], memory: Memory, allowed: Bool[Tensor, "#b n k"], *, weights: bool
    ) -> tuple[Float[Tensor, "b n d"], Attended]:
        """Compute the states of the next layer; `allowed` says which words of the memory each word may attend to."""
        found: list[Attended] = []

        def attend(x: Tensor) -> Tensor:
            found.append(self.heads(x, memory, mask=allowed, weights=weights))
            return found[0].context

        states = self.around_heads(states, attend)
        return self.around_feed_forward(states, self.feed_forward), found[0]


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


def _input_sizes(input_dim: int, hidden: int, num_layers: int, skip: bool) -> list[int]:
    return [input_dim] + [hidden + (input_dim if skip else 0)] * (num_layers - 1)


def _entering(states: Tensor, words: Tensor, index: int, skip: bool, dropout: nn.Module) -> Tensor:
    """What enters a layer: the words, or the states of the layer below and, with `skip`, the words beside them."""
    if not index:
        return words
    states = dropout(states)
    return torch.cat([states, words], dim=-1) if skip else states


def _exists(words: Tensor, lengths: Tensor | None) -> Tensor | None:
    if lengths is None:
        return None
    return mask.padding(lengths.cpu(), words.shape[1]).to(words.device, non_blocking=words.is_cuda)


def _remembered(layer: LSTMN, index: int, source: Sentences | None) -> Memory | None:
    if layer.fusion is None:
        return None
    if source is None or len(source.tapes) <= index:
        raise OptionError("Deep fusion needs the tapes of another sentence, as an LSTMNReader returns them.")
    tapes = source.tapes[index]
    exists = source.exists
    if exists is None:
        exists = torch.ones(len(tapes.hidden), 1, tapes.hidden.shape[1], dtype=torch.bool, device=tapes.hidden.device)
    return layer.fusion.remember(tapes, exists)


def _reversed_order(words: Tensor, lengths: Tensor | None) -> Int[Tensor, "b n"]:
    """The places of the words in reversed sentences; padding stays where it is."""
    places = torch.arange(words.shape[1], device=words.device).expand(words.shape[:2])
    ends = words.shape[1] if lengths is None else lengths.to(words.device).unsqueeze(1)
    return torch.where(places < ends, ends - 1 - places, places)


def _take(tensor: Tensor, order: Int[Tensor, "b n"], axis: int = 1) -> Tensor:
    shape = [1] * tensor.ndim
    shape[0], shape[axis] = order.shape
    return tensor.gather(axis, order.view(shape).expand_as(tensor))


@contextmanager
def _scattered_parameters() -> Iterator[None]:
    """Dropped parameters are new tensors, so that cuDNN has to copy all of them together, as it says."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not part of single contiguous chunk.*")
        yield
