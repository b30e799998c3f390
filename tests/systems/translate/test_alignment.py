"""Words linked by attention: maps from word to word, one direction and both."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from helpers.models import TRANSFORMER, small_translator

from regard.data.tokenizer import Tokenizer
from regard.errors import OptionError
from regard.metrics.alignment import GoldAlignment, links_from_weights, merge_subwords, symmetrize
from regard.systems.translate import alignment
from regard.systems.translate.alignment import (
    align_pairs,
    align_words,
    alignment_error,
    link_words,
    merge_by_word,
)

TEXTS = ["a dog is running .", "two dogs run", "the small house is red and the sky is blue ."]
PAIRS = [(text.split(), other.split()) for text, other in zip(TEXTS, TEXTS[::-1], strict=True)]
TURNED = [(target, source) for source, target in PAIRS]


@pytest.fixture(scope="module")
def model():
    return small_translator(Tokenizer.train(TEXTS * 3, size=45))


@pytest.fixture(scope="module")
def transformer():
    return small_translator(Tokenizer.train(TEXTS * 3, size=45), **TRANSFORMER, alignment_step="input")


def test_words_are_aligned_by_the_attention_of_their_pieces(model):
    pairs = [(text.split(), other.split()) for text, other in zip(TEXTS, TEXTS[::-1], strict=True)]
    for (source, target), weights in zip(pairs, align_words(model, pairs), strict=True):
        assert weights.shape == (len(target), len(source))
        assert (weights.sum(1) <= 1 + 1e-5).all(), "some of the attention may be on the end"
        assert np.isfinite(weights).all()


def test_alignment_error_is_zero_for_the_links_of_the_model_itself(model):
    words = [(text.split(), text.split()) for text in TEXTS]
    links = [frozenset((int(row.argmax()), t) for t, row in enumerate(w)) for w in align_words(model, words)]
    gold = [GoldAlignment(tuple(s), tuple(t), link, link) for (s, t), link in zip(words, links, strict=True)]
    assert alignment_error(model, gold).error_rate == 0


def test_links_of_both_directions_are_those_that_choose_each_other(model):
    pairs = [(text.split(), other.split()) for text, other in zip(TEXTS, TEXTS[::-1], strict=True)]
    turned = [(target, source) for source, target in pairs]
    found = link_words(model, pairs, model)
    maps = zip(align_words(model, pairs), align_words(model, turned), strict=True)
    for links, (forward, backward) in zip(found, maps, strict=True):
        agreed = forward * backward.T
        for t, row in enumerate(agreed):
            for s, weight in enumerate(row):
                assert ((s, t) in links) == (weight == row.max() == agreed[:, s].max())
    assert [{(s, t) for t, s in links} for links in link_words(model, turned, model)] == found
    assert link_words(model, [([], []), ([], ["a"])], model) == [set(), set()]


def test_merging_a_batch_is_merging_each_pair():
    weights = torch.rand(2, 5, 7)
    source_words = [[0, 0, 1, 2, 2, 2, -1], [0, 1, 1, -1, -1, -1, -1]]
    target_words = [[0, 1, 1, 2, -1], [0, 0, 0, -1, -1]]
    merged = merge_by_word(weights, torch.tensor(source_words), torch.tensor(target_words))
    assert merged.shape == (2, 3, 3)
    for table, own, source, target in zip(merged, weights, source_words, target_words, strict=True):
        expected = merge_subwords(own.numpy(), source, target)
        np.testing.assert_allclose(table[: expected.shape[0], : expected.shape[1]], expected, rtol=1e-5)


@pytest.mark.parametrize("how", ["intersection", "union", "grow-diag", "grow-diag-final-and"])
def test_the_links_of_two_directions_are_combined(model, how):
    maps = zip(align_words(model, PAIRS), align_words(model, TURNED), strict=True)
    expected = [
        symmetrize(links_from_weights(one), {(i, j) for j, i in links_from_weights(other)}, how) for one, other in maps
    ]
    assert link_words(model, PAIRS, model, symmetrize=how) == expected


def test_eight_threads_align_as_one_does(model):
    jobs = [PAIRS, TURNED, *([pair] for pair in PAIRS)] * 2
    expected = [align_pairs(model, pairs, model) for pairs in jobs]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda pairs: align_pairs(model, pairs, model), jobs))
    for one, other in zip(found, expected, strict=True):
        assert [pair.to_json() for pair in one] == [pair.to_json() for pair in other]
        assert all(np.array_equal(first.weights, second.weights) for first, second in zip(one, other, strict=True))


def test_weak_links_are_left_out(model):
    weak, strong = (align_pairs(model, PAIRS, threshold=threshold) for threshold in (0.0, 0.2))
    for all_links, kept in zip(weak, strong, strict=True):
        assert kept.links == {(i, j) for i, j in all_links.links if all_links.weights[j, i] >= 0.2}


def test_a_pair_is_written_as_text_and_as_json(model):
    (pair,) = align_pairs(model, PAIRS[1:2])
    fields = json.loads(pair.to_json())
    assert fields["source"] == ["two", "dogs", "run"]
    assert [f"{i}-{j}" for i, j in fields["links"]] == pair.to_text().split()
    assert fields["weights"] == [pytest.approx(pair.weights[j, i], abs=1e-4) for i, j in fields["links"]]


def test_too_long_and_empty_sentences_have_no_links(model, monkeypatch):
    monkeypatch.setattr(alignment, "MAX_ALIGNED_TOKENS", 20)
    pairs = [*PAIRS[1:2], (["dog"] * 50, ["dog"]), ([], ["a"]), (["a"], [])]
    found = align_pairs(model, pairs)
    assert [bool(pair.links) for pair in found] == [True, False, False, False]
    assert [pair.is_too_long for pair in found] == [False, True, False, False]
    assert found[1].weights.shape == (1, 50)


def test_pairs_without_attention_in_both_directions_are_not_too_long(model, monkeypatch):
    def apart(model, source, target):
        # Attention to the first word in one direction, and to the second in the other.
        found = np.zeros((len(source), 3, 3), np.float32)
        found[:, :, int(model is model_back)] = np.eye(3)[int(model is model_back)]
        return found

    model_back = small_translator(model.source_tokenizer, hidden=12)
    monkeypatch.setattr(alignment, "_word_maps", apart)
    (pair,) = align_pairs(model, PAIRS[1:2], model_back)
    assert not pair.weights.any()
    assert not pair.is_too_long


def read(transformer, step, layer=1):
    """A translator with the same parameters, whose alignment is read in another way."""
    config = {**TRANSFORMER, "alignment_layer": layer, "alignment_step": step}
    return small_translator(transformer.source_tokenizer, **config)


@pytest.mark.parametrize("word", ["", " ", "two dogs", "a\u00a0dog", "\u3000"])
def test_what_is_not_one_word_is_refused(model, word):
    for pair in ((["a", word], ["a", "dog"]), (["a", "dog"], ["a", word])):
        with pytest.raises(OptionError, match="Words to align have no spaces, and are not empty"):
            align_words(model, [pair])


def test_a_word_is_read_in_the_step_after_the_one_that_predicts_it(transformer):
    words = [(["two", "dogs", "run"], ["a", "dog", "is"])]
    layers = [read(transformer, step) for step in ("output", "input")]
    steps = torch.rand(1, 4, 5)
    assert layers[0].by_word(steps) is steps
    assert layers[1].by_word(steps).equal(steps[:, [1, 2, 3, 3]])
    predicted, known = (align_words(model, words)[0] for model in layers)
    assert not np.allclose(predicted, known)


def test_the_attention_of_a_translation_is_read_in_the_same_step(transformer):
    results = [read(transformer, step, 2).translate("two dogs run", max_length=5) for step in ("output", "input")]
    predicted, known = (result.trace.weights for result in results)
    assert results[0].text == results[1].text
    np.testing.assert_allclose(known[:-1], predicted[1:], rtol=1e-5)


def test_one_head_of_a_layer_can_be_reported(transformer):
    words = [(["two", "dogs", "run"], ["a", "dog", "is"])]
    one = small_translator(transformer.source_tokenizer, **TRANSFORMER, alignment_layer=1, alignment_head=2)
    mean = small_translator(transformer.source_tokenizer, **TRANSFORMER, alignment_layer=1)
    other = small_translator(transformer.source_tokenizer, **TRANSFORMER, alignment_layer=1, alignment_head=1)
    one, mean, other = (align_words(each, words)[0] for each in (one, mean, other))
    np.testing.assert_allclose(mean, (one + other) / 2, rtol=1e-4)
