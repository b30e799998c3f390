"""Two directions that teach each other to align a corpus; the trainings themselves are those of test_experiment.py."""

import pytest
from command_line import refused, regard, write_lines
from small_models import TRANSFORMER, small_translator

from regard.data.tokenizer import Tokenizer
from regard.data.word_links import read_links
from regard.errors import OptionError
from regard.metrics.alignment import GoldAlignment
from regard.systems.translation import corpus_alignment
from regard.systems.translation.corpus_alignment import align_corpus
from regard.systems.translation.data import world_pairs
from regard.systems.translation.model import Translator

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


def test_later_rounds_are_guided_by_the_links_of_the_round_before(tmp_path, files, trainings):
    reports = []
    first, last = align_corpus(
        *files, tmp_path / "out", first={"train": {"minutes": 3.0}}, gold=GOLD, progress=False, report=reports.append
    )
    assert [report.split()[2] for report in reports] == ["layers", "AER", "AER"]
    assert [(place, name) for place, name, *_ in trainings] == [
        (place, name) for place in ("round-1", "round-2") for name in ("forward", "backward")
    ]
    (_, _, tables, start), *_, (_, _, later, later_start) = trainings
    assert (start, later_start) == (None, first.backward)
    assert tables == {"data": dict(zip(("source", "target"), map(str, files), strict=True)), "train": {"minutes": 3.0}}
    assert later["data"] == {"source": str(files[1]), "target": str(files[0]), "alignments": str(first.backward_links)}
    assert later["train"] == {"guidance": 0.5, "epochs": 12, "learning_rate": 0.00075}
    assert later["model"]["alignment_layer"] == Translator.load(first.backward).config.alignment_layer
    assert Translator.load(last.forward).config.alignment_head == 1
    links, turned = list(read_links(last.links)), list(read_links(last.backward_links))
    assert len(links) == len(PAIRS)
    for one, other in zip(links, turned, strict=True):
        assert sorted(one[:, ::-1].tolist()) == sorted(other.tolist())
    lines = regard("align", last.forward, *files, "--reverse", last.backward, check=True).stdout
    assert lines == last.links.read_text()
    assert "give --reverse" in refused("align", last.forward, *files, "--symmetrize", "union")


def test_rounds_that_are_complete_are_not_repeated(tmp_path, files, trainings):
    align_corpus(*files, tmp_path / "out", rounds=1, progress=False)
    assert len(trainings) == 2
    align_corpus(*files, tmp_path / "out", rounds=2, progress=False)
    assert [place for place, *_ in trainings] == ["round-1"] * 2 + ["round-2"] * 2


def test_links_of_another_aligner_guide_the_first_round(tmp_path, files, trainings):
    given = write_lines(tmp_path / "links", ["0-1 2-0"] * len(PAIRS))
    align_corpus(*files, tmp_path / "out", rounds=1, links=given, progress=False)
    forward, backward = (tables for _, _, tables, _ in trainings)
    assert forward["data"]["alignments"] == str(given)
    assert next(read_links(backward["data"]["alignments"])).tolist() == [[0, 2], [1, 0]]
    assert forward["train"] == {"guidance": 0.5}
    assert forward["model"] == {"alignment_head": 1}


def test_no_rounds_are_refused(tmp_path, files):
    with pytest.raises(OptionError, match="rounds must be 1 or more; got 0"):
        align_corpus(*files, tmp_path, rounds=0)
