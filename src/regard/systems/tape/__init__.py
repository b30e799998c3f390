"""Memory machines: bits on a tape in, bits out, by way of a memory that the model itself writes."""

from regard.systems.registry import Declaration

SYSTEM = Declaration(
    summary="Write bits on a tape, by way of a memory that the model itself writes.",
    default_model="tape-copy",
    inputs="rows",
    about_inputs="The rows of a sequence, such as 01101001 11100010; without them, random ones.",
    about="--show draws input, output, the movements of the heads and the memory.",
    example="regard tape -m {model} --show -",
    headline={"test_bits": "{:.2f} bits a sequence", "test_exact": "{:.1f} % exact"},
    scales={"test_bits": "Bits: how many it takes to correct an answer; 0 is perfect."},
    measured_on="{test_tapes:,} new sequences",
)
