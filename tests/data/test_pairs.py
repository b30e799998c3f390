"""Sentence pairs: encoded on access, padded to batches, with and without BPE dropout."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from regard.data.batches import BatchLoader, CostBatches
from regard.data.corpus import Corpus
from regard.data.pairs import Batch, CorpusPairs, TextPairs, collate, padded_sizes
from regard.data.tokenizer import END, PAD, START, Tokenizer
from regard.errors import DataError, OptionError


def batches_of(lengths, shuffle: bool = True) -> CostBatches:
    return CostBatches(padded_sizes(lengths), max_cost=97, shuffle=shuffle, seed=5)


def test_a_batch_is_padded_and_has_start_and_end():
    batch = collate([([11, 12, 13], [21]), (np.array([14], np.uint16), [22, 23])])
    assert batch.source.tolist() == [[11, 12, 13, END], [14, END, PAD, PAD]]
    assert batch.source_lengths.tolist() == [4, 2]
    assert batch.target.tolist() == [[START, 21, END, PAD], [START, 22, 23, END]]
    assert batch.target_lengths.tolist() == [3, 4]
    assert {tensor.dtype for tensor in vars(batch).values() if tensor is not None} == {torch.int64}
    assert batch.right is None
    assert len(batch) == 2


def test_a_batch_pads_what_its_tokens_should_attend_to():
    right = [np.array([[True, False]]), np.array([[False], [True]])]
    batch = collate([([11, 12], [21], right[0]), ([13], [22, 23], right[1])])
    assert batch.right.tolist() == [
        [[True, False, False], [False, False, False], [False, False, False]],
        [[False, False, False], [True, False, False], [False, False, False]],
    ]
    assert batch.right.shape == (2, batch.target.shape[1] - 1, batch.source.shape[1])
    assert batch.to("cpu").right.equal(batch.right)


@pytest.mark.parametrize("dropout", [0.0, 1.0])
@pytest.mark.parametrize("split", [False, True])
def test_links_between_words_guide_all_their_pieces(tmp_path, dropout, split):
    source, target = "the dog's house .", "la maison l'homme ."
    tokenizer = Tokenizer.train([source, target] * 3, size=60)
    links = np.array([[1, 3], [2, 1]]) if split else np.array([[1, 2], [2, 1]])
    corpus = Corpus.build(
        [(source, target, links)], tokenizer, tokenizer, tmp_path, linked=True, split=split, progress=False
    )
    index = (3, 0) if dropout else 0
    examples = CorpusPairs(corpus, tokenizer, tokenizer, dropout=dropout, linked=True, split=split)
    sources, targets, right = examples[index]
    pieces = [tokenizer.word_index(side, split=split) for side in (sources, targets)]
    linked = {(pieces[0][j], pieces[1][i]) for i, j in np.argwhere(right)}
    assert linked == {tuple(link) for link in links.tolist()}
    for i, word in enumerate(pieces[1]):
        allowed = {link[0] for link in links.tolist() if link[1] == word}
        assert [bool(right[i, j]) for j in range(len(sources))] == [other in allowed for other in pieces[0]]


def test_links_outside_of_the_words_are_refused(tmp_path):
    tokenizer = Tokenizer.train(["a b c"] * 3, size=20)
    with pytest.raises(DataError, match=r"link 3-0 is outside the 3 x 2 words of the pair 'a b c', 'a b'"):
        Corpus.build(
            [("a b c", "a b", np.array([[3, 0]]))], tokenizer, tokenizer, tmp_path, linked=True, progress=False
        )


@given(st.lists(st.tuples(*[st.lists(st.integers(4, 99), max_size=7)] * 2), min_size=1, max_size=7))
def test_padding_keeps_every_id(pairs):
    batch = collate(pairs)
    for row, (source, target) in enumerate(pairs):
        n, m = int(batch.source_lengths[row]), int(batch.target_lengths[row])
        assert batch.source[row, :n].tolist() == [*source, END]
        assert batch.target[row, :m].tolist() == [START, *target, END]
        assert (batch.source[row, n:] == PAD).all()
        assert (batch.target[row, m:] == PAD).all()
    assert batch.source.shape[1] == batch.source_lengths.max()
    assert batch.target.shape[1] == batch.target_lengths.max()


def test_a_batch_moves_to_a_device_without_its_lengths(device):
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
    with pytest.raises(DataError, match="at least one pair; got none"):
        collate([])


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


def test_text_pairs_are_encoded_on_access(tokenizer):
    plain = TextPairs(TEXTS, tokenizer, tokenizer)
    assert len(plain) == 8
    assert plain[2] == plain[-6] == (tokenizer.encode(TEXTS[2][0]), tokenizer.encode(TEXTS[2][1]))
    assert plain.lengths.tolist() == [[n, 9 - n] for n in range(1, 9)]
    loader = DataLoader(plain, batch_sampler=batches_of(plain.lengths), collate_fn=collate)
    texts = [tokenizer.decode(row) for batch in loader for row in batch.source.tolist()]
    assert sorted(texts) == sorted(source for source, _ in TEXTS)
    assert len(TextPairs([], tokenizer, tokenizer).lengths) == 0


def test_an_empty_side_is_refused(tokenizer):
    with pytest.raises(DataError, match=r"Pair 1 has an empty side: \('a', ' '\)"):
        TextPairs([("a", "b"), ("a", " ")], tokenizer, tokenizer)


def as_lists(pair):
    return tuple(side.tolist() for side in pair)


def test_a_corpus_with_dropout_is_tokenized_again_in_each_epoch_and_keeps_its_text(tokenizer, tmp_path):
    pairs = [("animal street animal", "street street")] * 5
    corpus = Corpus.build(pairs, tokenizer, tokenizer, tmp_path, progress=False)
    dropping, other = (CorpusPairs(corpus, tokenizer, tokenizer, dropout=0.5, seed=seed) for seed in (1, 2))
    assert len(dropping) == 5
    assert dropping.lengths.tolist() == corpus.lengths.tolist()
    drawn = [as_lists(dropping[epoch, 0]) for epoch in range(20)]
    assert drawn == [as_lists(dropping[epoch, 0]) for epoch in range(20)], "the epoch and the index decide"
    assert drawn != [as_lists(other[epoch, 0]) for epoch in range(20)], "and the seed"
    assert drawn != [as_lists(dropping[epoch, 1]) for epoch in range(20)]
    assert len({tuple(source) for source, _ in drawn}) > 1
    assert {(tokenizer.decode(source), tokenizer.decode(target)) for source, target in drawn} == {pairs[0]}


def test_neither_the_batch_nor_what_was_remembered_changes_what_is_dropped(tokenizer, tmp_path, monkeypatch):
    texts = ["animal street animal", "the street, the animal's", "street", "animal animal animal animal"]
    corpus = Corpus.build([(text, text) for text in texts], tokenizer, tokenizer, tmp_path, progress=False)
    keys = [(epoch, index) for epoch in range(3) for index in range(4)]

    def drawn(groups):
        examples = CorpusPairs(corpus, tokenizer, tokenizer, dropout=0.3, seed=1)
        found = {}
        for group in groups:
            found |= zip(group, map(as_lists, examples.__getitems__(group)), strict=True)
        return [found[key] for key in keys]

    alone = drawn([[key] for key in keys])
    assert drawn([keys]) == drawn([keys[7:], keys[:7]]) == alone
    for limit in ("MAX_STATES", "MAX_WORDS"):
        monkeypatch.setattr(f"regard.data.pairs.{limit}", 1)
        assert drawn([keys[::2], keys[1::2]]) == alone


@pytest.mark.parametrize("dropout", [0.1, 0.5])
def test_words_are_divided_as_often_in_each_way_as_by_the_plain_definition(tmp_path, dropout):
    words = ["unlikely", "likely", "likelihood", "like", "kelly", "like"]
    tokenizer = Tokenizer.train([" ".join(words)] * 3, size=60, minimum_count=1)
    count, draws = 4000, 4
    corpus = Corpus.build([(" ".join(words), "like")] * count, tokenizer, tokenizer, tmp_path, progress=False)
    examples = CorpusPairs(corpus, tokenizer, tokenizer, dropout=dropout, seed=3)
    found = [Counter() for _ in words]
    for epoch in range(draws):
        for source, _ in examples.__getitems__([(epoch, index) for index in range(count)]):
            owners = np.array(tokenizer.word_index(source))
            for number in range(len(words)):
                found[number][tuple(source[owners == number].tolist())] += 1
    for word, counts in zip(words, found, strict=True):
        for pieces, chance in distribution(tokenizer, word, dropout).items():
            deviation = np.sqrt(chance * (1 - chance) / (draws * count))
            assert counts[pieces] / (draws * count) == pytest.approx(chance, abs=5 * deviation + 1e-4)


def distribution(tokenizer, word, dropout):
    """How likely each way to divide a word is, by following the definition through every merge that may be left out."""
    merges, chances, done = tokenizer.merge_dropout(), {}, Counter()
    chances[merges.spelled(f" {word}")] = 1.0
    while chances:
        ids, chance = chances.popitem()
        for after in merges.following(ids):
            chances[after] = chances.get(after, 0.0) + chance * (1 - dropout)
            chance *= dropout
        done[ids] += chance
    assert sum(done.values()) == pytest.approx(1)
    return done


def test_the_number_of_workers_does_not_change_what_is_dropped(tokenizer, tmp_path):
    corpus = Corpus.build([("animal street animal", "street street")] * 5, tokenizer, tokenizer, tmp_path)
    dropping = CorpusPairs(corpus, tokenizer, tokenizer, dropout=0.5, seed=1)
    found = []
    for workers in (0, 1, 2):
        batches = CostBatches(padded_sizes(corpus.lengths), max_cost=16, shuffle=True, seed=1, with_epoch=True)
        options = {"num_workers": workers, "persistent_workers": True} if workers else {}
        loader = BatchLoader(dropping, batches, collate_fn=collate, **options)
        found.append([])
        for epoch in range(2):
            batches.set_epoch(epoch)
            found[-1].append([batch.source.tolist() for batch in loader])
    assert found[0] == found[1] == found[2]
    assert found[0][0] != found[0][1]


def test_words_with_unknown_pieces_are_kept_as_stored_under_dropout(tokenizer, tmp_path):
    pairs = [("animal \u4e16\u754c street", "animal"), ("street", "\u4e16animal")]
    corpus = Corpus.build(pairs, tokenizer, tokenizer, tmp_path, progress=False)
    dropping = CorpusPairs(corpus, tokenizer, tokenizer, dropout=0.9, seed=1)
    for epoch in range(10):
        (source, animal), (street, target) = as_lists(dropping[epoch, 0]), as_lists(dropping[epoch, 1])
        assert tokenizer.decode(source) == tokenizer.decode(corpus[0][0])
        assert target == corpus[1][1].tolist()
        assert (tokenizer.decode(animal), tokenizer.decode(street)) == ("animal", "street")
    with pytest.raises(OptionError, match="between 0 and 1; got 2"):
        CorpusPairs(corpus, tokenizer, tokenizer, dropout=2.0, seed=1)
