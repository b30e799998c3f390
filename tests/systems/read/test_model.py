"""Readers of every task: batches, results, saving, generating, and errors."""

import numpy as np
import pytest
import torch
from helpers.models import READ_PAIRS, READ_TEXTS, READERS, small_reader

from regard.data.vocabulary import Vocabulary
from regard.errors import OptionError
from regard.systems.read.config import ReadingConfig
from regard.systems.read.model import Reader


def inputs(reader):
    return READ_PAIRS if reader.config.task == "entail" else READ_TEXTS


def said(reading):
    """What a reading says, rounded: batches differ in the last bits."""
    numbers = [*reading.surprisals, *reading.probabilities.values(), reading.perplexity or 0.0]
    return reading.words, reading.tags, reading.label, np.round(numbers, 4).tolist()


def test_surprisals_are_those_of_the_chain_rule():
    reader = small_reader("lstmn_model")
    reading = reader.read("the cat sat")
    log_probs, state, token = [], reader.network.begin(), torch.tensor([1])
    with torch.inference_mode():
        for word in [*reader.vocabulary.encode(["the", "cat", "sat"]), 2]:
            step = reader.network.step(token, state)
            log_probs.append(float(step.logits.log_softmax(-1)[0, word]))
            state, token = step.state, torch.tensor([word])
    np.testing.assert_allclose(reading.surprisals, -np.array(log_probs[:3]) / np.log(2), rtol=1e-5)
    assert reading.perplexity == pytest.approx(np.exp(-np.mean(log_probs)), rel=1e-5)
    assert reading.trace.values("surprisal") == pytest.approx(reading.surprisals)


@pytest.mark.parametrize("kind", ["lstmn_model", "self_attention_model", "tagger", "lstmn_classifier"])
def test_a_trace_is_lower_triangular_and_has_nothing_for_the_first_word(kind):
    trace = small_reader(kind).read(READ_TEXTS[0]).trace
    assert trace.kind == "reading"
    assert trace.source == trace.target == tuple(READ_TEXTS[0].split())
    assert np.array_equal(trace.weights, np.tril(trace.weights, -1))
    np.testing.assert_allclose(trace.weights.sum(1), [0] + [1] * 6, atol=1e-5)
    assert trace.axis("words").text == READ_TEXTS[0]


def test_traces_have_all_layers_and_heads_on_request():
    reader = small_reader("self_attention_model")
    names = [each.name for each in reader.read("the cat sat", traces="all").trace.maps]
    assert names == ["reading", "reading 1.1", "reading 1.2", "reading 2.1", "reading 2.2"]
    assert reader.read("the cat sat", traces="none").trace is None
    assert small_reader("lstm_model").read("the cat").trace.maps == ()
    assert small_reader("lstm_last_classifier").read("the cat").trace is None


def test_pairs_show_what_the_hypothesis_attended_to_in_the_premise():
    for kind in ("deep", "shallow", "aligned"):
        trace = small_reader(kind).read(READ_PAIRS[0], traces="all").trace
        assert trace.main.name == "between"
        assert (trace.main.rows, trace.main.columns) == ("words", "premise")
        np.testing.assert_allclose(trace.weights.sum(1), 1, atol=1e-5)
        assert {"reading", "premise"} <= {each.name for each in trace.maps}
    assert small_reader("entail").read(READ_PAIRS[0]).trace.main.name == "reading"


def test_probabilities_are_sorted_and_sum_to_one():
    reading = small_reader("lstmn_classifier").read("the cat")
    assert reading.label == next(iter(reading.probabilities))
    assert sum(reading.probabilities.values()) == pytest.approx(1)
    assert list(reading.probabilities.values()) == sorted(reading.probabilities.values(), reverse=True)
    plain = reading.to_dict()
    assert plain["label"] == reading.label
    assert plain["trace"]["kind"] == "reading"


def test_text_is_split_as_the_vocabulary_knows_it():
    reading = small_reader("lstmn_model").read("The cat didn't sleep!")
    assert reading.words == ("The", "cat", "did", "n't", "sleep")


def test_generated_text_continues_what_is_given():
    reader = small_reader("lstmn_model")
    reading = reader.generate("The cat", beam=3, nbest=2, max_length=4)
    assert reading.words[:2] == ("The", "cat")
    assert len(reading.words) <= 6
    longer = reader.generate("the cat sat on the", beam=2, min_length=4, max_length=6, traces="none")
    assert 5 + 4 <= len(longer.words) <= 5 + 6, "lengths are those of what is new"
    assert reader.generate("Zebras sat", max_length=2).text.startswith("Zebras sat")
    assert "<unk>" not in reading.text
    assert len(reading.alternatives) == 1
    assert reading.score >= reading.alternatives[0].score
    assert reading.trace.weights.shape == (len(reading.words),) * 2
    samples = [reader.generate(sample=True, seed=seed, max_length=5).text for seed in (1, 1, 2)]
    assert samples[0] == samples[1] != samples[2]
    prompts = ["the cat sat on the mat", "the", "", "a"]
    together = reader.generate(prompts, beam=2, max_length=3)
    assert [said(each) for each in together] == [said(reader.generate(each, beam=2, max_length=3)) for each in prompts]


@pytest.mark.parametrize("kind", READERS)
def test_one_word_is_a_sentence_and_emoji_are_left_out(kind):
    reader = small_reader(kind)

    def given(text):
        return (text, text) if reader.config.task == "entail" else text

    one, decorated = reader.read([given("cat"), given("🙂 cat 👩‍👩‍👧!")])
    assert one.words == decorated.words == ("cat",)
    assert said(one) == said(decorated)
    assert reader.read(given("🙂 ...")).words == ("🙂", "...")
    for nothing in ("", " \t "):
        with pytest.raises(OptionError, match="There is no word to read in"):
            reader.read(given(nothing))
    foreign = reader.read(given("Ένα 猫 Cat 猫"))
    assert foreign.words == ("Ένα", "猫", "Cat", "猫")
    assert foreign.unknown == ("Ένα", "猫")


def test_wrong_input_is_explained(as_a_user):
    with pytest.raises(OptionError, match="There is no word to read in ' '"):
        small_reader("lstmn_model").read(" ")
    with pytest.raises(OptionError, match=r"give \(premise, hypothesis\); got 'the cat'"):
        small_reader("deep").read("the cat")
    with pytest.raises(OptionError, match="A text to read is a string; got 7"):
        small_reader("tagger").read([7])
    with pytest.raises(OptionError, match="only for language models"):
        small_reader("tagger").generate("the")
    with pytest.raises(OptionError, match="prefix is the text itself here"):
        small_reader("lstmn_model").generate("the", prefix="a")
    with pytest.raises(OptionError, match=r"call model.eval|Call model.eval"):
        small_reader("tagger").train().read("the")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"cell": "lstm", "span": 3}, "span is for the cell lstmn or self-attention, and lstm would ignore it"),
        ({"fusion": "deep"}, "fusion is for the task entail, and language-model would ignore it"),
        ({"direction": "both"}, "must not see the words that it predicts"),
        ({"task": "entail", "cell": "lstm", "fusion": "deep"}, "Deep fusion is part of a forward lstmn"),
        ({"cell": "self-attention", "hidden": 10, "heads": 3}, "hidden must be a multiple of heads"),
        ({"task": "tag", "labels_from": "attended"}, "are for the cell self-attention; got cell 'lstmn'"),
        ({"task": "summarize"}, "task must be one of language-model, classify, entail, tag"),
    ],
)
def test_settings_that_do_not_fit_are_refused(config, message, as_a_user):
    with pytest.raises(OptionError, match=message):
        ReadingConfig(**config)


def test_labels_belong_to_tasks_that_have_some():
    vocabulary = Vocabulary.build([["a"]])
    with pytest.raises(OptionError, match="has some labels"):
        Reader(ReadingConfig(task="tag"), vocabulary)
    with pytest.raises(OptionError, match="has no labels"):
        Reader(ReadingConfig(), vocabulary, ["a"])
