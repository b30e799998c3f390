"""The attention of Hugging Face models as traces, from what their outputs look like."""

from collections import UserDict
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from regard import Trace
from regard.errors import OptionError, ShapeError
from regard.trace.subwords import plain_tokens


class Tokenizer:
    """Ids are positions in a list of tokens."""

    def __init__(self, *tokens):
        self.tokens = tokens

    def convert_ids_to_tokens(self, ids):
        return [self.tokens[each] for each in ids]


def attention(layers, batch, heads, rows, columns):
    return tuple(torch.rand(batch, heads, rows, columns).softmax(-1) for _ in range(layers))


def test_an_encoder_gives_every_layer_and_head():
    tokenizer = Tokenizer("[PAD]", "[CLS]", "play", "##ing", "[SEP]")
    inputs = UserDict(
        input_ids=torch.tensor([[1, 2, 4, 0], [1, 2, 3, 4]]), attention_mask=torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]])
    )
    output = SimpleNamespace(attentions=attention(2, 2, 3, 4, 4))
    trace = Trace.from_transformers(output, inputs, tokenizer)
    assert trace.source == trace.target == ("[CLS]", "play", "[SEP]"), "padding is left out"
    assert [each.name for each in trace.maps] == ["self", *(f"self {la}.{h}" for la in (1, 2) for h in (1, 2, 3))]
    assert trace.map("self 2.3").weights == pytest.approx(output.attentions[1][0, 2, :3, :3].numpy())
    mean = torch.stack(output.attentions)[:, 0, :, :3, :3].mean((0, 1))
    assert trace.weights == pytest.approx(mean.numpy(), abs=1e-6)
    second = Trace.from_transformers(output, inputs, tokenizer, example=1)
    assert second.source == ("[CLS]", "play", "ing", "[SEP]")
    assert second.axis("tokens").text == "playing"
    assert Trace.from_json(second.to_json()) == second


def test_tuples_dictionaries_and_plain_tokens_are_taken_too():
    weights = attention(1, 1, 2, 2, 2)
    traces = [Trace.from_transformers(given, ["a", "b"]) for given in (weights, {"attentions": weights}, list(weights))]
    assert traces[0] == traces[1] == traces[2]


def test_an_encoder_and_decoder_give_cross_attention_first():
    output = SimpleNamespace(
        encoder_attentions=attention(1, 1, 2, 3, 3),
        decoder_attentions=attention(1, 1, 2, 2, 2),
        cross_attentions=attention(1, 1, 2, 2, 3),
        attentions=None,
    )
    tokenizer = Tokenizer("▁The", "▁dog", "</s>", "▁Le", "▁chien")
    trace = Trace.from_transformers(output, torch.tensor([[0, 1, 2]]), tokenizer, target=[[3, 4]])
    assert (trace.target, trace.source) == (("Le", "chien"), ("The", "dog", "</s>"))
    assert trace.main.name == "cross"
    assert trace.weights == pytest.approx(output.cross_attentions[0][0].mean(0).numpy(), abs=1e-6)
    assert trace.axis("history").labels == ("<s>", "Le"), "what the decoder was given"
    assert trace.map("decoder 1.2").rows == "history"
    assert trace.map("encoder 1.1").rows == "source"


def test_the_steps_of_generate_are_joined():
    steps = tuple(attention(2, 3, 2, 1, 4) for _ in range(3))
    own = tuple(attention(2, 3, 2, 1, step + 1) for step in range(3))
    tokenizer = Tokenizer("<pad>", "▁a", "▁b", "</s>")
    sequences = torch.tensor([[0, 1, 2, 3]] * 3)
    output = SimpleNamespace(cross_attentions=steps, decoder_attentions=own, sequences=sequences)
    trace = Trace.from_transformers(output, ["w", "x", "y", "z"], tokenizer, target=output.sequences, example=1)
    assert trace.target == ("a", "b", "</s>"), "the rows are what was generated, not what the decoder started with"
    assert trace.axis("history").labels == ("<pad>", "a", "b")
    expected = np.stack([layers[1][1, 0, 0].numpy() for layers in steps])
    assert trace.map("cross 2.1").weights == pytest.approx(expected)
    assert trace.map("decoder 1.1").weights[0].tolist() == [own[0][0][1, 0, 0, 0].item(), 0, 0]
    beams = SimpleNamespace(**vars(output), beam_indices=torch.tensor([[0, 2, 1]]))
    followed = Trace.from_transformers(beams, ["w", "x", "y", "z"], tokenizer, target=output.sequences)
    expected = np.stack([steps[step][0][beam, 1, 0].numpy() for step, beam in enumerate((0, 2, 1))])
    assert followed.map("cross 1.2").weights == pytest.approx(expected), "a hypothesis changes its position in the beam"


def test_a_language_model_that_generates_gives_one_square():
    first, second = attention(1, 1, 2, 2, 2), attention(1, 1, 2, 1, 3)
    trace = Trace.from_transformers(SimpleNamespace(attentions=(first, second)), ["Ġthe", "Ġcat", "Ġsat", "Ġdown"])
    assert trace.source == ("the", "cat", "sat"), "the last token was never an input"
    assert trace.weights.shape == (3, 3)
    assert trace.weights[0, 2] == 0
    assert trace.map("self 1.2").weights[2] == pytest.approx(second[0][0, 1, 0].numpy())


@pytest.mark.parametrize(
    ("tokens", "labels", "text"),
    [
        (["▁The", "▁Europe", "an", "</s>"], ["The", "Europe", "an", "</s>"], "The European"),
        (["Ġthe", "Ġcaf", "Ã©", "<|endoftext|>"], ["the", "caf", "é", "<|endoftext|>"], "the café"),
        (["[CLS]", "play", "##ing", ".", "[SEP]"], ["[CLS]", "play", "ing", ".", "[SEP]"], "playing ."),
        (["[CLS]", "plain", "words", "[SEP]"], ["[CLS]", "plain", "words", "[SEP]"], "plain words"),
        (["play", "ing</w>", "<3</w>", "<|endoftext|>"], ["play", "ing", "<3", "<|endoftext|>"], "playing <3"),
        (["play@@", "ing", "cards"], ["play", "ing", "cards"], "playing cards"),
        (["▁", "a"], ["␣", "a"], "a"),
    ],
)
def test_the_marks_of_tokenizers_are_removed(tokens, labels, text):
    assert plain_tokens(tokens) == (labels, text)


def test_words_without_a_subword_among_them_stay_words():
    trace = Trace.from_transformers(attention(1, 1, 2, 5, 5), ["[CLS]", "the", "cat", "sat", "[SEP]"])
    assert trace.by_words() == trace
    assert trace.axis("tokens").text == "the cat sat"


def test_an_encoding_without_a_batch_is_one_example():
    tokenizer, weights = Tokenizer("[CLS]", "the", "cat", "[SEP]", "[PAD]"), attention(1, 1, 2, 5, 5)
    inputs = {"input_ids": [0, 1, 2, 3, 4], "attention_mask": [1, 1, 1, 1, 0]}
    trace = Trace.from_transformers(weights, inputs, tokenizer)
    assert trace.source == ("[CLS]", "the", "cat", "[SEP]")
    batch = {name: torch.tensor([values]) for name, values in inputs.items()}
    assert trace == Trace.from_transformers(weights, batch, tokenizer)


WEIGHTS = attention(1, 2, 2, 3, 3)
CROSS = {"cross_attentions": WEIGHTS}


@pytest.mark.parametrize(
    ("output", "inputs", "options", "kind", "message"),
    [
        (SimpleNamespace(attentions=None), "a", {}, OptionError, r"SimpleNamespace has no .*implementation='eager'"),
        (SimpleNamespace(attentions=(None, None)), "a", {}, OptionError, "no attention weights"),
        (WEIGHTS, [1, 2, 3], {}, OptionError, "Ids need the tokenizer"),
        (WEIGHTS, "abc", {"example": 2}, OptionError, r"example must be from 0 to 1.*got 2"),
        (WEIGHTS, "abcdefg", {}, ShapeError, "inputs has 7 tokens, but the attention has 3 rows"),
        ((torch.ones(3, 3),), "abc", {}, ShapeError, r"must be \(batch, heads, rows, columns\); got shape \(3, 3\)"),
        (CROSS, "abc", {}, OptionError, "give target="),
        (WEIGHTS, "abc", {"target": list("abc")}, OptionError, "this output has self-attention only"),
        (CROSS, "abcd", {"target": list("abc")}, ShapeError, "The attention is 3 x 3, but there are 3 x 4 tokens"),
    ],
)
def test_what_has_no_attention_or_does_not_fit_is_explained(output, inputs, options, kind, message):
    with pytest.raises(kind, match=message):
        Trace.from_transformers(output, list(inputs), **options)
