"""Each kind of trace: its view, and that view in files, notebooks and terminals."""

import re
from dataclasses import replace

import pytest
from helpers import traces
from helpers.printing import printed
from rich.cells import cell_len

from regard import Trace, view
from regard.errors import OptionError
from regard.viewing.document import DocumentView
from regard.viewing.glimpses import GlimpsesView
from regard.viewing.image import ImageView
from regard.viewing.reading import ReadingView
from regard.viewing.tape import TapeView
from regard.viewing.view import View, view_class

KINDS = {**traces.KINDS, "hostile": traces.hostile, "persian": traces.persian}
VIEWS = {
    "caption": ImageView, "document": DocumentView, "glimpses": GlimpsesView, "reading": ReadingView, "tape": TapeView,
    "text": View, "translation": View, "a kind without a view": View, "../caption": View,
}  # fmt: skip
BEGINNINGS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF", ".html": b"<!DOCTYPE html>", ".gif": b"GIF8"}


@pytest.fixture(params=KINDS)
def shown(request):
    return view(KINDS[request.param]())


@pytest.mark.parametrize(("kind", "expected"), VIEWS.items())
def test_the_kind_decides_the_view(kind, expected):
    assert view_class(kind) is expected
    if "/" not in kind and expected is not View:
        assert type(view(KINDS[kind]())) is expected


@pytest.mark.filterwarnings("ignore:matplotlib's fonts lack")
@pytest.mark.parametrize("suffix", BEGINNINGS)
def test_the_suffix_decides_the_format_and_the_same_view_gives_the_same_bytes(shown, suffix, tmp_path):
    path = tmp_path / "new" / f"view{suffix.upper()}"
    if suffix not in shown.SUFFIXES:
        with pytest.raises(OptionError, match=rf"saved as {', '.join(shown.SUFFIXES)}, by the suffix; got 'view"):
            shown.save(path)
        return
    first = shown.save(path).read_bytes()
    assert first.startswith(BEGINNINGS[suffix])
    assert not re.search(rb"CreationDate|<dc:date>|tIME", first)
    assert [each.name for each in path.parent.iterdir()] == [path.name], "no temporary file is left"
    assert shown.save(path).read_bytes() == first


def test_an_option_that_a_view_does_not_have_is_refused(shown, tmp_path):
    for suffix in (".png", ".html"):
        with pytest.raises(OptionError, match=r"no option 'swirl'; choose from .*title"):
            shown.save(tmp_path / f"a{suffix}", swirl=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("width", [40, 80, 160])
def test_a_view_fits_into_the_terminal(shown, width):
    assert max(map(cell_len, printed(shown, width).splitlines())) <= width
    assert "\x1b[" in printed(shown.terminal(width=width), width, colour=True)


def test_no_label_sends_commands_to_the_terminal(shown):
    def evil(axis):
        return replace(axis, labels=tuple(f"\x1b[31m{label}\x9b\u202e" for label in axis.labels), text=None)

    text = printed(view(replace(shown.trace, axes=tuple(map(evil, shown.trace.axes)))), 200)
    assert not set(text) & ({*map(chr, range(0x20))} - {"\n"} | {*map(chr, range(0x7F, 0xA0)), "\u202e"})


def test_a_notebook_displays_a_view_and_its_repr_is_short(shown):
    html = shown._repr_html_()
    assert html.startswith("<attention-view")
    assert html == shown.trace._repr_html_()
    assert len(repr(shown)) < 150


def test_not_the_fields_of_a_trace_decide_but_its_kind():
    caption = KINDS["caption"]()
    assert type(view(Trace("text", caption.axes, caption.maps, image=caption.image))) is View
