"""Softmax attention over dot products, by torch's fused kernels."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from regard.kernels.numerics import is_autocast


def dot_product_attention(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    scale: float,
    mask: Tensor | None,
    bias: Tensor | None = None,
    *,
    causal: bool = False,
    dropout: float = 0.0,
    grouped: bool = False,
) -> Tensor:
    """Compute softmax(scale query keys' + bias) values: (..., q, d), (..., k, d), (..., k, v) to (..., q, v).

    The leading axes of all three agree; `mask` and `bias` broadcast to (..., q, k). `causal` aligns the last query with
    the last key. `dropout` is the share of weights that are set to 0. With `grouped`, keys and values (b, g, k, ...)
    have fewer heads than queries (b, h, q, d). A query that may attend to nothing gets zeros.
    """
    dtype, width, value_width = values.dtype, query.shape[-1], values.shape[-1]
    if causal and (mask is not None or bias is not None or query.shape[-2] != keys.shape[-2]):
        num_queries, num_keys = query.shape[-2], keys.shape[-2]
        earlier = torch.ones(num_queries, num_keys, dtype=torch.bool, device=query.device).tril(num_keys - num_queries)
        mask = earlier if mask is None else mask & earlier
        causal = False
    is_on_cpu = query.is_cpu
    attends = lead = None
    # Backends differ on rows with nothing to attend to, so they attend to everything and are cleared afterwards. Those
    # for CPUs give them zeros, unless the query is NaN; what is compiled or exported may run elsewhere.
    if bias is not None:
        bias = bias.to(dtype) if mask is None else torch.where(mask, bias.to(dtype), -math.inf)
        attends = bias.detach().amax(-1, keepdim=True) != -math.inf
        mask = bias.masked_fill(~attends, 0)
    elif mask is not None:
        attends = mask.any(-1, keepdim=True)
        mask = mask if is_on_cpu and not torch.compiler.is_compiling() else mask | ~attends
    if (query.dtype != dtype or keys.dtype != dtype) and not is_autocast(values.device):
        query, keys = query.to(dtype), keys.to(dtype)
    if width != value_width:
        # The memory-efficient backends require one number of features; zeros change neither products nor contexts.
        query, keys = (functional.pad(part, (0, max(0, value_width - width))) for part in (query, keys))
        values = functional.pad(values, (0, max(0, width - value_width)))
    if mask is not None:
        mask = _mask_with_two_lead_axes(mask, query.shape[:-2])
    if query.ndim != 4:
        lead = query.shape[:-2]
        query, keys, values = _with_two_lead_axes(query), _with_two_lead_axes(keys), _with_two_lead_axes(values)
    if mask is None and is_on_cpu and not causal:
        # Without a mask, torch's kernel for CPUs returns 0 for a query whose logits are all NaN; with one, NaN.
        mask = query.new_zeros(1, 1)
    context = functional.scaled_dot_product_attention(
        query, keys, values, mask, dropout, causal, scale=scale, enable_gqa=grouped
    )
    if causal and is_on_cpu:
        # All logits of a query are NaN if those of the first key are.
        first = keys.detach()[..., :1, :].sum(-1, keepdim=True)
        if grouped:
            first = first.repeat_interleave(query.shape[1] // keys.shape[1], 1)
        context = context.masked_fill((query.detach().sum(-1, keepdim=True) + first).isnan(), math.nan)
    if width > value_width:
        context = context[..., :value_width]
    if lead is not None:
        context = context.squeeze(1) if len(lead) == 1 else context.reshape(*lead, *context.shape[-2:])
    if context.dtype != dtype:
        context = context.to(dtype)
    return context if attends is None else torch.where(attends, context, 0)


def disable_cudnn_attention() -> None:
    """Keep torch from choosing cuDNN's attention, in this process; call it once, before training.

    On recent GPUs torch prefers cuDNN for half precision. cuDNN builds an execution plan for each new shape, which with
    batches of sentences is most batches. torch has this switch per process only, not per call or per thread, so it
    belongs to the program that owns the process: the forward pass never touches it.
    """
    torch.backends.cuda.enable_cudnn_sdp(False)


def _with_two_lead_axes(tensor: Tensor) -> Tensor:
    """Reshape to (b, h, ..., ...), as torch's fused kernels require."""
    if tensor.ndim in (3, 4):
        return tensor if tensor.ndim == 4 else tensor.unsqueeze(1)
    lead = tensor.shape[:-2]
    return tensor.reshape(lead[:-1].numel(), lead[-1] if lead else 1, *tensor.shape[-2:])


def _mask_with_two_lead_axes(mask: Tensor, lead: torch.Size) -> Tensor:
    """Reshape a mask to two leading axes; axes of size 1 are kept where possible, so that it is not expanded."""
    if mask.ndim < len(lead) + 2:
        mask = mask.view(*(1,) * (len(lead) + 2 - mask.ndim), *mask.shape)
    if len(lead) == 1:
        return mask.unsqueeze(1)
    return mask if len(lead) == 2 else _with_two_lead_axes(mask.expand(*lead, -1, -1))
