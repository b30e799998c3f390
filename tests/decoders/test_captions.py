"""Adaptive attention: the sentinel competes with the cells, as in the equations of Lu et al. 2017."""

from dataclasses import replace

import torch
from helpers.decoders import HIDDEN, VOCABULARY, make, sources


def test_the_sentinel_is_one_more_key_of_the_softmax():
    encoder, decoder = make("adaptive")
    encoded, target = encoder(*sources()), torch.randint(3, VOCABULARY, (len(sources()[0]), 4))
    unrolled = decoder(encoded, target, weights=True)
    state = decoder.start(encoded)
    image = encoded.summary[:, -decoder.image_layer.in_features :]
    (hidden, cell), scored = state.cells[0], decoder.attention.score
    for step in range(4):
        word = decoder.embedding(target[:, step])
        inputs = decoder.word_layer(word) + decoder.image_layer(image)
        gate = torch.sigmoid(inputs[:, -HIDDEN:] + hidden @ decoder.sentinel_gate.weight.T)
        hidden, cell = decoder.cell(inputs[:, :-HIDDEN], (hidden, cell))
        sentinel = decoder.sentinel_layer(gate * torch.tanh(cell))
        for row in range(len(target)):
            cells = encoded.states[row][encoded.mask[row, 0]]
            keys = torch.cat([cells, sentinel[row : row + 1]])
            chances = scored(hidden[row].view(1, 1, -1), keys.unsqueeze(0))[0, 0].softmax(-1)
            context = chances @ keys
            features = word[row] + decoder.deep_state(hidden[row]) + decoder.deep_context(context)
            torch.testing.assert_close(unrolled.features[row, step], features, atol=1e-5, rtol=1e-4)
            torch.testing.assert_close(unrolled.gates[row, step], 1 - chances[-1], atol=1e-5, rtol=1e-4)
            alpha = chances[:-1] / chances[:-1].sum()
            torch.testing.assert_close(unrolled.weights[row, step, : len(cells)], alpha, atol=1e-5, rtol=1e-4)


def test_the_weights_of_the_cells_sum_to_one_whatever_the_sentinel_takes():
    encoder, decoder = make("adaptive")
    encoded, target = encoder(*sources()), torch.randint(3, VOCABULARY, (len(sources()[0]), 3))
    torch.testing.assert_close(decoder(encoded, target, weights=True).weights.sum(-1), torch.ones(target.shape))


def test_without_a_cell_to_attend_to_all_attention_is_on_the_sentinel():
    encoder, decoder = make("adaptive")
    encoded, target = encoder(*sources()), torch.randint(3, VOCABULARY, (len(sources()[0]), 3))
    mask = encoded.mask.clone()
    mask[1] = False
    unrolled = decoder(replace(encoded, mask=mask), target, weights=True)
    assert not unrolled.weights[1].any()
    assert not unrolled.gates[1].any()
    others = [row for row in range(len(target)) if row != 1]
    torch.testing.assert_close(unrolled.features[others], decoder(encoded, target).features[others])
    unrolled.features.sum().backward()
    assert all(part.grad.isfinite().all() for part in decoder.parameters() if part.grad is not None)


def test_half_precision_is_scored_and_summed_in_float32(monkeypatch):
    encoder, decoder = make("adaptive")
    encoded, target = encoder(*sources()), torch.randint(3, VOCABULARY, (len(sources()[0]), 3))
    compare, seen = decoder.attention.score.compare, []

    def watched(query, key):
        logits = compare(query, key)
        seen.extend((query.dtype, key.dtype, logits.dtype))
        return logits

    monkeypatch.setattr(decoder.attention.score, "compare", watched)
    expected = decoder(encoded, target, weights=True)
    with torch.autocast("cpu", torch.bfloat16):
        unrolled = decoder(encoded, target, weights=True)
    assert set(seen) == {torch.float32}
    torch.testing.assert_close(unrolled.gates, expected.gates, atol=0.02, rtol=0)
    torch.testing.assert_close(unrolled.weights.float(), expected.weights, atol=0.02, rtol=0)
