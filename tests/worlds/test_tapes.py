"""Tapes of the five tasks: what is written on them, what the right answers are, and that seeds repeat them."""

import math

import pytest
import torch

from regard.errors import ModelError, OptionError
from regard.worlds.tapes import TASKS, Copy, Drawn, NGrams, PrioritySort, Recall, RepeatCopy, Task

ROWS = torch.tensor([[1.0, 0], [0, 1], [1, 1]])


def seeded(seed: int = 1, device: str = "cpu") -> torch.Generator:
    return torch.Generator(device).manual_seed(seed)


def written(task: Task, rows: torch.Tensor, number: int = 0):
    tapes = task.write(Drawn(rows.unsqueeze(0), torch.tensor([number])))
    assert not tapes.targets[:, ~tapes.scored].any(), "what does not count is 0"
    return tapes.inputs[0].int().tolist(), tapes.targets[0][tapes.scored].int().tolist()


def test_a_copy_is_due_after_the_mark():
    inputs, answer = written(Copy(bits=2), ROWS)
    assert inputs == [[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert answer == [[1, 0], [0, 1], [1, 1]]


def test_copies_are_repeated_and_then_an_end_mark_is_due():
    tapes = RepeatCopy(bits=2, max_repeats=4).write(Drawn(ROWS[None, :2], torch.tensor([2])))
    scaled = (2 - 2.5) / math.sqrt(1.25)
    torch.testing.assert_close(tapes.inputs[0, :3], torch.tensor([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, scaled]]))
    assert not tapes.inputs[0, 3:].any()
    assert tapes.targets[0][tapes.scored].int().tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_numbers_of_copies_have_mean_0_and_variance_1():
    task = RepeatCopy(bits=2, max_repeats=7)
    numbers = torch.stack([task.write(task.draw(1, 1, seeded(1), repeats=n)).inputs[0, 1, -1] for n in range(1, 8)])
    torch.testing.assert_close(numbers.mean(), torch.tensor(0.0))
    torch.testing.assert_close(numbers.var(correction=0), torch.tensor(1.0))
    assert RepeatCopy(max_repeats=1).sample(1, 1, seeded(1)).inputs[0, 1, -1] == 0, "one number has no variance"


def test_the_item_after_the_one_asked_for_is_due():
    rows = torch.tensor([[1.0, 0], [0, 1], [1, 1], [0, 0], [0, 1], [0, 1]])
    inputs, answer = written(Recall(bits=2, item_length=2), rows, 1)
    items = [[0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]]
    items += [[0, 1, 0, 0], [0, 1, 0, 0]]
    question = [[0, 0, 0, 1], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    assert inputs == items + question + [[0, 0, 0, 0]] * 2
    assert answer == [[0, 1], [0, 1]]


def test_vectors_are_due_by_falling_priority():
    rows = torch.cat([ROWS, torch.tensor([[-0.5], [0.9], [0.1]])], 1)
    tapes = PrioritySort(bits=2).write(Drawn(rows.unsqueeze(0), torch.tensor([0])))
    assert tapes.inputs[0, :3, :3].tolist() == rows.tolist()
    assert tapes.inputs[0, 3].tolist() == [0, 0, 0, 1]
    assert tapes.targets[0][tapes.scored].tolist() == [[0, 1], [1, 1], [1, 0]]
    paper = PrioritySort().sample(2, 20, seeded())
    assert int(paper.scored.sum()) == 16, "16 of 20, as in the paper"


def test_bits_are_predicted_from_their_context_on():
    tapes = NGrams(context=2).write(Drawn(torch.tensor([[[1.0], [0], [0], [1]]]), torch.tensor([0])))
    assert tapes.inputs[0, :, 0].tolist() == [1, 0, 0]
    assert tapes.scored.tolist() == [False, True, True]
    assert tapes.targets[0, :, 0].tolist() == [0, 0, 1]


def test_the_best_predictor_of_ngrams_counts():
    task = NGrams(context=2, min_length=9, max_length=9)
    rows = task.draw(5, 9, seeded()).rows
    for bits, found in zip(rows.squeeze(-1).int().tolist(), task.best_bits(rows).tolist(), strict=True):
        counts: dict[tuple[int, ...], list[float]] = {}
        expected = 0.0
        for index in range(2, 9):
            seen = counts.setdefault(tuple(bits[index - 2 : index]), [0.5, 0.5])
            expected -= math.log2(seen[bits[index]] / sum(seen))
            seen[bits[index]] += 1
        assert found == pytest.approx(expected)


def test_ngrams_follow_tables_with_the_arcsine_law():
    """Counting predicts them far better than a fair coin; the probabilities are mostly near 0 or 1."""
    task = NGrams()
    rows = task.draw(300, 200, seeded()).rows
    assert 120 < float(task.best_bits(rows).mean()) < 140, "of 195 bits that count"
    assert float(rows.mean()) == pytest.approx(0.5, abs=0.03)


def test_bits_are_fair_and_priorities_spread():
    rows = PrioritySort().draw(200, 20, seeded()).rows
    assert float(rows[..., :8].mean()) == pytest.approx(0.5, abs=0.01)
    assert float(rows[..., 8].mean()) == pytest.approx(0, abs=0.03)
    assert -1 <= float(rows[..., 8].min()) < -0.99 < 0.99 < float(rows[..., 8].max()) <= 1


@pytest.mark.parametrize("name", TASKS)
def test_a_seed_always_gives_the_same_tapes_on_the_device(name, device):
    task = TASKS[name]()
    length = task.max_length
    one, same, other = (task.sample(3, length, seeded(seed, device)) for seed in (7, 7, 8))
    assert one.inputs.device.type == one.scored.device.type == device
    assert all(torch.equal(*parts) for parts in zip(one, same, strict=True))
    assert one.inputs.shape != other.inputs.shape or not torch.equal(one.inputs, other.inputs)
    assert one.inputs.shape[-1] == task.input_size
    assert one.targets.shape[-1] == task.output_size
    assert set(one.targets.unique().tolist()) <= {0, 1}


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_saved_and_loaded(name, tmp_path):
    task = TASKS[name](min_length=3, max_length=7)
    task.save(tmp_path / "task.json")
    assert Task.load(tmp_path / "task.json") == task


def test_a_broken_file_of_a_task_is_explained(tmp_path):
    path = tmp_path / "task.json"
    for text in ("", "[]", '{"bits": 3}'):
        path.write_text(text)
        with pytest.raises(ModelError, match=r"task\.json is not a task on tapes"):
            Task.load(path)
    path.write_text('{"task": "knitting"}')
    with pytest.raises(ModelError, match=r"task\.json: task must be one of copy, .*; got 'knitting'"):
        Task.load(path)
    path.write_text('{"task": "copy", "bits": 0}')
    with pytest.raises(OptionError, match=r"task\.json: bits must be a whole number, 1 or more; got 0"):
        Task.load(path)


def test_the_empty_sequence_is_copied_and_others_are_refused():
    tapes = Copy().sample(2, 0, seeded())
    assert tapes.inputs.shape == (2, 1, 9)
    assert not tapes.scored.any()
    assert RepeatCopy().sample(2, 0, seeded()).scored.sum() == 1, "the end mark"
    for task in (Recall(), NGrams()):
        with pytest.raises(OptionError, match=rf"The shortest sequence of {task.name} has \d {task.unit}; got 0"):
            task.sample(1, 0, seeded())
    with pytest.raises(OptionError, match="min_length must be from 2 to max_length; got min_length 1"):
        Recall(min_length=1)
    with pytest.raises(OptionError, match="got min_length 5 and max_length 4"):
        Copy(min_length=5, max_length=4)
    with pytest.raises(OptionError, match="single bits; got bits 2"):
        NGrams(bits=2)
