# ruff: noqa: N806 - the letters of the paper
"""The LSTMN layer against the equations of Cheng et al. 2016, sections 3.1 and 4, written out word by word."""

import numpy as np
import pytest
import torch

from regard.attention import mask
from regard.errors import OptionError, ShapeError
from regard.layers.lstmn import LSTMN, Tapes

WORDS, HIDDEN, DIM, INPUT = 7, 5, 11, 3


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    exponentials = np.exp(x - x.max())
    return exponentials / exponentials.sum()


def read_as_written(layer: LSTMN, sentence: np.ndarray, source: tuple[np.ndarray, np.ndarray] | None = None):
    """One sentence, with the letters of the paper."""
    parts = {name: part.detach().numpy() for name, part in layer.named_parameters()}
    gates, W_x = np.split(parts["word_layer.weight"], [4 * HIDDEN])
    recurrent, W_h_read = np.split(parts["recurrent.weight"], [4 * HIDDEN])
    W, b = np.concatenate([recurrent, gates], axis=1), parts["bias"]
    h, c, h_read, gamma_read, weights = [], [], np.zeros(HIDDEN), np.zeros(HIDDEN), []
    for t, x in enumerate(sentence):
        s = np.zeros(0)
        c_read = np.zeros(HIDDEN)
        if t:
            first = max(0, t - layer.span) if layer.span else 0
            a = [
                parts["direction"] @ np.tanh(parts["key_layer.weight"] @ h[i] + W_x @ x + W_h_read @ h_read)
                for i in range(first, t)
            ]
            s = np.concatenate([np.zeros(first), softmax(np.array(a))])
            h_read = sum(s[i] * h[i] for i in range(t))
            c_read = sum(s[i] * c[i] for i in range(t))
        i_t, f_t, o_t, candidate = np.split(W @ np.concatenate([h_read, x]) + b, 4)
        memory = sigmoid(f_t) * c_read + sigmoid(i_t) * np.tanh(candidate)
        if source is not None:
            gamma, alpha = source
            W_r_x, U_x = np.split(parts["fusion.word_layer.weight"], [HIDDEN])
            b_r, b_u = np.split(parts["fusion.word_layer.bias"], [HIDDEN])
            W_r_gamma, U_gamma = np.split(parts["fusion.recurrent.weight"], [HIDDEN])
            u, U_h = parts["fusion.direction"], parts["fusion.key_layer.weight"]
            p = softmax(np.array([u @ np.tanh(U_h @ g + U_x @ x + b_u + U_gamma @ gamma_read) for g in gamma]))
            gamma_read = p @ gamma
            r = sigmoid(np.concatenate([W_r_gamma, W_r_x], axis=1) @ np.concatenate([gamma_read, x]) + b_r)
            memory = memory + r * (p @ alpha)
        c.append(memory)
        h.append(sigmoid(o_t) * np.tanh(memory))
        weights.append(np.concatenate([s, np.zeros(len(sentence) - len(s))]))
    return np.stack(h), np.stack(c), np.stack(weights)


def layer(**options):
    return LSTMN(INPUT, HIDDEN, attention_dim=DIM, **options).double()


@pytest.mark.parametrize("span", [0, 2])
def test_it_is_the_network_of_the_paper(span):
    network, words = layer(span=span), torch.randn(2, WORDS, INPUT, dtype=torch.float64)
    tapes = network(words, weights=True)
    for row in range(2):
        h, c, weights = read_as_written(network, words[row].numpy())
        np.testing.assert_allclose(tapes.hidden[row].detach(), h)
        np.testing.assert_allclose(tapes.memory[row].detach(), c)
        np.testing.assert_allclose(tapes.weights[row], weights)


def fused():
    network = layer(fusion=True)
    words = torch.randn(2, WORDS, INPUT, dtype=torch.float64)
    source = Tapes(*(torch.randn(2, 4, HIDDEN, dtype=torch.float64) for _ in range(2)))
    return network, words, source


def test_deep_fusion_is_that_of_the_paper_and_ignores_padding():
    network, words, source = fused()
    lengths = torch.tensor([4, 2])
    tapes = network(words, network.fusion.remember(source, mask.padding(lengths, 4)), weights=True)
    for row, length in enumerate(lengths.tolist()):
        other = (source.hidden[row, :length].numpy(), source.memory[row, :length].numpy())
        h, c, weights = read_as_written(network, words[row].numpy(), other)
        np.testing.assert_allclose(tapes.hidden[row].detach(), h)
        np.testing.assert_allclose(tapes.memory[row].detach(), c)
        np.testing.assert_allclose(tapes.weights[row].detach(), weights)
    assert not tapes.source_weights[1, :, 2:].any()


def test_gradients_of_deep_fusion():
    network, words, source = fused()
    everywhere = torch.ones(2, 1, 4, dtype=torch.bool)

    def read(words, hidden, memory):
        tapes = network(words, network.fusion.remember(Tapes(hidden, memory), everywhere))
        return tapes.hidden, tapes.memory

    inputs = [part.requires_grad_() for part in (words[:, :3], source.hidden, source.memory)]
    assert torch.autograd.gradcheck(read, inputs)


@pytest.mark.parametrize("options", [{}, {"span": 2}, {"fusion": True}])
def test_word_by_word_equals_all_at_once(options):
    network, words = layer(**options), torch.randn(2, WORDS, INPUT, dtype=torch.float64)
    source = None
    if network.fusion is not None:
        tapes = Tapes(*(torch.randn(2, 4, HIDDEN, dtype=torch.float64) for _ in range(2)))
        source = network.fusion.remember(tapes, torch.ones(2, 1, 4, dtype=torch.bool))
    whole, tape = network(words, source, weights=True), network.start(2)
    for t in range(WORDS):
        tape, weights, _ = network.step(words[:, t], tape, source)
        torch.testing.assert_close(weights, whole.weights[:, t, :t])
    torch.testing.assert_close(tape.hidden, whole.hidden)
    torch.testing.assert_close(tape.memory, whole.memory)


def test_words_that_follow_change_nothing_before_them():
    network, words = layer(), torch.randn(2, WORDS, INPUT, dtype=torch.float64)
    torch.testing.assert_close(network(words[:, :4]).hidden, network(words).hidden[:, :4])


def test_weights_come_only_when_they_are_asked_for():
    assert layer()(torch.randn(1, 3, INPUT, dtype=torch.float64)).weights is None


def test_recurrent_dropout_is_for_training_only():
    network, words = layer(recurrent_dropout=0.5), torch.randn(2, WORDS, INPUT, dtype=torch.float64)
    assert not torch.equal(network(words).hidden, network(words).hidden)
    network.eval()
    torch.testing.assert_close(network(words).hidden, network(words).hidden)
    torch.testing.assert_close(network.train()(words[:, :1]).hidden, network.eval()(words[:, :1]).hidden)


def test_what_cannot_be_is_refused(as_a_user):
    with pytest.raises(OptionError, match=r"span must be 0 \(no bound\) or more; got -1"):
        LSTMN(2, 3, span=-1)
    with pytest.raises(ShapeError, match="reads a sentence beside another one"):
        layer(fusion=True)(torch.randn(1, 3, INPUT, dtype=torch.float64))
