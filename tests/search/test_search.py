"""Search over every decoder: beam 1 is greedy, a wide beam is exhaustive, a batch equals its sentences."""

import itertools

import pytest
import torch
from systems_small import END, MAKE_DECODER, PAD, START, VOCABULARY, WITHOUT_ATTENTION, make, sources

from regard.errors import OptionError
from regard.search.beam import beam
from regard.search.hypothesis import Rules
from regard.search.one import greedy, sample

RULES = Rules(start=START, end=END, banned=(PAD,), max_length=6)
every_decoder = pytest.mark.parametrize("name", MAKE_DECODER)


def log_prob_of(decoder, encoded, tokens):
    """The log-probabilities of a whole output, by teacher forcing."""
    target = torch.tensor([[START, *tokens]])
    logits = decoder.output(decoder(encoded, target).features)[0].log_softmax(-1)
    return [logits[t, token].item() for t, token in enumerate([*tokens, END])]


@every_decoder
def test_beam_of_one_equals_greedy(name):
    encoder, decoder = make(name)
    encoded = encoder(*sources(5))
    for narrow, simple in zip(beam(decoder, encoded, RULES, size=1), greedy(decoder, encoded, RULES), strict=True):
        assert narrow[0].tokens == simple.tokens
        assert narrow[0].finished == simple.finished
        assert narrow[0].log_probs == pytest.approx(simple.log_probs, abs=1e-5)
        assert (narrow[0].weights is None) == (simple.weights is None) == (name in WITHOUT_ATTENTION)
        if simple.weights is not None:
            torch.testing.assert_close(narrow[0].weights, simple.weights, rtol=1e-5, atol=1e-5)


@every_decoder
def test_a_batch_equals_its_sentences_one_by_one(name):
    encoder, decoder = make(name)
    source, lengths = sources(5)
    together = beam(decoder, encoder(source, lengths), RULES, size=3)
    for row, outputs in enumerate(together):
        n = int(lengths[row])
        alone = beam(decoder, encoder(source[row : row + 1, :n], lengths[row : row + 1]), RULES, size=3)[0]
        assert [o.tokens for o in alone] == [o.tokens for o in outputs]
        assert [o.score for o in alone] == pytest.approx([o.score for o in outputs], abs=1e-4)


@every_decoder
def test_log_probabilities_are_those_of_the_model(name):
    encoder, decoder = make(name)
    source, lengths = sources(1)
    encoded = encoder(source, lengths)
    for output in [*beam(decoder, encoded, RULES, size=4)[0], *greedy(decoder, encoded, RULES)]:
        expected = log_prob_of(decoder, encoded, output.tokens)
        assert output.log_probs == pytest.approx(expected[: len(output.log_probs)], abs=1e-4)
        assert len(output.log_probs) == len(output.tokens) + output.finished
        assert output.weights is None or len(output.weights) == len(output.log_probs)


def test_a_wide_beam_finds_the_best_of_all_outputs():
    encoder, decoder = make("bahdanau", sharpness=5.0)
    encoded = encoder(*sources(1))
    allowed = [t for t in range(VOCABULARY) if t not in (PAD, START, END)]
    every = [tokens for n in range(3) for tokens in itertools.product(allowed, repeat=n)]
    scored = {tokens: sum(p := log_prob_of(decoder, encoded, tokens)) / len(p) for tokens in every}
    best = max(scored, key=scored.get)
    rules = Rules(start=START, end=END, banned=(PAD,), max_length=2)
    outputs = [o for o in beam(decoder, encoded, rules, size=len(every))[0] if o.finished]
    assert tuple(outputs[0].tokens) == best
    assert outputs[0].score == pytest.approx(scored[best], abs=1e-4)
    assert {tuple(o.tokens) for o in outputs} <= set(every)


def test_a_beam_is_sorted_without_repeats_and_not_worse_than_greedy():
    encoder, decoder = make("luong")
    encoded = encoder(*sources(5))
    for outputs, simple in zip(
        beam(decoder, encoded, RULES, size=5, length_penalty=0.0), greedy(decoder, encoded, RULES), strict=True
    ):
        assert [o.score for o in outputs] == sorted((o.score for o in outputs), reverse=True)
        assert len({(tuple(o.tokens), o.finished) for o in outputs}) == len(outputs) == 5
        assert outputs[0].score >= simple.score - 1e-4 or not simple.finished


def test_lengths_prefixes_and_repeats_are_obeyed():
    encoder, decoder = make("conditional")
    encoded = encoder(*sources(3))
    prefixes = [[7, 7, 7], [], [9]]
    rules = Rules(start=START, end=END, banned=(PAD, 5), min_length=4, max_length=8)
    for outputs in (
        [o[0] for o in beam(decoder, encoded, rules, size=3, prefixes=prefixes)],
        greedy(decoder, encoded, rules, prefixes=prefixes),
        sample(decoder, encoded, rules, prefixes=prefixes),
    ):
        for output, prefix in zip(outputs, prefixes, strict=True):
            assert output.tokens[: len(prefix)] == prefix
            assert 4 <= len(output.tokens) <= 8
            assert not {PAD, START, END, 5} & set(output.tokens)
    rules = Rules(start=START, end=END, banned=(PAD,), min_length=12, max_length=12, block_ngrams=2)
    for outputs in beam(decoder, encoded, rules, size=3):
        for output in outputs:
            pairs = list(itertools.pairwise(output.tokens))
            assert len(pairs) == len(set(pairs))


def test_an_output_at_the_limit_is_cut_and_says_so():
    encoder, decoder = make("bahdanau")
    encoded = encoder(*sources(2))
    rules = Rules(start=START, end=END, banned=(PAD,), max_length=0)
    assert all(o.tokens == [] for o in greedy(decoder, encoded, rules))
    rules = Rules(start=START, end=END, banned=(PAD, END), max_length=3)
    for output in [*greedy(decoder, encoded, rules), *(o[0] for o in beam(decoder, encoded, rules, size=2))]:
        assert len(output.tokens) == 3
        assert not output.finished


def test_the_coverage_penalty_prefers_outputs_that_look_everywhere():
    encoder, decoder = make("bahdanau")
    source, lengths = sources(5)
    encoded = encoder(source, lengths)

    def covered(strength):
        best = [outputs[0] for outputs in beam(decoder, encoded, RULES, size=12, coverage_penalty=strength)]
        return torch.tensor([
            output.weights.sum(0)[:n].clamp(max=1).log().sum()
            for output, n in zip(best, lengths.tolist(), strict=True)
        ])  # fmt: skip

    with_penalty, without = covered(10.0), covered(0.0)
    assert (with_penalty >= without - 1e-4).all()
    assert (with_penalty > without + 1e-4).any()


def test_samples_follow_the_model_and_their_seed():
    encoder, decoder = make("bahdanau", sharpness=1.0)
    source, lengths = sources(1)
    many = encoder(source.expand(4000, -1), lengths.expand(4000))
    rules = Rules(start=START, end=END, max_length=0)

    def ends(**options):
        outputs = sample(decoder, many, rules, generator=torch.Generator().manual_seed(3), **options)
        return sum(o.finished for o in outputs) / 4000

    logits = decoder.step(torch.tensor([START]), decoder.start(encoder(source, lengths))).logits[0]
    logits[START] = -torch.inf
    assert ends() == pytest.approx(logits.softmax(-1)[END].item(), abs=0.03)
    assert ends() == ends()
    assert ends(temperature=0.01) == float(logits.argmax() == END)
    assert ends(top_k=1) == ends(top_p=1e-6) == float(logits.argmax() == END)


def test_wrong_settings_are_explained():
    encoder, decoder = make("bahdanau")
    encoded = encoder(*sources(1))
    with pytest.raises(OptionError, match="size=0"):
        beam(decoder, encoded, RULES, size=0)
    with pytest.raises(OptionError, match=r"got 0\.0, 0 and 1\.0"):
        sample(decoder, encoded, RULES, temperature=0.0)
    with pytest.raises(OptionError, match="got 5 and 3"):
        Rules(start=1, end=2, min_length=5, max_length=3)
