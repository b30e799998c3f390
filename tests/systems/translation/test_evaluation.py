"""Evaluation by decoding and by forced decoding."""

import math

import numpy as np
import pytest
import torch

from regard.data.tokenizer import END, START, Tokenizer
from regard.errors import OptionError
from regard.metrics.alignment import GoldAlignment
from regard.systems.evaluation import align_words, alignment_error, evaluate, link_words
from regard.systems.translator import Translator, TranslatorConfig

TEXTS = ["a dog is running .", "two dogs run", "the small house is red and the sky is blue ."]


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(1)
    tokenizer = Tokenizer.train(TEXTS * 3, size=45)
    return Translator(TranslatorConfig(embedding=12, hidden=10), tokenizer, tokenizer).eval()


def test_perplexity_is_that_of_the_forced_references(model):
    result = evaluate(model, TEXTS, TEXTS[::-1], beam=1)
    total, pieces = 0.0, 0
    for source, reference in zip(TEXTS, TEXTS[::-1], strict=True):
        ids = torch.tensor([[*model.source_tokenizer.encode(source), END]])
        target = [*model.target_tokenizer.encode(reference), END]
        unrolled = model.decoder(model.encode(ids, torch.tensor([ids.shape[1]])), torch.tensor([[START, *target[:-1]]]))
        logits = model.decoder.output(unrolled.features)[0].log_softmax(-1)
        total -= sum(logits[t, token].item() for t, token in enumerate(target))
        pieces += len(target)
    assert result.perplexity == pytest.approx(math.exp(total / pieces), rel=1e-4)
    assert 0 < result.entropy < math.log(40)
    assert result.scores.count == len(result.translations) == 3


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


def test_what_cannot_be_measured_is_explained(model):
    with pytest.raises(OptionError, match="3 sources and 2 references"):
        evaluate(model, TEXTS, TEXTS[:2])
    plain = Translator(
        TranslatorConfig(architecture="plain", embedding=12, hidden=10), model.source_tokenizer, model.target_tokenizer
    )
    assert evaluate(plain, TEXTS, TEXTS, beam=1).entropy is None
    with pytest.raises(OptionError, match="no attention"):
        list(align_words(plain, [(["a"], ["a"])]))
