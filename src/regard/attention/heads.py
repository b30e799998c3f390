"""Multi-head attention: several attentions in parallel, each on its own projection (Vaswani et al. 2017, 3.2.2)."""

from collections.abc import Callable
from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor, nn, strided

from regard.arguments import checked
from regard.attention import checks
from regard.attention.align import Soft, softmax
from regard.attention.attend import AlignLike, Kernel, ScoreLike, as_align, as_score, attend_memory, unshared
from regard.attention.memory import Attended, Memory
from regard.attention.score import scaled_dot
from regard.config import PositiveInt
from regard.errors import DtypeError, MaskError, OptionError, ShapeError
from regard.kernels.linear import Linear


class MultiHead(nn.Module):
    """context = W_o [head_1; ...; head_h], head_i = attend(W_q^i query, W_k^i states, W_v^i states).

    Self-attention: multihead(x). Cross-attention: memory = multihead.remember(states, mask), then
    multihead(query, memory) for any number of queries. A decoder's cache: memory = multihead.remember(x, after=memory),
    then multihead(x, memory, causal=True). Each head applies the score and the alignment.

    `kdim` and `vdim` are the numbers of features of the states and of the values, dim and kdim by default.
    `num_key_heads`, of which num_heads is a multiple, is the number of heads of keys and values: fewer of them make the
    memory smaller, as several heads of queries share each (Ainslie et al. 2023). In training mode, `dropout` is the
    share of the attention weights that are set to 0 at random.
    """

    @checked
    def __init__(
        self,
        dim: PositiveInt,
        num_heads: PositiveInt,
        *,
        num_key_heads: PositiveInt | None = None,
        kdim: PositiveInt | None = None,
        vdim: PositiveInt | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        score: ScoreLike = scaled_dot,
        align: AlignLike = softmax,
    ) -> None:
        super().__init__()
        num_key_heads = num_heads if num_key_heads is None else num_key_heads
        if dim % num_heads:
            raise OptionError(f"dim must be a multiple of num_heads; got dim={dim}, num_heads={num_heads}.")
        if num_heads % num_key_heads:
            raise OptionError(
                "num_heads must be a multiple of num_key_heads; got "
                f"num_heads={num_heads}, num_key_heads={num_key_heads}."
            )
        self.dim, self.num_heads, self.num_key_heads = dim, num_heads, num_key_heads
        self.kdim = kdim or dim
        self.vdim = vdim or self.kdim
        self.dropout = checks.check_dropout(dropout)
        head_dim = dim // num_heads
        self.query_layer = Linear(dim, dim, bias=bias)
        self.key_layer = Linear(self.kdim, num_key_heads * head_dim, bias=bias)
        self.value_layer = Linear(self.vdim, num_key_heads * head_dim, bias=bias)
        self.output_layer = Linear(dim, dim, bias=bias)
        self.score, self.align = unshared(as_score(score)), unshared(as_align(align))
        if self.score.compares_codes or self.score.learned_query() is not None:
            raise OptionError(
                f"MultiHead compares projected queries and keys, which {type(self.score).__name__} cannot do."
            )
        for size in (self.score.query_dim, self.score.key_dim, self.align.query_dim):
            if size not in (None, head_dim):
                raise OptionError(
                    f"Each head has {head_dim} features; this score or alignment takes {size}. Create it with "
                    f"query_dim={head_dim} and, if it is a score, key_dim={head_dim}."
                )
        for layer in (self.query_layer, self.key_layer, self.value_layer, self.output_layer):
            nn.init.xavier_uniform_(layer.weight)
            if bias:
                nn.init.zeros_(layer.bias)

    @classmethod
    def from_torch(cls, other: nn.MultiheadAttention) -> "MultiHead":
        """Create a MultiHead with the parameters, dropout, dtype, device and mode of a module of torch.

        Its sequences are (batch, length, features), whatever the `batch_first` of the module.
        """
        if not isinstance(other, nn.MultiheadAttention):
            raise OptionError(f"from_torch takes a torch.nn.MultiheadAttention; got {checks.describe(other)}.")
        for option, is_set in (("add_bias_kv", other.bias_k is not None), ("add_zero_attn", other.add_zero_attn)):
            if is_set:
                raise OptionError(
                    f"This module has {option}, which appends to the keys one that belongs to no state; the memory of "
                    "a MultiHead has one key for each state, so that masks, caches and weights fit the states."
                )
        heads = cls(
            other.embed_dim,
            other.num_heads,
            kdim=other.kdim,
            vdim=other.vdim,
            bias=other.in_proj_bias is not None,
            dropout=other.dropout,
        )
        heads = heads.to(other.out_proj.weight).train(other.training)
        weights: tuple[Tensor, ...] = (other.q_proj_weight, other.k_proj_weight, other.v_proj_weight)
        if other.in_proj_weight is not None:
            weights = other.in_proj_weight.chunk(3)
        biases = (None, None, None) if other.in_proj_bias is None else other.in_proj_bias.chunk(3)
        names = ("query_layer", "key_layer", "value_layer", "output_layer")
        state = {f"{name}.weight": part for name, part in zip(names, (*weights, other.out_proj.weight), strict=True)}
        state |= {f"{name}.bias": part for name, part in zip(names, (*biases, other.out_proj.bias), strict=True)}
        heads.load_state_dict({name: part for name, part in state.items() if part is not None})
        return heads

    def remember(
        self,
        states: Float[Tensor, "b k m"],
        mask: Bool[Tensor, "#b #q k"] | None = None,
        values: Float[Tensor, "b k v"] | None = None,
        *,
        after: Memory | None = None,
    ) -> Memory:
        """Project the keys and values of each head once; without `values`, both are projected from the states.

        `after` appends them to an earlier memory.
        """
        self._check_features("states", states, self.kdim)
        values = states if values is None else values
        self._check_features("values", values, self.vdim)
        if values.shape[:2] != states.shape[:2]:
            raise ShapeError(
                f"There must be one value per state; got states {tuple(states.shape)}, values {tuple(values.shape)}."
            )
        if after is not None and not isinstance(after, Memory):
            raise OptionError(f"`after` is a memory, which remember returned; got {checks.describe(after)}.")
        if after is not None and not self.score.position_free:
            raise OptionError(
                f"{type(self.score).__name__} depends on positions, which start at 0 in each memory; remember all "
                "states at once instead of appending them."
            )
        if mask is not None:
            checks.check_mask(mask, (states.shape[0], 1, states.shape[1]), states.device)
            if mask.ndim != 3:
                raise MaskError(
                    f"The mask of a memory must be (b, 1, k), as from mask.padding(lengths); got {tuple(mask.shape)}."
                )
        keys = self.score.project_key(_split(self.key_layer(states), self.num_key_heads))
        split_values = _split(self.value_layer(values), self.num_key_heads)
        memory = Memory(keys, split_values, None if mask is None else mask.unsqueeze(-3))
        return memory if after is None else after.extended(memory)

    def forward(
        self,
        query: Float[Tensor, "b q d"],
        memory: Memory | None = None,
        *,
        mask: Bool[Tensor, "..."] | None = None,
        bias: Float[Tensor, "..."] | None = None,
        causal: bool = False,
        weights: bool = False,
        kernel: Kernel = "auto",
        state: Any = None,
        override: Float[Tensor, "b #q k"] | None = None,
        soft: Soft = False,
    ) -> Attended:
        """Attend to the memory, or to the queries themselves if there is none; weights are (b, h, q, k).

        `mask` and `bias` broadcast to (b, q, k) or (b, h, q, k); a bias is added to the logits of each head. `causal`
        aligns the last query with the last key and hides later keys. `override` replaces the attention weights of every
        head. `soft` is that of `attend`.
        """
        self._check_features("query", query, self.dim)
        memory = self.remember(query) if memory is None else memory
        queries = _split(self.query_layer(query), self.num_heads)
        grouped = self.num_key_heads != self.num_heads
        options: dict[str, Any] = {"grouped": grouped, "weights": weights, "soft": soft, "override": override}
        checks.check_call(queries, memory, self.score, self.align, None, None, kernel, **options)
        if causal is not False:
            checks.check_flag("causal", causal)
        if mask is not None:
            mask = self._of_heads(mask, checks.check_mask, query, memory)
        if bias is not None:
            bias = self._of_heads(bias, checks.check_bias, query, memory)
        if override is not None:
            checks.check_override(override, (query.shape[0], query.shape[1], memory.num_keys), query.device)
            override = override.expand(query.shape[0], *override.shape[-2:]) if override.ndim < 3 else override
        attended = attend_memory(
            queries,
            memory,
            self.score,
            self.align,
            mask=mask,
            bias=bias,
            causal=causal,
            dropout=self.dropout if self.training else 0.0,
            grouped=grouped,
            weights=weights,
            kernel=kernel,
            state=state,
            override=None if override is None else override.unsqueeze(-3),
            soft=soft,
        )
        context = self.output_layer(attended.context.transpose(-3, -2).flatten(-2))
        return Attended(context, attended.weights, attended.log_prob, attended.state, attended.extras)

    def _of_heads(self, part: Tensor, check: Callable[..., None], query: Tensor, memory: Memory) -> Tensor:
        """Return a mask or bias with an axis for the heads, after checking it."""
        per_head = isinstance(part, Tensor) and part.ndim == 4
        lead = (query.shape[0], self.num_heads) if per_head else (query.shape[0],)
        check(part, (*lead, query.shape[1], memory.num_keys), query.device)
        return part if per_head or part.ndim < 3 else part.unsqueeze(-3)

    def _check_features(self, role: str, tensor: Tensor, dim: int) -> None:
        if not isinstance(tensor, Tensor) or tensor.layout is not strided or tensor.is_nested:
            raise DtypeError(f"The {role} of this MultiHead must be a dense tensor; got {checks.describe(tensor)}.")
        if tensor.ndim != 3 or tensor.shape[-1] != dim:
            raise ShapeError(f"The {role} of this MultiHead must be (batch, length, {dim}); got {tuple(tensor.shape)}.")
        checks.check_alike(
            f"the {role}", tensor, "the parameters of this MultiHead", self.query_layer.weight, dtypes=True
        )


def _split(features: Float[Tensor, "b n d"], num_heads: int) -> Float[Tensor, "b h n e"]:
    split = features.view(*features.shape[:-1], num_heads, features.shape[-1] // num_heads)
    return split.transpose(-3, -2)
