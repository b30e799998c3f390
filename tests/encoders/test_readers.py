"""Readers of every kind: word by word as all at once, a batch as its sentences one by one."""

import pytest
import torch

from regard.encoders.lstmn_reader import LSTMNReader
from regard.encoders.readers import Bidirectional, LSTMReader, SelfAttentionReader
from regard.errors import OptionError

INPUT, HIDDEN, WORDS = 6, 10, 7
LENGTHS = torch.tensor([7, 4, 1])

FORWARD = {
    "lstm": lambda: LSTMReader(INPUT, HIDDEN, num_layers=2, skip=True),
    "lstmn": lambda: LSTMNReader(INPUT, HIDDEN, num_layers=2, attention_dim=3),
    "lstmn_skip_span": lambda: LSTMNReader(INPUT, HIDDEN, num_layers=3, skip=True, span=2),
    "self_attention": lambda: SelfAttentionReader(INPUT, HIDDEN, num_layers=2, num_heads=2),
    "self_attention_span": lambda: SelfAttentionReader(INPUT, HIDDEN, num_layers=2, span=2),
    "self_attention_to_words": lambda: SelfAttentionReader(INPUT, HIDDEN, num_layers=2, attend_to_words=True),
}
BOTH = {
    "lstmn_both": lambda: Bidirectional(LSTMNReader(INPUT, HIDDEN), LSTMNReader(INPUT, HIDDEN)),
    "lstm_both": lambda: Bidirectional(LSTMReader(INPUT, HIDDEN), LSTMReader(INPUT, HIDDEN)),
    "self_attention_both": lambda: SelfAttentionReader(INPUT, HIDDEN, num_layers=2, bidirectional=True),
    "self_attention_look_back": lambda: SelfAttentionReader(
        INPUT, HIDDEN, num_layers=2, bidirectional=True, look_back=True, attend_to_words=True
    ),
}
ALL = FORWARD | BOTH


@pytest.mark.parametrize("kind", FORWARD)
def test_word_by_word_equals_all_at_once(kind):
    reader, words = FORWARD[kind]().eval(), torch.randn(3, WORDS, INPUT)
    states, state = reader(words).states, None
    for t in range(WORDS):
        features, state = reader.step(words[:, t], state)
        torch.testing.assert_close(features, states[:, t])


@pytest.mark.parametrize("kind", ALL)
def test_a_batch_equals_its_sentences_one_by_one(kind):
    reader, words = ALL[kind]().eval(), torch.randn(3, WORDS, INPUT)
    together = reader(words, LENGTHS, weights=True)
    assert together.states.shape[-1] == reader.dim
    for row, length in enumerate(LENGTHS.tolist()):
        alone = reader(words[row : row + 1, :length], LENGTHS[row : row + 1], weights=True)
        torch.testing.assert_close(alone.states[0], together.states[row, :length])
        for one, other in zip(alone.maps, together.maps, strict=True):
            torch.testing.assert_close(one[0], other[row, :, :length, :length])
            assert not other[row, :, :length, length:].any()


@pytest.mark.parametrize("kind", FORWARD)
def test_a_forward_reader_does_not_see_what_follows(kind):
    reader, words = FORWARD[kind]().eval(), torch.randn(2, WORDS, INPUT)
    sentences = reader(words, weights=True)
    torch.testing.assert_close(reader(words[:, :3]).states, sentences.states[:, :3])
    for weights in sentences.maps:
        assert torch.equal(weights, weights.tril(-1))
    assert bool(sentences.maps) == (kind != "lstm")


@pytest.mark.parametrize("kind", BOTH)
def test_a_bidirectional_reader_sees_what_follows(kind):
    reader, words = BOTH[kind]().eval(), torch.randn(1, WORDS, INPUT)
    changed = words.clone()
    changed[:, -1] += 1.0
    assert not torch.allclose(reader(words).states[:, 0], reader(changed).states[:, 0])
    for weights in reader(words, weights=True).maps:
        assert not weights.diagonal(dim1=-2, dim2=-1).any()
    with pytest.raises(OptionError, match="cannot read word by word"):
        reader.step(words[:, 0], None)


def test_looking_back_is_for_the_last_layer():
    reader = BOTH["self_attention_look_back"]().eval()
    first, last = reader(torch.randn(2, WORDS, INPUT), weights=True).maps
    assert first.triu(1).any()
    assert torch.equal(last, last.tril(-1))


def test_attention_to_words_reads_the_words_and_not_the_states():
    """What is attended to in the last layer does not change with the context of the words, only with the query."""
    reader, words = FORWARD["self_attention_to_words"]().eval(), torch.randn(1, WORDS, INPUT)
    attended = reader(words, weights=True)
    entered = reader.positioned(words, 0)
    layer = reader.layers[1]
    values = layer.heads.value_layer(layer.around_heads.norm(entered))
    expected = layer.heads.output_layer(attended.maps[1][0, 0] @ values[0])
    torch.testing.assert_close(attended.attended[0], expected)


def test_deep_fusion_needs_tapes():
    reader = LSTMNReader(INPUT, HIDDEN, num_layers=2, fusion=True).eval()
    source, words = LSTMNReader(INPUT, HIDDEN, num_layers=2).eval(), torch.randn(3, WORDS, INPUT)
    premises = source(torch.randn(3, 5, INPUT), torch.tensor([5, 3, 2]))
    sentences = reader(words, LENGTHS, premises, weights=True)
    assert sentences.source_maps[1].shape == (3, 1, WORDS, 5)
    assert not sentences.source_maps[1][2, :, :, 2:].any()
    with pytest.raises(OptionError, match="needs the tapes of another sentence"):
        reader(words, LENGTHS, LSTMReader(INPUT, HIDDEN)(words))


@pytest.mark.parametrize("kind", ["lstm", "lstmn"])
def test_recurrent_dropout_changes_training_only(kind):
    build = {"lstm": LSTMReader, "lstmn": LSTMNReader}[kind]
    reader, words = build(INPUT, HIDDEN, recurrent_dropout=0.5), torch.randn(2, WORDS, INPUT)
    first = reader(words).states
    assert not torch.equal(first, reader(words).states)
    first.sum().backward()
    assert all(part.grad is not None for part in reader.parameters())
    torch.testing.assert_close(reader.eval()(words).states, reader(words).states)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
@pytest.mark.parametrize("fusion", [False, True])
def test_recorded_recurrences_give_the_same_states_and_gradients(fusion):
    reader = LSTMNReader(INPUT, HIDDEN, num_layers=2, fusion=fusion).cuda()
    source = LSTMNReader(INPUT, HIDDEN, num_layers=2).cuda()
    words, other = torch.randn(3, WORDS, INPUT, device="cuda"), torch.randn(3, 5, INPUT, device="cuda")

    def read(**options):
        premises = source(other, torch.tensor([5, 3, 2])) if fusion else None
        states = reader(words, LENGTHS, premises, **options).states
        return states, torch.autograd.grad(states.square().sum(), list(reader.parameters()), allow_unused=True)

    wanted = read(weights=True)  # asking for weights runs without a graph
    for _ in range(4):  # run, record, replay, replay
        torch.testing.assert_close(read(), wanted, rtol=1e-4, atol=1e-4)
