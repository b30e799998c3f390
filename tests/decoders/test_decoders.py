"""Every decoder: teacher forcing equals step by step, padding changes nothing, attention can be replaced."""

import pytest
import torch
from systems_small import MAKE_DECODER, VOCABULARY, WITHOUT_ATTENTION, make, sources

from regard.decoders.protocol import select

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
def test_every_weight_learns(name):
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


def test_hard_attention_gives_what_reinforce_needs():
    encoder, decoder = make("hard")
    decoder.train()
    source, lengths = sources()
    unrolled = decoder(encoder(source, lengths), torch.randint(1, VOCABULARY, (3, 5)), weights=True)
    assert unrolled.log_prob.shape == unrolled.entropy.shape == (3, 5)
    assert unrolled.weights.amax(-1).eq(1).all()
