"""`regard translate` with documents and word links: what it reads, writes and refuses."""

from helpers.command_line import refused, regard

from regard import load
from regard.metrics.alignment import links_from_weights
from regard.systems.translate.alignment import align_pairs

PAGE = b"<p>The <b>red house</b> is old.</p>\r\n<!-- x -->\n<p>He is happy"


def test_a_page_is_translated_into_a_file(tmp_path):
    (tmp_path / "a.html").write_bytes(PAGE)
    done = regard("translate", "--markup", "html", tmp_path / "a.html", "-o", tmp_path / "b.html", check=True)
    assert done.stdout == ""
    found = (tmp_path / "b.html").read_bytes()
    assert b"<b>maison rouge</b> est vieille" in found
    assert b"</p>\r\n<!-- x -->\n<p>Il est heureux\n" in found
    piped = regard("translate", "--markup", "html", input=PAGE.decode(), check=True)
    assert piped.stdout == found.decode()


def test_what_is_no_single_document_is_refused(tmp_path):
    (tmp_path / "a.html").write_bytes(PAGE)
    page = str(tmp_path / "a.html")
    options = ("translate", "--markup", "html")
    assert "One document at a time" in refused(*options, page, page)
    assert "One document at a time" in refused(*options, "--input", page)
    assert "same file" in refused(*options, page, "-o", page, "--overwrite")
    assert "has one translation" in refused(*options, page, "--nbest", "2")
    (tmp_path / "b.html").write_bytes("é".encode("latin-1"))
    assert "is not UTF-8 text" in refused(*options, tmp_path / "b.html")
    assert "is not for an output folder" in refused("translate", "-i", page, "-o", "x/", "--alignments", "a")


def test_word_links_are_written_beside_translations(tmp_path):
    text = "The red house.\n\nSee https://a.b for more. HE IS HAPPY.\n"
    done = regard("translate", "--alignments", tmp_path / "links", input=text, check=True)
    lines = (tmp_path / "links").read_text().splitlines()
    assert len(lines) == 3
    assert lines[0] == "0-0 1-2 2-1"
    assert lines[1] == ""
    assert done.stdout.splitlines()[0] == "La maison rouge."
    source, target = text.splitlines()[2].split(), done.stdout.splitlines()[2].split()
    links = [tuple(map(int, link.split("-"))) for link in lines[2].split()]
    named = {source[i]: target[j] for i, j in links}
    assert (named["https://a.b"], named["HE"], named["HAPPY."]) == ("https://a.b", "IL", "HEUREUX.")


def test_links_are_those_of_forced_decoding():
    model, text = load("babel", device="cpu"), "the old farmer does not see the red houses ."
    found = model.translate(text, links=True, split=False)
    (pair,) = align_pairs(model, [(text.split(), found.text.split())])
    assert set(found.links) == links_from_weights(pair.weights)
    assert found.trace is not None
    assert model.translate(text, links=True, traces="none").trace is None
