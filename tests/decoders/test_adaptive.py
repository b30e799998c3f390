"""Adaptive attention: the sentinel competes with the cells, as in the equations of Lu et al. 2017."""

import torch
from systems_small import HIDDEN, VOCABULARY, make, sources


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
