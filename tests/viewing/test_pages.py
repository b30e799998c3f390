"""Traces as HTML: what the page holds is the trace, and no word of it becomes markup."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
from helpers.traces import EVERY_KIND, HOSTILE, caption, hostile, large, persian, translation

from regard import Trace, view
from regard.viewing.page import script, script_json


class Parsed(HTMLParser):
    """The elements of a page as a browser sees them: tags with attributes, and the text of scripts and cells."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags, self.scripts, self.texts, self.open = [], [], [], ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.open = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.open = ""

    def handle_data(self, data):
        if self.open == "script":
            self.scripts[-1] += data
        elif data.strip():
            self.texts.append(data)

    def named(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.mark.parametrize("make", [*EVERY_KIND.values(), hostile, persian], ids=lambda make: make.__name__)
def test_a_page_holds_the_trace(make):
    trace = make()
    page = Parsed(view(trace).page())
    assert Trace.from_json(page.scripts[0]) == trace
    assert page.scripts[1] == script()
    assert len(page.scripts) == 2, "no word of a trace opens another script"
    (element,) = page.named("attention-view")
    assert element["elements"].split() == list(view(trace).ELEMENTS)
    loaded = [tag for tag, attributes in page.tags if "src" in attributes and not attributes["src"].startswith("data:")]
    assert loaded == []
    assert page.named("link") == []


def test_the_policy_allows_this_script_and_nothing_from_outside():
    (meta,) = [each for each in Parsed(view(translation()).page()).named("meta") if "http-equiv" in each]
    digest = base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in meta["content"]
    assert "default-src 'none'" in meta["content"]
    assert "http" not in meta["content"]


def test_hostile_words_stay_words():
    page = Parsed(view(hostile()).page(title="<b>&</b>"))
    tags = {tag for tag, _ in page.tags}
    assert "img" not in tags
    assert "b" not in tags
    assert page.texts.count("<b>&</b>") == 2, "in the title and in the heading"
    assert HOSTILE[0] in page.texts, "a table shows it as text"


def test_json_in_a_script_cannot_end_it():
    value = {"a": "</script><!--", "b": "\u2028&amp;"}
    written = script_json(value)
    assert not re.search(r"[<>&]", written)
    assert json.loads(written) == value


def test_options_of_a_figure_become_options_of_the_component():
    def element(trace, **options):
        attributes = Parsed(view(trace).page(**options)).named("attention-view")[0]
        return attributes.get("shown"), json.loads(attributes.get("options", "{}"))

    assert element(translation()) == (None, {"words": True})
    assert element(translation(), pieces=True) == (None, {})
    assert element(translation().by_words()) == (None, {}), "there are no subwords"
    assert element(translation(), layer=2, head=1, style="lines", pieces=True) == ("lines", {"layer": 2, "head": 1})
    assert element(translation(), name="cross", style="heat_maps") == ("heads", {"name": "cross", "words": True})
    assert element(caption(), cells=True, overlay="colour") == (None, {"cells": True, "overlay": "magma"})


def test_a_notebook_output_can_stand_alone():
    for make in EVERY_KIND.values():
        output = Parsed(make()._repr_html_())
        assert Trace.from_json(output.scripts[0]) == make()
        assert output.scripts[1] == script()


def test_a_static_table_shows_the_weights():
    trace = translation()
    texts = Parsed(view(trace).html_table()).texts
    assert texts[0] == "cross: target x source"
    assert texts[1:6] == list(trace.source)
    assert texts[6:12] == ["La", *(f"{weight:.2f}" for weight in trace.weights[0])]
    right_to_left = Parsed(view(persian()).html_table()).texts
    assert right_to_left[1:5] == list(persian().source[::-1]), "inputs written from right to left start at the right"


def test_a_static_table_of_a_large_map_lists_the_strongest():
    trace = large(100)
    html = view(trace).html_table()
    assert len(html) < 20_000
    strongest = trace.source[int(trace.weights[0].argmax())]
    assert Parsed(html).texts[1:4] == ["out0", strongest, f" {trace.weights[0].max():.3f}, "]
    assert Parsed(html).texts[-1] == "40 more rows"
    assert '<img src="data:image/' in view(caption()).page()
    assert "0 maps" in view(Trace("reading", (), ())).html_table()
