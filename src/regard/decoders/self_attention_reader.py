"""A reader that is self-attention (Vaswani et al. 2017), left to right or both ways."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention import mask
from regard.attention.heads import MultiHead
from regard.attention.memory import Attended, Memory
from regard.decoders.readers import Sentences, existing_words
from regard.errors import OptionError
from regard.layers.cells import uniform_
from regard.layers.feedforward import FeedForward, Residual
from regard.layers.position import sinusoids


class SelfAttentionReader(nn.Module):
    """Layers of self-attention and feed-forward network, in which no word attends to itself.

    Left to right, a word attends to the words before it, and the first to none; both ways, to all others. Its own
    features reach the next layer through the residual connection. `span` bounds how far away a word can attend (0: not
    at all).

    From the second layer on, what is attended to are the states of words, and a state may hold what its word has
    gathered from others: the weights then do not say where the information comes from. With `attend_to_words`, every
    layer attends to the words as they entered the first, and the weights say so. With `look_back`, the last layer of a
    reader of both ways attends to earlier words only: the others tell a word what to look for.
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
        exists = existing_words(words, lengths)
        states = entered = self._positioned(words, 0)
        maps: list[Tensor] = []
        for index, layer in enumerate(self._layers()):
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
        for index, layer in enumerate(self._layers()):
            source = entered if self.attend_to_words else states
            new.append(layer.remember(source, None if state is None else state[index]))
            states, _ = layer(states, new[-1], allowed.view(1, 1, -1), weights=False)
        return self.norm(states)[:, 0], tuple(new)

    def _layers(self) -> list["SelfAttentionLayer"]:
        return [layer for layer in self.layers if isinstance(layer, SelfAttentionLayer)]

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
        # Scaled as by Vaswani et al. 2017, section 3.4: otherwise a word is hard to see beside its position.
        positioned: Tensor = self.dropout(math.sqrt(self.dim) * self.enter(words) + positions)
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
