"""What the Triton kernels share."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import triton
import triton.language as tl


@triton.jit
def sigmoid(x):
    """Compute 1 / (1 + exp(-x))."""
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def tanh(x):
    """Compute tanh, which Triton does not have."""
    return 1.0 - 2.0 / (1.0 + tl.exp(2.0 * x))


@triton.jit
def load(pointers, inside):
    """Load float32 numbers, and 0 outside."""
    return tl.load(pointers, mask=inside, other=0.0).to(tl.float32)


@triton.jit
def softmax(logits, allowed):
    """Compute the softmax of one vector over what is allowed; zeros where nothing is."""
    logits = tl.where(allowed, logits, float("-inf"))
    largest = tl.max(logits, 0)
    weights = tl.exp(logits - tl.where(largest == float("-inf"), 0.0, largest))
    divisor = tl.sum(weights, 0)
    return weights / tl.where(divisor > 0, divisor, 1.0)
