"""Search over every decoder: beam 1 is greedy, a wide beam is exhaustive, a batch equals its sentences."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.decoders import END, MAKE_DECODER, PAD, START, VOCABULARY, WITHOUT_ATTENTION, make, sources

from regard.decoders.protocol import Decoder, Step
from regard.encoders.encoded import Encoded
from regard.errors import NonFiniteError, OptionError
from regard.search.beam import beam
from regard.search.hypothesis import Rules
from regard.search.options import Search
from regard.search.search import DecoderSteps, search

RULES = Rules(start=START, end=END, banned=(PAD,), max_length=6)
every_decoder = pytest.mark.parametrize("name", MAKE_DECODER)


def decode(decoder, encoded, rules, **options):
    """All outputs of a search, from the state that the encoded input begins with."""
    options = Search(**{"nbest": options.get("beam", 1), **options})
    rows, device = len(encoded.states), encoded.states.device
    return search(decoder, decoder.start(encoded), rules, options, num_inputs=rows, device=device)


def greedily(decoder, encoded, rules, **options):
    """The only output of each input of a greedy search."""
    return [best for (best,) in decode(decoder, encoded, rules, beam=1, **options)]


def drawn(decoder, encoded, rules, **options):
    """One sample for each input."""
    return [best for (best,) in decode(decoder, encoded, rules, sample=True, **options)]


def log_prob_of(decoder, encoded, tokens):
    """The log-probabilities of a whole output, by teacher forcing."""
    target = torch.tensor([[START, *tokens]])
    logits = decoder.output(decoder(encoded, target).features)[0].log_softmax(-1)
    return [logits[t, token].item() for t, token in enumerate([*tokens, END])]


@every_decoder
def test_beam_of_one_equals_greedy(name):
    encoder, decoder = make(name)
    encoded = encoder(*sources(5))
    found = beam(DecoderSteps(decoder, "cpu"), decoder.start(encoded), RULES, Search(beam=1), num_inputs=5)
    for (narrow,), simple in zip(found, greedily(decoder, encoded, RULES), strict=True):
        assert (narrow.tokens, narrow.finished) == (simple.tokens, simple.finished)
        assert narrow.score == pytest.approx(simple.score, abs=1e-5)
        assert narrow.log_probs == pytest.approx(simple.log_probs, abs=1e-5)
        assert (narrow.weights is None) == (simple.weights is None) == (name in WITHOUT_ATTENTION)
        if simple.weights is not None:
            np.testing.assert_allclose(narrow.weights, simple.weights, rtol=1e-5, atol=1e-5)


@every_decoder
def test_a_batch_equals_its_sentences_one_by_one(name):
    encoder, decoder = make(name)
    source, lengths = sources(5)
    together = decode(decoder, encoder(source, lengths), RULES, beam=3)
    for row, outputs in enumerate(together):
        n = int(lengths[row])
        alone = decode(decoder, encoder(source[row : row + 1, :n], lengths[row : row + 1]), RULES, beam=3)[0]
        assert [o.tokens for o in alone] == [o.tokens for o in outputs]
        assert [o.score for o in alone] == pytest.approx([o.score for o in outputs], abs=1e-4)


@every_decoder
def test_log_probabilities_are_those_of_the_model(name):
    encoder, decoder = make(name)
    source, lengths = sources(1)
    encoded = encoder(source, lengths)
    for output in [*decode(decoder, encoded, RULES, beam=4)[0], *greedily(decoder, encoded, RULES)]:
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
    outputs = [o for o in decode(decoder, encoded, rules, beam=len(every))[0] if o.finished]
    assert tuple(outputs[0].tokens) == best
    assert outputs[0].score == pytest.approx(scored[best], abs=1e-4)
    assert {tuple(o.tokens) for o in outputs} <= set(every)


def test_a_beam_is_sorted_has_no_duplicates_and_is_not_worse_than_greedy():
    encoder, decoder = make("luong")
    encoded = encoder(*sources(5))
    for outputs, simple in zip(
        decode(decoder, encoded, RULES, beam=5, length_penalty=0.0),
        greedily(decoder, encoded, RULES, length_penalty=0.0),
        strict=True,
    ):
        assert [o.score for o in outputs] == sorted((o.score for o in outputs), reverse=True)
        assert len({(tuple(o.tokens), o.finished) for o in outputs}) == len(outputs) == 5
        assert outputs[0].score >= simple.score - 1e-4 or not simple.finished


def test_lengths_prefixes_and_blocked_ngrams_are_respected():
    encoder, decoder = make("conditional")
    encoded = encoder(*sources(3))
    prefixes = [[7, 7, 7], [], [9]]
    rules = Rules(start=START, end=END, banned=(PAD, 5), min_length=4, max_length=8, prefixes=prefixes)
    for outputs in (
        [o[0] for o in decode(decoder, encoded, rules, beam=3)],
        greedily(decoder, encoded, rules),
        drawn(decoder, encoded, rules),
    ):
        for output, prefix in zip(outputs, prefixes, strict=True):
            assert output.tokens[: len(prefix)] == prefix
            assert 4 <= len(output.tokens) <= 8
            assert not {PAD, START, END, 5} & set(output.tokens)
    rules = Rules(start=START, end=END, banned=(PAD,), min_length=12, max_length=12, block_ngrams=2)
    for outputs in decode(decoder, encoded, rules, beam=3):
        for output in outputs:
            pairs = list(itertools.pairwise(output.tokens))
            assert len(pairs) == len(set(pairs))


@pytest.mark.parametrize(
    "rules",
    [
        Rules(start=START, end=END, banned=(PAD,), min_length=6, max_length=9, block_ngrams=1),
        Rules(start=START, end=END, banned=(PAD, 8), min_length=6, max_length=9),
    ],
    ids=["blocked", "banned"],
)
def test_a_prefix_that_the_rules_forbid_is_followed_and_costs_what_the_model_says(rules):
    encoder, decoder = make("bahdanau")
    encoded = encoder(*sources(2))
    prefix = [7, 8, 7, 8]
    rules = replace(rules, prefixes=[prefix] * 2)
    free = methods(decoder, encoded, replace(rules, block_ngrams=0, banned=(PAD,)))
    for name, outputs in methods(decoder, encoded, rules).items():
        for row, output in enumerate(outputs):
            assert output.tokens[:4] == prefix, name
            assert 6 <= len(output.tokens) <= 9, name
            assert output.log_probs[:4] == pytest.approx(free[name][row].log_probs[:4]), name
            assert not ({7, 8} if rules.block_ngrams else {8}) & set(output.tokens[4:]), name
            n = len(output.log_probs)
            alone = Encoded(*(part[row : row + 1] for part in (encoded.states, encoded.mask, encoded.summary)))
            assert output.log_probs == pytest.approx(log_prob_of(decoder, alone, output.tokens)[:n], abs=1e-4), name


def test_a_prefix_that_the_model_finds_impossible_is_followed_and_the_rest_is_still_chosen_by_the_model():
    class NeverSeven(Bigrams):
        def step(self, token, state, *, override=None):
            logits = self.table[token].clone()
            logits[:, 7] = -torch.inf
            return Step(logits, state, None)

    model, rules = NeverSeven(), Rules(start=START, end=END, banned=(PAD,), min_length=4, max_length=4)
    last, most = 7, []
    for _ in range(2):
        logits = model.table[last].clone()
        logits[[PAD, START, END, 7]] = -torch.inf
        most.append(last := int(logits.argmax()))
    rules = replace(rules, prefixes=[[7, 7]])
    ((output,),) = search(model, (), rules, Search(beam=1), num_inputs=1, device="cpu")
    assert output.tokens == [7, 7, *most]
    options = Search(beam=30, nbest=30, length_penalty=0.0)
    (outputs,) = search(model, (), rules, options, num_inputs=1, device="cpu")
    assert all(one.tokens[:2] == [7, 7] and len(one.tokens) == 4 for one in outputs)
    assert len({round(one.score, 2) for one in outputs}) > 20, "the tokens after the prefix still count"


def test_an_output_at_the_length_limit_is_cut_and_marked_as_unfinished():
    encoder, decoder = make("bahdanau")
    encoded = encoder(*sources(2))
    rules = Rules(start=START, end=END, banned=(PAD,), max_length=0)
    assert all(o.tokens == [] for o in greedily(decoder, encoded, rules))
    rules = Rules(start=START, end=END, banned=(PAD, END), max_length=3)
    for output in [
        *greedily(decoder, encoded, rules),
        *(o[0] for o in decode(decoder, encoded, rules, beam=2)),
    ]:
        assert len(output.tokens) == 3
        assert not output.finished


def methods(decoder, encoded, rules):
    """The first output of each input, by every kind of search."""
    return {
        "beam": [outputs[0] for outputs in decode(decoder, encoded, rules, beam=3)],
        "greedy": greedily(decoder, encoded, rules),
        "sample": drawn(decoder, encoded, rules),
    }


def test_each_input_has_its_own_length_limit():
    encoder, decoder = make("luong")
    source, lengths = sources(3)
    never_ending = Rules(start=START, end=END, banned=(PAD, END), max_length=9)
    together = methods(decoder, encoder(source, lengths), replace(never_ending, limits=[4, 9, 0]))
    for name, outputs in together.items():
        assert [len(output.tokens) for output in outputs] == [4, 9, 0], name
        assert [len(output.weights) for output in outputs[:2]] == [4, 9], name
    for row, limit in enumerate([4, 9, 0]):
        n = int(lengths[row])
        encoded = encoder(source[row : row + 1, :n], lengths[row : row + 1])
        alone = methods(decoder, encoded, replace(never_ending, limits=[limit]))
        for name in ("beam", "greedy"):
            assert alone[name][0].tokens == together[name][row].tokens


@pytest.mark.parametrize("name", [name for name in MAKE_DECODER if name not in WITHOUT_ATTENTION])
def test_attention_is_that_of_the_chosen_words(name):
    encoder, decoder = make(name)
    source, lengths = sources(3)
    found = decode(decoder, encoder(source, lengths), RULES, beam=4)
    for row, outputs in enumerate(found):
        n = int(lengths[row])
        encoded = encoder(source[row : row + 1, :n], lengths[row : row + 1])
        for output in outputs:
            forced = decoder(encoded, torch.tensor([[START, *output.tokens]]), weights=True).weights[0]
            np.testing.assert_allclose(
                output.weights[:, :n], forced[: len(output.weights)].detach(), rtol=1e-4, atol=1e-4
            )


def test_where_no_token_is_possible_the_output_ends_without_an_end():
    encoder, decoder = make("bahdanau")
    encoded = encoder(*sources(2))
    banned = tuple(token for token in range(VOCABULARY) if token not in (7, 9))
    rules = Rules(start=START, end=END, banned=banned, max_length=20, block_ngrams=1)
    for name, outputs in methods(decoder, encoded, rules).items():
        for output in outputs:
            assert sorted(output.tokens) == [7, 9], name
            assert not output.finished


def test_parameters_that_are_not_finite_are_explained():
    encoder, decoder = make("bahdanau")
    encoded = encoder(*sources(2))
    with torch.no_grad():
        decoder.output.weight[3, 0] = torch.nan
    for method in (decode, greedily, drawn):
        with pytest.raises(NonFiniteError, match="NaN instead of probabilities"):
            method(decoder, encoded, RULES)


def test_the_work_of_an_output_that_never_ends_grows_with_the_square_of_its_length(monkeypatch):
    encoder, decoder = make("bahdanau")
    copied = []
    stack = DecoderSteps.stack
    monkeypatch.setattr(
        DecoderSteps, "stack", lambda self, rows: copied.append(sum(map(torch.numel, rows))) or stack(self, rows)
    )

    def work(length):
        encoded = encoder(*sources(1, length))
        copied.clear()
        rules = Rules(start=START, end=END, banned=(PAD, END), max_length=2 * length)
        decode(decoder, encoded, rules, beam=2)
        return sum(copied)

    assert 0 < work(80) < 5 * work(40)


def test_the_coverage_penalty_prefers_outputs_that_look_everywhere():
    encoder, decoder = make("bahdanau")
    source, lengths = sources(5)
    encoded = encoder(source, lengths)

    def covered(strength):
        best = [outputs[0] for outputs in decode(decoder, encoded, RULES, beam=12, coverage_penalty=strength)]
        return np.array([
            np.log(output.weights.sum(0)[:n].clip(max=1)).sum()
            for output, n in zip(best, lengths.tolist(), strict=True)
        ])  # fmt: skip

    with_penalty, without = covered(10.0), covered(0.0)
    assert (with_penalty >= without - 1e-4).all()
    assert (with_penalty > without + 1e-4).any()


def test_samples_follow_the_model_and_their_seed():
    encoder, decoder = make("bahdanau", sharpness=1.0)
    source, lengths = sources(1)
    rules = Rules(start=START, end=END, max_length=0)

    def ends(count=50, **options):
        many = encoder(source.expand(count, -1), lengths.expand(count))
        return sum(one.finished for one in drawn(decoder, many, rules, seed=3, **options)) / count

    logits = decoder.step(torch.tensor([START]), decoder.start(encoder(source, lengths))).logits[0]
    logits[START] = -torch.inf
    assert ends(4000) == pytest.approx(logits.softmax(-1)[END].item(), abs=0.03)
    assert ends() == ends()
    assert ends(temperature=0.01) == ends(temperature=1e-300) == float(logits.argmax() == END)
    assert ends(top_k=1) == ends(top_p=1e-6) == float(logits.argmax() == END)


def test_wrong_rules_are_explained():
    with pytest.raises(OptionError, match="got 5 and 3"):
        Rules(start=1, end=2, min_length=5, max_length=3)
    with pytest.raises(OptionError, match="block_ngrams must be 0 or more; got -1"):
        Rules(start=1, end=2, block_ngrams=-1)


def test_the_score_means_the_same_for_every_kind_of_search():
    encoder, decoder = make("bahdanau")
    source, lengths = sources(4)
    encoded = encoder(source, lengths)
    penalties = {"length_penalty": 0.6, "coverage_penalty": 0.3}
    outputs = [
        *(best[0] for best in decode(decoder, encoded, RULES, beam=2, **penalties)),
        *greedily(decoder, encoded, RULES, **penalties),
        *drawn(decoder, encoded, RULES, **penalties),
    ]
    for output, length in zip(outputs, 3 * lengths.tolist(), strict=True):
        covered = np.log(output.weights.sum(0)[:length].clip(1e-10, 1.0)).sum()
        expected = sum(output.log_probs) / len(output.log_probs) ** 0.6 + 0.3 * covered
        assert output.score == pytest.approx(expected, abs=1e-4)


@every_decoder
def test_search_is_beam_search_or_independent_samples(name):
    encoder, decoder = make(name)
    encoded = encoder(*sources(3))

    def find(**options):
        return [[one.tokens for one in outputs] for outputs in decode(decoder, encoded, RULES, **options)]

    assert find(beam=4, nbest=2) == [best[:2] for best in find(beam=4, nbest=4)]
    first, second, other = (find(sample=True, nbest=6, seed=seed) for seed in (3, 3, 4))
    assert [len(outputs) for outputs in first] == [6, 6, 6]
    assert first == second != other
    assert any(len({tuple(tokens) for tokens in outputs}) > 1 for outputs in first), "samples of an input differ"


class Bigrams(Decoder):
    """A language model without an encoder: the state is nothing, and the next token depends on the last one."""

    def __init__(self):
        super().__init__()
        self.table = torch.randn(VOCABULARY, VOCABULARY).mul(3)

    def step(self, token, state, *, override=None):
        return Step(self.table[token], state, None)


def test_a_language_model_without_an_encoder_can_be_searched():
    options, rules = Search(beam=289, nbest=289), Rules(start=START, end=END, banned=(PAD,), max_length=2)
    model = Bigrams()
    (outputs,) = search(model, (), rules, options, num_inputs=1, device="cpu")
    log_probs = model.table.log_softmax(-1)
    allowed = [t for t in range(VOCABULARY) if t not in (PAD, START, END)]

    def score(tokens):
        path = [START, *tokens, END]
        return sum(log_probs[a, b].item() for a, b in itertools.pairwise(path)) / (len(path) - 1)

    finished = [output for output in outputs if output.finished]
    best = max((score(t), t) for n in range(3) for t in itertools.product(allowed, repeat=n))
    found = max((output.score, tuple(output.tokens)) for output in finished)
    assert found[1] == best[1]
    assert found[0] == pytest.approx(best[0], abs=1e-5)
    assert outputs[0].weights is None
    drawn = search(model, (), rules, Search(sample=True, seed=1), num_inputs=2, device="cpu")
    assert [len(outputs) for outputs in drawn] == [1, 1]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"beam": 0}, "beam must be a whole number from 1 to 1000; got 0"),
        ({"beam": 10**6}, "beam must be a whole number from 1 to 1000; got 1000000"),
        ({"nbest": 0}, "nbest must be a whole number from 1 to 1000; got 0"),
        ({"max_length": 10**9}, "max_length .* from 0 to 100000 or none; got 1000000000"),
        ({"beam": 2, "nbest": 3}, "nbest must not exceed beam, 2.*got 3"),
        ({"temperature": 0.0}, "temperature must be a number above 0; got 0.0"),
        ({"temperature": float("nan")}, "temperature .*got nan"),
        ({"top_k": -1}, "top_k must be a whole number, 0 or more; got -1"),
        ({"top_p": 0.0}, "top_p must be above 0"),
        ({"top_p": 1.5}, "top_p must be a number from 0 to 1; got 1.5"),
        ({"length_penalty": float("inf")}, "length_penalty .*got inf"),
        ({"length_penalty": 200.0}, "length_penalty .*10.*got 200"),
        ({"coverage_penalty": float("nan")}, "coverage_penalty .*got nan"),
        ({"block_ngrams": -1}, "block_ngrams must be a whole number, 0 or more; got -1"),
        ({"min_length": 5, "max_length": 3}, "min_length must not exceed max_length; got min_length=5, max_length=3"),
        ({"seed": -1}, "seed .*got -1"),
        ({"seed": 2**70}, "seed .*got 1180591620717411303424"),
        ({"prefix": 3}, "prefix must be text.*got 3"),
    ],
)
def test_wrong_search_options_are_explained(as_a_user, options, says):
    with pytest.raises(OptionError, match=says):
        Search(**options)


def test_search_options_give_the_rules_of_a_vocabulary():
    assert Search(min_length=2, block_ngrams=3).rules(start=1, end=2, banned=[0], max_length=9) == Rules(
        1, 2, (0,), 2, 9, 3
    )
    assert Search(max_length=4).rules(start=1, end=2, max_length=9).max_length == 4
    assert Search(nbest=7, sample=True, beam=1).nbest == 7
