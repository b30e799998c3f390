"""A corpus aligned by counting, then by two translators; the trainings themselves are those of test_experiment.py."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch
from helpers.command_line import refused, regard, write_lines
from helpers.models import TRANSFORMER, small_translator

from regard.data.alignments import format_links, read_links
from regard.data.tokenizer import Tokenizer
from regard.errors import OptionError
from regard.metrics.alignment import GoldAlignment
from regard.systems.translate import corpus_alignment
from regard.systems.translate.corpus_alignment import align_corpus
from regard.systems.translate.data import world_pairs
from regard.systems.translate.hidden_markov import align_by_agreement
from regard.systems.translate.model import Translator

PAIRS = world_pairs("babel:en-fr", "train", 12)
GOLD = [GoldAlignment(("the", "dog"), ("le", "chien"), frozenset({(0, 0)}), frozenset({(0, 0)}))]


@pytest.fixture
def files(tmp_path):
    return [write_lines(tmp_path / name, [pair[side] for pair in PAIRS]) for side, name in enumerate(("en", "fr"))]


@pytest.fixture
def trainings(monkeypatch):
    """Trainings that write an untrained model, and note what they were asked for."""
    noted = []
    tokenizer = Tokenizer.train([text for pair in PAIRS for text in pair], kind="word", minimum_count=1)

    def train(recipe, tables, out, start_from, progress):
        noted.append((out.parent.name, out.name, tables, start_from))
        config = {"alignment_step": "input", "alignment_layer": 1} | tables.get("model", {})
        small_translator(tokenizer, **TRANSFORMER, **config).save(out / "model")

    monkeypatch.setattr(corpus_alignment, "_train", train)
    return noted


def test_each_round_is_guided_by_the_links_of_the_round_before(tmp_path, files, trainings):
    reports = []
    counted, first, last = align_corpus(
        *files,
        tmp_path / "out",
        rounds=2,
        tables={"train": {"minutes": 3.0}},
        gold=GOLD,
        progress=False,
        report=reports.append,
    )
    assert [report.split()[:3] for report in reports] == [["Round", f"{number}:", "AER"] for number in range(3)]
    assert [(place, name) for place, name, *_ in trainings] == [
        (place, name) for place in ("round-1", "round-2") for name in ("forward", "backward")
    ]
    (_, _, tables, start), *_, (_, _, later, later_start) = trainings
    assert (start, later_start) == (None, first.backward)
    assert tables["data"] == {"source": str(files[0]), "target": str(files[1]), "alignments": str(counted.links)}
    assert tables["train"] == {"minutes": 3.0, "guidance": 0.5}
    assert later["data"] == {"source": str(files[1]), "target": str(files[0]), "alignments": str(first.backward_links)}
    assert later["train"] == {"minutes": 3.0, "guidance": 0.5, "epochs": 12, "learning_rate": 0.00075}
    assert Translator.load(last.forward).config.alignment_head == 1
    for each in (counted, last):
        links, turned = list(read_links(each.links)), list(read_links(each.backward_links))
        assert len(links) == len(PAIRS)
        for one, other in zip(links, turned, strict=True):
            assert sorted(one[:, ::-1].tolist()) == sorted(other.tolist())
    lines = regard("align", last.forward, *files, "--reverse", last.backward, check=True).stdout
    assert lines == last.links.read_text()
    assert "give --reverse" in refused("align", last.forward, *files, "--symmetrize", "union")


def test_the_trainings_are_labelled(tmp_path, files, trainings, capsys):
    align_corpus(*files, tmp_path / "out")
    assert capsys.readouterr().err.splitlines()[-2:] == ["Training source to target.", "Training target to source."]


def test_trainings_side_by_side_are_labelled_too(tmp_path, files, monkeypatch, capsys):
    def train(recipe, tables, out, start_from, progress):
        config = {"alignment_step": "input", "alignment_layer": 1} | tables["model"]
        tokenizer = Tokenizer.train([text for pair in PAIRS for text in pair], kind="word", minimum_count=1)
        small_translator(tokenizer, **TRANSFORMER, **config).save(out / "model")
        return "by train.minutes = 3 in epoch 1 of 2" if out.name == "backward" else ""

    monkeypatch.setattr(corpus_alignment, "_train", train)
    monkeypatch.setattr(corpus_alignment, "ProcessPoolExecutor", lambda count, mp_context: ThreadPoolExecutor(count))
    monkeypatch.setattr(corpus_alignment, "choose_device", lambda: torch.device("cpu"))
    monkeypatch.setattr(Translator, "load", partial(Translator.load, device="cpu"))
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    align_corpus(*files, tmp_path / "out")
    assert capsys.readouterr().err.splitlines()[-2:] == [
        "Training source to target and target to source side by side.",
        "The training target to source was stopped by train.minutes = 3 in epoch 1 of 2.",
    ]


def test_without_trainings_the_links_are_those_of_the_hidden_markov_models(tmp_path, files):
    out = regard("align-corpus", *files, "--rounds", "0", "--out", tmp_path / "out", check=True).stdout
    assert out == f"Wrote {tmp_path / 'out/round-0/forward.links'}.\n"
    found = align_by_agreement([(source.split(), target.split()) for source, target in PAIRS])
    assert (tmp_path / "out/round-0/forward.links").read_text().splitlines() == [format_links(each) for each in found]


def test_rounds_that_are_complete_are_not_repeated(tmp_path, files, trainings, monkeypatch, capsys):
    align_corpus(*files, tmp_path / "out", rounds=1, progress=False)
    assert len(trainings) == 2
    assert "complete" not in capsys.readouterr().err
    monkeypatch.setattr(corpus_alignment, "align_by_agreement", None)
    align_corpus(*files, tmp_path / "out", rounds=2)
    said = capsys.readouterr().err
    for number in (0, 1):
        assert f"{tmp_path / 'out' / f'round-{number}'} is complete, and not repeated." in said
    assert [place for place, *_ in trainings] == ["round-1"] * 2 + ["round-2"] * 2


def test_links_of_another_aligner_guide_round_0(tmp_path, files, trainings):
    lines = ["0-1 2-0", *[""] * (len(PAIRS) - 1)]
    given = write_lines(tmp_path / "links", lines)
    start, _ = align_corpus(*files, tmp_path / "out", links=given, gold=GOLD, progress=False)
    pairs = [*((one.split(), other.split()) for one, other in PAIRS), (GOLD[0].source, GOLD[0].target)]
    guided = align_by_agreement(pairs, links=[{(0, 1), (2, 0)}, *({} for _ in PAIRS)])
    assert start.links.read_text().splitlines() == [format_links(each) for each in guided[:-1]]
    assert guided != align_by_agreement(pairs)
    assert [tables["data"]["alignments"] for _, _, tables, _ in trainings] == [
        str(start.links),
        str(start.backward_links),
    ]


def test_links_that_do_not_fit_the_corpus_are_refused(tmp_path, files):
    short = write_lines(tmp_path / "short", ["0-0"])
    out = tmp_path / "out"
    message = refused("align-corpus", *files, "--rounds", "0", "--links", short, "--out", out)
    assert "must have a line for each of the 12 pairs, empty without links; got 1" in message
    beyond = write_lines(tmp_path / "beyond", ["", "0-99", *[""] * (len(PAIRS) - 2)])
    message = refused("align-corpus", *files, "--rounds", "0", "--links", beyond, "--out", out)
    assert "Pair 2 has" in message
    assert "got the link 0-99" in message


def test_a_negative_number_of_rounds_is_refused(tmp_path, files):
    with pytest.raises(OptionError, match="rounds must be 0 or more; got -1"):
        align_corpus(*files, tmp_path, rounds=-1)


def test_a_recipe_that_cannot_be_guided_is_refused_before_round_0(tmp_path, files):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('[model]\narchitecture = "rnnsearch"\n', encoding="utf-8")
    with pytest.raises(OptionError, match="alignment_head is for the architecture transformer"):
        align_corpus(*files, tmp_path / "out", recipe=recipe)
    assert not (tmp_path / "out").exists()
