"""Model folders: what is replaced and what never is, and every damaged file explained without a traceback."""

import errno
import json
import math
import os
import shutil
import stat
from pathlib import Path

import pytest
import torch
from helpers.models import TEXTS, small_captioner, small_classifier, small_translator
from safetensors.torch import load_file, save_file

from regard import load
from regard.data.tokenizer import Tokenizer
from regard.errors import DataError, ModelError, OptionError, RegardError, RegardWarning
from regard.files import DRAFT, checksum
from regard.systems.folder import Labels, find_model
from regard.systems.translate.model import Translator


@pytest.fixture(scope="module")
def model():
    return small_translator(Tokenizer.train(TEXTS * 3, size=45))


@pytest.fixture
def folder(model, tmp_path):
    """A saved model, as int8."""
    model.save(tmp_path / "m", store="int8")
    return tmp_path / "m"


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_a_model_replaces_an_earlier_one(model, tmp_path):
    small_translator(model.source_tokenizer, architecture="plain", share_embeddings="all").save(tmp_path / "m")
    model.save(tmp_path / "m")
    assert Translator.load(tmp_path / "m", device="cpu").config.architecture == "rnnsearch"
    assert sorted(contents(tmp_path / "m")) == [
        "MODEL_CARD.md",
        "config.json",
        "metrics.json",
        "model.safetensors",
        "tokenizer.json",
    ]
    small_classifier().save(tmp_path / "m")
    assert load(tmp_path / "m", device="cpu").labels == ("cat", "chien", "گربه")
    assert [path.name for path in tmp_path.iterdir()] == ["m"], "nothing else is left"


def test_an_empty_folder_and_missing_parents_are_used(model, tmp_path):
    (tmp_path / "empty").mkdir()
    model.save(tmp_path / "empty")
    model.save(tmp_path / "new" / "deep")
    assert contents(tmp_path / "empty") == contents(tmp_path / "new" / "deep")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.write_text("a thesis"), "is not a folder"),
        (lambda path: (path.mkdir(), (path / "thesis.py").write_text("years of work")), "did not write"),
        (lambda path: (path.mkdir(), (path / "config.json").write_text('{"mine": 1}')), "did not write"),
        (lambda path: (path.mkdir(), (path / "config.json").write_text("not JSON")), "did not write"),
        (
            lambda path: (
                path.mkdir(),
                (path / "config.json").write_text('{"system": "x", "config": {}, "assets": []}'),
            ),
            "did not write",
        ),
        (
            lambda path: (
                path.mkdir(),
                (path / "config.json").write_text('{"system": "mine", "config": {}, "assets": {"a": ["thesis.py"]}}'),
                (path / "thesis.py").write_text("years of work"),
            ),
            "did not write",
        ),
        (lambda path: (path.mkdir(), (path / "deep").mkdir()), "did not write"),
        (lambda path: path.symlink_to(path.parent / "elsewhere"), "is not a folder"),
    ],
    ids=["file", "folder", "json", "text", "list", "assets", "subfolder", "dangling link"],
)
def test_what_regard_did_not_write_is_never_replaced(model, tmp_path, make, reason):
    path = tmp_path / "mine"
    make(path)
    before = {each: each.read_bytes() if each.is_file() else None for each in tmp_path.rglob("*")}
    with pytest.raises(DataError, match=reason) as error:
        model.save(path)
    assert str(path) in str(error.value)
    assert {each: each.read_bytes() if each.is_file() else None for each in tmp_path.rglob("*")} == before


def test_a_model_folder_with_notes_of_the_user_is_not_replaced(model, tmp_path):
    model.save(tmp_path / "m")
    (tmp_path / "m" / "notes.txt").write_text("mine")
    before = contents(tmp_path / "m")
    with pytest.raises(DataError, match=r"also holds notes\.txt, which regard did not write"):
        model.save(tmp_path / "m")
    assert contents(tmp_path / "m") == before


def test_a_link_is_not_followed(model, tmp_path):
    model.save(tmp_path / "real")
    before = contents(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(DataError, match="link is not a folder"):
        small_classifier().save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert contents(tmp_path / "real") == before
    assert isinstance(load(tmp_path / "link", device="cpu"), Translator), "reading through a link is fine"


def test_a_save_that_fails_at_the_very_end_leaves_the_earlier_model(model, tmp_path, monkeypatch):
    model.save(tmp_path / "m")
    before, replace = contents(tmp_path / "m"), Path.replace

    def fails(self, target):
        if self.suffix == DRAFT and Path(target).name == "m":
            raise OSError(errno.EIO, "Input/output error")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(OSError, match="Input/output error"):
        model.save(tmp_path / "m")
    assert contents(tmp_path / "m") == before
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_an_interrupted_save_leaves_the_earlier_model(model, tmp_path, monkeypatch):
    model.save(tmp_path / "m")
    before = contents(tmp_path / "m")
    monkeypatch.setattr(
        "regard.systems.parameters.save_file", lambda *args: (_ for _ in ()).throw(OSError("disk full"))
    )
    with pytest.raises(OSError, match="disk full"):
        small_translator(model.source_tokenizer, hidden=7).save(tmp_path / "m")
    assert contents(tmp_path / "m") == before
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o002])
def test_modes_follow_the_umask(model, tmp_path, umask):
    before = os.umask(umask)
    try:
        model.save(tmp_path / "m")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o777 & ~umask
    for file in (tmp_path / "m").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~umask, file.name


def test_a_loaded_model_keeps_its_card_and_metrics(model, tmp_path):
    for name in ("digits", "scenes"):
        shipped = load(name, device="cpu")
        assert shipped.metrics
        shipped.save(tmp_path / name, store="float16")
        for file in ("MODEL_CARD.md", "metrics.json"):
            original = (find_model(name) / file).read_text(encoding="utf-8")
            saved = (tmp_path / name / file).read_text(encoding="utf-8")
            assert saved == original if file.endswith(".md") else json.loads(saved) == json.loads(original)
    shipped.save(tmp_path / "other", metrics={"mine": 1.0}, card="# Mine\n")
    assert load(tmp_path / "other", device="cpu").metrics == {"mine": 1.0}
    assert load(tmp_path / "other", device="cpu").card == "# Mine\n"


def test_loading_draws_no_parameters_that_the_stored_ones_replace(model, folder):
    before = torch.get_rng_state()
    loaded = Translator.load(folder, device="cpu")
    assert torch.equal(torch.get_rng_state(), before)
    for (name, kept), read in zip(model.named_parameters(), loaded.parameters(), strict=True):
        torch.testing.assert_close(read, kept, rtol=0.02, atol=0.01, msg=name)


def test_wrong_stores_are_refused(model, tmp_path, as_a_user):
    with pytest.raises(OptionError, match="store must be one of float32, float16, int8; got 'int4'"):
        model.save(tmp_path / "m", store="int4")
    assert not (tmp_path / "m").exists()


def edit(folder, **changes):
    """Change config.json: `config__hidden=11` sets config.hidden."""
    path = folder / "config.json"
    stored = json.loads(path.read_text())
    for place, value in changes.items():
        *outer, key = place.split("__")
        table = stored
        for name in outer:
            table = table[name]
        table[key] = value
    path.write_text(json.dumps(stored))


def edit_tensors(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")
    # As somebody would who tampers with a model: the checksum alone is no proof of a good one.
    edit(folder, **{"sha256__model.safetensors": checksum(folder / "model.safetensors")})


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def first_scale(tensors):
    return next(name for name in tensors if name.endswith(":factor"))


WRONG = {
    "no config": (lambda f: (f / "config.json").unlink(), "is not a model folder"),
    "no parameters": (lambda f: (f / "model.safetensors").unlink(), "is not a model folder"),
    "a folder of parameters": (
        lambda f: ((f / "model.safetensors").unlink(), (f / "model.safetensors").mkdir()),
        "is not a model folder",
    ),
    "cut config": (lambda f: (f / "config.json").write_text("{"), r"config\.json cannot be read"),
    "binary config": (lambda f: (f / "config.json").write_bytes(b"\xff\xfe\x00"), r"config\.json cannot be read"),
    "deep config": (lambda f: (f / "config.json").write_text("[" * 100_000), r"config\.json cannot be read"),
    "config is a list": (lambda f: (f / "config.json").write_text("[]"), "not the config of a regard model"),
    "config is null": (lambda f: (f / "config.json").write_text("null"), "not the config of a regard model"),
    "no system": (lambda f: (f / "config.json").write_text('{"config": {}}'), "not the config of a regard model"),
    "no table": (lambda f: edit(f, config=None), "config, assets and sha256 must be tables"),
    "assets are a list": (lambda f: edit(f, assets=["a"]), "config, assets and sha256 must be tables"),
    "another system": (lambda f: edit(f, system="caption"), "holds a caption model, not a translate model"),
    "an empty system": (lambda f: edit(f, system=""), "translate"),
    "a system of another type": (lambda f: edit(f, system=["translate"]), "translate"),
    "unknown field": (lambda f: edit(f, config__hiden=10), r"config\.json: there is no field 'hiden'. Did you mean"),
    "wrong type": (lambda f: edit(f, config__hidden="ten"), "hidden must be a whole number, 1 or more; got 'ten'"),
    "null": (lambda f: edit(f, config__dropout=None), "dropout must be a number from 0 and below 1|dropout must be"),
    "wrong choice": (lambda f: edit(f, config__cell="grü"), "cell must be one of gru, lstm"),
    "wrong range": (lambda f: edit(f, config__hidden=-3), "hidden must be a whole number, 1 or more; got -3"),
    "a list": (lambda f: edit(f, config__hidden=[1]), "hidden must be a whole number"),
    "not a number": (lambda f: edit(f, config__dropout=float("nan")), "dropout must be"),
    "another size": (lambda f: edit(f, config__hidden=11), "the config asks for"),
    "another architecture": (lambda f: edit(f, config__architecture="luong"), "do not fit its config: .* missing"),
    "own code": (lambda f: edit(f, config__score="os:getcwd"), "loading it runs that code. Pass trust=True"),
    "no assets": (lambda f: edit(f, assets={}), "names no file for 'source_tokenizer'"),
    "asset of another type": (lambda f: edit(f, assets__source_tokenizer=3), "names no file for 'source_tokenizer'"),
    "asset elsewhere": (lambda f: edit(f, assets__source_tokenizer="../../secret.json"), "names no file for"),
    "absolute asset": (lambda f: edit(f, assets__source_tokenizer="/etc/passwd"), "names no file for"),
    "asset above": (lambda f: edit(f, assets__source_tokenizer=".."), "names no file for"),
    "asset here": (lambda f: edit(f, assets__source_tokenizer="."), "names no file for"),
    "asset with a long name": (lambda f: edit(f, assets__source_tokenizer="a" * 5000), "names no file for"),
    "asset without a name": (lambda f: edit(f, assets__source_tokenizer=""), "names no file for"),
    "asset with a null byte": (lambda f: edit(f, assets__source_tokenizer="a\0b"), "names no file for"),
    "missing asset": (lambda f: (f / "tokenizer.json").unlink(), r"tokenizer\.json"),
    "cut asset": (lambda f: (f / "tokenizer.json").write_text("{"), r"tokenizer\.json"),
    "asset of another kind": (lambda f: (f / "tokenizer.json").write_text('{"a": 1}'), r"tokenizer\.json"),
    "binary asset": (lambda f: (f / "tokenizer.json").write_bytes(b"\xff\xfe\x00"), r"tokenizer\.json"),
    "not parameters": (lambda f: (f / "model.safetensors").write_bytes(b"not parameters at all"), "is damaged"),
    "no bytes": (lambda f: (f / "model.safetensors").write_bytes(b""), "is damaged"),
    "cut parameters": (
        lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-100]),
        "is damaged",
    ),
    "cut header": (
        lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:100]),
        "is damaged",
    ),
    "no scale": (lambda f: edit_tensors(f, lambda t: t.pop(first_scale(t))), "has no scale"),
    "one scale": (
        lambda f: edit_tensors(f, lambda t: t.update({first_scale(t): torch.ones(1, 1)})),
        r"scale .*\(1, 1\)",
    ),
    "cut scale": (
        lambda f: edit_tensors(f, lambda t: t.update({first_scale(t): t[first_scale(t)][:-1]})),
        r"scale .*",
    ),
    "a scale of nothing": (lambda f: edit_tensors(f, lambda t: t.update({"x:factor": torch.ones(1, 1)})), "x"),
    "unknown tensor": (lambda f: edit_tensors(f, lambda t: t.update(more=torch.ones(1))), "1 unknown .'more'"),
    "missing tensor": (
        lambda f: edit_tensors(f, lambda t: t.pop("decoder.output.bias")),
        "1 missing .'decoder.output.bias'",
    ),
    "flipped byte": (lambda f: flip(f / "model.safetensors"), "is damaged: it has another SHA-256"),
    "flipped byte of an asset": (lambda f: flip(f / "tokenizer.json"), "is damaged: it has another SHA-256"),
    "checksum of a missing file": (lambda f: edit(f, sha256__more="0"), "lacks more, which its config.json names"),
    "checksums elsewhere": (lambda f: edit(f, sha256={"../x": "0"}), "sha256 must name files of the folder"),
    "checksums are a list": (lambda f: edit(f, sha256=[]), "config, assets and sha256 must be tables"),
    "a version of another type": (lambda f: edit(f, version=3), "version must be such as"),
    "NaN": (lambda f: edit_tensors(f, lambda t: t.update({first_scale(t): t[first_scale(t)] * math.nan})), "holds NaN"),
    "a wide model": (lambda f: edit(f, config__hidden=10**6), "far larger than its parameters"),
    "an impossible model": (lambda f: edit(f, config__hidden=10**30), "hidden must be at most 1,048,576"),
    "a deep model": (
        lambda f: edit(f, config__architecture="luong", config__layers=10**8),
        "layers must be at most 1,000",
    ),
    "cut metrics": (lambda f: (f / "metrics.json").write_text("{"), r"metrics\.json cannot be read"),
    "metrics are a list": (lambda f: (f / "metrics.json").write_text("[1]"), r"metrics\.json"),
    "binary card": (lambda f: (f / "MODEL_CARD.md").write_bytes(b"\xff\xfe\x00"), r"MODEL_CARD\.md"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_damaged_folder_is_explained(folder, case):
    damage, says = WRONG[case]
    damage(folder)
    with pytest.raises((ModelError, OptionError), match=says) as error:
        Translator.load(folder, device="cpu")
    assert str(folder) in str(error.value)
    with pytest.raises(RegardError):
        load(folder, device="cpu")


def test_a_captioner_of_a_huge_image_is_explained(tmp_path):
    small_captioner(image_size=64).save(tmp_path / "m")
    edit(tmp_path / "m", config__image_size=2**63)
    with pytest.raises(RegardError, match="image_size must be"):
        load(tmp_path / "m", device="cpu")


def test_missing_cards_and_metrics_are_no_mistake(folder):
    (folder / "MODEL_CARD.md").unlink()
    (folder / "metrics.json").unlink()
    loaded = load(folder, device="cpu")
    assert (loaded.card, loaded.metrics) == ("", {})


@pytest.mark.parametrize("names", ["[]", "{}", '["a", 1]', "null", "{"])
def test_names_of_classes_are_a_list_of_texts(names, tmp_path):
    (tmp_path / "labels.json").write_text(names)
    with pytest.raises(ModelError, match=r"labels\.json"):
        Labels.load(tmp_path / "labels.json")
    Labels(["a", "ö"]).save(tmp_path / "labels.json")
    assert Labels.load(tmp_path / "labels.json") == ("a", "ö")


def test_a_run_folder_stands_for_its_model(folder, tmp_path):
    (tmp_path / "run").mkdir()
    shutil.move(folder, tmp_path / "run" / "model")
    (tmp_path / "run" / "recipe.toml").write_text("")
    assert find_model(tmp_path / "run") == tmp_path / "run" / "model"
    assert isinstance(load(tmp_path / "run", device="cpu"), Translator)
    assert isinstance(Translator.load(str(tmp_path / "run"), device="cpu"), Translator)


def test_a_folder_of_a_newer_version_is_noticed(folder):
    edit(folder, version="99.1.0")
    with pytest.warns(RegardWarning, match=r"was written by regard 99\.1\.0, and this is .*: upgrade regard if"):
        assert isinstance(load(folder, device="cpu"), Translator)
    edit(folder, config__novelty=3)
    with pytest.raises(OptionError, match=r"no field 'novelty'.* was written by regard 99\.1\.0.*upgrade"):
        load(folder, device="cpu")
    edit(folder, version="0.0.9")
    with pytest.raises(OptionError) as error:
        load(folder, device="cpu")
    assert "upgrade" not in str(error.value)


def test_a_folder_without_checksums_still_loads(folder):
    stored = json.loads((folder / "config.json").read_text())
    del stored["sha256"]
    (folder / "config.json").write_text(json.dumps(stored))
    assert isinstance(load(folder, device="cpu"), Translator)


def test_a_model_that_diverged_does_not_replace_a_good_one(tmp_path):
    model = small_translator()
    model.save(tmp_path / "m")
    before = checksum(tmp_path / "m" / "model.safetensors")
    with torch.no_grad():
        next(model.parameters()).fill_(math.nan)
    with pytest.raises(ModelError, match=r"is not saved: .* holds NaN"):
        model.save(tmp_path / "m")
    assert checksum(tmp_path / "m" / "model.safetensors") == before
