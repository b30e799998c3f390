"""The command line: training, evaluating, listing and viewing, and every wrong input explained with status 2."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import fields

import numpy as np
import pytest
from helpers.command_line import refused, regard, write_lines
from helpers.models import small_translator
from helpers.traces import caption, document, translation

import regard as library
from regard.cli.io import Drawing
from regard.trace import Trace

PAIRS = [
    ("one dog", "un chien"),
    ("two cats", "deux chats"),
    ("a house", "une maison"),
    ("good night", "bonne nuit"),
] * 6
SMALL = ["--model.embedding", 8, "--model.hidden", 8, "--data.vocabulary", 60]


def process(*arguments, **options):
    """Run the command line as a process of its own."""
    command = [sys.executable, "-m", "regard", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)


def files(folder, source, target):
    """Options for two files with a letter a line."""
    paths = write_lines(folder / "a", source), write_lines(folder / "b", target)
    return ["--source", paths[0], "--target", paths[1], "--out", folder / "out"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model trained for a moment on two text files, from the command line."""
    folder = tmp_path_factory.mktemp("trained")
    source = write_lines(folder / "a.txt", [source for source, _ in PAIRS])
    target = write_lines(folder / "b.txt", [target for _, target in PAIRS])
    out = ["--out", folder / "run", *SMALL, "--train.epochs", 1]
    done = regard("train", "--source", source, "--target", target, *out, check=True)
    assert f"Wrote {folder / 'run' / 'model'}" in done.stdout
    assert "regard translate --model" in done.stdout
    return folder


@pytest.fixture(scope="module")
def test_set(trained):
    return ["--source", trained / "a.txt", "--reference", trained / "b.txt", "--beam", 1]


def test_a_run_holds_its_recipe_which_trains_again(trained, tmp_path):
    assert regard("translate", "--model", trained / "run", "one dog", check=True).stdout.strip()
    recipe = trained / "run" / "recipe.toml"
    assert "hidden = 8" in recipe.read_text()
    again = regard("train", recipe, "--out", tmp_path / "again", check=True)
    assert "Wrote" in again.stdout
    parameters = [
        (folder / "model" / "model.safetensors").read_bytes() for folder in (trained / "run", tmp_path / "again")
    ]
    assert parameters[0] == parameters[1]


def test_a_trained_model_is_evaluated_with_its_curve(trained, test_set, tmp_path):
    plot, outputs = tmp_path / "curve.png", tmp_path / "new" / "out.jsonl"
    done = regard("evaluate", trained / "run", *test_set, "--plot", plot, "--output", outputs, check=True)
    for measure in ("BLEU", "chrF", "TER", "perplexity", "entropy", "exact match", "24 sentences, beam 1"):
        assert measure in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert plot.read_bytes().startswith(b"\x89PNG")
    lines = [json.loads(line) for line in outputs.read_text(encoding="utf-8").splitlines()]
    assert [(line["source"], line["reference"]) for line in lines] == PAIRS
    report = json.loads(regard("evaluate", trained / "run", *test_set, "--json", check=True).stdout)
    assert report["scores"]["BLEU"]["note"].startswith("nrefs:1")
    assert report["scores"]["perplexity"]["value"] > 1


def test_a_world_is_evaluated_without_files(trained):
    done = regard(
        "evaluate", trained / "run", "--world", "babel:en-fr", "--count", 10, "--beam", 1, "--json", check=True
    )
    report = json.loads(done.stdout)
    assert report["title"] == "10 sentences, beam 1"
    assert 0 <= report["scores"]["AER"]["value"] <= 1


def test_models_are_compared_side_by_side(trained, test_set, tmp_path):
    small_translator().save(tmp_path / "b")
    small_translator(architecture="plain").save(tmp_path / "c")
    names = [trained / "run", tmp_path / "b", tmp_path / "c"]
    once = regard("evaluate", names[0], "--compare", *names[1:], *test_set, "--mean", check=True).stdout
    twice = regard(
        "evaluate", names[0], "--compare", names[1], "--compare", names[2], *test_set, "--mean", check=True
    ).stdout
    for said in (once, twice):
        assert "Side by side" in said
        assert "±" in said
        assert "Paired bootstrap" in said
        assert " ".join(said.split()).count("24 sentences, beam 1") == 3
    reports = json.loads(regard("evaluate", names[0], *test_set, "--json", "--compare", *names[1:], check=True).stdout)
    assert [report["model"] for report in reports] == list(map(str, names))
    assert "leave out --compare" in refused(
        "evaluate", names[0], *test_set, "--output", tmp_path / "x", "--compare", names[1]
    )
    assert "is of 'translate', and tape-copy of 'tape'" in refused("evaluate", names[0], "--compare", "tape-copy")


def test_the_options_of_a_test_set_are_listed(trained):
    said = regard("evaluate", trained / "run", "--options", check=True).stdout
    for option in ("--source", "--reference", "--world", "--beam", "--gold"):
        assert option in said
    assert max(map(len, said.splitlines())) <= 80


def test_ctrl_c_saves_the_model_and_resume_continues(trained, tmp_path):
    out = tmp_path / "run"
    texts = ["--source", trained / "a.txt", "--target", trained / "b.txt"]
    options = ["train", *texts, "--out", out, *SMALL, "--train.epochs", 100000]
    command = [sys.executable, "-m", "regard", *map(str, options)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 600
    while not (out / "checkpoints" / "best.ckpt").exists():
        assert running.poll() is None, running.stderr.read()
        assert time.monotonic() < deadline, "training did not begin"
        time.sleep(0.2)
    running.send_signal(signal.SIGINT)
    said, warned = running.communicate(timeout=600)
    assert running.returncode == 130, warned
    assert "Ctrl-C: stopping after this batch, to save the run" in warned
    assert "Interrupted" in said
    assert "--resume" in said
    assert regard("translate", "--model", out / "model", "one dog", check=True).stdout
    done = json.loads((out / "model" / "metrics.json").read_text())["epochs"]
    options[-1] = done + 3
    regard(*options, "--resume", check=True)
    assert json.loads((out / "model" / "metrics.json").read_text())["epochs"] == done + 3


def test_lists_are_printed():
    models = regard("models", columns=200, check=True).stdout
    assert "en-fr" in models
    assert "% right" in models
    narrow = regard("models", check=True).stdout
    assert max(map(len, narrow.splitlines())) <= 80
    assert "glimpse-digits" in narrow
    assert {model["name"] for model in json.loads(regard("models", "--json", check=True).stdout)} >= {"en-fr", "digits"}
    recipes = regard("recipes", check=True).stdout
    assert "multi30k-rnnsearch" in recipes
    assert max(map(len, recipes.splitlines())) <= 80
    data = regard("data", "list", check=True).stdout
    assert max(map(len, data.splitlines())) <= 80
    for name in ("multi30k", "flickr8k", "mnist", "licence"):
        assert name in data.lower()


def test_one_recipe_is_printed_as_it_can_be_trained(tmp_path):
    import tomllib

    from regard.training.recipes import find_recipe

    text = regard("recipes", "multi30k-transformer", check=True).stdout
    assert tomllib.loads(text) == tomllib.loads(find_recipe("multi30k-transformer").read_text())
    assert text.startswith("#"), "its comments are kept"
    assert "Did you mean 'multi30k-transformer'" in refused("recipes", "multi30k-transfomer")


@pytest.mark.parametrize("system", ["translate", "caption", "recognize"])
def test_the_fields_of_recipes_are_listed_with_their_choices(system):
    said = regard("recipes", "--fields", system, check=True).stdout
    assert max(map(len, said.splitlines())) <= 80
    flat = " ".join(said.split())
    assert "Literal" not in said
    assert "…" not in said
    for part in ("--train.epochs a whole number, 1 or more", "--train.schedule one of one_cycle, inverse_sqrt"):
        assert part in flat
    if system == "translate":
        assert "--model.architecture one of plain, rnnsearch, luong, transformer (default rnnsearch)" in flat
        assert "--data.dataset_columns a list of 2 texts (default source,target)" in flat
    assert "Did you mean 'translate'" in refused("recipes", "--fields", "translater")


def test_an_option_without_its_value_is_explained():
    said = refused("recipes", "--fields").replace("│ ", "")
    assert "--fields requires an argument. List the fields of recipes for this system: translate, caption," in said
    assert "--train.epochs requires an argument" in refused("train", "--train.epochs").replace("│ ", "")


@pytest.mark.parametrize(
    ("command", "heavy"),
    [
        (["--help"], ("torch", "lightning", "regard.training", "regard.serving", "regard.jobs", "matplotlib")),
        (["models"], ("torch", "regard.serving")),
        (["recipes"], ("torch", "regard.serving")),
        (["recipes", "en"], ("torch", "regard.serving")),
        (["data", "list"], ("torch", "regard.training", "regard.serving")),
        (["translate", "--help"], ("torch", "lightning", "regard.serving")),
        (["align", "--help"], ("torch", "lightning", "regard.serving")),
        (["serve", "--help"], ("torch", "lightning", "regard.training")),
    ],
    ids=lambda each: " ".join(each),
)
def test_listing_and_help_import_nothing_heavy(command, heavy):
    code = (
        f"import atexit, sys; atexit.register(lambda: print(set({heavy}) & set(sys.modules), file=sys.stderr));"
        f"from regard.cli import main; main({command})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.endswith("set()\n"), done.stderr


def test_worlds_are_described(tmp_path):
    said = regard("data", "babel", "fa", "de", "--count", 50, check=True).stdout
    assert "diagonal" in said
    assert "fraction of sure word links that cross at least one other" in " ".join(said.split()), "what a number means"
    assert max(map(len, said.split("\n\n")[0].splitlines())) <= 80
    assert "chance pointing" in regard("data", "scenes", "--count", 50, check=True).stdout
    sheet = tmp_path / "new" / "sheet.png"
    assert f"Wrote {sheet}" in regard("data", "scenes", "--count", 20, "-o", sheet, check=True).stdout
    assert sheet.read_bytes().startswith(b"\x89PNG")


def test_news_posts_become_text_files_and_are_counted(tmp_path):
    for part in ("train", "test"):
        post = {"text": f"Subject: Re: {part}\n\nSome words of {part}"}
        write_lines(tmp_path / f"{part}.jsonl", [json.dumps(post)])
    done = regard("data", "newsgroups", "--from", tmp_path, "--out", tmp_path / "out", "--words", 2, check=True)
    assert "1 bodies truncated by 2 words" in done.stdout
    assert (tmp_path / "out" / "test.subject").read_text() == "test\n"
    assert (tmp_path / "out" / "test.body").read_text() == "Some words\n"


def test_a_closed_pipe_is_no_error(tmp_path):
    small_translator().save(tmp_path / "model")
    translate = f"{sys.executable} -m regard translate -m {tmp_path / 'model'} --beam 1 --max-length 2"
    pipeline = f"set -o pipefail; yes 'a dog' | head -200 | {translate} | head -1"
    done = subprocess.run(["bash", "-c", pipeline], capture_output=True, text=True)  # noqa: S607
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""
    assert done.returncode == 141, "as of any program that a closed pipe ends"


def test_a_trace_is_shown_and_drawn(tmp_path):
    trace = Trace.from_weights(["the", "dog"], ["le", "chien"], [[0.9, 0.1], [0.2, 0.8]])
    path = trace.save(tmp_path / "new" / "t.json")
    assert "chien" in regard("view", path, check=True).stdout
    regard("view", path, "--output", tmp_path / "t.svg", check=True)
    assert (tmp_path / "t.svg").read_bytes().startswith(b"<?xml")
    regard("view", path, "--output", tmp_path / "t.html", "--style", "lines", check=True)
    assert 'shown="lines"' in (tmp_path / "t.html").read_text(encoding="utf-8")
    assert "--style is for figures and pages: save one as FILE.png" in refused("view", path, "--style", "lines")
    for output in ((), ("-o", tmp_path / "nonsense.png")):
        assert "There is no style 'nonsense'; choose from heat_map" in refused(
            "view", path, "--style", "nonsense", *output
        )
    assert "'text', which takes --layer, --head, --name, --pieces." in refused("view", path, "--cells")
    sizes = "--width, --height, --font-size, --dpi"
    assert f"which takes --layer, --head, --name, --style, --title, --pieces, {sizes}." in refused(
        "view", path, "--cells", "-o", tmp_path / "t.png"
    )
    assert "t.html is no trace but a finished picture or page" in refused("view", tmp_path / "t.html")
    (tmp_path / "pretty.json").write_text(json.dumps(trace.to_dict(), indent=2))
    assert "chien" in regard("view", tmp_path / "pretty.json", check=True).stdout


@pytest.mark.parametrize(
    ("make", "suffix", "options"),
    [
        (translation, ".svg", {"name": "cross", "style": "heat_maps", "title": "A title"}),
        (caption, ".svg", {"title": "A title", "cells": True, "overlay": "colour", "columns": 2}),
        (caption, ".html", {"overlay": "colour"}),
        (caption, ".gif", {"side": 64, "seconds": 0.2}),
        (document, ".svg", {"title": "A title", "raw": True}),
    ],
)
def test_every_option_of_a_view_is_an_option_of_the_command(tmp_path, make, suffix, options):
    path = make().save(tmp_path / "t.json")
    known = library.view(make()).options(f"a{suffix}")
    assert set(known) <= {field.name for field in fields(Drawing)}
    flags = [f"--{name}" if value is True else f"--{name}={value}" for name, value in options.items()]
    regard("view", path, "-o", tmp_path / f"command{suffix}", *flags, check=True)
    expected = library.view(make()).save(tmp_path / f"python{suffix}", **options)
    assert (tmp_path / f"command{suffix}").read_bytes() == expected.read_bytes()


def test_view_joins_subwords_unless_their_pieces_are_asked_for(tmp_path):
    path = Trace.from_weights(["c", "up"], ["t", "asse"], np.eye(2), source_text="cup", target_text="tasse").save(
        tmp_path / "t.json"
    )
    assert "tasse" in regard("view", path, check=True).stdout
    assert " asse" in regard("view", path, "--pieces", check=True).stdout


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "nope.json"),
        ("nothing", "Not a trace"),
        ("", "nope.json"),
        ("[]", "nope.json"),
        ('{"trace": null, "text": "a"}', "has no trace: its model has no attention"),
        ('{"text": "a"}', "nope.json"),
        ('{"trace": 3}', "race"),
        (b"\xff\xfe\x00", "nope.json"),
    ],
)
def test_what_cannot_be_viewed_is_explained(content, says, tmp_path):
    path = tmp_path / "nope.json"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    message = refused("view", path)
    assert says in message, message
    assert "Errno" not in message


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda f: ["translate", "--model", "nowhere", "x"], "no shipped model named 'nowhere'"),
        (lambda f: ["translate", "--model", "en-frr", "x"], "Did you mean 'en-fr'"),
        (lambda f: ["translate", "--model", f, "x"], "is not a model folder"),
        (lambda f: ["train", "mnist-lenet", "--data.folder", f, "-o", f / "o"], "train-images"),
        (lambda f: ["train", *files(f, "xyz", "xy")], "3"),
        (lambda f: ["train", *files(f, "", "")], "empty"),
        (lambda f: ["train", "nothing"], "nor a packaged recipe"),
        (lambda f: ["train", "multi30k-luon"], "Did you mean 'multi30k-luong'"),
        (lambda f: ["train", "--model.scor", "dot"], "Did you mean 'score'"),
        (lambda f: ["train", "--modl.score", "dot"], "--modl"),
        (lambda f: ["train", "--train", 3], "There is no option --train. Fields of a recipe are set with --data.NAME"),
        (lambda f: ["train", "--device", "cuda"], "There is no option --device. Did you mean '--devices'"),
        (lambda f: ["train", "-o", f / "o"], "--source a.txt --target b.txt"),
        (lambda f: ["train", "-o", f / "o"], "--data.world babel:en-fr"),
        (lambda f: ["train", "multi30k-transformer", "-o", f / "o"], "regard data get multi30k"),
        (lambda f: ["train", "flickr8k-soft", "-o", f / "o"], "regard data get flickr8k"),
        (lambda f: ["train", "--source", f / "no.txt", "--target", f / "no.txt", "-o", f / "o"], "no.txt"),
        (lambda f: ["train", "--from", "digits", *files(f, "xyz", "xyz")], "recognize"),
        (
            lambda f: ["train", "--from", "en-fr", "--model.hidden", 7, *files(f, "xyz", "xyz")],
            "hidden 160 -> 7|hidden",
        ),
        (lambda f: ["data", "scenes", "-o", f / "a.bmp"], "saved as .png; got 'a.bmp'"),
        (lambda f: ["data", "get", "multi30"], "multi30k"),
        (lambda f: ["recipes", "en", "--fields", "translate"], "not both"),
        (lambda f: ["evaluate", "en-fr"], "source and reference"),
        (lambda f: ["evaluate", "en-fr", "a.en", "a.fr"], "Unexpected argument 'a.en'. See regard evaluate --help"),
        (lambda f: ["evaluate", "en-fr", "--world", "babel:en-xx"], "babel"),
        (lambda f: ["evaluate", "en-fr", "--sorce", "x"], "Did you mean 'source'"),
        (lambda f: ["evaluate", "scenes", "--captions", "x"], "give both"),
    ],
)
def test_what_is_wrong_is_explained_without_a_traceback(make, says, tmp_path):
    message = refused(*make(tmp_path)).replace("│ ", "")
    assert any(part in message for part in says.split("|")), message
    assert not (tmp_path / "o" / "model").exists()


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("train.epochs", -1, "a whole number, 1 or more; got '?-1"),
        ("train.epochs", 0, "a whole number, 1 or more; got '?0"),
        ("train.epochs", "twenty", "a whole number, 1 or more; got 'twenty'"),
        ("train.minutes", -1, "a number, 0 or more; got '?-1"),
        ("train.learning_rate", "nan", "a number above 0; got"),
        ("train.learning-rate", "inf", "a number above 0; got"),
        ("train.seed", -1, "from 0 to 4294967295; got"),
        ("train.schedule", "cosine", "one of one_cycle, inverse_sqrt, constant, plateau; got 'cosine'"),
        ("model.dropout", 2, "and below 1; got '?2"),
        ("model.architecture", "rnsearch", "Did you mean 'rnnsearch'"),
        ("model.score", "bilinear", "one of additive, concat, cosine"),
        ("model.conditional", "perhaps", "true or false; got 'perhaps'"),
        ("model.layers", 5, "rnnsearch has one layer; got layers 5"),
        ("data.tokens", "chars", "one of bpe, word; got 'chars'"),
    ],
)
def test_values_out_of_range_are_refused_before_training(field, value, allowed, tmp_path):
    import re

    message = refused("train", f"--{field}", value, *files(tmp_path, "xyz", "xyz"))
    assert re.search(allowed, message), message
    assert field.split(".")[1].replace("-", "_") in message.replace("-", "_")
    assert not (tmp_path / "out").exists()


def test_a_system_is_trained_without_a_recipe(tmp_path):
    documents = write_lines(tmp_path / "d.tsv", ["label\ttext", *["positive\ta good film", "negative\ta bad film"] * 8])
    sizes = ["--model.embedding", "4", "--model.hidden", "4", "--data.held_out", "4", "--train.epochs", "1"]
    out = tmp_path / "run"
    regard("train", "--system", "classify", "--data.train", documents, *sizes, "--out", out, check=True)
    assert library.load(out).kind == "classify"
    assert "of the system classify, not read" in refused("train", "--system", "read", "--resume", "--out", out)
    assert "leave out --system" in refused("train", "reviews", "--system", "classify", "--out", tmp_path / "a")
    assert "Did you mean 'classify'" in refused("train", "--system", "clasify", "--out", tmp_path / "a")


@pytest.mark.parametrize(
    ("system", "says"),
    [
        ("translate", ["--source a.txt --target b.txt", "--data.pairs", "--data.world babel:en-fr"]),
        ("caption", ["data.captions", "data.store", "data.images", "model.encoder", "data.world scenes"]),
        ("classify", ["data.train", "data.world reviews"]),
        ("read", ["--data.train", "--data.world stories"]),
    ],
)
def test_without_its_data_a_system_names_all_that_it_may_learn_from(system, says, tmp_path):
    said = refused("train", "--system", system, "--out", tmp_path / "run")
    assert [each for each in says if each not in said] == [], said
    assert "recipe file" not in said


def test_a_folder_of_the_user_is_refused_before_training(tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "thesis.py").write_text("years of work")
    source, target = write_lines(tmp_path / "a", "xyz"), write_lines(tmp_path / "b", "xyz")
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    message = refused("train", "--source", source, "--target", target, "--out", ".")
    assert "model is not replaced" in message
    assert "did not write" in message
    assert sorted(tmp_path.rglob("*")) == before, "nothing was begun"
    assert (tmp_path / "model" / "thesis.py").read_text() == "years of work"


@pytest.mark.parametrize(("content", "says"), [(b"good\nb\xffd\n", "line 2"), (b"\x00\x01\x02", "binary")])
def test_files_that_are_no_text_are_refused(content, says, tmp_path):
    (tmp_path / "a").write_bytes(content)
    message = refused("train", "--source", tmp_path / "a", "--target", tmp_path / "a", "-o", tmp_path / "o")
    assert says in message


def test_a_recipe_with_a_wrong_value_names_its_file(tmp_path):
    recipe = tmp_path / "mine.toml"
    for text, says in (
        ('[model]\nscore = "bilinear"\n', "[model]: score must be one of"),
        ('[model]\nscor = "dot"\n', "[model]: there is no field 'scor'. Did you mean 'score'"),
        ('[train]\nepochs = "twenty"\n', "[train]: epochs must be a whole number"),
        ('system = "translater"\n', "Did you mean 'translate'"),
        ("[modl]\n", "Did you mean 'model'"),
        ("[model\n", "is not a recipe"),
        ("model = 3\n", "a recipe has the tables"),
    ):
        recipe.write_text(text)
        message = refused("train", recipe, "-o", tmp_path / "o")
        assert says in message, message
        assert "mine.toml" in message


def test_a_process_ends_with_the_same_status_and_message():
    done = process("translate", "--model", "en-frr", "x", env={**os.environ, "COLUMNS": "80"})
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == ("regard: There is no folder and no shipped model named 'en-frr'. Did you mean 'en-fr'?\n")
