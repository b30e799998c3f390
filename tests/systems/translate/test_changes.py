"""Models without a head, or with another alignment: exact, and without touching the original."""

import numpy as np
import pytest
import torch
from helpers.models import TEXTS, TRANSFORMER, small_translator

from regard.attention.heads import MultiHead
from regard.errors import OptionError
from regard.search.options import Search
from regard.systems.translate.changes import Change, head_names, with_alignment, without_heads
from regard.systems.translate.forced import SentenceDecoder
from regard.systems.translate.inspection import inspect, translate_with_change

TEXT = TEXTS[0]
SHORT = Search(max_length=5)


@pytest.fixture(scope="module")
def transformer():
    return small_translator(**TRANSFORMER)


def heads_by_name(model):
    """The attention of each part and layer."""
    parts = {}
    for number, layer in enumerate(model.encoder.layers, 1):
        parts[f"encoder {number}"] = layer.heads
    for number, layer in enumerate(model.decoder.layers, 1):
        parts[f"decoder {number}"], parts[f"cross {number}"] = layer.to_self, layer.to_source
    return parts


def log_prob(model, tokens):
    return SentenceDecoder(model, TEXT).log_prob(tokens)


@pytest.mark.parametrize("name", ["encoder 1.2", "decoder 2.1", "cross 1.1", "cross 2.2"])
def test_a_removed_head_contributes_nothing(transformer, name):
    """The same as setting what the head read to 0, where the heads are joined."""
    part, _, head = name.rpartition(".")
    attention = heads_by_name(transformer)[part]
    size = attention.dim // attention.num_heads
    tokens = list(inspect(transformer, TEXT, search=Search(beam=2, max_length=5), words=0).tokens)

    def silence(module, given):
        (read,) = given
        read = read.clone()
        read[..., (int(head) - 1) * size : int(head) * size] = 0
        return (read,)

    before = log_prob(transformer, tokens)
    hook = attention.output_layer.register_forward_pre_hook(silence)
    expected = log_prob(transformer, tokens)
    hook.remove()
    assert expected != pytest.approx(before, abs=1e-5), "this head does something"
    assert log_prob(without_heads(transformer, [name]), tokens) == pytest.approx(expected, abs=1e-5)
    assert log_prob(transformer, tokens) == before, "the model itself stays as it is"


def test_without_all_heads_of_a_layer_only_its_bias_is_left(transformer):
    model = without_heads(transformer, ["cross 1.1", "cross 1.2", "cross 1.2"])
    layer = heads_by_name(model)["cross 1"]
    query, states = torch.randn(2, 3, layer.dim), torch.randn(2, 5, layer.dim)
    with torch.no_grad():
        context = layer(query, layer.remember(states)).context
    torch.testing.assert_close(context, layer.output_layer.bias.expand_as(context))


def test_parameters_are_shared_with_the_model(transformer):
    model = without_heads(transformer, ["encoder 1.1"])
    ours, theirs = dict(transformer.named_parameters()), dict(model.named_parameters())
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if ours[name] is not theirs[name]] == ["encoder.layers.0.heads.output_layer.weight"]
    assert model.source_tokenizer is transformer.source_tokenizer
    assert not model.training
    assert sum(isinstance(each, MultiHead) for each in model.modules()) == 6


@pytest.mark.parametrize("decoder_layers", [0, 1])
def test_the_heads_are_named_as_in_a_trace(decoder_layers):
    model = small_translator(**TRANSFORMER, decoder_layers=decoder_layers)
    maps = inspect(model, TEXT, search=Search(max_length=3), words=0).trace.maps
    assert head_names(model) == [each.name for each in maps[1:]]
    assert head_names(small_translator()) == []


def test_a_change_of_heads_is_compared_with_the_original(transformer):
    change = Change(heads=("cross 1.1", "encoder 2.2"))
    again = translate_with_change(transformer, TEXT, change, search=SHORT)
    changed = without_heads(transformer, change.heads)
    assert again.after.text == inspect(changed, TEXT, search=SHORT).text
    assert again.after.log_prob == pytest.approx(log_prob(changed, again.after.tokens), abs=1e-5)
    assert again.after_unchanged == pytest.approx(log_prob(transformer, again.after.tokens), abs=1e-5)


def test_soft_attention_becomes_hard():
    model = small_translator(conditional=True)
    hard = with_alignment(model, "hard")
    weights = inspect(hard, TEXT, search=SHORT, words=0).trace.maps[0].weights
    assert (np.sort(weights)[:, :-1] == 0).all()
    assert (weights.max(1) == 1).all()
    assert inspect(model, TEXT, search=SHORT, words=0).trace.maps[0].weights.max() < 1
    own = small_translator(conditional=True, align="hard")
    own.load_state_dict(model.state_dict())
    assert inspect(own, TEXT, search=SHORT).log_prob == pytest.approx(inspect(hard, TEXT, search=SHORT).log_prob)


def test_what_cannot_be_changed_is_explained(transformer):
    for call, says in [
        (lambda: without_heads(transformer, ["cross 9.1"]), "no head 'cross 9.1'; its heads are 'encoder 1.1' to"),
        (lambda: without_heads(small_translator(), ["cross 1.1"]), "Only a Transformer has heads"),
        (lambda: with_alignment(transformer, "hard"), "Only RNNsearch and Luong"),
        (lambda: with_alignment(small_translator(), "local_p"), "one of softmax, hard"),
        (lambda: with_alignment(small_translator(architecture="plain"), "hard"), "Only RNNsearch and Luong"),
    ]:
        with pytest.raises(OptionError, match=says):
            call()
