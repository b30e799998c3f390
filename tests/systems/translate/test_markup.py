"""Documents with markup: tags stay on their words, and nothing but words changes."""

import re
import runpy
from collections import Counter
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import html5lib
import pytest
from helpers.markup import MODEL, reversed_document, sentence
from helpers.models import small_translator
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import regard
from regard.data.text import well_formed
from regard.errors import DataError, OptionError
from regard.systems.translate.markup import markdown
from regard.systems.translate.markup.pieces import Piece, balanced

BENCHMARK = runpy.run_path(str(Path(regard.__file__).parents[2] / "benchmarks" / "markup_places.py"))
HTML_TAGS = [("<b>", "</b>"), ('<a href="x?a=1&b">', "</a>"), ("<SPAN class=y>", "</SPAN>"), ("<em\n>", "</em >")]
MARKDOWN_TAGS = [("**", "**"), ("[", "](http://x/y)"), ("~~", "~~"), ("<b>", "</b>")]
XLIFF_TAGS = [('<g id="1">', "</g>"), ("<mrk mid='2' mtype='x'>", "</mrk>"), ('<g  id="3" >', "</g >")]


def translated(document, markup="html"):
    return reversed_document(document, markup).text


def test_tags_stand_where_an_exact_alignment_says():
    for seed in range(100):
        draw = Random(seed)  # noqa: S311 - not for secrets
        page, expected = "<!DOCTYPE html>\n<body class='a'>", "<!DOCTYPE html>\n<body class='a'>"
        for _ in range(2):
            inner, turned = sentence(draw, HTML_TAGS)
            page += f"<p>\n  {inner} </p><hr>\n"
            expected += f"<p>\n  {turned} </p><hr>\n"
        assert translated(page) == expected


def test_codes_of_xliff_stand_where_an_exact_alignment_says():
    for seed in range(50):
        inner, turned = sentence(Random(seed), XLIFF_TAGS)  # noqa: S311 - not for secrets
        head = '<xliff version="1.2"><file original="a"><body>'
        unit = f"{head}\n  <trans-unit id='1'>\n   <source>{inner}</source>\n  </trans-unit></body></file></xliff>"
        assert translated(unit, "xliff") == unit.replace("</source>", f"</source>\n   <target>{turned}</target>")


def test_marks_of_markdown_stand_where_an_exact_alignment_says():
    rendered = MarkdownIt("commonmark").enable("strikethrough").render
    for seed in range(50):
        inner, turned = sentence(Random(seed), MARKDOWN_TAGS, depth=1)  # noqa: S311 - not for secrets
        found = translated(f"# {inner}\n\n> * {inner}\n>   {inner}\n\n    {inner}\n", "markdown")
        assert rendered(found) == rendered(f"# {turned}\n\n> * {turned} {turned}\n\n    {inner}\n")


@pytest.mark.parametrize(("name", "model"), [("measure", "babel"), ("measure_everyday", "en-fr")])
def test_attention_places_tags(name, model):
    given = (regard.load(model, device="cpu"), *(["en-fr"] if model == "babel" else []), 15, 1)
    counts = BENCHMARK[name](*given)
    assert counts["known"] > 0.8 * counts["sentences"]
    assert counts["right"] >= 0.95 * counts["tags"]
    assert counts["lost"] == 0


def test_only_words_change():
    page = (
        "<html><head><title>old stone</title><style>p > b {}</style></head><body data-x='a \"b\"'>\r\n"
        "<script>if (old < stone) { x = '<b>old stone</b>' }</script>\n"
        "<pre>old  stone</pre><p title='old stone'>old&nbsp;stone &amp; r&#101;d &lt; bird</p>\n"
        "<p>1 &copy; 2</p><textarea>old <b>stone</b></textarea><p translate=no>old stone</p>\n"
        "<svg><title>old stone</title></svg><br>old stone<br/>bird sings</body></html>"
    )
    expected = (
        page.replace("<title>old stone</title><style>", "<title>stone old</title><style>")
        .replace("old&nbsp;stone &amp; r&#101;d &lt; bird", "bird &lt; red &amp; stone old")
        .replace("<br>old stone<br/>bird sings", "<br>stone old<br/>sings bird")
    )
    assert translated(page) == expected


def test_what_is_kept_has_its_place_in_the_sentence():
    assert translated("<p>old <code>a < b; c</code> stone</p>") == "<p>stone <code>a < b; c</code> old</p>"
    assert translated('<p>old <span translate="no">X1 green</span> X1</p>') == (
        '<p>X1 <span translate="no">X1 green</span> old</p>'
    )
    assert (
        translated("<p>old <img src=a> stone bird<sup>1</sup></p>") == "<p>bird<sup>1</sup> <img src=a> stone old</p>"
    )
    assert translated("<p>old <b></b>stone<i> </i></p>") == "<p><b></b>stone<i></i> old</p>"
    assert translated("See `a_b c` old **stone**.", "markdown") == "**stone**. old `a_b c` See"
    assert translated("old H<sub>2</sub>O") == "H<sub>2</sub>O old"


def test_tags_without_a_partner_stay_between_sentences():
    assert translated("<p>old stone <b>green bird</p>") == "<p>stone old <b>bird green</p>"
    assert translated("<b>old stone <i>green bird</b> quiet river</i>") == (
        "<b>stone old <i>bird green</b> river quiet</i>"
    )
    assert translated("<a href=x><div>old stone</div></a>") == "<a href=x><div>stone old</div></a>"


def test_a_page_is_left_as_it_is_from_damaged_markup_on():
    found = reversed_document("<p>old <b>stone</b></p>\n<p>green <a href='x>bird</p>", "html")
    assert found.text == "<p><b>stone</b> old</p>\n<p>green <a href='x>bird</p>"
    assert found.note == "Damaged markup in line 2: the page is left as it is from there on."


def test_balanced_runs_leave_out_what_overlaps():
    def runs(text):
        kinds = {"(": "open", "[": "open", ")": "close", "]": "close"}
        pieces = [Piece(kinds.get(each, "text"), each, "[" if each in "[]" else "(") for each in text]
        return ["".join(piece.content for piece in run) for run in balanced(pieces)]

    assert runs("a(b[c]d)e") == ["a(b[c]d)e"]
    assert runs("a(b[c)d]e") == ["a", "b", "c", "d", "e"]
    assert runs("a)b(c)d[e") == ["a", "b(c)d", "e"]
    assert runs("(a[b(c)]d)(e") == ["(a[b(c)]d)", "e"]
    assert runs("(a[b)") == ["a", "b"]


def test_markdown_keeps_its_blocks():
    document = (
        "---\ntitle: old stone\n---\n\nold *stone*\n===\n\n- [ ] old stone\n- one  \n  two\n\n"
        "| old stone | `a` |\n|---|---|\n"
        "| green **bird** | [old][r] |\n\n```\nold stone\n```\n\n<div>old stone</div>\n\n"
        "[r]: http://x 'T'\n\n"
        "bird 1986. old\\_stone -\n"
    )
    assert translated(document, "markdown") == (
        "---\ntitle: old stone\n---\n\n*stone* old\n===\n\n- [ ] stone old\n- one  \n  two\n\n"
        "| stone old | `a` |\n|---|---|\n"
        '| **bird** green | [old](http://x "T") |\n\n```\nold stone\n```\n\n<div>old stone</div>\n\n'
        "[r]: http://x 'T'\n\n"
        "\\- old\\_stone 1986. bird\n"
    )


def test_a_block_that_markdown_would_read_otherwise_is_left_as_it_is():
    segment = markdown.segments("an *old* stone")[0][0]
    assert markdown.finished(segment, "stone *old* an") == "stone *old* an"
    assert markdown.finished(segment, "1. *old* an") == "1\\. *old* an"
    assert markdown.finished(segment, "stone * old* an") is None
    assert markdown.finished(segment, "***") is None


def test_xliff_keeps_translations_and_what_is_locked():
    document = (
        '<?xml version="1.0"?><!DOCTYPE xliff [<!ELEMENT a ANY>]>'
        '<x:xliff version="1.2" xmlns:x="urn:oasis:names:tc:xliff:document:1.2">'
        "<x:trans-unit approved='yes'><x:source>old stone</x:source></x:trans-unit>"
        "<x:trans-unit translate='no'><x:source>old stone</x:source></x:trans-unit>"
        "<x:trans-unit><x:source>old stone</x:source><x:target>kept</x:target>"
        "<x:alt-trans><x:source>old stone</x:source>"
        "</x:alt-trans></x:trans-unit><x:trans-unit><x:source>old é &amp; <![CDATA[<stone>]]></x:source>"
        "<x:target state='new'/></x:trans-unit><x:trans-unit><x:source>"
        "old <x:x id='1'/><x:bpt id='2'>&lt;b></x:bpt>stone"
        "<x:ept id='2'>b</x:ept></x:source></x:trans-unit></x:xliff>"
    )
    expected = document.replace("<x:target state='new'/>", "<x:target state='new'>&lt;stone&gt; &amp; é old</x:target>")
    last = "<x:x id='1'/><x:bpt id='2'>&lt;b></x:bpt>stone<x:ept id='2'>b</x:ept> old"
    expected = expected.replace("b</x:ept></x:source>", f"b</x:ept></x:source><x:target>{last}</x:target>")
    assert translated(document, "xliff") == expected


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ("<xliff><a></xliff>", "not well-formed XML: mismatched tag: line 1"),
        ("<html/>", "not XLIFF: its root is <html>"),
        ('<!DOCTYPE x [<!ENTITY a "aaa">]><xliff>&a;</xliff>', "defines entities"),
    ],
)
def test_what_is_no_xliff_is_refused(document, says):
    with pytest.raises(DataError, match=says):
        translated(document, "xliff")


def test_a_doubtful_place_is_reported():
    attends_to_nothing = regard.load("en-fr", device="cpu").translate(
        "<p>He has a <b>dog</b>.</p>", markup="html", max_length=1
    )
    assert re.fullmatch("Check the places of 1 of 1 tag: <b>dog.", attends_to_nothing.note)
    assert reversed_document("<p>old <b>stone</b></p>", "html").note == ""


def test_documents_need_attention_and_have_one_translation():
    with pytest.raises(OptionError, match="come from attention"):
        small_translator(architecture="plain").translate("<p>a dog</p>", markup="html")
    for option in ({"nbest": 2}, {"prefix": "a"}, {"links": True}):
        with pytest.raises(OptionError, match="has one translation"):
            MODEL.translate("<p>a dog</p>", markup="html", **option)


FRAGMENTS = st.lists(st.sampled_from((
    "old ", "stone", " bird.", "<b>", "</b>", "<i x='>'>", "</i>", "<p>", "</p>", "<br>", "<br/>", "<b/>", "<", ">",
    "&", "&lt;", "&amp", "&#x41;", "<!-- x -->", "<!--", "-->", "<script>", "</script>", "<a href=", "'", '"', "</",
    "<![CDATA[", "]]>", "<?x", "?>", "<img>", "<code>", "</code>", "<svg>", "</svg>", "<title>", "</title>", "\n", "*",
    "**", "_", "`", "[", "](", ")", "# ", "> ", "- ", "1. ", "|", "\\", "\u200f", "\x00", "\ud800", "<table>", "<td>",
    "~~", "<select>", "<option>", "<sup>1</sup>", "<span translate=no>", "</span>", "<pre>", "<textarea>",
)), max_size=25).map("".join)  # fmt: skip


def outline(page):
    """The tags of a page with their attributes, its comments, and the text of what is not translated, counted."""
    tree = html5lib.parse(page, treebuilder="etree", namespaceHTMLElements=False)
    found = Counter()
    for node in tree.iter():
        is_kept = node.tag in ("script", "style", "textarea", "code", "pre") or not isinstance(node.tag, str)
        text = "".join(node.itertext()) if is_kept else ""
        found[str(node.tag), tuple(sorted(node.attrib.items())), text] += 1
    return found


@settings(max_examples=150, deadline=None)
@given(FRAGMENTS)
@example("old <code><pre></code>")
@example("<code><b></code> stone")
def test_no_document_is_broken(page):
    page = well_formed(page)
    found = translated(page)
    assert outline(f"<body>{found}") == outline(f"<body>{page}")
    translated(page, "markdown")


@settings(max_examples=100, deadline=None)
@given(FRAGMENTS)
def test_no_xliff_is_broken(text):
    document = f"<xliff version='2.0'><segment><source>{text}</source></segment></xliff>"
    try:
        ElementTree.fromstring(document)  # noqa: S314 - what hypothesis makes
    except (ElementTree.ParseError, ValueError):
        return
    found = ElementTree.fromstring(translated(document, "xliff"))  # noqa: S314
    codes = [
        Counter(node.tag for node in part.iter()) - Counter([part.tag])
        for part in found.iter()
        if part.tag in ("source", "target")
    ]
    assert all(each == codes[0] for each in codes)
