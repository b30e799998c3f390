"""The decoder of the Transformer, whose caches are an explicit state (Vaswani et al. 2017, section 3.1)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.align import Soft
from regard.attention.heads import MultiHead
from regard.attention.memory import Attended, Memory
from regard.decoders.protocol import OF_INPUT, Decoder, Override, Step, Unrolled, Weights
from regard.encoders.encoded import Encoded
from regard.errors import OptionError
from regard.layers.transformer import FeedForward, LayerNorm, Residual, embed_with_positions


@dataclass(frozen=True)
class TransformerState:
    """The caches of a Transformer decoder: for each layer, the target so far and the source."""

    seen: tuple[Memory | None, ...]
    source: tuple[Memory, ...] = field(metadata=OF_INPUT)
    length: int = 0
    """Number of target tokens so far."""


class TransformerDecoder(Decoder):
    """Layers of causal self-attention, attention to the source, and feed-forward network.

    A step reports one layer's attention to the source: of `shown_head`, or by default the mean over the heads, with the
    heads themselves in extras["heads"]. The layer is `shown_layer`; by default it is the second to last, which shows
    the clearest alignment (Garg et al. 2019). Both are counted from 0. `forward` with weights="all" returns the maps of
    all layers and heads.
    """

    layers: Sequence["TransformerDecoderLayer"]

    def __init__(
        self,
        embedding: nn.Embedding,
        *,
        memory_dim: int,
        num_layers: int,
        num_heads: int,
        inner: int,
        output: nn.Module,
        dropout: float,
        prenorm: bool,
        shown_layer: int | None = None,
        shown_head: int | None = None,
    ) -> None:
        super().__init__()
        dim = embedding.embedding_dim
        self.embedding, self.output = embedding, output
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(  # type: ignore[assignment]
            TransformerDecoderLayer(dim, memory_dim, num_heads, inner, dropout, prenorm) for _ in range(num_layers)
        )
        self.norm = LayerNorm(dim) if prenorm else nn.Identity()
        self.shown_layer = max(0, num_layers - 2) if shown_layer is None else shown_layer
        self.shown_head = shown_head

    def start(self, encoded: Encoded) -> TransformerState:
        """Return the state before the first token; the source is projected for each layer here, once."""
        source = tuple(layer.to_source.remember(encoded.states, encoded.mask) for layer in self.layers)
        return TransformerState((None,) * len(source), source)

    def step(self, token: Int[Tensor, "b"], state: TransformerState, *, override: Override = None) -> Step:
        """Read a token and predict the next one; `override` replaces the attention of the reported layer."""
        features, state, attended, _ = self._through_layers(token.unsqueeze(1), state, override, weights=True)
        return Step(self.output(features)[:, 0], state, attended)

    def forward(
        self, encoded: Encoded, target: Int[Tensor, "b m"], *, weights: Weights = False, soft: Soft = False
    ) -> Unrolled:
        """Predict after each token of the target, in one pass; `soft` has no effect, since this attention is soft."""
        features, _, attended, maps = self._through_layers(target, self.start(encoded), None, weights=weights)
        self_maps, source_maps = zip(*maps, strict=True) if maps else ((), ())
        return Unrolled(features, attended.weights if weights else None, self_maps=self_maps, source_maps=source_maps)

    def source_mask(self, state: TransformerState) -> Bool[Tensor, "b n"] | None:
        """Return which source positions exist."""
        mask = state.source[0].mask
        return None if mask is None else mask[:, 0, 0]

    def _through_layers(
        self, tokens: Int[Tensor, "b m"], state: TransformerState, override: Override, *, weights: Weights
    ) -> tuple[Tensor, TransformerState, Attended, list[tuple[Tensor, Tensor]]]:
        """Return the features, the new state, the reported attention, and all maps if `weights` is "all"."""
        features = self.dropout(embed_with_positions(self.embedding, tokens, first=state.length))
        seen: list[Memory] = []
        maps: list[tuple[Tensor, Tensor]] = []
        shown = None
        for index, (layer, old, source) in enumerate(zip(self.layers, state.seen, state.source, strict=True)):
            is_shown = bool(weights) and index == self.shown_layer
            looks = layer(
                features,
                old,
                source,
                override if is_shown else None,
                weights=is_shown or weights == "all",
                self_weights=weights == "all",
            )
            features = looks.features
            seen.append(looks.seen)
            if index == self.shown_layer:
                shown = looks.to_source
            if looks.to_self.weights is not None and looks.to_source.weights is not None:
                maps.append((looks.to_self.weights, looks.to_source.weights))
        if shown is None:
            raise OptionError(
                f"shown_layer must be a layer of this decoder, 0 to {len(self.layers) - 1}; got {self.shown_layer}."
            )
        if shown.weights is not None:
            reported = shown.weights.mean(1) if self.shown_head is None else shown.weights[:, self.shown_head]
            shown = Attended(shown.context, reported, extras={"heads": shown.weights})
        state = replace(state, seen=tuple(seen), length=state.length + tokens.shape[1])
        return self.norm(features), state, shown, maps


@dataclass(frozen=True)
class LayerResult:
    """The result of one decoder layer."""

    features: Float[Tensor, "b m d"]
    seen: Memory
    """The target so far, as the self-attention remembers it."""
    to_self: Attended
    to_source: Attended


class TransformerDecoderLayer(nn.Module):
    """Causal self-attention, attention to the source, feed-forward network."""

    def __init__(self, dim: int, memory_dim: int, num_heads: int, inner: int, dropout: float, prenorm: bool) -> None:
        super().__init__()
        self.to_self = MultiHead(dim, num_heads)
        self.to_source = MultiHead(dim, num_heads, kdim=memory_dim)
        self.feed_forward = FeedForward(dim, inner, dropout)
        self.around_self, self.around_source, self.around_feed_forward = (
            Residual(dim, dropout, prenorm=prenorm) for _ in range(3)
        )

    def forward(
        self,
        features: Float[Tensor, "b m d"],
        seen: Memory | None,
        source: Memory,
        override: Override,
        *,
        weights: bool,
        self_weights: bool = False,
    ) -> LayerResult:
        """Compute the features of the next layer; `weights` and `self_weights` ask for the attention weights."""
        grown: list[Memory] = []
        looks: list[Attended] = []

        def look_back(x: Tensor) -> Tensor:
            grown.append(self.to_self.remember(x, after=seen))
            looks.append(self.to_self(x, grown[0], causal=True, weights=self_weights))
            return looks[0].context

        def look_at_source(x: Tensor) -> Tensor:
            looks.append(self.to_source(x, source, weights=weights, override=override))
            return looks[1].context

        features = self.around_self(features, look_back)
        features = self.around_source(features, look_at_source)
        return LayerResult(self.around_feed_forward(features, self.feed_forward), grown[0], *looks)
