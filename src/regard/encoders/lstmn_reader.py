"""A reader that attends to its past: a stack of long short-term memory networks (Cheng et al. 2016)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.memory import Memory
from regard.encoders.readers import Sentences, existing_words, input_sizes, layer_inputs
from regard.errors import OptionError
from regard.kernels.cuda_graphs import KEY_MULTIPLE, ROW_MULTIPLE, STEP_MULTIPLE, GraphedLoop
from regard.layers.dropout import LockedDropout
from regard.layers.lstmn import LSTMN, Tape, Tapes


class LSTMNReader(nn.Module):
    """A stack of long short-term memory networks, left to right. With `skip`, the words enter every layer.

    With `fusion`, layer k also attends to the tapes of layer k of another reader of this class, which has read another
    sentence (Cheng et al. 2016, section 4, deep fusion). On a GPU, training records the recurrences as CUDA graphs.
    """

    layers: Sequence[LSTMN]

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
        self.layers = nn.ModuleList(  # type: ignore[assignment]
            LSTMN(
                size,
                hidden,
                attention_dim=attention_dim,
                span=span,
                fusion=fusion,
                recurrent_dropout=recurrent_dropout,
            )
            for size in input_sizes(input_dim, hidden, num_layers, skip)
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
        for index, layer in enumerate(self.layers):
            entering = layer_inputs(states, words, index, self.skip, self.dropout)
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
        for index, layer in enumerate(self.layers):
            tape = layer.start(len(words)) if state is None else state[index]
            tape, *_ = layer.step(layer_inputs(states, first, index, self.skip, self.dropout)[:, 0], tape)
            states = tape.hidden[:, -1:]
            new.append(tape)
        return states[:, 0], tuple(new)

    def _read(self, index: int, layer: LSTMN, words: Tensor, source: Memory | None, *, weights: bool) -> Tapes:
        inputs, recurrent = layer.project(words), layer.dropped()
        fused = None if layer.fusion is None else layer.fusion.word_layer(words)
        if self._graphs[index].accepts(inputs) and not weights:
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
        tensors, multiples = [inputs, recurrent], [(ROW_MULTIPLE, STEP_MULTIPLE), ()]
        if fused is not None and source is not None and source.mask is not None:
            tensors += [fused, source.keys, source.values, source.mask[:, 0]]
            multiples += [(ROW_MULTIPLE, STEP_MULTIPLE), *[(ROW_MULTIPLE, KEY_MULTIPLE)] * 3]

        def loop(inputs: Tensor, recurrent: Tensor, *parts: Tensor) -> tuple[Tensor, ...]:
            if not parts:
                tapes = layer.recur(inputs, recurrent)
            else:
                fused, keys, values, allowed = parts
                tapes = layer.recur(inputs, recurrent, fused, Memory(keys, values, allowed.unsqueeze(1)))
            return tapes.hidden.contiguous(), tapes.memory.contiguous()

        inside = ("key_layer.weight", "direction", "fusion.recurrent.weight", "fusion.direction")
        parameters = {name: part for name, part in layer.named_parameters() if name in inside}
        return Tapes(*self._graphs[index](layer, loop, tensors, parameters, multiples=multiples))


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
