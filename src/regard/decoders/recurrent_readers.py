"""Readers that are recurrences: the LSTM, and the LSTMN, which attends to its past."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.memory import Memory
from regard.decoders.cuda_graphs import KEY_MULTIPLE, ROW_MULTIPLE, STEP_MULTIPLE, GraphedLoop, pad_axes, round_up
from regard.decoders.readers import Sentences, existing_words
from regard.errors import OptionError
from regard.layers.dropout import LockedDropout
from regard.layers.lstmn import LSTMN, Tape, Tapes


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
        for index, layer in enumerate(self._layers()):
            states = self._run(layer, _entering(states, words, index, self.skip, self.dropout), None)[0]
        return Sentences(states, exists=existing_words(words, lengths))

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
        word, recurrent, *biases = layer.parameters()
        parts = [word, functional.dropout(recurrent, self.recurrent_dropout), *biases]
        with _scattered_parameters():
            # Inputs, first state, parameters, has_biases, num_layers, dropout, train, bidirectional, batch_first.
            states, hidden, memory = torch._VF.lstm(inputs, (start, start), parts, True, 1, 0.0, True, False, True)
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
        return Sentences(states, own, other, tapes=tuple(tapes), exists=existing_words(words, lengths))

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


def _input_sizes(input_dim: int, hidden: int, num_layers: int, skip: bool) -> Iterator[int]:
    """The size of what each layer reads; one after the other, so that an absurd number of layers takes no memory."""
    yield input_dim
    yield from (hidden + (input_dim if skip else 0) for _ in range(num_layers - 1))


def _entering(states: Tensor, words: Tensor, index: int, skip: bool, dropout: nn.Module) -> Tensor:
    """What enters a layer: the words, or the states of the layer below and, with `skip`, the words beside them."""
    if not index:
        return words
    states = dropout(states)
    return torch.cat([states, words], dim=-1) if skip else states


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


@contextmanager
def _scattered_parameters() -> Iterator[None]:
    """Dropped parameters are new tensors, so that cuDNN has to copy all of them together, as it says."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not part of single contiguous chunk.*")
        yield
