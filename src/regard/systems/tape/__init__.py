"""Memory machines: bits on a tape in, bits out, by way of a memory that the model itself writes."""

from regard.systems.families import Family
from regard.systems.tape.config import TapeTest

FAMILY = Family(
    system="regard.systems.tape.model:TuringMachine",
    experiment="regard.systems.tape.training:TapeExperiment",
    evaluate="regard.systems.tape.evaluation:evaluate",
    test_set=TapeTest,
    evidence="regard.systems.tape.erasing:evidence",
    commands={"tape": "regard.systems.tape.command:tape"},
    example="regard tape -m {model} --show -",
    headline={"test_bits": "{:.2f} bits a sequence", "test_exact": "{:.1f} % exact"},
    scales={"test_bits": "Bits: how many it takes to correct an answer; 0 is perfect."},
    tested="{test_tapes:,} new sequences",
)
