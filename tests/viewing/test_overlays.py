"""A caption over its picture: light where the weights are, as a strip, a film, and in the terminal."""

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from regard import Trace
from regard.errors import OptionError, RegardError
from regard.viewing import halfblocks, overlay, picture
from regard.viewing.glow import chosen, light, lit, pixels_of

WORDS = ["a", "red", "[star]", "$x$"]
IMAGE = np.full((60, 100, 3), 200, np.uint8)
# A grid of 3 x 5: even, then all on row 1 column 3, then on two cells, then nothing.
WEIGHTS = np.zeros((4, 15))
WEIGHTS[0] = 1 / 15
WEIGHTS[1, 8] = 1
WEIGHTS[2, [0, 14]] = 0.75, 0.25
TRACE = Trace.of_picture(
    IMAGE, WORDS, WEIGHTS, grid=(3, 5), gates=[0.1, 0.9, 0.5, 0.0], scores=np.log([1, 0.5, 0.25, 1])
)
HARD = Trace.of_picture(None, WORDS, WEIGHTS, grid=(3, 5), choices=[0, 8, 14, 4])


def test_soft_light_is_brightest_in_the_middle_of_the_strongest_cell():
    field = light(TRACE, 1, (60, 100))
    assert field.shape == (60, 100)
    assert field.max() == 1
    row, column = np.unravel_index(field.argmax(), field.shape)
    assert (row // 20, column // 20) == (1, 3)
    assert abs(row + 0.5 - 30) <= 0.5
    assert abs(column + 0.5 - 70) <= 0.5
    assert field[:, :20].max() < 0.01
    assert np.allclose(field[29, 69::-1][:30], field[29, 70:][:30]), "as far to the left as to the right"


def test_raw_light_is_the_weights_cell_by_cell():
    field = light(TRACE, 2, (60, 100), cells=True)
    cells = field.reshape(3, 20, 5, 20)
    assert np.ptp(cells, axis=(1, 3)).max() == 0
    np.testing.assert_allclose(cells[:, 0, :, 0].reshape(-1), WEIGHTS[2] / 0.75)


def test_even_attention_dims_nothing_and_none_dims_all():
    assert light(TRACE, 0, (60, 100), cells=True).min() == 1
    assert light(TRACE, 3, (60, 100)).max() == 0
    assert np.array_equal(lit(IMAGE, np.ones((60, 100))), IMAGE)
    assert lit(IMAGE, np.zeros((60, 100))).max() < 0.4 * 200


def test_a_picture_keeps_its_shape_and_its_pixels():
    assert pixels_of(TRACE, 100).tolist() == IMAGE.tolist()
    assert pixels_of(TRACE, 50).shape == (30, 50, 3)
    assert pixels_of(HARD, 50).shape == (30, 50, 3), "without a picture, the grid"
    assert len(np.unique(pixels_of(HARD, 50))) == 1


def test_the_chosen_cell_is_that_of_hard_attention_or_the_strongest():
    assert chosen(HARD, 2, (60, 100)) == (80, 40, 20, 20)
    assert chosen(TRACE, 2, (60, 100)) == (0, 0, 20, 20)


def test_a_strip_has_the_picture_each_word_its_number_and_its_gate():
    figure = overlay.strip(TRACE, columns=3, title="t")
    pictures = [axes for axes in figure.axes if axes.images]
    assert len(pictures) == 5
    texts = [[text.get_text() for text in axes.texts] for axes in pictures]
    assert texts == [[], ["a", " (1.00)"], ["red", " (0.50)"], ["[star]", " (0.25)"], ["$x$", " (1.00)"]]
    bars = [axes for axes in figure.axes if not axes.images]
    assert [axes.texts[0].get_text() for axes in bars] == ["β 0.10", "β 0.90", "β 0.50", "β 0.00"]
    widths = [axes.patches[1].get_width() / axes.patches[0].get_width() for axes in bars]
    assert widths == pytest.approx(TRACE.gates)
    assert np.array_equal(pictures[2].images[0].get_array(), lit(pixels_of(TRACE, 320), light(TRACE, 1, (192, 320))))
    plain = overlay.strip(Trace.of_picture(IMAGE, WORDS, WEIGHTS, grid=(3, 5)))
    assert len(plain.axes) == 5, "without gates there are no bars"


def test_hard_attention_frames_its_cell():
    tiles = overlay.strip(HARD, cells=True).axes
    frames = [axes.patches[0].get_bbox().bounds for axes in tiles[1:]]
    assert frames[2] == pytest.approx((4 * 64 - 0.5, 2 * 64 - 0.5, 64, 64))
    assert not tiles[0].patches


@pytest.mark.parametrize(("ending", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_strips_are_saved_by_their_ending(tmp_path, ending, magic):
    assert picture.save(overlay.strip(TRACE), tmp_path / f"s.{ending}").read_bytes().startswith(magic)


def test_a_film_shows_the_picture_and_then_each_word(tmp_path):
    path = overlay.save_film(TRACE, tmp_path / "new" / "film.gif", side=96, seconds=0.4)
    assert [file.name for file in path.parent.iterdir()] == ["film.gif"], "no temporary file is left"
    with Image.open(path) as film:
        assert film.n_frames == 5
        assert film.width >= 96
        times = []
        for frame in range(5):
            film.seek(frame)
            times.append(film.info["duration"])
    assert times == [400, 400, 400, 400, 1000]


def test_a_persian_caption_is_read_from_the_right(tmp_path):
    trace = Trace.of_picture(IMAGE, ["یک", "ستاره"], WEIGHTS[:2], grid=(3, 5))
    tiles = overlay.strip(trace).axes
    assert tiles[0].get_position().x0 > tiles[1].get_position().x0 > tiles[2].get_position().x0
    overlay.save_film(trace, tmp_path / "f.gif", side=64)


def shown(text, width=60) -> list[str]:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(text)
    return capture.get().splitlines()


def test_the_terminal_shows_tiles_beside_one_another():
    lines = shown(halfblocks.strip(TRACE, width=60, side=18))
    # Three tiles of 18 x 10 pixels a row: a line of words, five of half blocks, one of gates; then the other two.
    assert lines[0].split() == ["a", "1.00", "red", "0.50"]
    assert lines[1] == "  ".join(["▀" * 18] * 3)
    assert lines[6].split() == ["━" + "─" * 11, "β0.10", "━" * 11 + "─", "β0.90"]
    assert lines[8].split() == ["[star]", "0.25", "$x$", "1.00"]
    assert len(lines) == 15
    assert max(map(len, lines)) <= 60


def test_half_blocks_carry_the_colours_of_two_pixels():
    text = halfblocks.strip(TRACE, width=60, side=10)
    styles = [str(span.style) for span in text.spans if "on rgb" in str(span.style)]
    assert styles[0] == "rgb(200,200,200) on rgb(200,200,200)"
    assert len(set(styles)) > 5


def test_without_colours_the_weights_are_shades():
    soft = shown(halfblocks.strip(TRACE, width=60, colour=False))
    assert soft[1][:10] == "█" * 10
    assert soft[2][14:24] == "      ██  "
    assert soft[1][28:38] == "██        "
    assert soft[3][28:38] == "        ░░"
    hard = shown(halfblocks.strip(HARD, width=60, colour=False))
    assert hard[1][:10] == "[]" + "█" * 8
    assert hard[2][14:24] == "      []  "


def test_hard_attention_is_orange_in_the_terminal():
    text = halfblocks.strip(HARD, width=60, side=10)
    assert any("rgb(230,190,102)" in str(span.style) for span in text.spans)


def test_a_trace_of_a_picture_is_viewed_from_the_command_line(tmp_path):
    path = TRACE.save(tmp_path / "t.json")

    def view(*options):
        command = [sys.executable, "-m", "regard", "view", str(path), *options]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert "[star]" in view()
    for name in ("a.png", "a.gif"):
        assert name in view("--cells", "--out", str(tmp_path / name))
        assert (tmp_path / name).stat().st_size > 1000


def test_what_cannot_be_shown_is_explained(tmp_path):
    words = Trace.of("ab", "c", [[0.5, 0.5]])
    for view in (overlay.strip, halfblocks.strip):
        with pytest.raises(OptionError, match=r"this trace is of text, with grid=None and 1 words"):
            view(words)
    with pytest.raises(OptionError, match=r"saved as \.gif; got 'a\.png'"):
        overlay.save_film(TRACE, tmp_path / "a.png")
    with pytest.raises(OptionError, match="side=3"):
        overlay.save_film(TRACE, tmp_path / "a.gif", side=3)
    with pytest.raises(OptionError, match="columns=0"):
        overlay.strip(TRACE, columns=0)
    with pytest.raises(OptionError, match="6 to 10 characters wide"):
        halfblocks.strip(TRACE, width=10)
    broken = Trace.from_json(TRACE.to_json().replace("base64,", "base64,*"))
    with pytest.raises(RegardError, match="no data URI"):
        overlay.strip(broken)
