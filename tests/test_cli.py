"""The command line on small files: translating, training, evaluating, and every wrong file explained."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from PIL import Image, ImageDraw

PAIRS = [
    ("one dog", "un chien"),
    ("two cats", "deux chats"),
    ("a house", "une maison"),
    ("good night", "bonne nuit"),
] * 6


def regard(*arguments, **options):
    return subprocess.run([sys.executable, "-m", "regard", *arguments], capture_output=True, text=True, **options)


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def files(folder, source, target):
    """Options for two files with a letter a line."""
    paths = write(folder / "a", source), write(folder / "b", target)
    return ["--source", paths[0], "--target", paths[1], "--out", str(folder / "out")]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model trained for a moment on two text files, from the command line."""
    folder = tmp_path_factory.mktemp("trained")
    source = write(folder / "a.txt", [source for source, _ in PAIRS])
    target = write(folder / "b.txt", [target for _, target in PAIRS])
    small = ["--model.embedding", "8", "--model.hidden", "8", "--data.vocabulary", "60", "--train.epochs", "1"]
    done = regard("train", "--source", source, "--target", target, "--out", str(folder / "run"), *small)
    assert done.returncode == 0, done.stderr
    assert "regard translate --model" in done.stdout
    return folder


def test_a_pipe_a_file_and_arguments_translate_the_same(tmp_path):
    texts = ["A dog is running.", "Good night."]
    piped = regard("translate", input="\n".join(texts) + "\n", check=True).stdout
    assert piped == regard("translate", *texts, check=True).stdout
    assert piped == regard("translate", "--file", write(tmp_path / "t.txt", texts), check=True).stdout
    assert piped.splitlines()[0] == "Un chien court."


def test_json_carries_score_and_attention():
    lines = regard("translate", "--nbest", "2", "--json", "Good night.", check=True).stdout.splitlines()
    first, second = map(json.loads, lines)
    assert first["score"] >= second["score"]
    assert len(first["trace"]["maps"][0]["weights"]) == len(first["trace"]["axes"][1]["labels"])


def test_a_trained_model_is_evaluated_with_its_curve(trained, tmp_path):
    plot = tmp_path / "curve.png"
    paths = str(trained / "run" / "model"), str(trained / "a.txt"), str(trained / "b.txt")
    done = regard("evaluate", *paths, "--beam", "2", "--plot", str(plot))
    assert done.returncode == 0, done.stderr
    for measure in ("bleu", "chrf", "ter", "perplexity", "entropy", "exact match"):
        assert measure in done.stdout
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_ctrl_c_saves_the_model_and_resume_goes_on(trained, tmp_path):
    out = tmp_path / "run"
    settings = ["--model.embedding", "8", "--model.hidden", "8", "--data.vocabulary", "60", "--train.epochs", "100000"]
    options = [
        "train",
        "--source",
        str(trained / "a.txt"),
        "--target",
        str(trained / "b.txt"),
        "--out",
        str(out),
        *settings,
    ]
    running = subprocess.Popen([sys.executable, "-m", "regard", *options], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (out / "checkpoints" / "best.ckpt").exists():
        assert running.poll() is None, running.stderr.read()
        assert time.monotonic() < deadline, "training did not begin"
        time.sleep(0.2)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=120)
    assert running.returncode == 0, said
    assert "the model will be saved" in said
    assert regard("translate", "--model", str(out / "model"), "one dog", check=True).stdout
    done = json.loads((out / "model" / "metrics.json").read_text())["epochs"]
    options[options.index("100000")] = str(done + 3)
    assert regard(*options, "--resume").returncode == 0
    assert json.loads((out / "model" / "metrics.json").read_text())["epochs"] == done + 3


def test_gold_links_give_an_alignment_error(trained, tmp_path):
    gold = [{"src": ["one", "dog"], "tgt": ["un", "chien"], "sure": [[0, 0], [1, 1]], "possible": []}]
    path = write(tmp_path / "gold.jsonl", map(json.dumps, gold))
    paths = str(trained / "run" / "model"), str(trained / "a.txt"), str(trained / "b.txt")
    assert "AER" in regard("evaluate", *paths, "--beam", "1", "--gold", path, check=True).stdout
    assert regard("align", paths[0], "--gold", path, "--reverse", paths[0], check=True).stdout.startswith("AER ")


def test_words_are_linked_line_by_line(trained, tmp_path):
    files = [write(tmp_path / name, lines) for name, lines in (("a", ["one dog", "", "two"]), ("b", ["x y", "", "z"]))]
    said = regard("align", str(trained / "run" / "model"), *map(str, files), check=True).stdout.split("\n")
    assert len(said) == 4
    assert said[1] == ""
    assert {link.split("-")[1] for link in said[0].split()} == {"0", "1"}, "each target word has a link"
    assert said[2] == "0-0"
    assert "SOURCE and TARGET" in regard("align", "en-fr").stderr


def test_pictures_are_recognized(tmp_path):
    for name, box in (("one", (50, 10, 60, 90)), ("empty", (0, 0, 0, 0))):
        picture = Image.new("L", (110, 100), 255)
        ImageDraw.Draw(picture).rectangle(box, fill=0)
        picture.save(tmp_path / f"{name}.png")
    paths = [str(tmp_path / "one.png"), str(tmp_path / "empty.png")]
    first, second = regard("recognize", *paths, "--top", "2", check=True).stdout.splitlines()
    assert first.startswith(f"{paths[0]}: 1 ")
    assert len(second.removeprefix(f"{paths[1]}: ").split(",")) == 2
    (line,) = regard("recognize", "--model", "digits", "--json", paths[0], check=True).stdout.splitlines()
    guesses = json.loads(line)["guesses"]
    assert guesses[0]["label"] == "1"
    assert len(guesses) == 5


def test_lists_are_printed():
    models = regard("models", check=True, env={**os.environ, "COLUMNS": "200"}).stdout
    assert "en-fr" in models
    assert "% right" in models
    assert "multi30k-rnnsearch" in regard("recipes", check=True).stdout
    assert "--train.epochs" in regard("recipes", "--fields", check=True, env={**os.environ, "COLUMNS": "200"}).stdout
    assert "diagonal_error" in regard("data", "babel", "fa", "de", "--count", "50", check=True).stdout
    assert "gold_share" in regard("data", "scenes", "--count", "50", check=True).stdout


def test_a_contact_sheet_of_scenes_is_written(tmp_path):
    sheet = str(tmp_path / "new" / "sheet.png")
    assert f"Wrote {sheet}" in regard("data", "scenes", "--count", "20", "-o", sheet, check=True).stdout
    assert (tmp_path / "new" / "sheet.png").read_bytes().startswith(b"\x89PNG")


def test_news_posts_become_text_files_and_are_counted(tmp_path):
    for part in ("train", "test"):
        post = {"text": f"Subject: Re: {part}\n\nSome words of {part}"}
        write(tmp_path / f"{part}.jsonl", [json.dumps(post)])
    done = regard("data", "newsgroups", "--from", str(tmp_path), "--out", str(tmp_path / "out"), "--words", "2")
    assert done.returncode == 0, done.stderr
    assert "1 bodies cut (2 words)" in done.stdout
    assert (tmp_path / "out" / "test.subject").read_text() == "test\n"
    assert (tmp_path / "out" / "test.body").read_text() == "Some words\n"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda f: ["translate", "--model", "nowhere", "x"], "no shipped model named 'nowhere'"),
        (lambda f: ["translate", "--model", str(f), "x"], "is not a model folder"),
        (lambda f: ["translate", "--file", str(f / "no.txt")], "no.txt"),
        (lambda f: ["recognize", write(f / "text.png", "ab")], "text.png is no picture"),
        (lambda f: ["recognize", str(f / "none.png")], "There is no picture"),
        (lambda f: ["train", "mnist-lenet", "--data.folder", str(f), "-o", str(f / "o")], "lacks train-images"),
        (lambda f: ["train", *files(f, "xyz", "xy")], "3"),
        (lambda f: ["train", *files(f, "", "")], "empty"),
        (lambda f: ["train", "nothing"], "nor a packaged recipe"),
        (lambda f: ["train", "--model.scor", "dot"], "Did you mean 'score'"),
        (lambda f: ["data", "scenes", "-o", str(f / "a.bmp")], "saved as .png; got 'a.bmp'"),
        (lambda f: ["train", "-o", str(f / "o")], "Say what to train on"),
    ],
)
def test_what_is_wrong_is_explained_without_a_traceback(make, says, tmp_path):
    done = regard(*make(tmp_path))
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("content", "says"), [(b"good\nb\xffd\n", "line 2"), (b"\x00\x01\x02", "binary")])
def test_files_that_are_no_text_are_refused(content, says, tmp_path):
    (tmp_path / "a").write_bytes(content)
    done = regard("train", "--source", str(tmp_path / "a"), "--target", str(tmp_path / "a"), "-o", str(tmp_path / "o"))
    assert done.returncode == 1
    assert says in done.stderr


@pytest.fixture(scope="module")
def album(tmp_path_factory):
    """A small captioner that has learned nothing, and pictures with captions."""
    import torch
    from regard.systems.captioner import Captioner, CaptionerConfig

    from regard.data.tokenizer import END, Tokenizer

    folder = tmp_path_factory.mktemp("album")
    colours = ["red", "green", "blue"]
    tokenizer = Tokenizer.train([f"a {colour} wall" for colour in colours], kind="word", minimum_count=1)
    small = CaptionerConfig(filters=(4, 5, 7), embedding=6, hidden=11, match=5)
    torch.manual_seed(1)
    model = Captioner(small, tokenizer)
    for name, end in (("model", -9.0), ("silent", 99.0)):
        with torch.no_grad():
            model.decoder.output.bias[END] = end
        model.save(folder / name)
    (folder / "pictures").mkdir()
    for colour in colours:
        Image.new("RGB", (60, 40), colour).save(folder / "pictures" / f"{colour}.png")
    write(folder / "captions.tsv", [f"{colour}.png\ta {colour} wall" for colour in colours])
    return folder


def test_a_gallery_is_written_and_its_grades_are_counted(album, tmp_path):
    files = [str(album / "model"), str(album / "captions.tsv"), str(album / "pictures")]
    said = regard("gallery", *files, "--out", str(tmp_path / "page"), "--beam", "2", check=True).stdout
    assert "3 pictures read; graded by CIDEr-D, not by people" in said
    counted = [int(line.split()[-3]) for line in said.splitlines() if line.endswith("percent")]
    assert len(counted) == 4
    assert sum(counted) == 3
    assert f"Wrote {tmp_path / 'page' / 'index.html'}" in said
    failed = regard("gallery", *files[:2], str(album / "nowhere"))
    assert "There is no folder or archive of pictures" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_pictures_are_captioned_from_the_command_line(album, tmp_path):
    picture, model = str(album / "pictures" / "red.png"), str(album / "model")
    strip = tmp_path / "words.png"
    said = regard("caption", picture, "--model", model, "--beam", "1", "--json", check=True).stdout
    assert json.loads(said)["trace"]["axes"][0]["grid"] == [8, 8]
    assert f"Wrote {strip}" in regard("caption", picture, "--model", model, "--show", str(strip), check=True).stdout
    assert "is for one picture; got 2" in regard("caption", picture, picture, "--show", str(strip)).stderr
    silent = regard("caption", picture, "--model", str(album / "silent"), "--show", str(strip))
    assert f"says nothing of {picture}" in silent.stderr
    assert "Say which pictures" in regard("caption").stderr
