"""A language model: teacher forcing as step by step, and search from nothing."""

import pytest
import torch
from torch import nn

from regard.decoders.language_model import LanguageModel
from regard.encoders.lstmn_reader import LSTMNReader
from regard.encoders.readers import LSTMReader, SelfAttentionReader
from regard.search.choice import greedy
from regard.search.hypothesis import Rules
from regard.search.options import Search
from regard.search.search import search

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
    options = {"rows": 1, "device": "cpu", "rules": RULES}
    (first,) = greedy(model, model.begin(), RULES, rows=1, device="cpu", length_penalty=0.0)
    ((same,),) = search(model, model.begin(), options=Search(beam=1, length_penalty=0.0), **options)
    assert same.tokens == first.tokens
    ((best,),) = search(model, model.begin(), options=Search(beam=200, length_penalty=0.0), **options)
    assert best.score >= same.score - 1e-5


@pytest.mark.parametrize("kind", READERS)
def test_a_text_is_continued(kind):
    model = make(kind)
    prefixes = [[5, 6], [7]]
    found = search(model, model.begin(), rows=2, device="cpu", rules=RULES, options=Search(beam=3), prefixes=prefixes)
    assert [each[0].tokens[: len(prefix)] for each, prefix in zip(found, prefixes, strict=True)] == prefixes


def test_samples_follow_the_seed():
    model = make("lstmn")
    options = {"rows": 1, "device": "cpu", "rules": RULES}
    draw = [
        [
            each.tokens
            for each in search(model, model.begin(), options=Search(sample=True, nbest=4, seed=seed), **options)[0]
        ]
        for seed in (1, 1, 2)
    ]
    assert draw[0] == draw[1] != draw[2]
