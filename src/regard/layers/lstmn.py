"""The long short-term memory network: an LSTM that attends to all of its past (Cheng et al. 2016, section 3.1).

An LSTM compresses what it has read into one memory vector. This network keeps the hidden and the memory state of every
word on two tapes and, at each word, reads both with one attention:

    a_i = v' tanh(W_h h_i + W_x x_t + W_h~ h~_{t-1})  for i = 1 .. t-1,   s = softmax(a)
    [h~_t; c~_t] = sum_i s_i [h_i; c_i]
    [i; f; o; c^] = [sigmoid; sigmoid; sigmoid; tanh](W [h~_t; x_t] + b)
    c_t = f c~_t + i c^,   h_t = o tanh(c_t)

With deep fusion (section 4) a second attention reads the tapes gamma and alpha of another sentence, with its own v,
W_h, W_x and W_h~, and c_t gains r alpha~_t, where r = sigmoid(W_r [gamma~_t; x_t] + b_r).
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.memory import Memory
from regard.errors import OptionError, ShapeError
from regard.kernels.additive import additive_logits
from regard.kernels.lstmn import lstmn
from regard.kernels.numerics import masked_softmax
from regard.layers.cells import uniform_


@dataclass(frozen=True)
class Tape:
    """The states of the words read so far, and what the last word read from the tapes."""

    hidden: Float[Tensor, "b t h"]
    memory: Float[Tensor, "b t h"]
    keys: Float[Tensor, "b t a"]
    """W_h h_i, computed once for each word."""
    read: Float[Tensor, "b h"]
    """h~ of the last word; zero before the first."""
    source_read: Float[Tensor, "b h"] | None = None
    """Deep fusion: gamma~ of the last word."""


@dataclass(frozen=True)
class Tapes:
    """The states of all words of padded sentences."""

    hidden: Float[Tensor, "b n h"]
    memory: Float[Tensor, "b n h"]
    weights: Float[Tensor, "b n n"] | None = None
    """What each word attended to, where the call asked for it: zero on and above the diagonal."""
    source_weights: Float[Tensor, "b n m"] | None = None
    """Deep fusion: what each word attended to in the other sentence."""


class LSTMN(nn.Module):
    """One layer. Padding on the right of a sentence changes nothing before it, so that batches need no mask."""

    def __init__(
        self,
        input_dim: int,
        hidden: int,
        *,
        attention_dim: int | None = None,
        span: int = 0,
        fusion: bool = False,
        recurrent_dropout: float = 0.0,
    ) -> None:
        """`span` bounds how many earlier words a word can attend to (0: all). `fusion` adds deep fusion.

        `recurrent_dropout` drops elements of what h~ is multiplied by, the same ones for all words of a batch (Merity
        et al. 2018, section 2).
        """
        super().__init__()
        if span < 0:
            raise OptionError(f"span must be 0 (no bound) or more; got {span}.")
        self.hidden, self.span, self.recurrent_dropout = hidden, span, recurrent_dropout
        self.attention_dim = attention_dim or hidden
        self.word_layer = uniform_(nn.Linear(input_dim, 4 * hidden + self.attention_dim, bias=False))
        """W for x_t, then W_x."""
        self.recurrent = nn.Linear(hidden, 4 * hidden + self.attention_dim, bias=False)
        """W for h~_t, then W_h~."""
        self.bias = nn.Parameter(torch.zeros(4 * hidden))
        self.key_layer = uniform_(nn.Linear(hidden, self.attention_dim, bias=False))
        self.direction = nn.Parameter(torch.empty(self.attention_dim))
        with torch.no_grad():
            for block in self.recurrent.weight.split([hidden] * 4 + [self.attention_dim]):
                nn.init.orthogonal_(block)
            self.bias[hidden : 2 * hidden] = 1.0  # the forget gate starts open
            nn.init.normal_(self.direction, std=self.attention_dim**-0.5)
        self.fusion = Fusion(input_dim, hidden, self.attention_dim) if fusion else None

    def start(self, rows: int) -> Tape:
        """Return empty tapes."""
        empty = self.bias.new_zeros(rows, 0, self.hidden)
        read = self.bias.new_zeros(rows, self.hidden)
        keys = self.bias.new_zeros(rows, 0, self.attention_dim)
        return Tape(empty, empty, keys, read, None if self.fusion is None else read)

    def step(
        self, words: Float[Tensor, "b e"], tape: Tape, source: Memory | None = None
    ) -> tuple[Tape, Float[Tensor, "b t"], Float[Tensor, "b m"] | None]:
        """Read one word of each sentence; return the longer tapes and what the word attended to."""
        fused = None if self.fusion is None else self.fusion.word_layer(words)
        return self._step(self.project(words), fused, tape, source, self.recurrent.weight)

    def forward(self, words: Float[Tensor, "b n e"], source: Memory | None = None, *, weights: bool = False) -> Tapes:
        """Read whole sentences; `source` is what `remember` of the fusion returned for the other sentence."""
        fused = None if self.fusion is None else self.fusion.word_layer(words)
        return self.recur(self.project(words), self.dropped(), fused, source, weights=weights)

    def project(self, words: Float[Tensor, "*b e"]) -> Float[Tensor, "*b g"]:
        """Compute what the words contribute to the gates and to the query, for all words at once."""
        bias = functional.pad(self.bias, (0, self.attention_dim))
        return functional.linear(words, self.word_layer.weight, bias)

    def dropped(self) -> Float[Tensor, "g h"]:
        """Return the recurrent weight, after dropout in training."""
        return functional.dropout(self.recurrent.weight, self.recurrent_dropout, self.training)

    def recur(
        self,
        inputs: Float[Tensor, "b n g"],
        recurrent: Float[Tensor, "g h"],
        fused: Float[Tensor, "b n f"] | None = None,
        source: Memory | None = None,
        *,
        weights: bool = False,
    ) -> Tapes:
        """Run the recurrence over projected words: the part of `forward` that a CUDA graph records."""
        if fused is None:
            hidden, memory, found = lstmn(inputs, recurrent, self.key_layer.weight, self.direction, self.span)
            return Tapes(hidden, memory, found if weights else None)
        return self.recur_by_steps(inputs, recurrent, fused, source, weights=weights)

    def recur_by_steps(
        self,
        inputs: Float[Tensor, "b n g"],
        recurrent: Float[Tensor, "g h"],
        fused: Float[Tensor, "b n f"] | None = None,
        source: Memory | None = None,
        *,
        weights: bool = False,
    ) -> Tapes:
        """Run the recurrence step by step, as in decoding: the reference of kernels/lstmn.py, and deep fusion."""
        tape, own, other = self.start(len(inputs)), [], []
        for t in range(inputs.shape[1]):
            for_fusion = None if fused is None else fused[:, t]
            tape, to_own, to_source = self._step(inputs[:, t], for_fusion, tape, source, recurrent)
            own.append(functional.pad(to_own, (0, inputs.shape[1] - to_own.shape[1])))
            other += [] if to_source is None else [to_source]
        if not weights:
            return Tapes(tape.hidden, tape.memory)
        joined = torch.stack(other, dim=1) if other else None
        return Tapes(tape.hidden, tape.memory, torch.stack(own, dim=1), joined)

    def _step(
        self, inputs: Tensor, fused: Tensor | None, tape: Tape, source: Memory | None, recurrent: Tensor
    ) -> tuple[Tape, Tensor, Tensor | None]:
        for_gates, for_query = inputs.split([4 * self.hidden, self.attention_dim], dim=-1)
        first = max(0, tape.keys.shape[1] - self.span) if self.span else 0
        query = for_query + functional.linear(tape.read, recurrent[4 * self.hidden :])
        weight = attend_to_tape(query, tape.keys[:, first:], self.direction)
        read, memory = (_read(weight, part[:, first:]) for part in (tape.hidden, tape.memory))
        gates = for_gates + functional.linear(read, recurrent[: 4 * self.hidden])
        entry, forget, out, candidate = gates.chunk(4, dim=-1)
        memory = torch.sigmoid(forget) * memory + torch.sigmoid(entry) * torch.tanh(candidate)
        to_source = None
        if self.fusion is not None:
            fusing, source_read, to_source = self.fusion(fused, tape.source_read, source)
            memory, tape = memory + fusing, replace(tape, source_read=source_read)
        hidden = torch.sigmoid(out) * torch.tanh(memory)
        grown = replace(
            tape,
            hidden=torch.cat([tape.hidden, hidden.unsqueeze(1)], dim=1),
            memory=torch.cat([tape.memory, memory.unsqueeze(1)], dim=1),
            keys=torch.cat([tape.keys, self.key_layer(hidden).unsqueeze(1)], dim=1),
            read=read,
        )
        return grown, functional.pad(weight, (first, 0)), to_source


class Fusion(nn.Module):
    """Deep fusion: attention to the tapes of another sentence, and the gate that lets its memory in."""

    def __init__(self, input_dim: int, hidden: int, attention_dim: int) -> None:
        super().__init__()
        self.sizes = [hidden, attention_dim]
        self.word_layer = uniform_(nn.Linear(input_dim, hidden + attention_dim))
        """W_r for x_t, then W_x."""
        self.recurrent = uniform_(nn.Linear(hidden, hidden + attention_dim, bias=False))
        """W_r for gamma~_t, then W_gamma~."""
        self.key_layer = uniform_(nn.Linear(hidden, attention_dim, bias=False))
        self.direction = nn.Parameter(torch.empty(attention_dim))
        nn.init.normal_(self.direction, std=attention_dim**-0.5)

    def remember(self, tapes: Tapes, mask: Bool[Tensor, "b 1 m"]) -> Memory:
        """Prepare the tapes of the other sentence, of which `mask` says which words exist."""
        return Memory(self.key_layer(tapes.hidden), torch.cat([tapes.hidden, tapes.memory], dim=-1), mask)

    def forward(
        self, inputs: Float[Tensor, "b g"] | None, last: Float[Tensor, "b h"] | None, source: Memory | None
    ) -> tuple[Float[Tensor, "b h"], Float[Tensor, "b h"], Float[Tensor, "b m"]]:
        """Return r alpha~_t, gamma~_t and the attention weights."""
        if source is None or inputs is None or last is None:
            raise ShapeError("A layer with fusion=True reads a sentence beside another one: give it as `source`.")
        for_gate, for_query = inputs.split(self.sizes, dim=-1)
        of_gate, of_query = self.recurrent.weight.split(self.sizes)
        query = for_query + functional.linear(last, of_query)
        weight = attend_to_tape(query, source.keys, self.direction, source.mask)
        hidden, memory = _read(weight, source.values).chunk(2, dim=-1)
        gate = torch.sigmoid(for_gate + functional.linear(hidden, of_gate))
        return gate * memory, hidden, weight


def attend_to_tape(
    query: Float[Tensor, "b a"],
    keys: Float[Tensor, "b t a"],
    direction: Float[Tensor, "a"],
    mask: Bool[Tensor, "b 1 t"] | None = None,
) -> Float[Tensor, "b t"]:
    """softmax(v' tanh(query + key)); an empty tape gives empty weights."""
    if not keys.shape[1]:
        return keys[:, :, 0]
    logits = additive_logits(query.unsqueeze(1), keys, direction)
    return masked_softmax(logits, mask)[:, 0]


def _read(weights: Float[Tensor, "b t"], values: Float[Tensor, "b t h"]) -> Float[Tensor, "b h"]:
    return (weights.unsqueeze(1) @ values).squeeze(1)
