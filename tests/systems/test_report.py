"""Reports: plain values, outputs as JSON lines, and tables that fit 80 columns."""

import io
import json

import pytest
from rich.console import Console

from regard.systems.report import Measure, Report, class_table, side_by_side, table_of


def written(renderable, width=80):
    out = io.StringIO()
    Console(file=out, width=width).print(renderable)
    return out.getvalue()


@pytest.fixture
def report():
    scores = {
        "BLEU": Measure(31.4159, note="nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"),
        "AER": Measure(0.12345, "{:.3f}"),
    }
    tables = {"BLEU by source length": [{"source words": "1-10", "sentences": 3, "BLEU": 20.123}, {"sentences": None}]}
    outputs = [{"source": "a", "reference": "ä", "text": "b"}, {"source": "c", "reference": "d", "text": "e"}]
    return Report("runs/a/model", "2 sentences, beam 5", scores, tables, outputs, notes=("Read it with care.",))


def test_scores_are_found_by_name_and_written_as_plain_values(report):
    assert report["BLEU"] == 31.4159
    with pytest.raises(KeyError):
        report["bleu"]
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["scores"]["AER"] == {"value": 0.12345}
    assert plain["scores"]["BLEU"]["note"].startswith("nrefs")
    assert plain["model"] == "runs/a/model"
    assert "outputs" not in plain
    assert len(repr(report)) < 1000


def test_outputs_are_one_json_object_per_line(report, tmp_path):
    path = report.save_outputs(tmp_path / "new" / "out.jsonl")
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == report.outputs
    assert "ä" in lines[0]


def test_a_report_fits_80_columns(report):
    text = written(report)
    assert max(map(len, text.splitlines())) <= 80
    for part in ("runs/a/model: 2 sentences, beam 5", "31.42", "0.123", "20.12", "Read it with care."):
        assert part in text
    assert "nrefs:1" in text


def test_a_notebook_displays_a_report():
    tables = {"by <length>": [{"words": "1-10", "BLEU": 20.123}]}
    report = Report("a & b", "2 <sentences>", {"BLEU": Measure(31.4159, note="<13a>")}, tables, notes=("With <care>.",))
    html = report._repr_html_()
    for part in ("<b>a &amp; b</b>", "<td>31.42</td>", "<td>&lt;13a&gt;</td>", "<td>20.12</td>", "by &lt;length&gt;"):
        assert part in html
    assert "<care>" not in html


def test_models_stand_side_by_side_with_their_mean(report):
    other = Report("b", "2 sentences", {"BLEU": Measure(33.4159), "chrF": Measure(50.0)})
    lines = written(side_by_side([report, other], mean=True)).splitlines()
    assert max(map(len, lines)) <= 80
    bleu = next(line for line in lines if "BLEU" in line)
    assert "31.42" in bleu
    assert "33.42" in bleu
    assert "32.42 ± 1.41" in bleu
    chrf = next(line for line in lines if "chrF" in line)
    assert "50.00 ± 0.00" in chrf
    assert "±" not in written(side_by_side([report, other]))


def test_columns_of_a_table_are_those_of_all_rows():
    text = written(table_of([{"a": 1, "b": None}, {"b": 2.5, "c": "x"}]))
    assert all(part in text for part in (" a ", " b ", " c ", " 2.50 ", " x "))
    assert "None" not in text


def test_a_table_of_classes_by_hand():
    rows = class_table(("cat", "dog", "owl"), [0, 0, 0, 1, 1], [0, 1, 1, 1, 0], "images")
    assert [row["class"] for row in rows] == ["cat", "dog"], "classes that do not occur have no row"
    cat, dog = rows
    assert (cat["images"], dog["images"]) == (3, 2)
    assert (cat["recall"], cat["precision"], cat["F1"]) == pytest.approx((100 / 3, 50, 40))
    assert (cat["most common mistake"], dog["most common mistake"]) == ("dog", "cat")
    assert class_table(("cat",), [0], [0], "images")[0]["most common mistake"] == ""
