"""regard evaluate: what it prints and saves for each system."""

import json

from helpers.command_line import refused, regard
from helpers.models import photograph, small_classifier


def test_a_captioner_is_evaluated(models, tmp_path):
    files = ["--captions", models / "captions.tsv", "--images", models, "--beam", 1, "--max-length", 5]
    said = regard("evaluate", models / "caption", *files, "--output", tmp_path / "out.jsonl", check=True).stdout
    for measure in ("BLEU-1", "BLEU-4", "ROUGE-L", "CIDEr-D", "map variation", "distinct cells"):
        assert measure in said
    assert max(map(len, said.splitlines())) <= 80
    outputs = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [output["references"] for output in outputs] == [[f"a {colour} wall"] for colour in ("red", "green", "blue")]
    report = regard("evaluate", models / "caption", "--world", "scenes", "--count", 4, "--json", check=True).stdout
    assert {"pointing", "correctness"} <= set(json.loads(report)["scores"])


def test_a_document_classifier_is_evaluated_with_its_faithfulness(models):
    world = ["--world", "reviews", "--count", 5, "--faithfulness", 2, "--shuffles", 3]
    said = regard("evaluate", models / "classify", *world, check=True)
    for part in ("accuracy", "decisive sentence", "comprehensiveness", "By class", "random"):
        assert part in said.stdout
    assert max(map(len, said.stdout.splitlines())) <= 80


def test_a_glimpse_model_is_evaluated(models):
    said = regard("evaluate", models / "glimpse", "--examples", 20, check=True).stdout
    for part in ("error", "random glimpses on the digit", "After each glimpse", "This model with other locations"):
        assert part in said
    assert max(map(len, said.splitlines())) <= 80


def test_an_image_classifier_is_evaluated(tmp_path):
    labels = ("bird", "cat")
    small_classifier(labels).save(tmp_path / "model")
    for number, label in enumerate(labels):
        (tmp_path / "test" / label).mkdir(parents=True)
        for index in range(2):
            photograph(28, 28, seed=10 * number + index).save(tmp_path / "test" / label / f"{index}.png")
    command = ["evaluate", tmp_path / "model", "--folder", tmp_path / "test", "--format", "folders"]
    said = regard(*command, "--output", tmp_path / "out.jsonl", check=True).stdout
    for part in ("4 images", "accuracy", "top-5 accuracy", "log-likelihood", "By class", "bird", "cat"):
        assert part in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 80
    outputs = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [output["label"] for output in outputs] == ["bird", "bird", "cat", "cat"]
    report = json.loads(regard(*command, "--json", check=True).stdout)
    right = sum(output["label"] == output["predicted"] for output in outputs)
    assert report["scores"]["accuracy"]["value"] == 25 * right
    assert "Give the folder with the test images" in refused("evaluate", "digits")
    assert "Did you mean 'folder'" in refused("evaluate", "digits", "--foldr", tmp_path)
    assert "format must be one of mnist" in refused("evaluate", "digits", "--folder", tmp_path, "--format", "idx")
