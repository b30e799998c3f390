"""How far to trust attention: what erasing the attended part costs, beside a random one, for each kind of model."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

import regard
from regard.data.tokenizer import END, START
from regard.encoders.encoded import Encoded
from regard.systems import registry
from regard.systems.faithfulness import Ablation, _sentence
from regard.systems.tape.config import TapeOptions
from regard.systems.translate import faithfulness
from regard.systems.translate.faithfulness import MAX_ERASED_TOKENS
from regard.systems.translate.translation import Translation

TEXT = "The man in the red jacket is reading an old book."


@pytest.fixture(scope="module")
def photograph():
    from skimage import data

    return Image.fromarray(data.astronaut())


@pytest.mark.parametrize(
    ("name", "given", "parts"),
    [
        ("en-fr", TEXT, "source words"),
        ("en-fr", "He is happy. She reads.", "source words"),
        ("scenes", None, "cells of the image"),
        ("reviews-en", "I loved it. It was wonderful and moving.", "words"),
        ("reader-en", "The dog did not cross the street because it was tired.", "earlier words"),
        ("stories-both", "The animal didn't cross the street because it was too tired.", "earlier words"),
        ("tape-copy", "01100101 10010110 11110000", "slots of the memory"),
    ],
)
def test_attention_that_matters_is_told_from_chance(name, given, parts, photograph):
    found = regard.faithfulness(regard.load(name, device="cpu"), photograph if given is None else given)
    assert found.parts == parts
    assert 0 <= found.entropy <= found.uniform_entropy + 1e-9
    assert found.variation is None or 0 <= found.variation <= 1
    assert found.ablation.method.endswith(".")
    assert found.sentence == _sentence(found.ablation)
    assert found.ablation.attended > 1.5 * found.ablation.random


def test_a_model_without_attention_says_so(photograph):
    found = regard.faithfulness(regard.load("digits", device="cpu"), photograph.convert("L"))
    assert found.ablation is None
    assert "no attention" in found.sentence


def test_glimpses_are_judged_by_covering_their_places(photograph):
    found = regard.faithfulness(regard.load("glimpse-digits", device="cpu"), photograph)
    assert found.entropy is None, "a glimpse is at one place"
    assert np.isfinite([found.ablation.attended, found.ablation.random]).all()


def test_an_input_with_nothing_to_erase_has_no_faithfulness():
    shortest = {"en-fr": "Hi", "reviews-en": "good", "reader-en": "dog", "stories-both": "dog", "tape-copy": ""}
    for name, given in shortest.items():
        found = regard.faithfulness(regard.load(name, device="cpu"), given)
        assert found.ablation is None
        assert "could not be measured" in found.sentence


def test_sentences_of_very_many_tokens_are_not_erased_word_by_word(monkeypatch):
    model = regard.load("en-fr", device="cpu")
    endless = "zq" * (MAX_ERASED_TOKENS + 1)
    monkeypatch.setattr(faithfulness, "word_effects", lambda *pair: pytest.fail("this takes minutes"))
    for source, target in ((f"{endless} house", "la maison"), ("the house", f"{endless} maison")):
        assert (
            faithfulness.evidence(model, source, model.options({}), Translation(source, target, -1.0, True)).ablation
            is None
        )


def test_options_that_leave_out_traces_change_nothing():
    model, text = regard.load("reader-en", device="cpu"), "the old man reads a book"
    assert regard.faithfulness(model, text, traces="none") == regard.faithfulness(model, text)


def test_a_measured_correctness_is_repeated():
    model = regard.load("en-fr", device="cpu")
    assert regard.faithfulness(model, TEXT).measured == model.metrics["attention_measured"]


def test_every_family_with_attention_has_evidence():
    assert {each.name for each in registry.entries() if not each.evidence} == {"recognize"}


@pytest.mark.parametrize(
    ("attended", "random", "says"),
    [
        (3.0, 0.5, "6.0 times as much"),
        (3.0, -0.5, "far more than"),
        (1.1, 1.0, "somewhat"),
        (0.9, 1.0, "Do not take"),
        (0.09, 0.0, "only 0.09 of the probability"),
        (0.2, 0.19, "Little depends"),
        (0.01, 0.02, "hardly changes this output"),
        (-0.9, 0.02, "Do not take"),
    ],
)
def test_the_sentence_follows_from_the_numbers(attended, random, says):
    assert says in _sentence(Ablation(attended, random, "probability", ""))
    assert "could not be measured" in _sentence(None)


def test_the_effect_of_a_source_word_is_the_drop_of_the_forced_translation():
    from regard.systems.translate.faithfulness import word_effects

    model = regard.load("en-fr", device="cpu")
    source, target = ["He", "is", "happy", "."], ["Il", "est", "heureux", "."]

    @torch.inference_mode()
    def score(words):
        """The log-probability of each token, step by step."""
        ids = [*model.source_tokenizer.encode(" ".join(words)), END]
        state = model.decoder.start(model.encode(torch.tensor([ids]), torch.tensor([len(ids)])))
        token, scores = START, []
        for wanted in model.target_tokenizer.encode(" ".join(target)):
            step = model.decoder.step(torch.tensor([token]), state)
            scores.append(float(step.logits.float().log_softmax(-1)[0, wanted]))
            token, state = wanted, step.state
        return np.array(scores)

    owners = model.target_tokenizer.word_index(model.target_tokenizer.encode(" ".join(target)))
    expected = [np.bincount(owners, score(source) - score(source[:at] + source[at + 1 :])) for at in range(4)]
    np.testing.assert_allclose(word_effects(model, source, target), np.stack(expected, 1), atol=1e-4)


def test_the_effect_of_a_word_that_was_read_is_the_drop_of_the_next_word():
    from regard.systems.read.faithfulness import word_effects

    model = regard.load("reader-en", device="cpu")
    words = ["the", "old", "man", "reads", "a", "book"]
    found = word_effects(model, words)
    whole, without = (model.read(" ".join(each)).surprisals for each in (words, words[:1] + words[2:]))
    drops = [math.log(2) * (without[index - 1] - whole[index]) for index in range(3, 6)]
    np.testing.assert_allclose(found[2:5, 1], drops, atol=1e-4)
    assert np.isnan(found[np.triu_indices(6)]).all(), "a word has no effect on what was read before it"


def test_the_effect_of_a_word_on_a_label_is_the_drop_of_its_log_probability():
    from regard.systems.read.faithfulness import tag_effects

    model = regard.load("stories-both", device="cpu")
    words = ["the", "dog", "did", "n't", "cross", "the", "road", "because", "it", "was", "too", "wide", "."]
    found = tag_effects(model, words)

    @torch.inference_mode()
    def log_probs(words):
        return model.network(*model.padded([words])).logits[0].log_softmax(-1)

    whole, without = log_probs(words), log_probs([*words[:6], *words[7:]])
    label = model.labels.index("road")
    assert found[8, 6] == pytest.approx(float(whole[8, label] - without[7, label]), abs=1e-4)
    assert found[8, 6] > 3 > abs(found[8, 1]), "without the road, nothing is wide"
    assert np.isnan(np.diag(found)).all()


def test_blanking_a_slot_that_was_never_written_costs_nothing():
    from regard.systems.tape.faithfulness import slot_effects

    model = regard.load("tape-copy", device="cpu")
    tape = model.tape_of("01100101 10010110 11110000", replace(TapeOptions(), slots=64))
    weights, effects = slot_effects(model.network, tape, slots=64)
    assert weights.shape == effects.shape
    assert weights.shape[1] < 10, "only slots that hold something are blanked"
    chosen = effects[np.arange(len(effects)), weights.argmax(1)]
    assert (chosen > effects.mean(1)).all()


def test_hiding_all_but_some_cells_is_scored_as_an_image_with_only_these(photograph):
    from regard.systems.caption.faithfulness import encode, score

    model = regard.load("scenes", device="cpu")
    encoded = encode(model, photograph)
    tokens = model.tokenizer.encode("a red ring")
    kept = np.random.default_rng(1).random((2, 64)) < 0.5
    states = encoded.states[:, kept[1]]
    only = Encoded(states, torch.ones(1, 1, int(kept[1].sum()), dtype=torch.bool), states.mean(1))
    expected = score(model, only, tokens, np.ones((1, int(kept[1].sum())), dtype=bool))[0][0]
    np.testing.assert_allclose(score(model, encoded, tokens, kept)[0][1], expected, atol=1e-4)
