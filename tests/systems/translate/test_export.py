"""Exported translators compute what torch computes."""

import json

import numpy as np
import pytest
import torch
from helpers.exported import Exported, steps_of_both
from helpers.models import TEXTS, TRANSFORMER, TRANSLATORS, small_translator

import regard
from regard.data.batches import pad
from regard.data.tokenizer import END, Tokenizer
from regard.errors import DataError, OptionError
from regard.systems.export import export
from regard.systems.translate.model import Translator

MORE = {
    "concat": {"score": "concat"},
    "mlp": {"score": "mlp"},
    "scaled_dot": {"score": "scaled_dot", "encoder_hidden": 5},
    "sparsemax": {"align": "sparsemax"},
    "coverage": {"coverage": True},
    "coverage_dot": {"coverage": True, "architecture": "luong", "score": "dot", "encoder_hidden": 5},
    "conditional_lstm": {"conditional": True, "cell": "lstm"},
    "postnorm_head": TRANSFORMER | {"prenorm": False, "alignment_layer": 2, "alignment_head": 2},
    "short_location": {"architecture": "luong", "score": "location", "max_positions": 7},
}
KINDS = TRANSLATORS | MORE


def of_batch(model):
    ids, lengths = pad([[*model.source_tokenizer.encode(text), END] for text in TEXTS])
    mask = torch.arange(ids.shape[1]) < lengths.unsqueeze(1)
    with torch.no_grad():
        return model.encode(ids, lengths), {"input_ids": ids, "attention_mask": mask.long()}


@pytest.mark.parametrize("kind", KINDS)
def test_every_step_of_an_exported_translator_is_that_of_torch(kind, tmp_path):
    model = small_translator(**KINDS[kind])
    if KINDS[kind].get("coverage"):
        torch.nn.init.normal_(model.decoder.attention.direction)
    exported = Exported(export(model, tmp_path / "out", precision="float32"))
    encoded, inputs = of_batch(model)
    for outputs, step in steps_of_both(exported, model.decoder, encoded, inputs):
        np.testing.assert_allclose(outputs["log_probs"], step.logits.log_softmax(-1), atol=1e-5)
        assert ("attention" in outputs) == model.has_attention
        if model.has_attention:
            np.testing.assert_allclose(outputs["attention"], step.attended.weights[:, 0], atol=1e-5)


@pytest.mark.parametrize(
    "kind", [{"conditional": True}, {"architecture": "luong", "score": "general"}, {**TRANSFORMER, "hidden": 256}]
)
def test_in_8_bits_the_attention_is_that_of_the_model_in_8_bits(kind, tmp_path):
    small_translator(**{"embedding": 72, "hidden": 70, **kind}).save(tmp_path / "model", store="int8")
    model = Translator.load(tmp_path / "model")
    exported = Exported(export(model, tmp_path / "out"))
    encoded, inputs = of_batch(model)
    for outputs, step in steps_of_both(exported, model.decoder, encoded, inputs):
        np.testing.assert_allclose(outputs["attention"], step.attended.weights[:, 0], atol=1e-4)
        np.testing.assert_allclose(outputs["log_probs"], step.logits.log_softmax(-1), atol=0.03)
    sizes = [path.stat().st_size for path in (tmp_path / "out" / "onnx").iterdir()]
    assert sum(sizes) < 0.4 * sum(4 * parameter.numel() for parameter in model.parameters())


def test_the_folder_says_what_a_runtime_needs(tmp_path):
    model = small_translator()
    model.metrics, model.card = {"test_bleu": 3.0}, "# A card\n"
    folder = export(model, tmp_path / "out")
    config = json.loads((folder / "config.json").read_text())
    assert config["model_type"] == "regard_translate"
    assert config["system"] == "translate"
    assert config["vocab_size"] == len(model.target_tokenizer)
    assert config["config"] == model.config.to_dict()
    assert config["export"]["precision"] == "int8"
    assert set(config["export"]["graphs"].values()) == {
        "onnx/encoder_model_int8.onnx", "onnx/decoder_model_merged_int8.onnx",
    }  # fmt: skip
    generation = json.loads((folder / "generation_config.json").read_text())
    assert (generation["eos_token_id"], generation["num_beams"]) == (END, 5)
    assert Tokenizer.load(folder / config["assets"]["source_tokenizer"]) == model.source_tokenizer
    assert json.loads((folder / "metrics.json").read_text()) == {"test_bleu": 3.0}
    assert (folder / "MODEL_CARD.md").read_text() == "# A card\n"


def test_only_an_exported_folder_is_replaced(tmp_path):
    model = small_translator()
    export(model, tmp_path / "out", precision="float32")
    export(model, tmp_path / "out")
    assert not (tmp_path / "out" / "onnx" / "encoder_model.onnx").exists()
    (tmp_path / "out" / "onnx" / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match=r"it also holds onnx/notes.txt"):
        export(model, tmp_path / "out")
    model.save(tmp_path / "model")
    with pytest.raises(DataError, match="it is a model folder"):
        export(model, tmp_path / "model")


def test_what_has_no_graph_is_refused_with_the_reason(tmp_path, as_a_user):
    model = small_translator(score="regard.attention.score:Dot", encoder_hidden=5)
    with pytest.raises(OptionError, match=r"Custom code cannot be exported.*score = "):
        regard.export(model, tmp_path / "out")
    with pytest.raises(OptionError, match="precision must be one of float32, int8; got 'int4'"):
        regard.export(small_translator(), tmp_path / "out", precision="int4")
    assert not (tmp_path / "out").exists()
