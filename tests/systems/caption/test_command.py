"""regard caption and regard gallery: images in, captions, figures and pages out, and errors."""

import json

import pytest
import torch
from helpers.command_line import refused, regard, write_lines
from helpers.models import small_captioner
from PIL import Image

from regard.data.tokenizer import END

COLOURS = ["red", "green", "blue"]


@pytest.fixture(scope="module")
def album(tmp_path_factory):
    """Small captioners that say much, one word and nothing, one without attention, and images with captions."""
    folder = tmp_path_factory.mktemp("album")
    torch.manual_seed(1)
    model = small_captioner()
    for name, end in (("model", -9.0), ("brief", 0.6), ("silent", 99.0)):
        with torch.no_grad():
            model.decoder.output.bias[END] = end
        model.save(folder / name)
    plain = small_captioner(architecture="show_and_tell")
    with torch.no_grad():
        plain.decoder.output.bias[END] = -9.0
    plain.save(folder / "plain")
    (folder / "images").mkdir()
    for colour in COLOURS:
        Image.new("RGB", (60, 40), colour).save(folder / "images" / f"{colour}.png")
    write_lines(folder / "captions.tsv", [f"{colour}.png\ta {colour} wall" for colour in COLOURS])
    return folder


def test_images_are_captioned(album, tmp_path):
    red, blue = (album / "images" / f"{colour}.png" for colour in ("red", "blue"))
    short = ["--model", album / "model", "--beam", 1, "--max-length", 4]
    (caption,) = regard("caption", red, *short, check=True).stdout.splitlines()
    assert len(caption.split()) == 4
    first, second = regard("caption", red, blue, *short, check=True).stdout.splitlines()
    assert first == f"{red}: {caption}"
    assert second.startswith(f"{blue}: ")
    regard("caption", red, *short, "--output", tmp_path / "out.txt", check=True)
    assert (tmp_path / "out.txt").read_text() == f"{caption}\n"
    line = json.loads(regard("caption", red, *short, "--json", check=True).stdout)
    assert (line["image"], line["text"]) == (str(red), caption)
    assert next(axis["grid"] for axis in line["trace"]["axes"] if axis["name"] == "cells") == [8, 8]
    many = regard("caption", red, "--model", album / "model", "--nbest", 2, "--max-length", 4, check=True).stdout
    scores = [float(line.split("\t")[0]) for line in many.splitlines()]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 2


def test_show_draws_in_the_terminal(album):
    for show in (["--show", "-"], ["--show=-"]):
        done = regard(
            "caption", album / "images" / "red.png", "--model", album / "model", "--max-length", 3, *show, check=True
        )
        caption, *drawn = done.stdout.splitlines()
        assert len(drawn) > 5
        assert all(word in done.stdout.removeprefix(caption) for word in caption.split())
        assert max(map(len, drawn)) <= 80


@pytest.mark.parametrize(("name", "begins"), [("words.png", b"\x89PNG"), ("words.gif", b"GIF8"), ("w.svg", b"<?xml")])
def test_show_saves_a_figure(album, tmp_path, name, begins):
    image = album / "images" / "red.png"
    done = regard(
        "caption", image, "--model", album / "model", "--max-length", 2, "--show", tmp_path / name, check=True
    )
    assert (tmp_path / name).read_bytes().startswith(begins)
    assert f"Wrote {tmp_path / name}" in done.stderr


def test_the_json_output_can_be_viewed(album, tmp_path):
    image = album / "images" / "red.png"
    line = regard("caption", image, "--model", album / "model", "--max-length", 2, "--json", check=True).stdout
    (tmp_path / "c.json").write_text(line)
    shown = regard("view", tmp_path / "c.json", "--cells", check=True).stdout
    assert json.loads(line)["text"].split()[0] in shown
    regard("view", tmp_path / "c.json", "-o", tmp_path / "c.gif", check=True)
    assert (tmp_path / "c.gif").read_bytes().startswith(b"GIF8")


def test_what_is_wrong_is_explained(album, tmp_path):
    image, model = album / "images" / "red.png", ["--model", album / "model"]
    figure = tmp_path / "words.png"
    for arguments, says in (
        ([], "Name the images to caption"),
        ([image, image, *model, "--show", figure], "is for one input; got 2"),
        ([image, "--model", album / "silent", "--show", figure], f"caption of {image} has no words"),
        ([image, "--model", album / "plain", "--show", figure], "has no attention to show"),
        ([image, *model, "--show", tmp_path / "words.bmp"], ".png, .svg, .pdf, .html, .gif"),
        ([tmp_path / "none.png", *model], "There is no image"),
        ([album / "captions.tsv", *model], "is not an image"),
        ([image, *model, "--beam", 0], "from 1 to 1000; got 0"),
        ([image, "--model", "digits"], "digits holds a recognize model, not a caption model"),
        ([image, "--model", "photo"], "Did you mean 'photo-en'"),
    ):
        message = refused("caption", *arguments)
        assert says in message, message
    assert not figure.exists()


def test_a_gallery_is_written_and_its_grades_are_counted(album, tmp_path):
    files = [album / "brief", "--captions", album / "captions.tsv", "--images"]
    page = tmp_path / "page" / "index.html"
    done = regard("gallery", *files, album / "images", "--out", tmp_path / "page", "--beam", 2, check=True)
    assert "3 images read; graded by CIDEr-D, not by people" in done.stdout
    counted = [int(line.split()[-3]) for line in done.stdout.splitlines() if line.endswith("percent")]
    assert len(counted) == 4
    assert sum(counted) == 3
    assert f"Wrote {page}" in done.stderr
    assert "not by people" in page.read_text(encoding="utf-8")
    assert len(list(page.parent.glob("*.jpg"))) == 3
    assert len(list(page.parent.glob("*-words.png"))) == 3
    assert "nowhere" in refused("gallery", *files, album / "nowhere")
    assert "--each must be 1 or more; got 0" in refused("gallery", *files, album / "images", "--each", 0)


def test_a_captioner_is_evaluated(album, tmp_path):
    files = ["--captions", album / "captions.tsv", "--images", album / "images", "--beam", 1, "--max-length", 5]
    said = regard("evaluate", album / "model", *files, "--output", tmp_path / "out.jsonl", check=True).stdout
    for measure in ("BLEU-1", "BLEU-4", "ROUGE-L", "CIDEr-D", "map variation", "distinct cells"):
        assert measure in said
    assert max(map(len, said.splitlines())) <= 80
    outputs = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [output["references"] for output in outputs] == [[f"a {colour} wall"] for colour in COLOURS]
    report = regard("evaluate", album / "model", "--world", "scenes", "--count", 4, "--json", check=True).stdout
    assert {"pointing", "correctness"} <= set(json.loads(report)["scores"])
