"""Exported memory machines compute what torch computes."""

import numpy as np
import pytest
import torch
from helpers.exported import Exported

from regard.errors import OptionError
from regard.systems.export import export
from regard.systems.tape.config import TapeConfig
from regard.systems.tape.model import TuringMachine
from regard.worlds.tapes import Copy

SMALL = {"hidden": 11, "slots": 7, "width": 5}
KINDS = {
    "lstm_controller": {},
    "several_heads": {"controller": "feedforward", "read_heads": 2, "write_heads": 3, "max_shift": 2},
    "no_shift": {"max_shift": 0},
}


def machine(**config):
    torch.manual_seed(3)
    made = TuringMachine(TapeConfig(**{**SMALL, **config}), Copy(bits=3)).eval()
    torch.nn.init.normal_(made.network.output.weight)
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_every_head_of_an_exported_machine_is_where_torch_has_it(kind, tmp_path):
    model = machine(**KINDS[kind])
    torch.nn.init.normal_(model.network.first_read)
    exported = Exported(export(model, tmp_path / "out"))
    tapes = torch.rand(3, 9, model.task.input_size)
    with torch.no_grad():
        expected = model.network.unroll(tapes, slots=13)
    outputs = exported.run("model", inputs=tapes, slots=np.array([13]))
    np.testing.assert_allclose(outputs["logits"], expected.logits, atol=1e-4)
    np.testing.assert_allclose(outputs["weights"], torch.stack([*expected.weights.values()], 2), atol=1e-5)
    vectors = np.concatenate([outputs["reads"], outputs["adds"]], 2)
    np.testing.assert_allclose(vectors, torch.stack([*expected.vectors.values()], 2), atol=1e-5)
    controls = outputs["controls"].reshape(3, 9, -1)
    np.testing.assert_allclose(controls, torch.stack([*expected.controls.values()], 2), atol=1e-4)
    np.testing.assert_allclose(outputs["slot_sizes"], expected.slot_sizes, atol=1e-5)
    np.testing.assert_allclose(outputs["memory"], expected.memory, atol=1e-5)


def test_an_lstm_answers_as_in_torch(tmp_path):
    model = TuringMachine(TapeConfig(architecture="lstm", hidden=11, layers=2), Copy(bits=3)).eval()
    exported = Exported(export(model, tmp_path / "out", precision="float32"))
    tapes = torch.rand(3, 9, model.task.input_size)
    with torch.no_grad():
        expected = model(tapes)
    np.testing.assert_allclose(exported.run("model", inputs=tapes)["logits"], expected, atol=1e-5)


def test_attention_over_a_tape_is_refused_with_the_reason(tmp_path):
    model = TuringMachine(TapeConfig(architecture="attention", hidden=11), Copy(bits=3)).eval()
    with pytest.raises(OptionError, match="AttentionNetwork cannot be exported"):
        export(model, tmp_path / "out")
