"""Sines and cosines of queries and keys, and back; additive_sines.py has the idea and calls these."""

# mypy: disable-error-code="no-untyped-def,untyped-decorator"

import triton
import triton.language as tl


@triton.jit
def features(inputs, direction, waves, output, count, dim, num_waves, IS_QUERY: tl.constexpr, BLOCK: tl.constexpr):
    """Of each input x with its v: c v sin(w x), then c v cos(w x), for a query; cos(w x), then sin(w x), for a key.

    Inputs are (row, dim), the output (row, 2 waves, dim), `waves` has all w, then all c.
    """
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = places < count
    column = places % dim
    x = tl.load(inputs + places, mask=inside, other=0.0).to(tl.float32)
    output += (places - column) * 2 * num_waves + column
    v = tl.load(direction + column, mask=inside, other=0.0).to(tl.float32) if IS_QUERY else 1.0
    for wave in range(num_waves):
        angle = tl.load(waves + wave) * x
        factor = tl.load(waves + num_waves + wave) * v if IS_QUERY else 1.0
        sine, cosine = factor * tl.sin(angle), factor * tl.cos(angle)
        tl.store(output + wave * dim, sine if IS_QUERY else cosine, mask=inside)
        tl.store(output + (num_waves + wave) * dim, cosine if IS_QUERY else sine, mask=inside)


@triton.jit
def features_back(
    inputs,
    direction,
    waves,
    gradients,
    of_inputs,
    of_direction,
    count,
    dim,
    num_waves,
    IS_QUERY: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """From the gradients of `features` to those of the inputs and, for each row of queries, of v."""
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = places < count
    column = places % dim
    x = tl.load(inputs + places, mask=inside, other=0.0).to(tl.float32)
    gradients += (places - column) * 2 * num_waves + column
    slope, amount = tl.zeros([BLOCK], tl.float32), tl.zeros([BLOCK], tl.float32)
    for wave in range(num_waves):
        frequency = tl.load(waves + wave)
        sine, cosine = tl.sin(frequency * x), tl.cos(frequency * x)
        first = tl.load(gradients + wave * dim, mask=inside, other=0.0).to(tl.float32)
        second = tl.load(gradients + (num_waves + wave) * dim, mask=inside, other=0.0).to(tl.float32)
        if IS_QUERY:
            factor = tl.load(waves + num_waves + wave)
            slope += factor * frequency * (first * cosine - second * sine)
            amount += factor * (first * sine + second * cosine)
        else:
            slope += frequency * (second * cosine - first * sine)
    if IS_QUERY:
        slope *= tl.load(direction + column, mask=inside, other=0.0).to(tl.float32)
        tl.store(of_direction + places, amount, mask=inside)
    tl.store(of_inputs + places, slope, mask=inside)
