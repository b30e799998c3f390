"""A memory machine on random tapes, also on longer ones than it was trained on."""

import pytest

import regard
from regard.errors import OptionError
from regard.systems.tape.inspection import length_scores, needed_slots, random_tape


@pytest.fixture(scope="module")
def copier():
    return regard.load("tape-copy", device="cpu")


def series(tape, name):
    return next(each.values for each in tape.trace.series if each.name == name)


def test_a_seed_and_a_length_name_a_tape(copier):
    one, same, other = (random_tape(copier, 6, seed=seed) for seed in (3, 3, 4))
    assert one.sequence == same.sequence != other.sequence
    assert len(one.sequence) == 6
    assert one.wrong == 0


def test_a_longer_tape_gets_a_larger_memory(copier):
    assert needed_slots(copier, 20) == copier.config.slots == 128
    assert needed_slots(copier, 200) == 200
    tape = random_tape(copier, 140, traces="none")
    assert len(tape.output) == 140
    with pytest.raises(OptionError, match="needs a memory of 140 slots"):
        random_tape(copier, 140, slots=128)


def test_the_trace_tells_why_the_heads_are_where_they_are(copier):
    tape = random_tape(copier, 8)
    steps = len(tape.trace.axis("steps"))
    for head in ("read 1", "write 1"):
        assert all(0 <= gate <= 1 for gate in series(tape, f"{head} gate"))
        assert all(value >= 1 for value in series(tape, f"{head} sharpening"))
        assert all(-1 <= value <= 1 for value in series(tape, f"{head} shift"))
        assert len(series(tape, f"{head} strength")) == steps
    # A copying machine writes slot after slot: its write head moves by one in each step while it reads the sequence.
    shifts = series(tape, "write 1 shift")[2:8]
    assert abs(sum(shifts)) / len(shifts) > 0.6


def test_scores_by_length_end_where_memory_fails(copier):
    scores = length_scores(copier, [5, 10], per_length=4)
    assert [score.length for score in scores] == [5, 10]
    assert all(score.bits_right > 99.5 for score in scores)
    recall = regard.load("tape-recall", device="cpu")
    trained, beyond = length_scores(recall, [6, 18], per_length=4)
    assert trained.bits > -1
    assert trained.bits_right >= beyond.bits_right


def test_what_cannot_be_asked(copier):
    with pytest.raises(OptionError, match="per_length"):
        length_scores(copier, [3], per_length=0)
    with pytest.raises(OptionError, match="shortest sequence of recall has 2"):
        random_tape(regard.load("tape-recall", device="cpu"), 1)
