"""The encoder of the Transformer (Vaswani et al. 2017, section 3.1)."""

from jaxtyping import Int
from torch import Tensor, nn

from regard.attention import mask
from regard.encoders.encoded import Encoded
from regard.layers.transformer import LayerNorm, SelfAttentionBlock, embed_with_positions


class TransformerEncoder(nn.Module):
    """Layers of self-attention and feed-forward network, each with a residual connection."""

    def __init__(
        self, embedding: nn.Embedding, *, num_layers: int, num_heads: int, inner: int, dropout: float, prenorm: bool
    ) -> None:
        super().__init__()
        self.embedding, self.dim = embedding, embedding.embedding_dim
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            SelfAttentionBlock(self.dim, num_heads, inner, dropout, prenorm=prenorm) for _ in range(num_layers)
        )
        self.norm = LayerNorm(self.dim) if prenorm else nn.Identity()

    def forward(self, source: Int[Tensor, "b n"], lengths: Int[Tensor, "b"], *, weights: bool = False) -> Encoded:
        """Encode padded sentences of these lengths; `weights` asks for the self-attention maps of each layer."""
        allowed = mask.padding(lengths, source.shape[1])
        allowed, lengths = (part.to(source.device, non_blocking=source.is_cuda) for part in (allowed, lengths))
        states = self.dropout(embed_with_positions(self.embedding, source))
        maps: list[Tensor] = []
        for block in self.layers:
            states, attended = block(states, mask=allowed, weights=weights)
            maps += [attended.weights] if weights else []
        states = self.norm(states)
        summary = (states * allowed.mT).sum(1) / lengths.unsqueeze(-1)
        return Encoded(states, allowed, summary, tuple(maps))
