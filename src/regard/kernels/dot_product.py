"""Softmax attention over dot products, by torch's fused kernels."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from regard.kernels.numerics import is_autocast


def dot_product_attention(
    query: Tensor, keys: Tensor, values: Tensor, scale: float, mask: Tensor | None, *, causal: bool
) -> Tensor:
    """Compute softmax(scale query keys') values: (..., q, d), (..., k, d), (..., k, v) to (..., q, v).

    The leading axes of all three agree; `mask` broadcasts to (..., q, k). `causal` aligns the last query with the last
    key. A query that may attend to nothing gets zeros.
    """
    lead, num_queries, num_keys = query.shape[:-2], query.shape[-2], keys.shape[-2]
    if causal and (mask is not None or num_queries != num_keys):
        earlier = torch.ones(num_queries, num_keys, dtype=torch.bool, device=query.device).tril(num_keys - num_queries)
        mask = earlier if mask is None else mask & earlier
        causal = False
    is_open = None
    if mask is not None:
        # Backends differ on rows with nothing to attend to, so they attend to everything and are cleared afterwards.
        is_open = mask.any(-1, keepdim=True)
        mask = _mask_with_two_lead_axes(mask | ~is_open, lead)
    dtype, (width, value_width) = values.dtype, (query.shape[-1], values.shape[-1])
    if (query.dtype != dtype or keys.dtype != dtype) and not is_autocast(values.device):
        query, keys = query.to(dtype), keys.to(dtype)
    if width != value_width:
        # The memory-efficient backends require one number of features; zeros change neither products nor contexts.
        query, keys = (functional.pad(part, (0, max(0, value_width - width))) for part in (query, keys))
        values = functional.pad(values, (0, max(0, width - value_width)))
    query, keys, values = (_with_two_lead_axes(part) for part in (query, keys, values))
    if mask is None and not causal and query.device.type == "cpu":
        # Without a mask, torch's kernel for CPUs returns 0 for a query whose logits are all NaN; with one, NaN.
        mask = query.new_zeros(1, 1, 1, 1)
    context = functional.scaled_dot_product_attention(query, keys, values, mask, is_causal=causal, scale=scale)
    if causal and query.device.type == "cpu":
        # All logits of a query are NaN if those of the first key are.
        is_nan = (query.detach().sum(-1, keepdim=True) + keys.detach()[..., :1, :].sum(-1, keepdim=True)).isnan()
        context = context.masked_fill(is_nan, math.nan)
    context = context if width <= value_width else context[..., :value_width]
    context = context.reshape(*lead, num_queries, value_width).to(dtype)
    return context if is_open is None else context.masked_fill(~is_open, 0)


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
    mask = mask.view(*(1,) * (len(lead) + 2 - mask.ndim), *mask.shape)
    if len(lead) == 1:
        return mask.unsqueeze(1)
    return mask if len(lead) == 2 else _with_two_lead_axes(mask.expand(*lead, -1, -1))
