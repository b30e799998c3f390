"""Batches: every example once, a bounded cost, an order that can be repeated, resumed and shared among ranks."""

import hashlib
import itertools
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.data.batches import ON_CPU, BatchLoader, CostBatches, Movable, pad
from regard.data.captioned_images import CaptionExamples, ImageTensors
from regard.data.labelled_images import LabelledImages
from regard.data.pairs import collate, padded_sizes
from regard.errors import DataError, OptionError, ShapeError

LENGTHS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=200).map(np.array)


def lengths_of(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 30, (count, 2))


def batches_of(lengths, **options) -> CostBatches:
    return CostBatches(padded_sizes(lengths), **{"max_cost": 97, "shuffle": True, "seed": 5} | options)


@given(LENGTHS, st.integers(1, 120), st.booleans(), st.integers(0, 3))
def test_every_example_comes_once_and_no_batch_is_too_large(lengths, max_cost, shuffle, epoch):
    batches = CostBatches(padded_sizes(lengths), max_cost=max_cost, shuffle=shuffle, seed=7)
    batches.set_epoch(epoch)
    found = list(batches)
    assert sorted(itertools.chain(*found)) == list(range(len(lengths)))
    assert len(found) == len(batches)
    for rows in found:
        batch = collate([([9] * source, [9] * target) for source, target in lengths[rows].tolist()])
        longest = max(batch.source.shape[1], batch.target.shape[1])
        assert len(batch) * longest <= max_cost or len(batch) == 1


def test_neighbours_have_like_lengths():
    batches = batches_of(lengths_of(5003), max_cost=499)
    used = padded = 0
    for rows in batches:
        source, target = (lengths_of(5003)[rows] + [1, 2]).T
        used += source.sum() + target.sum()
        padded += len(rows) * (source.max() + target.max())
    assert used / padded > 0.9


def test_seed_and_epoch_decide_the_order():
    lengths = lengths_of(307)
    orders = {}
    for seed, epoch in itertools.product((1, 2), (0, 1)):
        batches = batches_of(lengths, seed=seed)
        batches.set_epoch(epoch)
        orders[seed, epoch] = list(batches)
        assert list(batches) == orders[seed, epoch]
    assert len({str(order) for order in orders.values()}) == 4
    assert len({len(order) for order in orders.values()}) == 1


def test_examples_of_equal_lengths_are_mixed_between_batches():
    batches = batches_of(np.full((60, 2), 5), max_cost=70)
    contents = []
    for epoch in range(2):
        batches.set_epoch(epoch)
        contents.append({frozenset(rows) for rows in batches})
    assert contents[0] != contents[1]


def test_without_shuffling_the_order_is_that_of_the_lengths():
    lengths = np.array([[3, 3], [1, 1], [3, 3], [1, 2], [9, 9]])
    assert list(batches_of(lengths, shuffle=False, max_cost=10)) == [[1, 3], [0, 2], [4]]


@given(LENGTHS, st.data())
def test_an_epoch_resumes_at_its_batch(lengths, data):
    batches = batches_of(lengths)
    batches.set_epoch(3)
    whole = list(batches)
    k = data.draw(st.integers(0, len(whole)))
    running = iter(batches)
    for _ in range(k):
        next(running)
    resumed = batches_of(lengths)
    resumed.load_state_dict(batches.state_dict())
    resumed.set_epoch(3)
    assert list(resumed) == whole[k:]
    assert list(resumed) == whole
    resumed.load_state_dict(batches.state_dict(batches_done=min(1, len(whole))))
    assert list(resumed) == whole[1:]
    resumed.load_state_dict(batches.state_dict())
    resumed.set_epoch(4)
    assert len(list(resumed)) == len(whole)


def test_a_look_at_the_first_batch_costs_nothing():
    batches = batches_of(lengths_of(101))
    first = next(iter(batches))
    assert next(iter(batches)) == first
    assert len(list(batches)) == len(batches)


def test_a_state_of_other_batches_is_refused():
    state = batches_of(lengths_of(101)).state_dict()
    for other in (
        batches_of(lengths_of(103)),
        batches_of(lengths_of(101), max_cost=101),
        batches_of(lengths_of(101), shuffle=False),
        batches_of(lengths_of(101), seed=6),
    ):
        with pytest.raises(DataError, match=r"state belongs to other batches.*seed was 5 and is [56]"):
            other.load_state_dict(state)
    with pytest.raises(DataError, match="is at batch 9999"):
        batches_of(lengths_of(101)).load_state_dict(state | {"position": 9999})


def test_what_cannot_be_cut_into_batches_is_refused():
    with pytest.raises(OptionError, match="max_cost must be 1 or more; got 0"):
        batches_of(lengths_of(3), max_cost=0)
    with pytest.raises(DataError, match="no examples to make batches of"):
        batches_of(np.zeros((0, 2), dtype=np.int64))


@pytest.mark.usefixtures("as_a_user")
def test_sizes_without_a_second_axis_are_refused():
    with pytest.raises(ShapeError, match=r"sizes must be \(n, k\), with k sizes for each of n examples; got \(3,\)"):
        CostBatches([3, 4, 5], max_cost=9, shuffle=True, seed=0)


ORDERS = json.loads((Path(__file__).parent / "batch_orders.json").read_text(encoding="utf-8"))
"""Orders of batches recorded with version 0.1 of the samplers, for pairs, captions and images."""


def orders(batches, epochs) -> list[list[list[int]]]:
    found = []
    for epoch in epochs:
        batches.set_epoch(epoch)
        found.append(list(batches))
    return found


def digest(content) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


@pytest.mark.parametrize("case", ORDERS["pairs"] + ORDERS["pairs_digests"], ids=str)
def test_sentence_pairs_keep_their_recorded_order(case):
    sizes = padded_sizes(lengths_of(case["count"], seed=11))
    batches = CostBatches(sizes, max_cost=case["max_cost"], shuffle=case["shuffle"], seed=case["seed"])
    if "orders" in case:
        assert orders(batches, (0, 1, 5)) == case["orders"]
    else:
        assert digest(orders(batches, (0, 1, 2))) == case["sha256"]


@pytest.mark.parametrize("case", ORDERS["captions"], ids=str)
def test_captions_keep_their_recorded_order_with_and_without_buckets(case):
    count = case["count"]
    lengths = np.random.default_rng(3).integers(1, 15, count)
    examples = CaptionExamples(ImageTensors(torch.zeros(count, 1)), np.arange(count), [[5] * n for n in lengths])
    loader = examples.loader(max_tokens=case["max_cost"], shuffle=True, bucket=case["bucket"], seed=case["seed"])
    assert list(loader.batch_sampler)[:2] == case["first"]
    assert digest(orders(loader.batch_sampler, (0, 1, 2))) == case["sha256"]


@pytest.mark.parametrize("case", ORDERS["images"], ids=str)
def test_labelled_images_keep_their_recorded_order(case):
    count = case["count"]
    images = torch.zeros(count, 1, 1, 1, dtype=torch.uint8)
    labelled = LabelledImages(images, torch.zeros(count, dtype=torch.long), ("a",))
    loader = labelled.loader(batch_size=case["batch"], shuffle=case["shuffle"], seed=case["seed"])
    assert list(loader.batch_sampler)[:1] == case["first"]
    assert digest(orders(loader.batch_sampler, (0, 1, 2))) == case["sha256"]


def test_without_buckets_examples_of_all_sizes_are_mixed():
    lengths = lengths_of(997)
    spread = []
    for bucket in (True, False):
        found = list(batches_of(lengths, bucket=bucket, max_cost=400))
        assert sorted(itertools.chain(*found)) == list(range(997))
        spread.append(np.mean([np.ptp(lengths[rows, 1]) for rows in found]))
    assert spread[0] < 3 < 15 < spread[1]


@given(LENGTHS, st.integers(1, 120), st.integers(2, 5), st.booleans(), st.booleans())
def test_ranks_deal_an_epoch_without_repeating_or_dropping_an_example(lengths, max_cost, num_ranks, shuffle, bucket):
    ranks = [batches_of(lengths, max_cost=max_cost, shuffle=shuffle, bucket=bucket) for _ in range(num_ranks)]
    for rank, batches in enumerate(ranks):
        batches.deal(rank, num_ranks)
    for epoch in (0, 1):
        found = [orders(rank, [epoch])[0] for rank in ranks]
        if len(lengths) < num_ranks:
            assert all(sorted(itertools.chain(*each)) == list(range(len(lengths))) for each in found)
            continue
        assert len({len(batches) for batches in found}) == 1
        assert all(len(batches) == len(rank) for batches, rank in zip(found, ranks, strict=True))
        assert sorted(itertools.chain(*itertools.chain(*found))) == list(range(len(lengths)))
        assert all(itertools.chain(*found)), "no batch is empty"


@given(LENGTHS, st.integers(1, 120), st.integers(2, 5), st.booleans())
def test_ranks_divide_the_batches_of_one_process(lengths, max_cost, num_ranks, shuffle):
    whole = batches_of(lengths, max_cost=max_cost, shuffle=shuffle)
    ranks = [batches_of(lengths, max_cost=max_cost, shuffle=shuffle) for _ in range(num_ranks)]
    for rank, batches in enumerate(ranks):
        batches.divide(rank, num_ranks)
    for epoch in (0, 1):
        (expected,) = orders(whole, [epoch])
        found = [orders(rank, [epoch])[0] for rank in ranks]
        for number, batch in enumerate(expected):
            parts = [part[number] for rank, part in zip(ranks, found, strict=True) if not rank.is_filler(number)]
            assert sorted(itertools.chain(*parts)) == sorted(batch)
            assert len(parts) == min(num_ranks, len(batch))
            assert max(map(len, parts)) - min(map(len, parts)) <= 1
            assert all(len(part[number]) >= 1 for part in found)


def test_a_state_resumes_any_number_of_ranks():
    (whole,) = orders(batches_of(lengths_of(211)), [2])
    ranks = [batches_of(lengths_of(211)) for _ in range(3)]
    for rank, batches in enumerate(ranks):
        batches.divide(rank, 3)
        batches.set_epoch(2)
    state = [(list(itertools.islice(batches, 4)), batches.state_dict())[1] for batches in ranks]
    assert state[0] == state[1] == state[2]
    alone = batches_of(lengths_of(211))
    alone.load_state_dict(state[0])
    assert list(alone) == whole[4:]
    for rank in range(2):
        resumed = batches_of(lengths_of(211))
        resumed.divide(rank, 2)
        resumed.load_state_dict(state[0])
        assert list(resumed) == [batch[rank::2] or batch[:1] for batch in whole[4:]]


def test_one_example_batches_are_merged_where_there_are_too_few_to_split():
    ranks = [CostBatches(np.full((5, 1), 7), max_cost=7, shuffle=False, seed=0) for _ in range(2)]
    for rank, batches in enumerate(ranks):
        batches.deal(rank, 2)
    assert [list(rank) for rank in ranks] == [[[0, 1], [3]], [[2], [4]]]


@pytest.mark.parametrize("share", ["deal", "divide"])
def test_a_rank_outside_the_group_is_refused(share):
    with pytest.raises(OptionError, match=r"rank must be from 0 to num_ranks - 1; got rank=2, num_ranks=2"):
        getattr(batches_of(lengths_of(5)), share)(2, 2)


def test_a_loader_resumes_after_the_batches_it_handed_out():
    def loader():
        return BatchLoader(range(101), batches_of(lengths_of(101)), collate_fn=list)

    whole = list(loader())
    first = loader()
    running = iter(first)
    assert [next(running) for _ in range(3)] == whole[:3]
    second = loader()
    second.load_state_dict(first.state_dict())
    assert list(second) == whole[3:]


def test_rows_are_padded_on_the_right_between_what_frames_them():
    padded, lengths = pad([[5, 6, 7], np.array([8], np.uint16), torch.tensor([9, 10])], before=(1,), after=(2, 3))
    assert padded.tolist() == [[1, 5, 6, 7, 2, 3], [1, 8, 2, 3, 0, 0], [1, 9, 10, 2, 3, 0]]
    assert lengths.tolist() == [6, 4, 5]
    assert padded.dtype == lengths.dtype == torch.int64


def test_the_padding_value_can_be_chosen_and_rows_may_be_empty():
    padded, lengths = pad([[], [4]], value=-1)
    assert padded.tolist() == [[-1], [4]]
    assert lengths.tolist() == [0, 1]


def test_no_rows_are_refused():
    with pytest.raises(DataError, match="no rows to pad"):
        pad([])


@dataclass(frozen=True, eq=False)
class Part(Movable):
    rows: torch.Tensor
    count: torch.Tensor = field(metadata=ON_CPU)


@dataclass(frozen=True, eq=False)
class Whole(Movable):
    part: Part
    sides: tuple[torch.Tensor, ...]
    names: tuple[str, ...]
    right: torch.Tensor | None = None


def test_all_tensors_of_a_movable_move_except_those_that_stay_on_the_cpu():
    one = torch.ones(1)
    moved = Whole(Part(one, one), (one, one), ("a", "b")).to("meta")
    assert isinstance(moved, Whole)
    assert {tensor.device.type for tensor in (moved.part.rows, *moved.sides)} == {"meta"}
    assert moved.part.count is one
    assert (moved.names, moved.right) == (("a", "b"), None)
