"""A caption over its image: light or colour where the weights are, as a figure, an animation, and in the terminal."""

import base64
import subprocess
import sys

import numpy as np
import pytest
from helpers.printing import printed
from PIL import Image

from regard import Trace, view, viewing
from regard.errors import OptionError, RegardError
from regard.viewing.figures import add_note
from regard.viewing.image import ImageView, attended_cell, attention_field, image_pixels, overlaid

WORDS = ["a", "red", "[star]", "$x$"]
IMAGE = np.full((60, 100, 3), 200, np.uint8)
# A grid of 3 x 5: even, then all on row 1 column 3, then on two cells, then nothing.
WEIGHTS = np.zeros((4, 15))
WEIGHTS[0] = 1 / 15
WEIGHTS[1, 8] = 1
WEIGHTS[2, [0, 14]] = 0.75, 0.25
TRACE = Trace.from_image(
    IMAGE, WORDS, WEIGHTS, grid=(3, 5), gates=[0.1, 0.9, 0.5, 0.0], log_probs=np.log([1, 0.5, 0.25, 1])
)
HARD = Trace.from_image(None, WORDS, WEIGHTS, grid=(3, 5), choices=[0, 8, 14, 4])


def test_a_smooth_overlay_is_strongest_in_the_middle_of_the_strongest_cell():
    field = attention_field(TRACE, 1, (60, 100))
    assert field.shape == (60, 100)
    assert field.max() == 1
    row, column = np.unravel_index(field.argmax(), field.shape)
    assert (row // 20, column // 20) == (1, 3)
    assert abs(row + 0.5 - 30) <= 0.5
    assert abs(column + 0.5 - 70) <= 0.5
    assert field[:, :20].max() < 0.01
    assert np.allclose(field[29, 69::-1][:30], field[29, 70:][:30]), "as far to the left as to the right"


def test_an_overlay_of_cells_is_the_weights():
    field = attention_field(TRACE, 2, (60, 100), cells=True)
    cells = field.reshape(3, 20, 5, 20)
    assert np.ptp(cells, axis=(1, 3)).max() == 0
    np.testing.assert_allclose(cells[:, 0, :, 0].reshape(-1), WEIGHTS[2] / 0.75)


def test_even_attention_dims_nothing_and_none_dims_all():
    assert attention_field(TRACE, 0, (60, 100), cells=True).min() == 1
    assert attention_field(TRACE, 3, (60, 100)).max() == 0
    assert np.array_equal(overlaid(IMAGE, np.ones((60, 100))), IMAGE)
    assert overlaid(IMAGE, np.zeros((60, 100))).max() < 0.4 * 200


def test_an_image_keeps_its_shape_and_its_pixels():
    assert image_pixels(TRACE, 100).tolist() == IMAGE.tolist()
    assert image_pixels(TRACE, 50).shape == (30, 50, 3)
    assert image_pixels(HARD, 50).shape == (30, 50, 3), "without an image, the grid"
    assert len(np.unique(image_pixels(HARD, 50))) == 1


def test_the_chosen_cell_is_that_of_hard_attention_or_the_strongest():
    assert attended_cell(HARD, 2, (60, 100)) == (80, 40, 20, 20)
    assert attended_cell(TRACE, 2, (60, 100)) == (0, 0, 20, 20)


def test_a_word_by_word_figure_has_the_image_and_each_word_with_its_number_and_gate():
    figure = view(TRACE).figure(columns=3, title="t")
    tiles = [axes for axes in figure.axes if axes.images]
    assert len(tiles) == 5
    texts = [[text.get_text() for text in axes.texts] for axes in tiles]
    assert texts == [[], ["a", " (1.00)"], ["red", " (0.50)"], ["[star]", " (0.25)"], ["$x$", " (1.00)"]]
    bars = [axes for axes in figure.axes if not axes.images]
    assert [axes.texts[0].get_text() for axes in bars] == ["β 0.10", "β 0.90", "β 0.50", "β 0.00"]
    widths = [axes.patches[1].get_width() / axes.patches[0].get_width() for axes in bars]
    assert widths == pytest.approx(TRACE.values("gate"))
    expected = overlaid(image_pixels(TRACE, 320), attention_field(TRACE, 1, (192, 320)))
    assert np.array_equal(tiles[2].images[0].get_array(), expected)
    plain = view(Trace.from_image(IMAGE, WORDS, WEIGHTS, grid=(3, 5))).figure()
    assert len(plain.axes) == 5, "without gates there are no bars"


def test_gates_are_as_wide_as_the_images_above_them_whatever_is_written_below():
    figure = add_note(view(TRACE).figure(title="t"), "a note")
    figure.draw_without_rendering()
    tiles, bars = ([axes.get_position() for axes in figure.axes if bool(axes.images) == has] for has in (True, False))
    for tile, bar in zip(tiles[1:], bars, strict=True):
        assert (bar.x0, bar.x1) == pytest.approx((tile.x0, tile.x1), abs=1e-4)


def test_the_figure_explains_its_numbers_in_small_print():
    (text,) = view(TRACE).figure().texts
    explained = " ".join(text.get_text().split())
    assert "Bright: attended to, relative to the strongest cell of each word; smoothed between cells." in explained
    assert "Number beside a word: its probability under the model." in explained
    assert "Bar β: gate on the image, from 0 (the word ignores what was attended to) to 1" in explained
    (text,) = view(HARD).figure(overlay="colour", cells=True).texts
    explained = " ".join(text.get_text().split())
    assert "Colour: attention, from purple (weak) to yellow (strong) (the probability of each choice)" in explained
    assert "Orange: the cell that hard attention chose." in explained
    assert "smoothed" not in explained
    assert "β" not in explained


@pytest.mark.parametrize("overlay", ["light", "colour"])
@pytest.mark.parametrize("level", [0, 12, 60, 128, 255])
def test_attention_can_be_seen_at_any_brightness(overlay, level):
    """The cell that is attended to differs from the rest, in a black photograph as in a white one."""
    shown = overlaid(np.full((60, 100, 3), level, np.uint8), attention_field(TRACE, 1, (60, 100)), overlay).astype(int)
    attended, elsewhere = shown[30, 70], shown[30, 10]
    assert np.abs(attended - elsewhere).max() > 60
    if overlay == "light":
        assert (attended > elsewhere).all()


def test_a_dark_part_of_a_bright_image_is_brightened_where_it_is_attended_to():
    image = np.full((60, 100, 3), 230, np.uint8)
    image[:, 50:] = 10
    shown = overlaid(image, attention_field(TRACE, 1, (60, 100)))
    assert shown[30, 70].min() > 90
    assert shown[30, 99].max() < 20
    assert shown[30, 5].max() < 80


def test_hard_attention_frames_its_cell():
    tiles = view(HARD).figure(cells=True).axes
    frames = [axes.patches[0].get_bbox().bounds for axes in tiles[1:]]
    assert frames[2] == pytest.approx((4 * 64 - 0.5, 2 * 64 - 0.5, 64, 64))
    assert not tiles[0].patches


def test_an_animation_shows_the_image_and_then_each_word(tmp_path):
    made = view(TRACE).animation(side=96, seconds=0.4)
    assert repr(made).startswith("Animation(5 frames, ")
    assert made._repr_html_().startswith('<img src="data:image/gif;base64,')
    path = viewing.save(made, tmp_path / "new" / "words.gif")
    assert [file.name for file in path.parent.iterdir()] == ["words.gif"], "no temporary file is left"
    with Image.open(path) as opened:
        assert opened.n_frames == 5
        assert opened.width >= 96
        times = []
        for frame in range(5):
            opened.seek(frame)
            times.append(opened.info["duration"])
    assert times == [400, 400, 400, 400, 1000]


def test_a_persian_caption_is_read_from_the_right(tmp_path):
    trace = Trace.from_image(IMAGE, ["یک", "ستاره"], WEIGHTS[:2], grid=(3, 5))
    tiles = view(trace).figure().axes
    assert tiles[0].get_position().x0 > tiles[1].get_position().x0 > tiles[2].get_position().x0
    viewing.save(view(trace).animation(side=64), tmp_path / "f.gif")


def test_the_terminal_shows_tiles_beside_one_another():
    lines = printed(view(TRACE).terminal(width=60, side=18), 60).splitlines()
    # Three tiles of 18 x 10 pixels a row: a line of words, five of half blocks, one of gates; then the other two.
    assert lines[0].split() == ["a", "1.00", "red", "0.50"]
    assert lines[1] == "  ".join(["▀" * 18] * 3)
    assert lines[6].split() == ["━" + "─" * 11, "β0.10", "━" * 11 + "─", "β0.90"]
    assert lines[8].split() == ["[star]", "0.25", "$x$", "1.00"]
    assert lines[15:] == ["", "number: probability of the word; β: gate on the image"]
    assert len(lines) == 17
    assert max(map(len, lines)) <= 60


def test_half_blocks_carry_the_colours_of_two_pixels():
    text = view(TRACE).terminal(width=60, side=10)
    styles = [str(span.style) for span in text.spans if "on rgb" in str(span.style)]
    assert styles[0] == "rgb(200,200,200) on rgb(200,200,200)"
    assert len(set(styles)) > 5


def test_without_colours_the_weights_are_shades():
    soft = printed(view(TRACE).terminal(width=60, colour=False), 60).splitlines()
    assert soft[1][:10] == "█" * 10
    assert soft[2][14:24] == "      ██  "
    assert soft[1][28:38] == "██        "
    assert soft[3][28:38] == "        ░░"
    hard = printed(view(HARD).terminal(width=60, colour=False), 60).splitlines()
    assert hard[1][:10] == "[]" + "█" * 8
    assert hard[2][14:24] == "      []  "


def test_hard_attention_is_orange_in_the_terminal():
    text = view(HARD).terminal(width=60, side=10)
    assert any("rgb(230,190,102)" in str(span.style) for span in text.spans)


def test_a_trace_of_an_image_is_viewed_from_the_command_line(tmp_path):
    path = TRACE.save(tmp_path / "t.json")

    def drawn(*options):
        command = [sys.executable, "-m", "regard", "view", str(path), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout + done.stderr

    assert "[star]" in drawn()
    for name in ("a.png", "a.gif"):
        assert name in drawn("--cells", "--output", str(tmp_path / name))
        assert (tmp_path / name).stat().st_size > 1000


def test_what_cannot_be_shown_is_explained(tmp_path):
    words = Trace.from_weights("ab", "c", [[0.5, 0.5]])
    for draw in (ImageView(words).figure, ImageView(words).terminal):
        with pytest.raises(OptionError, match=r"this trace of kind 'text' has 1 words that attend to tokens"):
            draw()
    with pytest.raises(OptionError, match=r"An animation is saved as \.gif; got 'a\.png'"):
        viewing.save(view(TRACE).animation(), tmp_path / "a.png")
    with pytest.raises(OptionError, match="side=3"):
        view(TRACE).animation(side=3)
    with pytest.raises(OptionError, match="columns must be a whole number, 1 or more; got 0"):
        view(TRACE).figure(columns=0)
    with pytest.raises(OptionError, match="6 to 10 characters wide"):
        view(TRACE).terminal(width=10, side=11)
    with pytest.raises(OptionError, match="no overlay 'red'; choose from light, colour"):
        view(TRACE).figure(overlay="red")
    with pytest.raises(OptionError, match="no overlay 'red'; choose from light, colour"):
        view(TRACE).page(overlay="red")
    with pytest.raises(OptionError, match="up to 100 words; got 101"):
        view(Trace.from_image(None, ["a"] * 101, np.ones((101, 4)))).figure()
    with pytest.raises(RegardError, match="no valid data URI"):
        Trace.from_json(TRACE.to_json().replace("base64,", "base64,*"))
    content = base64.b64encode(b"no image").decode()
    broken = Trace.from_json(TRACE.to_json().replace(TRACE.image.partition(",")[2], content))
    with pytest.raises(RegardError, match="The image of this trace"):
        view(broken).figure()
