"""Translators of every architecture: batches, search options, saving, and errors."""

from itertools import product

import numpy as np
import pytest
import torch
from helpers.models import TEXTS, TRANSFORMER, TRANSLATORS, small_translator

from regard.attention.heads import MultiHead
from regard.data.tokenizer import END, START, UNKNOWN, Tokenizer
from regard.errors import OptionError
from regard.search.hypothesis import Hypothesis
from regard.systems.translate.model import Translator


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(TEXTS * 3, size=60)


def outputs(model, texts, **options):
    return [
        [(one.text, round(one.score, 4)) for one in (best, *best.alternatives)]
        for best in model.translate(texts, **options)
    ]


@pytest.mark.parametrize("kind", ["rnnsearch", "transformer"])
def test_a_batch_equals_its_sentences_where_outputs_never_end(tokenizer, kind):
    model = small_translator(tokenizer, **TRANSLATORS[kind])
    with torch.no_grad():
        model.decoder.output.bias[END] = -100.0
    together = model.translate(TEXTS)
    assert outputs(model, TEXTS) == [outputs(model, [text])[0] for text in TEXTS]
    for one, cost in zip(together, model.costs(TEXTS), strict=True):
        assert not one.finished
        assert len(one.trace.target) == 2 * cost + 10


def test_a_translation_carries_its_attention(tokenizer):
    trace = small_translator(tokenizer).translate("a dog is running .", max_length=6).trace
    assert trace.kind == "translation"
    assert trace.main.name == "cross"
    assert trace.source[-1] == "</s>"
    assert trace.axis("source").text == "a dog is running ."
    assert len(trace.weights) == len(trace.target) == len(trace.values("log_prob"))
    assert trace.weights.sum(1) == pytest.approx(np.ones(len(trace.target)), abs=1e-4)
    plain = small_translator(tokenizer, architecture="plain")
    assert plain.translate("a dog", max_length=6).trace is None
    assert plain.translate("a dog", max_length=6, traces="all").trace is None


def test_unknown_words_are_replaced_through_the_attention(monkeypatch):
    words = Tokenizer.train(["the dog sees the cat"] * 3, kind="word", size=30)
    model = small_translator(words)
    weights = np.array([[0.1, 0.8, 0.1], [0.7, 0.2, 0.1], [0.0, 0.1, 0.9]], np.float32)
    hypothesis = Hypothesis([words.encode("the")[0], UNKNOWN], [-1.0, -1.0, -1.0], -1.0, True, weights)
    monkeypatch.setattr(model, "hypotheses", lambda *args, **options: [[hypothesis]])
    assert model.translate("snark dog").text == "the ⁇"
    assert model.translate("snark dog", replace_unknown=True).text == "the snark"


def test_search_options_reach_the_search(tokenizer):
    model = small_translator(tokenizer)
    assert model.translate("a dog", prefix="two dogs", max_length=8).text.startswith("two dogs")
    assert len(model.translate("a dog", beam=4, nbest=4, max_length=5).alternatives) == 3
    drawn = [model.translate("a dog", sample=True, nbest=3, seed=7, max_length=9) for _ in range(2)]
    assert drawn[0] == drawn[1]
    other = model.translate("a dog", sample=True, nbest=3, seed=8, max_length=9)
    assert [one.text for one in (other, *other.alternatives)] != [
        one.text for one in (drawn[0], *drawn[0].alternatives)
    ]
    cut = model.translate("a dog", min_length=4, max_length=4)
    assert not cut.finished
    assert len(cut.trace.target) == 4


def test_wrong_calls_are_explained(tokenizer, as_a_user):
    model = small_translator(tokenizer)
    with pytest.raises(OptionError, match="takes a text or a list of texts; got None"):
        model.translate(["a dog", None])
    with pytest.raises(OptionError, match="nbest must not exceed beam, 5"):
        model.translate(["a dog"], nbest=6)
    with pytest.raises(OptionError, match="the encoder has 20 features and the decoder 10"):
        small_translator(tokenizer, architecture="luong", score="dot")
    with pytest.raises(OptionError, match="coverage is for the architecture rnnsearch or luong, and transformer would"):
        small_translator(tokenizer, **TRANSFORMER, coverage=True)
    other = Tokenizer.train(["quite other words here"] * 3, size=60)
    with pytest.raises(OptionError, match="one joint vocabulary"):
        Translator(small_translator(tokenizer, share_embeddings="all").config, tokenizer, other)


@pytest.fixture(scope="module")
def transformer(tokenizer):
    return small_translator(tokenizer, **(TRANSFORMER | {"layers": 3}))


def recomputed_maps(model, text, tokens):
    """Each head's weights by softmax(q k' / sqrt(d)), from what each MultiHead gets in a pass that asks for no maps."""
    seen = {}
    hooks = [
        module.register_forward_pre_hook(lambda module, inputs: seen.update({module: inputs[0]}))
        for module in model.modules()
        if isinstance(module, MultiHead)
    ]
    source = torch.tensor([[*model.source_tokenizer.encode(text), END]])
    with torch.no_grad():
        encoded = model.encode(source, torch.tensor([source.shape[1]]))
        model.decoder(encoded, torch.tensor([[START, *tokens]]))
    for hook in hooks:
        hook.remove()

    def weights(heads, states, causal=False):
        query, key = (
            layer(features)[0].unflatten(-1, (heads.num_heads, -1)).transpose(0, 1)
            for layer, features in ((heads.query_layer, seen[heads]), (heads.key_layer, states))
        )
        logits = query @ key.mT / query.shape[-1] ** 0.5
        if causal:
            logits = logits.masked_fill(torch.ones(logits.shape[-2:]).triu(1).bool(), -torch.inf)
        return logits.softmax(-1).detach().numpy()

    maps = {}
    for number, layer in enumerate(model.encoder.layers, 1):
        maps["encoder", number] = weights(layer.heads, seen[layer.heads])
    for number, layer in enumerate(model.decoder.layers, 1):
        maps["decoder", number] = weights(layer.to_self, seen[layer.to_self], causal=True)
        maps["cross", number] = weights(layer.to_source, encoded.states)
    return {f"{kind} {n}.{h}": table for (kind, n), heads in maps.items() for h, table in enumerate(heads, 1)}


AXES = {"encoder": ("source", "source"), "decoder": ("target", "history"), "cross": ("target", "source")}


@pytest.mark.parametrize("options", [{}, {"max_length": 3, "min_length": 3}, {"sample": True, "seed": 5}])
def test_all_maps_are_those_of_the_returned_hypotheses(transformer, options, monkeypatch):
    search, hypotheses = transformer.hypotheses, []
    monkeypatch.setattr(transformer, "hypotheses", lambda *inputs: hypotheses.append(search(*inputs)) or hypotheses[-1])
    texts = sorted(TEXTS[:3], key=len, reverse=True)  # the order in which they are decoded
    results = transformer.translate(texts, **{"beam": 5, "nbest": 3, "max_length": 9, **options}, traces="all")
    assert len({len(result.trace.source) for result in results}) == 3, "padding must be cut off"
    names = [f"{kind} {layer}.{head}" for kind in AXES for layer, head in product((1, 2, 3), (1, 2))]
    for text, result, found in zip(texts, results, hypotheses[0], strict=True):
        assert len(found) == 3
        for one, hypothesis in zip((result, *result.alternatives), found, strict=True):
            trace = one.trace
            assert transformer.target_tokenizer.decode(hypothesis.tokens) == one.text
            assert len(trace.target) == len(hypothesis.tokens) + one.finished
            assert trace.axis("history").labels == ("<s>", *trace.target)[: len(trace.target)]
            assert [each.name for each in trace.maps] == ["cross", *names]
            expected = recomputed_maps(transformer, text, hypothesis.tokens)
            for each in trace.maps[1:]:
                kind, place = each.name.split()
                assert place == f"{each.layer}.{each.head}"
                assert (each.rows, each.columns) == AXES[kind]
                rows, columns = len(trace.axis(each.rows)), len(trace.axis(each.columns))
                np.testing.assert_allclose(each.weights, expected[each.name][:rows, :columns], atol=2e-6)
                assert each.weights.sum(1) == pytest.approx(np.ones(rows), abs=1e-5)
            heads = [trace.map(f"cross {transformer.decoder.shown_layer + 1}.{head}").weights for head in (1, 2)]
            np.testing.assert_allclose(np.mean(heads, axis=0), trace.main.weights, atol=2e-6)


def test_what_is_traced_changes_neither_text_nor_score(transformer):
    found = {
        traces: transformer.translate(TEXTS, nbest=2, max_length=9, traces=traces) for traces in ("main", "all", "none")
    }
    for main, every, none in zip(*found.values(), strict=True):
        for one, two, three in zip(*((best, *best.alternatives) for best in (main, every, none)), strict=True):
            assert (one.text, one.score, one.finished) == (two.text, two.score, two.finished)
            assert (one.text, one.score, one.finished) == (three.text, three.score, three.finished)
            assert [each.name for each in one.trace.maps] == ["cross"]
            assert one.trace.main == two.trace.main
            assert three.trace is None


def test_maps_are_computed_only_when_asked_for(transformer):
    asked = []
    hooks = [
        module.register_forward_pre_hook(
            lambda module, inputs, options, name=name: asked.append((name, options["weights"])), with_kwargs=True
        )
        for name, module in transformer.named_modules()
        if isinstance(module, MultiHead)
    ]
    try:
        for traces in ("none", "main"):
            transformer.translate(TEXTS[:2], max_length=5, traces=traces)
            shown = f"decoder.layers.{transformer.decoder.shown_layer}.to_source"
            assert {name for name, weights in asked if weights} == {shown}
            assert len([name for name, _ in asked if name.startswith("encoder")]) == 3, "the source is encoded once"
            asked.clear()
        transformer.translate(TEXTS[:2], max_length=5, traces="all")
        assert {name for name, weights in asked if weights} == {name for name, _ in asked}
    finally:
        for hook in hooks:
            hook.remove()


@pytest.mark.parametrize(
    "config",
    [
        {"score": "cosine", "hidden": 12, "encoder_hidden": 6},
        {"score": "projected", "align": "local_bell", "window": 3},
        {"architecture": "luong", "score": "scaled_dot", "hidden": 12, "encoder_hidden": 6},
    ],
)
def test_every_score_of_the_lectures_serves_a_translator(tokenizer, tmp_path, config):
    model = small_translator(tokenizer, **config)
    model.save(tmp_path / "model")
    again = Translator.load(tmp_path / "model")
    assert outputs(again, TEXTS, max_length=6) == outputs(model, TEXTS, max_length=6)
    strengths = [each for name, each in model.named_parameters() if name.endswith("score.strength")]
    assert len(strengths) == (config["score"] == "cosine"), "the key strength is learned"


def test_the_output_state_of_the_lectures_is_that_after_the_step(tokenizer):
    before, after = (small_translator(tokenizer, output_state=state) for state in ("before", "after"))
    after.load_state_dict(before.state_dict())
    source = torch.tensor([tokenizer.encode(TEXTS[0])])
    target = torch.tensor([[START, *tokenizer.encode(TEXTS[1])]])
    with torch.no_grad():
        encoded = before.encode(source, torch.tensor([source.shape[1]]))
        state = before.decoder.start(encoded)
        for step, token in enumerate(target[0]):
            old = state.cells[0][0]
            found = before.decoder.step(token[None], state)
            state = found.state
            embedded = before.decoder.embedding(token[None, None])
            context = found.attended.context
            for model, hidden in ((before, old), (after, state.cells[0][0])):
                expected = model.decoder.output(model.decoder.features(embedded, hidden[:, None], context))[:, 0]
                unrolled = model.decoder(encoded, target[:, : step + 1])
                torch.testing.assert_close(model.decoder.output(unrolled.features)[:, -1], expected)
    with pytest.raises(OptionError, match="remove output_state"):
        small_translator(tokenizer, conditional=True, output_state="after")
