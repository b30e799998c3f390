"""Exported readers compute what torch computes."""

import numpy as np
import pytest
import torch
from helpers.exported import Exported, steps_of_both
from helpers.models import READ_TEXTS, READERS, small_reader

from regard.encoders.encoded import Encoded
from regard.errors import OptionError
from regard.systems.export import export

MODELS = ("lstm_model", "lstmn_model", "tied_model")
WHOLE = ("lstm_last_classifier", "self_attention_tagger")
REFUSED = {
    "self_attention_model",
    "lstmn_classifier",
    "lstmn_both_classifier",
    "tagger",
    "entail",
    "shallow",
    "aligned",
    "deep",
}


@pytest.mark.parametrize("kind", MODELS)
def test_every_step_of_an_exported_language_model_is_that_of_torch(kind, tmp_path):
    model = small_reader(kind)
    torch.nn.init.normal_(model.network.first)
    exported = Exported(export(model, tmp_path / "out", precision="float32"))
    model.network.start = lambda encoded: model.network.begin()
    beginnings = Encoded.whole(torch.zeros(3, 1, 1))
    steps = steps_of_both(exported, model.network, beginnings, {"input_ids": np.ones((3, 1), np.int64)})
    for outputs, step in steps:
        np.testing.assert_allclose(outputs["log_probs"], step.logits.log_softmax(-1), atol=1e-5)


def test_what_a_word_attends_to_is_among_the_outputs(tmp_path):
    model = small_reader("lstmn_model")
    exported = Exported(export(model, tmp_path / "out", precision="float32"))
    words = model.split(READ_TEXTS[0])
    ids, lengths = model.padded([words])
    with torch.no_grad():
        expected = model.network(ids, lengths, weights=True).sentences.maps[-1][0, 0]
    past = exported.run("encoder", input_ids=np.ones((1, 1), np.int64))
    for place, token in enumerate([1, *ids[0].tolist()]):
        outputs = exported.run("decoder", input_ids=np.array([token]), **past)
        past = {"past" + name[7:]: value for name, value in outputs.items() if name.startswith("present.")}
        if place:
            np.testing.assert_allclose(outputs["attention"][0], expected[place - 1, : place - 1], atol=1e-5)


@pytest.mark.parametrize("kind", WHOLE)
def test_the_labels_of_whole_sentences_are_those_of_torch(kind, tmp_path):
    model = small_reader(kind)
    exported = Exported(export(model, tmp_path / "out", precision="float32"))
    ids, lengths = model.padded([model.split(text) for text in READ_TEXTS])
    mask = (torch.arange(ids.shape[1]) < lengths.unsqueeze(1)).long()
    with torch.no_grad():
        expected = model.network(ids, lengths, weights=True)
    outputs = exported.run("model", input_ids=ids, attention_mask=mask)
    exists = mask.bool() if expected.logits.ndim == 3 else slice(None)
    np.testing.assert_allclose(outputs["logits"][exists], expected.logits[exists], atol=1e-5)
    for number, weights in enumerate(expected.sentences.maps, 1):
        for row, length in enumerate(lengths.tolist()):
            found = outputs[f"attention.{number}"][row, :, :length, :length]
            np.testing.assert_allclose(found, weights[row, :, :length, :length], atol=1e-5)


@pytest.mark.parametrize("kind", sorted(REFUSED))
def test_readers_without_a_graph_are_refused_with_the_reason(kind, tmp_path):
    with pytest.raises(OptionError, match="cannot be exported"):
        export(small_reader(kind), tmp_path / "out")
    assert set(READERS) == REFUSED | {*MODELS, *WHOLE}
