"""Batches: every example once, no more tokens than allowed, an order that can be repeated and resumed."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from regard.data.batches import Batch, DroppingCorpus, TextPairs, TokenBatches, collate
from regard.data.corpus import Corpus
from regard.data.tokenizer import END, PAD, START, Tokenizer
from regard.errors import DataError, OptionError, ShapeError

LENGTHS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=200).map(np.array)


def lengths_of(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 30, (count, 2))


def batches_of(lengths, **options) -> TokenBatches:
    return TokenBatches(lengths, **{"max_tokens": 97, "shuffle": True, "seed": 5} | options)


def test_a_batch_is_padded_and_framed():
    batch = collate([([11, 12, 13], [21]), (np.array([14], np.uint16), [22, 23])])
    assert batch.source.tolist() == [[11, 12, 13, END], [14, END, PAD, PAD]]
    assert batch.source_lengths.tolist() == [4, 2]
    assert batch.target.tolist() == [[START, 21, END, PAD], [START, 22, 23, END]]
    assert batch.target_lengths.tolist() == [3, 4]
    assert {tensor.dtype for tensor in vars(batch).values()} == {torch.int64}
    assert len(batch) == 2


@given(st.lists(st.tuples(*[st.lists(st.integers(4, 99), max_size=7)] * 2), min_size=1, max_size=7))
def test_padding_hides_nothing(pairs):
    batch = collate(pairs)
    for row, (source, target) in enumerate(pairs):
        n, m = int(batch.source_lengths[row]), int(batch.target_lengths[row])
        assert batch.source[row, :n].tolist() == [*source, END]
        assert batch.target[row, :m].tolist() == [START, *target, END]
        assert (batch.source[row, n:] == PAD).all()
        assert (batch.target[row, m:] == PAD).all()
    assert batch.source.shape[1] == batch.source_lengths.max()
    assert batch.target.shape[1] == batch.target_lengths.max()


def test_a_batch_moves_but_for_its_lengths(device):
    batch = collate([([5], [6])]).to(device)
    assert batch.source.device.type == batch.target.device.type == device
    assert batch.source_lengths.device.type == batch.target_lengths.device.type == "cpu"
    assert isinstance(batch.to("cpu"), Batch)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="pinning needs a GPU")
def test_a_batch_can_be_pinned():
    batch = collate([([5], [6])]).pin_memory()
    assert batch.source.is_pinned()
    assert batch.target.is_pinned()


def test_an_empty_batch_is_refused():
    with pytest.raises(DataError, match="one or more pairs; got none"):
        collate([])


@given(LENGTHS, st.integers(1, 120), st.booleans(), st.integers(0, 3))
def test_every_example_comes_once_and_no_batch_is_too_large(lengths, max_tokens, shuffle, epoch):
    batches = TokenBatches(lengths, max_tokens=max_tokens, shuffle=shuffle, seed=7)
    batches.set_epoch(epoch)
    found = list(batches)
    assert sorted(itertools.chain(*found)) == list(range(len(lengths)))
    assert len(found) == len(batches)
    for rows in found:
        batch = collate([([9] * source, [9] * target) for source, target in lengths[rows].tolist()])
        longest = max(batch.source.shape[1], batch.target.shape[1])
        assert len(batch) * longest <= max_tokens or len(batch) == 1


def test_neighbours_have_like_lengths():
    batches = batches_of(lengths_of(5003), max_tokens=499)
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
    batches = batches_of(np.full((60, 2), 5), max_tokens=70)
    contents = []
    for epoch in range(2):
        batches.set_epoch(epoch)
        contents.append({frozenset(rows) for rows in batches})
    assert contents[0] != contents[1]


def test_without_shuffling_the_order_is_that_of_the_lengths():
    lengths = np.array([[3, 3], [1, 1], [3, 3], [1, 2], [9, 9]])
    assert list(batches_of(lengths, shuffle=False, max_tokens=10)) == [[1, 3], [0, 2], [4]]


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
        batches_of(lengths_of(101), max_tokens=101),
        batches_of(lengths_of(101), shuffle=False),
        batches_of(lengths_of(101), seed=6),
    ):
        with pytest.raises(DataError, match=r"state belongs to other batches.*seed was 5 and is [56]"):
            other.load_state_dict(state)
    with pytest.raises(DataError, match="stands at batch 9999"):
        batches_of(lengths_of(101)).load_state_dict(state | {"position": 9999})


def test_what_cannot_be_cut_into_batches_is_refused():
    with pytest.raises(OptionError, match="max_tokens is 1 or more; got 0"):
        batches_of(lengths_of(3), max_tokens=0)
    with pytest.raises(DataError, match="no examples"):
        batches_of(np.zeros((0, 2), dtype=np.int64))


@pytest.mark.usefixtures("as_a_user")
def test_lengths_of_one_side_are_refused():
    with pytest.raises(ShapeError, match=r"lengths is \(n, 2\), source and target of each example; got \(3,\)"):
        batches_of([3, 4, 5])


def test_an_epoch_can_be_set_where_lightning_looks_for_it():
    batches = batches_of(lengths_of(101))
    first = list(batches)
    DataLoader(range(101), batch_sampler=batches).batch_sampler.sampler.set_epoch(1)
    assert list(batches) != first


TEXTS = [(" ".join(["animal"] * n), " ".join(["street"] * (9 - n))) for n in range(1, 9)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(["animal street"] * 3, size=200)


def test_a_corpus_goes_through_a_loader_with_workers(tokenizer, tmp_path):
    corpus = Corpus.build(TEXTS * 5, tokenizer, tokenizer, tmp_path, progress=False)
    batches = batches_of(corpus.lengths)
    loader = DataLoader(corpus, batch_sampler=batches, collate_fn=collate, num_workers=2)
    found = [row for batch in loader for row in zip(batch.source.tolist(), batch.target.tolist(), strict=True)]
    texts = sorted((tokenizer.decode(source), tokenizer.decode(target)) for source, target in found)
    assert texts == sorted(TEXTS * 5)


def test_text_pairs_are_encoded_when_asked_for(tokenizer):
    plain = TextPairs(TEXTS, tokenizer, tokenizer)
    assert len(plain) == 8
    assert plain[2] == plain[-6] == (tokenizer.encode(TEXTS[2][0]), tokenizer.encode(TEXTS[2][1]))
    assert plain.lengths.tolist() == [[n, 9 - n] for n in range(1, 9)]
    dropping = TextPairs(TEXTS, tokenizer, tokenizer, dropout=0.5)
    assert dropping.lengths.tolist() == plain.lengths.tolist()
    assert len({str(dropping[7]) for _ in range(9)}) > 1
    loader = DataLoader(dropping, batch_sampler=batches_of(dropping.lengths), collate_fn=collate)
    texts = [tokenizer.decode(row) for batch in loader for row in batch.source.tolist()]
    assert sorted(texts) == sorted(source for source, _ in TEXTS)
    assert len(TextPairs([], tokenizer, tokenizer).lengths) == 0


def test_workers_encode_text_pairs_with_dropout(tokenizer):
    pairs = TextPairs(TEXTS * 3, tokenizer, tokenizer, dropout=0.5)
    loader = DataLoader(pairs, batch_size=4, collate_fn=collate, num_workers=2)
    epochs = [[row for batch in loader for row in batch.source.tolist()] for _ in range(2)]
    assert epochs[0] != epochs[1]
    for rows in epochs:
        assert [tokenizer.decode(row) for row in rows] == [source for source, _ in TEXTS * 3]


def test_a_wrong_dropout_is_told_before_any_worker_starts(tokenizer):
    with pytest.raises(OptionError, match=r"between 0 and 1; got 2.0"):
        TextPairs(TEXTS, tokenizer, tokenizer, dropout=2.0)


def test_an_empty_side_is_refused(tokenizer):
    with pytest.raises(DataError, match=r"Pair 1 has an empty side: \('a', ' '\)"):
        TextPairs([("a", "b"), ("a", " ")], tokenizer, tokenizer)


def test_a_corpus_with_dropout_is_cut_anew_each_time_and_says_the_same(tokenizer, tmp_path):
    pairs = [("animal street animal", "street street")] * 5
    corpus = Corpus.build(pairs, tokenizer, tokenizer, tmp_path, progress=False)
    dropping = DroppingCorpus(corpus, tokenizer, tokenizer, dropout=0.5)
    assert len(dropping) == 5
    assert dropping.lengths.tolist() == corpus.lengths.tolist()
    drawn = [dropping[0] for _ in range(20)]
    assert len({tuple(source) for source, _ in drawn}) > 1
    assert {(tokenizer.decode(source), tokenizer.decode(target)) for source, target in drawn} == {pairs[0]}
    loader = DataLoader(
        dropping, batch_sampler=batches_of(dropping.lengths, shuffle=False), collate_fn=collate, num_workers=1
    )
    assert sum(len(batch) for batch in loader) == 5


def test_what_is_unknown_is_not_lost_under_dropout(tokenizer, tmp_path):
    pairs = [("animal \u4e16\u754c street", "animal"), ("street", "\u4e16animal")]
    corpus = Corpus.build(pairs, tokenizer, tokenizer, tmp_path, progress=False)
    dropping = DroppingCorpus(corpus, tokenizer, tokenizer, dropout=0.9)
    for _ in range(10):
        (source, animal), (street, target) = dropping.__getitems__([0, 1])
        assert source == corpus[0][0].tolist()
        assert target == corpus[1][1].tolist()
        assert (tokenizer.decode(animal), tokenizer.decode(street)) == ("animal", "street")
    with pytest.raises(OptionError, match="between 0 and 1; got 2"):
        DroppingCorpus(corpus, tokenizer, tokenizer, dropout=2.0)
