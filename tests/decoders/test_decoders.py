"""Every decoder: teacher forcing equals step by step, padding changes nothing, attention can be replaced."""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest
import torch
from helpers.decoders import MAKE_DECODER, VOCABULARY, WITHOUT_ATTENTION, make, sources

from regard.decoders.protocol import join, select, sizes
from regard.errors import OptionError

every_decoder = pytest.mark.parametrize("name", MAKE_DECODER)


@every_decoder
def test_teacher_forcing_equals_step_by_step(name):
    encoder, decoder = make(name)
    source, lengths = sources()
    target = torch.randint(1, VOCABULARY, (3, 5))
    encoded = encoder(source, lengths)
    whole = decoder(encoded, target, weights=True)
    logits = decoder.output(whole.features)
    state = decoder.start(encoded)
    for t in range(5):
        step = decoder.step(target[:, t], state)
        state = step.state
        torch.testing.assert_close(step.logits, logits[:, t], rtol=1e-5, atol=1e-5)
        if whole.weights is not None:
            torch.testing.assert_close(step.attended.weights[:, 0], whole.weights[:, t], rtol=1e-5, atol=1e-5)
    assert (whole.weights is None) == (name in WITHOUT_ATTENTION)


@every_decoder
def test_padding_never_changes_a_prediction(name):
    encoder, decoder = make(name)
    source, lengths = sources()
    target = torch.randint(1, VOCABULARY, (3, 5))
    together = decoder.output(decoder(encoder(source, lengths), target).features)
    for row in range(3):
        n = int(lengths[row])
        alone = decoder(encoder(source[row : row + 1, :n], lengths[row : row + 1]), target[row : row + 1])
        torch.testing.assert_close(decoder.output(alone.features)[0], together[row], rtol=1e-4, atol=1e-4)


@every_decoder
def test_every_parameter_gets_a_gradient(name):
    encoder, decoder = make(name)
    decoder.train()
    source, lengths = sources()
    unrolled = decoder(encoder(source, lengths), torch.randint(1, VOCABULARY, (3, 5)))
    loss = decoder.output(unrolled.features).square().sum()
    if unrolled.log_prob is not None:
        loss = loss + unrolled.log_prob.sum()
    loss.backward()
    still = [n for n, p in [*encoder.named_parameters(), *decoder.named_parameters()] if p.grad is None]
    assert not still


@pytest.mark.parametrize("name", sorted(set(MAKE_DECODER) - WITHOUT_ATTENTION))
def test_the_attention_of_a_step_can_be_replaced(name):
    encoder, decoder = make(name)
    source, lengths = sources()
    encoded = encoder(source, lengths)
    token = torch.tensor([4, 5, 6])
    plain = decoder.step(token, decoder.start(encoded))
    first_only = torch.zeros(3, 1, source.shape[1])
    first_only[..., 0] = 1
    replaced = decoder.step(token, decoder.start(encoded), override=first_only)
    torch.testing.assert_close(replaced.attended.weights, first_only)
    assert not torch.allclose(replaced.logits, plain.logits)
    if not name.startswith("transformer"):  # whose other layers look by themselves
        same = decoder.step(token, decoder.start(encoded), override=plain.attended.weights)
        torch.testing.assert_close(same.logits, plain.logits, rtol=1e-5, atol=1e-5)


@every_decoder
def test_a_state_can_be_reordered(name):
    encoder, decoder = make(name)
    source, lengths = sources()
    encoded = encoder(source, lengths)
    token = torch.tensor([4, 5, 6])
    state = decoder.step(token, decoder.start(encoded)).state
    order = torch.tensor([2, 0, 0, 1])
    reordered = decoder.step(token[order], select(state, order))
    torch.testing.assert_close(reordered.logits, decoder.step(token, state).logits[order], rtol=1e-5, atol=1e-5)


def test_hard_attention_returns_the_terms_of_reinforce():
    encoder, decoder = make("hard")
    decoder.train()
    source, lengths = sources()
    unrolled = decoder(encoder(source, lengths), torch.randint(1, VOCABULARY, (3, 5)), weights=True)
    assert unrolled.log_prob.shape == unrolled.entropy.shape == (3, 5)
    assert unrolled.weights.amax(-1).eq(1).all()


@pytest.mark.parametrize("name", ["hard", "bahdanau_coverage_hard", "show_attend_tell_hard"])
def test_hard_attention_can_read_softly_in_one_call(name):
    encoder, decoder = make(name)
    decoder.train()
    source, lengths = sources()
    encoded, target = encoder(source, lengths), torch.randint(1, VOCABULARY, (3, 5))
    soft = decoder(encoded, target, weights=True, soft=True)
    assert soft.log_prob is None
    assert soft.weights[0].amax(-1).lt(1).all()
    rows = torch.tensor([True, False, True])
    mixed = decoder(encoded, target, weights=True, soft=rows)
    assert mixed.log_prob[rows].eq(0).all()
    assert mixed.weights[~rows].amax(-1).eq(1).all()
    assert mixed.weights[0].amax(-1).lt(1).all()
    assert decoder(encoded, target, weights=True).weights.amax(-1).eq(1).all(), "the next call is hard again"


@pytest.mark.parametrize("name", ["transformer", "transformer_postnorm"])
def test_maps_of_every_layer_and_head_of_a_transformer(name):
    encoder, decoder = make(name)
    source, lengths = sources()
    target = torch.randint(1, VOCABULARY, (3, 5))
    plain, encoded = encoder(source, lengths), encoder(source, lengths, weights=True)
    assert plain.maps == ()
    torch.testing.assert_close(encoded.states, plain.states, rtol=1e-5, atol=1e-5)
    assert [tuple(layer.shape) for layer in encoded.maps] == [(3, 2, 7, 7)] * 2
    for row, length in enumerate(lengths.tolist()):
        for layer in encoded.maps:
            torch.testing.assert_close(layer[row].sum(-1), torch.ones(2, 7), rtol=1e-5, atol=1e-5)
            assert layer[row, :, :, length:].eq(0).all()
    shown, whole = decoder(encoded, target, weights=True), decoder(encoded, target, weights="all")
    assert shown.self_maps == shown.source_maps == ()
    torch.testing.assert_close(whole.features, shown.features, rtol=1e-5, atol=1e-5)
    assert [tuple(layer.shape) for layer in whole.self_maps] == [(3, 2, 5, 5)] * 3
    assert [tuple(layer.shape) for layer in whole.source_maps] == [(3, 2, 5, 7)] * 3
    for layer in whole.self_maps:
        assert layer.triu(1).eq(0).all()
        torch.testing.assert_close(layer.sum(-1), torch.ones(3, 2, 5), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(whole.source_maps[decoder.shown_layer].mean(1), whole.weights, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(whole.weights, shown.weights, rtol=1e-5, atol=1e-5)


def test_a_shown_layer_that_does_not_exist_is_explained():
    encoder, decoder = make("transformer")
    decoder.shown_layer = 3
    with pytest.raises(OptionError, match=r"shown_layer must be .* 0 to 2; got 3"):
        decoder(encoder(*sources()), torch.randint(1, VOCABULARY, (3, 5)))


@pytest.mark.parametrize("name", ["bahdanau", "luong", "hard", "transformer"])
def test_threads_do_not_disturb_each_other(name):
    """Training and decoding with one model at the same time give what each gives alone."""
    encoder, decoder = make(name)
    source, lengths = sources()
    target = torch.randint(1, VOCABULARY, (3, 5))

    def gradients(_):
        loss = decoder(encoded, target).features.square().sum()
        return torch.autograd.grad(loss, list(decoder.parameters()), allow_unused=True)

    def predicted(_):
        with torch.inference_mode():
            return (decoder(encoder(source, lengths), target).features,)

    with torch.no_grad():
        encoded = encoder(source, lengths)
    alone = {task: task(0) for task in (gradients, predicted)}
    with ThreadPoolExecutor(4) as pool:
        tasks = [gradients, predicted] * 30
        together = list(pool.map(lambda task: (task, task(0)), tasks))
    for task, results in together:
        for ours, expected in zip(results, alone[task], strict=True):
            assert (ours is None) == (expected is None)
            if ours is not None:
                torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-6)


class Pair(NamedTuple):
    one: torch.Tensor
    other: torch.Tensor


def test_rows_of_every_kind_of_state_are_selected_and_joined():
    rows, order = torch.arange(6.0).view(3, 2), torch.tensor([2, 0])
    state = {"list": [rows, 3], "pair": Pair(rows, -rows), "none": None}
    selected = select(state, order)
    assert selected["list"][0].tolist() == selected["pair"].one.tolist() == rows[order].tolist()
    assert isinstance(selected["list"], list)
    assert selected["list"][1] == 3
    assert selected["none"] is None
    assert sizes(selected) == sizes(state)
    joined = join([selected, state])
    torch.testing.assert_close(joined["pair"].other, torch.cat([-rows[order], -rows]))


def test_a_state_whose_rows_cannot_be_selected_is_refused():
    with pytest.raises(OptionError, match=r"holds a ndarray, whose rows .* tensors, batch first, in tuples, lists"):
        select((torch.ones(2, 1), np.ones((2, 1))), torch.tensor([1, 0]))
