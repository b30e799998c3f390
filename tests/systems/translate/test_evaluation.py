"""Evaluation by decoding and by forced decoding."""

import json
import math

import pytest
import torch
from helpers.command_line import write_lines
from helpers.models import small_translator

import regard
from regard.data.tokenizer import END, START, Tokenizer
from regard.errors import DataError, OptionError
from regard.systems.report import Measure, Report
from regard.systems.translate.alignment import align_words
from regard.systems.translate.evaluation import compare

TEXTS = ["a dog is running .", "two dogs run", "the small house is red and the sky is blue ."]


@pytest.fixture(scope="module")
def model():
    return small_translator(Tokenizer.train(TEXTS * 3, size=45))


@pytest.fixture
def files(tmp_path):
    """A test set: the texts, and the texts in reverse order as their references."""
    return {
        "source": write_lines(tmp_path / "source", TEXTS),
        "reference": write_lines(tmp_path / "reference", TEXTS[::-1]),
    }


def test_perplexity_is_that_of_the_forced_references(model, files):
    report = regard.evaluate(model, **files, beam=1)
    total, pieces = 0.0, 0
    for source, reference in zip(TEXTS, TEXTS[::-1], strict=True):
        ids = torch.tensor([[*model.source_tokenizer.encode(source), END]])
        target = [*model.target_tokenizer.encode(reference), END]
        unrolled = model.decoder(model.encode(ids, torch.tensor([ids.shape[1]])), torch.tensor([[START, *target[:-1]]]))
        logits = model.decoder.output(unrolled.features)[0].log_softmax(-1)
        total -= sum(logits[t, token].item() for t, token in enumerate(target))
        pieces += len(target)
    assert report["perplexity"] == pytest.approx(math.exp(total / pieces), rel=1e-4)
    assert 0 < report["entropy"] < math.log(40)
    assert report.title == "3 sentences, beam 1"
    assert [output["source"] for output in report.outputs] == TEXTS
    assert [output["reference"] for output in report.outputs] == TEXTS[::-1]
    assert [output["text"] for output in report.outputs] == [one.text for one in model.translate(TEXTS, beam=1)]
    assert sum(row["sentences"] for row in report.tables["BLEU by source length"]) == 3


def test_what_cannot_be_measured_is_explained(model, files, tmp_path, as_a_user):
    short = write_lines(tmp_path / "short", TEXTS[:2])
    with pytest.raises(DataError, match=r"3 lines.* 2"):
        regard.evaluate(model, source=files["source"], reference=short)
    plain = small_translator(model.source_tokenizer, architecture="plain")
    assert "entropy" not in regard.evaluate(plain, **files, beam=1).scores
    with pytest.raises(OptionError, match="no attention"):
        list(align_words(plain, [(["a"], ["a"])]))
    for options, says in (
        ({}, "source and reference"),
        ({"source": files["source"]}, "give both"),
        (files | {"world": "babel:en-fr"}, "not both"),
        ({"world": "babel:en-xx"}, "babel"),
        ({"world": "scenes"}, "babel"),
        (files | {"beam": 0}, "beam must be a whole number from 1 to 1000; got 0"),
        (files | {"sorce": "x"}, "Did you mean 'source'"),
    ):
        with pytest.raises(OptionError, match=says):
            regard.evaluate(model, **options)
    model.train()
    try:
        with pytest.raises(OptionError, match=r"eval\(\)"):
            regard.evaluate(model, **files)
    finally:
        model.eval()


def test_a_world_needs_no_files_and_knows_its_links(model):
    report = regard.evaluate(model, world="babel:en-fr", count=10, beam=1, max_length=5)
    assert report.title == "10 sentences, beam 1"
    assert len(report.outputs) == 10
    assert {"BLEU", "chrF", "TER", "exact match", "perplexity", "entropy", "AER"} == set(report.scores)
    assert 0 <= report["AER"] <= 1
    json.dumps(report.to_dict())


def test_significance_finds_a_difference_where_there_is_one():
    references = [f"the cat number {number} sits on the mat" for number in range(30)]

    def report(name, texts):
        outputs = [{"source": "", "reference": r, "text": t} for r, t in zip(references, texts, strict=True)]
        return Report(name, "30 sentences", {"BLEU": Measure(0.0)}, outputs=outputs)

    worse = [f"a dog number {number} sits" for number in range(30)]
    near = [*references[:15], *worse[15:16], *references[16:]]
    reports = [report("a", references), report("b", worse), report("c", near), report("d", references)]
    table = compare(reports, samples=300)
    name, bleu, p_bleu, chrf, p_chrf = ([str(cell) for cell in column.cells] for column in table.columns)
    assert name == ["1. a", "2. b", "3. c", "4. d"]
    assert bleu[0].startswith("100.0 (100.0 ± 0.0)")
    assert chrf[3] == chrf[0]
    for values in (p_bleu, p_chrf):
        assert values[0] == ""
        assert float(values[1]) < 0.05 < float(values[2])
        assert values[3] == "same"
    with pytest.raises(OptionError, match="the same sentences"):
        compare([reports[0], Report("other", "1 sentence", {}, outputs=reports[1].outputs[:1])])
