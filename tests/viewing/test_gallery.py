"""A page of captions by grade: complete, self-contained, and safe from what captions hold."""

import re

import numpy as np
import pytest
from PIL import Image

from regard import Trace
from regard.errors import DataError, OptionError
from regard.viewing.gallery import GalleryCaption, save_gallery

COUNTS = {"good": 3, "bad": 1, "absent": 0}


def caption(image, text="a wall", *, grade="good", trace=None) -> GalleryCaption:
    return GalleryCaption(image, text, (f"{text} <b>&", "another"), grade, 0.125, 'wall\'s "name"', trace)


def test_a_page_shows_images_captions_and_references(tmp_path):
    Image.new("RGB", (900, 600), "red").save(tmp_path / "red.png")
    trace = Trace.from_image(None, ["a", "wall"], np.eye(2, 4))
    captions = [
        caption(tmp_path / "red.png", trace=trace),
        caption((tmp_path / "red.png").read_bytes(), "<script>alert(1)</script>"),
        caption(Image.new("RGB", (5, 5)), "", grade="bad"),
    ]
    page = save_gallery(
        captions, tmp_path / "new" / "page", counts=COUNTS, title="walls & more", introduction="Graded <by> nobody."
    )
    assert page == tmp_path / "new" / "page" / "index.html"
    written = page.read_text()
    names = re.findall(r'src="([^"]+)"', written)
    assert names == ["001.jpg", "001-words.png", "002.jpg", "003.jpg"]
    assert sorted(file.name for file in page.parent.iterdir()) == sorted([*names, "index.html"])
    with Image.open(page.parent / "001.jpg") as photograph:
        assert photograph.size == (480, 320)
    assert "<script>" not in written
    assert "<b>" not in written
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in written
    assert "a wall &lt;b&gt;&amp;" in written
    assert "walls &amp; more" in written
    assert "Graded &lt;by&gt; nobody." in written
    assert 'alt="wall&#x27;s &quot;name&quot;"' in written
    assert "(no words)" in written
    assert "CIDEr-D 0.12; people wrote:" in written
    assert re.findall(r"<h2>(\w+)</h2>\s*<p>(.*)</p>", written) == [
        ("Good", "3 of 4 captions, 75 %; 2 of them here."),
        ("Bad", "1 of 4 captions, 25 %; 1 of them here."),
        ("Absent", "0 of 4 captions, 0 %."),
    ]
    assert not re.search(r"https?://|@import", written), "the page needs no network"


def test_captions_that_cannot_be_shown_are_explained(tmp_path):
    with pytest.raises(OptionError, match="no grade 'fine' in counts, which has good, bad, absent"):
        save_gallery([caption(Image.new("RGB", (5, 5)), grade="fine")], tmp_path, counts=COUNTS)
    with pytest.raises(DataError, match="wall's"):
        save_gallery([caption(b"no image")], tmp_path, counts=COUNTS)
    assert not (tmp_path / "index.html").exists()
