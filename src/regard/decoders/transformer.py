"""The decoder of the Transformer, with its caches as an explicit state (Vaswani et al. 2017, section 3.1)."""

from dataclasses import dataclass, field, replace

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.attend import Attended
from regard.attention.heads import MultiHead
from regard.attention.memory import Memory
from regard.decoders.protocol import OF_INPUT, Decoder, Override, Step, Unrolled
from regard.encoders.encoded import Encoded
from regard.encoders.transformer import embed_with_positions
from regard.layers.feedforward import FeedForward, Residual


@dataclass(frozen=True)
class TransformerState:
    """For each layer, what of the target has been seen, and the source."""

    seen: tuple[Memory | None, ...]
    source: tuple[Memory, ...] = field(metadata=OF_INPUT)
    length: int = 0
    """How many tokens have been seen."""


class TransformerDecoder(Decoder):
    """Layers of causal self-attention, attention to the source, and feed-forward network.

    The attention that a step reports is the mean over the heads of one layer's attention to the source, by default the
    last but one's, where the alignment is clearest (Garg et al. 2019); its heads are in extras["heads"].
    """

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
    ) -> None:
        super().__init__()
        dim = embedding.embedding_dim
        self.embedding, self.output = embedding, output
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            TransformerDecoderLayer(dim, memory_dim, num_heads, inner, dropout, prenorm) for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(dim) if prenorm else nn.Identity()
        self.shown_layer = max(0, num_layers - 2) if shown_layer is None else shown_layer

    def start(self, encoded: Encoded) -> TransformerState:
        """Nothing seen; the source projected for each layer, once."""
        source = tuple(layer.to_source.remember(encoded.states, encoded.mask) for layer in self._layers())
        return TransformerState((None,) * len(source), source)

    def step(self, token: Int[Tensor, "b"], state: TransformerState, *, override: Override = None) -> Step:
        """Read a token and predict the next."""
        features, state, attended = self._through_layers(token.unsqueeze(1), state, override, weights=True)
        return Step(self.output(features)[:, 0], state, attended)

    def forward(self, encoded: Encoded, target: Int[Tensor, "b m"], *, weights: bool = False) -> Unrolled:
        """Predict after each token of the target, all at once."""
        features, _, attended = self._through_layers(target, self.start(encoded), None, weights=weights)
        return Unrolled(features, attended.weights if weights else None)

    def _layers(self) -> list["TransformerDecoderLayer"]:
        return [layer for layer in self.layers if isinstance(layer, TransformerDecoderLayer)]

    def _through_layers(
        self, tokens: Int[Tensor, "b m"], state: TransformerState, override: Override, *, weights: bool
    ) -> tuple[Tensor, TransformerState, Attended]:
        features = self.dropout(embed_with_positions(self.embedding, tokens, first=state.length))
        seen, shown = [], None
        for index, (layer, old, source) in enumerate(zip(self._layers(), state.seen, state.source, strict=True)):
            asked = weights and index == self.shown_layer
            features, new, attended = layer(features, old, source, override if asked else None, weights=asked)
            seen.append(new)
            if index == self.shown_layer:
                shown = attended
        if shown is None:
            raise TypeError(f"There is no layer {self.shown_layer} to show the attention of.")
        if shown.weights is not None:
            shown = Attended(shown.context, shown.weights.mean(1), extras={"heads": shown.weights})
        state = replace(state, seen=tuple(seen), length=state.length + tokens.shape[1])
        return self.norm(features), state, shown


class TransformerDecoderLayer(nn.Module):
    """Causal self-attention, attention to the source, feed-forward network."""

    def __init__(self, dim: int, memory_dim: int, num_heads: int, inner: int, dropout: float, prenorm: bool) -> None:
        super().__init__()
        self.to_self = MultiHead(dim, num_heads)
        self.to_source = MultiHead(dim, num_heads, memory_dim=memory_dim)
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
    ) -> tuple[Float[Tensor, "b m d"], Memory, Attended]:
        """The features one layer up, what has been seen now, and the attention to the source."""
        grown: list[Memory] = []
        looks: list[Attended] = []

        def look_back(x: Tensor) -> Tensor:
            grown.append(self.to_self.remember(x, after=seen))
            return self.to_self(x, grown[0], causal=True).context  # type: ignore[no-any-return]

        def look_at_source(x: Tensor) -> Tensor:
            looks.append(self.to_source(x, source, weights=weights, override=override))
            return looks[0].context

        features = self.around_self(features, look_back)
        features = self.around_source(features, look_at_source)
        return self.around_feed_forward(features, self.feed_forward), grown[0], looks[0]
