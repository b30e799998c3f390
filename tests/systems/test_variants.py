"""Every architecture of every system: batches, files of images, saving in every precision, and threads."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from helpers.systems import IMAGES, VARIANTS, close

import regard
from regard.config import fields_of
from regard.errors import ModelError
from regard.systems.system import System


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> tuple[System, list[Any]]:
    torch.manual_seed(1)
    return VARIANTS[request.param]()


def options(model: System) -> dict[str, Any]:
    """Short searches, where the system searches, and all maps."""
    can_search = "beam" in {field.name for field in fields_of(model.Options)} and model.kind != "read"
    return {"traces": "all"} | ({"beam": 3, "nbest": 2, "max_length": 8} if can_search else {})


def test_a_batch_equals_its_inputs_one_by_one(variant):
    model, inputs = variant
    chosen = options(model)
    together = model.predict(list(inputs), **chosen)
    for one, given in zip(together, inputs, strict=True):
        assert close(one, model.predict(given, **chosen))
    for one in model.predict(list(inputs), traces="none"):
        assert one.trace is None


@pytest.mark.parametrize("store", ["float32", "float16", "int8"])
def test_a_model_folder_copied_elsewhere_answers_the_same(variant, store, tmp_path):
    model, inputs = variant
    model.save(tmp_path / "model", metrics={"valid_accuracy": 50.0}, card="# A card\n", store=store)
    shutil.move(tmp_path / "model", tmp_path / "elsewhere")
    loaded = regard.load(tmp_path / "elsewhere", device="cpu")
    assert type(loaded) is type(model)
    assert (loaded.config, loaded.metrics, loaded.card) == (model.config, {"valid_accuracy": 50.0}, "# A card\n")
    parameters = dict(loaded.named_parameters())
    for name, parameter in model.named_parameters():
        rounding = {"float32": 0.0, "float16": 1e-3, "int8": 0.005}[store] * parameter.abs().max().item()
        assert (parameters[name] - parameter).abs().max() <= rounding, name
    if store == "float32":
        chosen = options(model)
        assert all(map(close, loaded.predict(list(inputs), **chosen), model.predict(list(inputs), **chosen)))
    assert [file.name for file in tmp_path.iterdir()] == ["elsewhere"], "no temporary folder is left"
    other = regard.Reader if model.kind == "translate" else regard.Translator
    with pytest.raises(ModelError, match=f"holds an? {model.kind} model, not an? {other.kind} model"):
        other.load(tmp_path / "elsewhere")


def test_eight_threads_get_what_one_gets(variant):
    model, inputs = variant
    jobs, chosen = [list(inputs), *inputs], options(model)
    expected = [model.predict(each, **chosen) for each in jobs]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda each: model.predict(each, **chosen), jobs * 2))
    assert found == expected * 2, "exactly, not to rounding"


@pytest.mark.parametrize("name", [each for each in VARIANTS if each.split()[0] in ("caption", "recognize", "glimpse")])
def test_files_pil_and_arrays_are_taken_alike(name, tmp_path):
    (model, _), image = VARIANTS[name](), IMAGES[0]
    image.save(tmp_path / "one.png")
    forms = [tmp_path / "one.png", str(tmp_path / "one.png"), image, np.asarray(image), np.asarray(image) / 255]
    first, *others = model.predict(forms)
    assert all(close(first, other) for other in others)
    assert all(close(first, other) for other in model.stream(forms, read_ahead=2))
