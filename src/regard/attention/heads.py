"""Multi-head attention: several attentions in parallel, each on its own projection (Vaswani et al. 2017, 3.2.2)."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention import checks
from regard.attention.align import Soft, softmax
from regard.attention.attend import AlignLike, Kernel, ScoreLike, as_align, as_score, read, unshared
from regard.attention.memory import Attended, Memory
from regard.attention.score import scaled_dot
from regard.errors import DtypeError, MaskError, OptionError, ShapeError
from regard.kernels.numerics import is_autocast


class MultiHead(nn.Module):
    """context = W_o [head_1; ...; head_h], head_i = attend(W_q^i query, W_k^i states, W_v^i states).

    Self-attention: multihead(x). Cross-attention: memory = multihead.remember(states, mask), then
    multihead(query, memory) for any number of queries. A decoder's cache: memory = multihead.remember(x, after=memory),
    then multihead(x, memory, causal=True). Each head applies the score and the alignment.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        *,
        memory_dim: int | None = None,
        bias: bool = True,
        score: ScoreLike = scaled_dot,
        align: AlignLike = softmax,
    ) -> None:
        super().__init__()
        if num_heads < 1 or dim < 1 or dim % num_heads:
            raise OptionError(f"dim must be a multiple of num_heads; got dim={dim}, num_heads={num_heads}.")
        self.dim, self.num_heads = dim, num_heads
        self.memory_dim = memory_dim or dim
        self.query_layer = nn.Linear(dim, dim, bias=bias)
        self.key_layer = nn.Linear(self.memory_dim, dim, bias=bias)
        self.value_layer = nn.Linear(self.memory_dim, dim, bias=bias)
        self.output_layer = nn.Linear(dim, dim, bias=bias)
        self.score, self.align = unshared(as_score(score)), unshared(as_align(align))
        if self.score.compares_codes or self.score.learned_query() is not None:
            raise OptionError(
                f"MultiHead compares projected queries and keys, which {type(self.score).__name__} cannot do."
            )
        for size in (self.score.query_dim, self.score.key_dim):
            if size not in (None, dim // num_heads):
                raise OptionError(f"Each head has {dim // num_heads} features; this score takes {size}.")
        for layer in (self.query_layer, self.key_layer, self.value_layer, self.output_layer):
            nn.init.xavier_uniform_(layer.weight)
            if bias:
                nn.init.zeros_(layer.bias)

    @classmethod
    def from_torch(cls, other: nn.MultiheadAttention) -> "MultiHead":
        """Create a MultiHead with the parameters, dtype and mode of a module of torch without `add_bias_kv`."""
        if other.bias_k is not None or other.add_zero_attn or other.kdim != other.vdim:
            raise OptionError(
                "MultiHead supports neither add_bias_kv, add_zero_attn nor different kdim and vdim, as this module has."
            )
        heads = cls(other.embed_dim, other.num_heads, memory_dim=other.kdim, bias=other.in_proj_bias is not None)
        heads = heads.to(other.out_proj.weight).train(other.training)
        if other.in_proj_weight is not None:
            weights = other.in_proj_weight.chunk(3)
        else:
            weights = (other.q_proj_weight, other.k_proj_weight, other.v_proj_weight)
        layers = (heads.query_layer, heads.key_layer, heads.value_layer)
        with torch.no_grad():
            for layer, weight in zip(layers, weights, strict=True):
                layer.weight.copy_(weight)
            heads.output_layer.weight.copy_(other.out_proj.weight)
            if other.in_proj_bias is not None:
                for layer, bias in zip(layers, other.in_proj_bias.chunk(3), strict=True):
                    layer.bias.copy_(bias)
                heads.output_layer.bias.copy_(other.out_proj.bias)
        return heads

    def remember(
        self,
        states: Float[Tensor, "b k m"],
        mask: Bool[Tensor, "#b #q k"] | None = None,
        *,
        after: Memory | None = None,
    ) -> Memory:
        """Project the keys and values of each head once; `after` appends them to an earlier memory."""
        self._check_features("states", states, self.memory_dim)
        if after is not None and not self.score.position_free:
            raise OptionError(
                f"{type(self.score).__name__} depends on positions, which start at 0 in each memory; remember all "
                "states at once instead of appending them."
            )
        if mask is not None:
            checks.check_mask(mask, states.shape[:1], 1, states.shape[1], states.device)
            if mask.ndim != 3:
                raise MaskError(
                    f"The mask of a memory is (b, 1, k), as from mask.padding(lengths); got {tuple(mask.shape)}."
                )
        keys = self.score.project_key(self._split(self.key_layer(states)))
        memory = Memory(keys, self._split(self.value_layer(states)), None if mask is None else mask.unsqueeze(-3))
        return memory if after is None else after.extended(memory)

    def forward(
        self,
        query: Float[Tensor, "b q d"],
        memory: Memory | None = None,
        *,
        mask: Bool[Tensor, "..."] | None = None,
        causal: bool = False,
        weights: bool = False,
        kernel: Kernel = "auto",
        state: Any = None,
        override: Float[Tensor, "b #q k"] | None = None,
        soft: Soft = False,
    ) -> Attended:
        """Attend to the memory, or to the queries themselves if there is none; weights are (b, h, q, k).

        `mask` broadcasts to (b, q, k) or (b, h, q, k). `causal` aligns the last query with the last key and hides later
        keys. `override` replaces the attention weights of every head. `soft` is that of `attend`.
        """
        self._check_features("query", query, self.dim)
        memory = self.remember(query) if memory is None else memory
        queries = self._split(self.query_layer(query))
        checks.check_call(queries, memory, self.score, self.align, None, kernel)
        if mask is not None:
            per_head = isinstance(mask, Tensor) and mask.ndim == 4
            lead = torch.Size([query.shape[0], self.num_heads]) if per_head else query.shape[:1]
            checks.check_mask(mask, lead, query.shape[1], memory.num_keys, query.device)
            mask = mask if per_head or mask.ndim < 3 else mask.unsqueeze(-3)
        attended = read(
            queries,
            memory,
            self.score,
            self.align,
            mask=mask,
            causal=causal,
            weights=weights,
            kernel=kernel,
            state=state,
            override=None if override is None else override.unsqueeze(-3),
            soft=soft,
        )
        context = self.output_layer(attended.context.transpose(-3, -2).flatten(-2))
        return Attended(context, attended.weights, attended.log_prob, attended.state, attended.extras)

    def _split(self, features: Float[Tensor, "b n d"]) -> Float[Tensor, "b h n e"]:
        split = features.view(*features.shape[:-1], self.num_heads, self.dim // self.num_heads)
        return split.transpose(-3, -2)

    def _check_features(self, role: str, tensor: Tensor, dim: int) -> None:
        if tensor.ndim != 3 or tensor.shape[-1] != dim:
            raise ShapeError(f"The {role} of this MultiHead must be (batch, length, {dim}); got {tuple(tensor.shape)}.")
        weight = self.query_layer.weight
        if tensor.device != weight.device:
            raise DtypeError(
                f"The parameters of this MultiHead are on {weight.device}, the {role} on {tensor.device}. Move one "
                "with .to(device)."
            )
        if tensor.dtype != weight.dtype and not is_autocast(tensor.device):
            raise DtypeError(
                f"The parameters of this MultiHead are {weight.dtype}, the {role} is {tensor.dtype}. Convert one."
            )
