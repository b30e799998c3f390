"""Document classifiers: closed forms, no influence of padding, any length, saving and loading."""

import json

import numpy as np
import pytest
import torch
from helpers.models import small_document_classifier
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.attention import mask
from regard.attention.attend import attend
from regard.data.documents import Document
from regard.data.text import split_sentences
from regard.errors import DataError, OptionError
from regard.systems.classify.data import DocumentBatch, Packing, cut_points
from regard.systems.classify.networks import Pooling

POOLS = ["attention", "average", "max"]
CLASSIFIERS = {tokens: small_document_classifier(tokens=tokens) for tokens in ("word", "bpe")}


@given(st.lists(st.integers(1, 7), min_size=1, max_size=11))
@settings(deadline=None, max_examples=30)
def test_the_packing_is_that_of_torch(lengths):
    starts = np.cumsum([0, *lengths])
    sequences = [torch.arange(starts[i], starts[i + 1]) for i in range(len(lengths))]
    expected = torch.nn.utils.rnn.pack_sequence(sequences, enforce_sorted=False)
    packing = Packing.from_lengths(np.array(lengths))
    assert packing.indices.equal(expected.data)
    assert packing.rows.equal(expected.batch_sizes)
    assert packing.restored(expected.data).equal(torch.arange(sum(lengths)))
    assert packing.restored(packing.owners).equal(torch.repeat_interleave(torch.tensor(lengths)))


def test_attention_over_packed_states_is_attend_over_padded_ones():
    pooling = Pooling("attention", 5, 3).double()
    lengths = [4, 1, 7]
    padded = torch.randn(3, 7, 5, dtype=torch.float64)
    exists = mask.padding(torch.tensor(lengths), 7)
    context, weights = attend(None, padded, score=pooling.score, mask=exists, weights=True)
    real = exists.squeeze(1)
    packing = Packing.from_lengths(np.array(lengths))
    pooled, shares = pooling(padded[real][packing.indices], packing)
    torch.testing.assert_close(pooled, context.squeeze(1))
    torch.testing.assert_close(packing.restored(shares), weights.squeeze(1)[real])


def test_average_and_maximum_by_hand():
    packing = Packing.from_lengths(np.array([1, 2]))
    states = torch.tensor([[5.0, 5.0], [1.0, 8.0], [3.0, 2.0]])[packing.indices]
    mean, shares = Pooling("average", 2, 2)(states, packing)
    assert mean.tolist() == [[5, 5], [2, 5]]
    assert packing.restored(shares).tolist() == [1.0, 0.5, 0.5]
    largest, shares = Pooling("max", 2, 2)(states, packing)
    assert largest.tolist() == [[5, 5], [3, 8]]
    assert packing.restored(shares).tolist() == [1.0, 0.5, 0.5]  # each of the last two gives one of two features


@pytest.mark.parametrize("pool", POOLS)
def test_gradients_of_pooling(pool):
    pooling = Pooling(pool, 3, 2).double()
    states = torch.randn(7, 3, dtype=torch.float64, requires_grad=True)
    packing = Packing.from_lengths(np.array([2, 2, 3]))
    assert pooling(states, packing)[1].dtype == torch.float64
    assert torch.autograd.gradcheck(lambda x: pooling(x, packing)[0], states)


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("tokens", ["word", "bpe"])
def test_weights_sum_to_one_on_both_levels(pool, tokens):
    result = small_document_classifier(pool=pool, tokens=tokens).classify("The film was fine. I loved unheard music!")
    assert sum(sentence.weight for sentence in result.sentences) == pytest.approx(1, abs=1e-5)
    for sentence in result.sentences:
        assert sum(word.weight for word in sentence.words) == pytest.approx(1, abs=1e-5)
        assert " ".join(word.word for word in sentence.words) == sentence.text
    assert sum(result.probabilities.values()) == pytest.approx(1, abs=1e-5)
    assert result.label == next(iter(result.probabilities))


def test_the_trace_has_both_levels_and_survives_json():
    result = small_document_classifier().classify("The film was fine. I loved it!")
    trace = result.trace
    assert trace.kind == "document"
    assert trace.axis("sentences").labels == ("The film was fine.", "I loved it!")
    assert trace.axis("words").labels == ("The", "film", "was", "fine.", "I", "loved", "it!")
    assert trace.values("sentence") == (0, 0, 0, 0, 1, 1, 1)
    assert trace.map("sentences").weights[0] == pytest.approx([each.weight for each in result.sentences])
    assert regard.Trace.from_json(json.dumps(result.to_dict())) == trace


def test_long_sentences_go_on_in_the_next_and_nothing_is_lost():
    model = small_document_classifier(max_sentence_words=4)
    words = [f"w{number}" for number in range(10)]
    result = model.classify(" ".join(words))
    assert [len(sentence.words) for sentence in result.sentences] == [4, 4, 2]
    assert [word.word for sentence in result.sentences for word in sentence.words] == words


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.integers(1, 6))
@settings(deadline=None, max_examples=50)
def test_cuts_are_between_words(sizes, limit):
    owners = [number for number, size in enumerate(sizes) for _ in range(size)]
    cuts = cut_points(owners, limit)
    assert [index for first, last in cuts for index in range(first, last)] == list(range(len(owners)))
    assert all(0 < last - first <= limit for first, last in cuts)
    for _, last in cuts[:-1]:
        assert owners[last] != owners[last - 1] or sizes[owners[last]] > limit


def test_sentences_beyond_the_limit_are_counted():
    model = small_document_classifier(max_sentences=2)
    result = model.classify("One here. Two here. Three here. Four here.")
    assert len(result.sentences) == 2
    assert result.sentences_left_out == 2
    assert result.probability == pytest.approx(model.classify("One here. Two here.").probability, abs=1e-6)


def test_a_document_of_ten_thousand_sentences():
    result = small_document_classifier().classify("i loved the film . " * 10_000)
    assert len(result.sentences) == 10_000
    assert sum(sentence.weight for sentence in result.sentences) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    "text", ["x", "😀", "你好。我很好\uff01", "سلام. خوبی؟", "a\u200db e\u0301 \x07", "…", "<br /><br />Hi"]
)
def test_any_script_and_one_word_documents(text):
    result = small_document_classifier().classify(text)
    assert 0.5 <= result.probability <= 1
    assert result.sentences


@given(st.lists(st.text(max_size=6), min_size=1, max_size=4), st.sampled_from(["word", "bpe"]))
@settings(deadline=None, max_examples=60)
def test_the_words_of_a_text_are_kept_whatever_they_are(parts, tokens):
    text = " ".join([*parts, "fine"])
    found = CLASSIFIERS[tokens].encode(text)
    assert [word for words in found.words for word in words] == [
        word for sentence in split_sentences(text) for word in sentence.split()
    ]
    for words, owners in zip(found.words, found.owners, strict=True):
        assert set(owners) == set(range(len(words)))


@pytest.mark.parametrize("text", ["", "   \n\t ", "<br />"])
def test_an_empty_document_is_a_clear_error(text):
    with pytest.raises(DataError, match="needs at least one word"):
        small_document_classifier().classify(["fine", text])


def test_documents_that_are_already_split(as_a_user):
    model = small_document_classifier()
    given = Document(sentences=("the film", "was fine"))
    assert [sentence.text for sentence in model.classify(given).sentences] == ["the film", "was fine"]
    with pytest.raises(OptionError, match="takes a text"):
        model.classify(7)
    with pytest.raises(OptionError, match="Did you mean 'traces'"):
        model.classify("fine", trace=False)


def test_overridden_weights_are_used():
    model = small_document_classifier()
    batch = DocumentBatch.from_ids([[[5, 6, 7], [8]]])
    with torch.no_grad():
        plain = model(batch)
        same = model(batch, word_weights=plain.word_weights, sentence_weights=plain.sentence_weights)
        torch.testing.assert_close(same.logits, plain.logits)
        other = model(batch, sentence_weights=torch.tensor([0.0, 1.0]))
    assert not torch.allclose(other.logits, plain.logits)


def test_a_document_vector_is_read_from_states_or_from_the_sentences_themselves():
    """With all weight on one sentence, its state still carries what the other one says."""
    first, second = DocumentBatch.from_ids([[[5, 6, 7], [8]]]), DocumentBatch.from_ids([[[5, 6, 7], [9, 5]]])
    only = torch.tensor([1.0, 0.0])
    for read, equal in (("states", False), ("sentences", True)):
        model = small_document_classifier(read=read)
        with torch.no_grad():
            logits = [model(batch, sentence_weights=only).logits for batch in (first, second)]
        assert torch.allclose(*logits, atol=1e-6) is equal
    with pytest.raises(OptionError, match="needs attention"):
        small_document_classifier(read="sentences", pool="max")


def test_words_are_hidden_in_training_only():
    model = small_document_classifier(word_dropout=0.9, dropout=0.0)
    batch = DocumentBatch.from_ids([[[5, 6, 7], [8]]])
    assert model(batch).logits.equal(model(batch).logits)
    model.train()
    assert not model(batch).logits.equal(model(batch).logits)


def test_a_classifier_needs_two_classes():
    with pytest.raises(OptionError, match="at least two classes"):
        small_document_classifier(("only",))
