"""Scores of memory machines: bits per sequence, exact sequences, and a table over lengths."""

import math
from collections import Counter

import pytest
import torch

import regard
from regard.errors import OptionError
from regard.systems.tape.config import TapeConfig
from regard.systems.tape.evaluation import MAX_TAPES, score_tapes, tapes_of_all_lengths, tapes_of_length
from regard.systems.tape.model import TuringMachine
from regard.worlds.tapes import Copy, NGrams, RepeatCopy, Tapes


def machine(task=None, **config) -> TuringMachine:
    torch.manual_seed(3)
    small = {"hidden": 7, "slots": 12, "width": 4}
    return TuringMachine(TapeConfig(**small | config), task or Copy(bits=2, max_length=4)).eval()


class Oracle(torch.nn.Module):
    """Copies with certainty, except for the first bit of each answer."""

    def unroll(self, inputs, *, slots=None):
        length = inputs.shape[1] // 2
        logits = torch.zeros(*inputs.shape[:2], inputs.shape[2] - 1)
        logits[:, length + 1 :] = 50 * (2 * inputs[:, :length, :-1] - 1)
        if length:
            logits[:, length + 1, 0] *= -1
        return type("UnrolledTape", (), {"logits": logits})


def test_scores_are_those_of_the_bits_that_count():
    logits = torch.tensor([[[5.0], [2.0], [-1.0]]])
    tapes = Tapes(logits, torch.tensor([[[0.0], [1.0], [1.0]]]), torch.tensor([False, True, True]))
    scored = score_tapes(logits, tapes)
    expected = math.log2(1 + math.exp(-2)) + math.log2(1 + math.exp(1))
    assert float(scored.bits) == pytest.approx(expected)
    assert (scored.wrong.tolist(), scored.counted, scored.exact.tolist()) == ([1], 2, [False])


def test_a_report_tells_overall_scores_and_those_of_each_length():
    model = machine()
    model.network = Oracle()
    model.register_parameter("anchor", torch.nn.Parameter(torch.zeros(())))
    report = regard.evaluate(model, count=40, per_length=5)
    assert report.title == "40 tapes of copy, 1 to 4 vectors"
    assert report["exact sequences"] == 0
    assert report["bits right"] == pytest.approx(100 * (1 - 4 / 20)), "one bit of 2, 4, 6 and 8"
    assert report["bits per sequence"] == pytest.approx(50 / math.log(2))
    table = report.tables["By length"]
    assert [row["length"] for row in table] == [4, 8, 12], "as far as 12 slots suffice"
    assert [row["bits right"] for row in table] == pytest.approx([100 * (1 - 1 / (2 * n)) for n in (4, 8, 12)])


def test_test_tapes_repeat_and_cover_all_lengths():
    task = Copy(min_length=0, max_length=3)
    tapes = tapes_of_all_lengths(task, 10, seed=5)
    assert [(len(each.inputs), each.inputs.shape[1]) for each in tapes] == [(3, 1), (3, 3), (3, 5), (3, 7)]
    again = tapes_of_all_lengths(task, 10, seed=5)
    assert all(torch.equal(one.inputs, two.inputs) for one, two in zip(tapes, again, strict=True))
    assert [len(each.inputs) for each in tapes_of_length(task, 3, 250, seed=1)] == [100, 100, 50]
    repeated = tapes_of_length(RepeatCopy(max_repeats=4), 3, 450, seed=1)
    steps = Counter(tapes.inputs.shape[1] for tapes in repeated for _ in tapes.inputs)
    assert steps == {3 + 1 + 3 * copies + 1: 113 for copies in range(1, 5)}, "as many of each number of copies"
    assert max(len(tapes.inputs) for tapes in repeated) == MAX_TAPES


def test_ngrams_are_compared_with_the_best_possible():
    report = regard.evaluate(machine(NGrams(context=2, min_length=20, max_length=20)), count=50, per_length=5)
    assert report["best possible"] < report["bits per sequence"]
    assert 5 < report["best possible"] < 18


def test_what_cannot_be_evaluated_is_explained():
    model = machine()
    with pytest.raises(OptionError, match="copy of 13 vectors needs a memory of 13 slots or more; this one has 12"):
        regard.evaluate(model, lengths=[13])
    assert regard.evaluate(model, lengths=[13], slots=20, count=4, per_length=2).tables["By length"][0]["tapes"] == 2
    with pytest.raises(OptionError, match="training mode"):
        regard.evaluate(model.train())
