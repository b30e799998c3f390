"""A language model: teacher forcing as step by step, and search from nothing."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from regard.decoders.language_model import LanguageModel
from regard.encoders.lstmn_reader import LSTMNReader
from regard.encoders.readers import LSTMReader, SelfAttentionReader
from regard.search.beam import beam
from regard.search.hypothesis import Rules
from regard.search.options import Search
from regard.search.search import DecoderSteps, search

VOCABULARY, INPUT, HIDDEN, START, END = 13, 6, 8, 1, 2
READERS = {"lstm": LSTMReader, "lstmn": LSTMNReader, "self_attention": SelfAttentionReader}
RULES = Rules(START, END, (0,), max_length=9)


def make(kind):
    model = LanguageModel(nn.Embedding(VOCABULARY, INPUT), READERS[kind](INPUT, HIDDEN), nn.Linear(HIDDEN, VOCABULARY))
    with torch.no_grad():
        model.output.weight.mul_(4.0)
        nn.init.normal_(model.first)
    return model.eval()


@pytest.mark.parametrize("kind", READERS)
def test_step_by_step_equals_teacher_forcing(kind):
    model, words = make(kind), torch.randint(3, VOCABULARY, (4, 5))
    features, state, token = model(words).features, model.begin(), torch.full((4,), START)
    for t in range(6):
        step = model.step(token, state)
        torch.testing.assert_close(step.logits, model.output(features[:, t]))
        state, token = step.state, words[:, min(t, 4)]


@pytest.mark.parametrize("kind", READERS)
def test_a_beam_of_one_is_greedy_and_a_wider_one_is_not_worse(kind):
    model = make(kind)
    narrow, wide = (Search(beam=size, length_penalty=0.0) for size in (1, 200))
    ((first,),) = search(model, model.begin(), RULES, narrow, num_inputs=1, device="cpu")
    ((same,),) = beam(DecoderSteps(model, "cpu"), model.begin(), RULES, narrow, num_inputs=1)
    assert same.tokens == first.tokens
    ((best,),) = search(model, model.begin(), RULES, wide, num_inputs=1, device="cpu")
    assert best.score >= same.score - 1e-5


@pytest.mark.parametrize("kind", READERS)
def test_a_text_is_continued(kind):
    model = make(kind)
    prefixes = [[5, 6], [7]]
    rules = replace(RULES, prefixes=prefixes)
    found = search(model, model.begin(), rules, Search(beam=3), num_inputs=2, device="cpu")
    assert [each[0].tokens[: len(prefix)] for each, prefix in zip(found, prefixes, strict=True)] == prefixes


def test_samples_follow_the_seed():
    model = make("lstmn")

    def draw(seed):
        options = Search(sample=True, nbest=4, seed=seed)
        return [each.tokens for each in search(model, model.begin(), RULES, options, num_inputs=1, device="cpu")[0]]

    assert draw(1) == draw(1) != draw(2)
