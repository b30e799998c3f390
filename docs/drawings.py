"""Draw the mechanisms: `python docs/drawings.py` writes docs/images/drawings/*.svg."""

import math
import sys
from itertools import pairwise
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "site"))

from pencil import Drawing  # noqa: E402

FOLDER = HERE / "images/drawings"
ALPHA = "\N{GREEK SMALL LETTER ALPHA}"
SOURCE = ("How", "are", "you", "?")


def _encoder(draw: Drawing, words: tuple[str, ...], xs: list[float], y: float, *, both: bool = False) -> None:
    """The states of an encoder, each above its word; `both` draws the two directions."""
    for number, (x, word) in enumerate(zip(xs, words, strict=True), 1):
        draw.text(x, y + 62, word)
        draw.arrow((x, y + 48), (x, y + 20))
        draw.box(x, y, f"h_{number}")
    for left, right in pairwise(xs):
        if both:
            draw.arrow((left + 27, y - 7), (right - 28, y - 7))
            draw.arrow((right - 27, y + 7), (left + 28, y + 7))
        else:
            draw.arrow((left + 27, y), (right - 28, y))


def encoder_decoder() -> Drawing:
    """The plain model: one vector between encoder and decoder."""
    draw = Drawing(760, 210, "Encoder and decoder: all words pass through one vector")
    xs = [70, 160, 250, 340]
    _encoder(draw, SOURCE, xs, 110)
    draw.text(205, 30, "encoder: h_t = f(h_t-1, x_t)", kind="soft")
    draw.arrow((367, 110), (404, 110))
    draw.box(435, 110, "v = h_n", "query", width=62)
    draw.text(435, 152, "one vector", kind="soft", size=13)
    draw.text(435, 169, "of fixed size", kind="soft", size=13)
    draw.arrow((466, 110), (513, 110))
    for number, (x, word) in enumerate(zip((540, 630, 720), ("Comment", "allez", "..."), strict=True), 1):
        draw.box(x, 110, f"s_{number}", "value")
        draw.arrow((x, 92), (x, 68))
        draw.text(x, 55, word)
        if x < 720:
            draw.arrow((x + 27, 110), (x + 62, 110))
            draw.arrow((x, 68), (x + 40, 84), (x + 70, 96), kind="faint")
    draw.text(630, 30, "decoder: s_t = f(s_t-1, y_t-1, v)", kind="soft")
    return draw


def attention() -> Drawing:
    """One step of RNNsearch."""
    draw = Drawing(760, 360, "One step of attention: scores, softmax, weighted sum")
    xs, weights = [110, 200, 290, 380], (0.15, 0.6, 0.2, 0.05)
    _encoder(draw, SOURCE, xs, 265, both=True)
    for number, (x, weight) in enumerate(zip(xs, weights, strict=True), 1):
        draw.arrow((x, 247), (x, 229))
        draw.circle(x, 212, "a", radius=13)
        draw.text(x + 40, 212, f"e_{number}", size=13, kind="soft")
        draw.arrow((x, 199), (x, 181))
        draw.bar(x, 178, weight)
        draw.text(x + 31, 160, f"{weight:.2f}", size=12, kind="soft")
        draw.arrow((x, 137), (495, 70), kind="faint")
    draw.text(10, 212, "1. score", size=13, anchor="start")
    draw.text(10, 160, "2. softmax", size=13, anchor="start")
    draw.circle(512, 62, "Σ", radius=18)
    draw.text(512, 24, "3. weighted sum", size=13)
    draw.arrow((530, 62), (574, 62))
    draw.box(605, 62, "c_t", "query", width=58)
    draw.text(605, 96, "context", kind="soft", size=13)
    draw.box(560, 212, "s_t-1", "value", width=60)
    draw.arrow((530, 212), (436, 212))
    draw.text(475, 200, "query", kind="soft", size=13)
    draw.box(690, 212, "s_t", "value", width=60)
    draw.arrow((590, 212), (658, 212))
    draw.arrow((634, 62), (690, 62), (690, 193))
    draw.text(690, 265, "y_t-1")
    draw.arrow((690, 254), (690, 232))
    draw.text(640, 310, "s_t = f(s_t-1, y_t-1, c_t)", kind="soft")
    return draw


def luong() -> Drawing:
    """Attention after the step."""
    draw = Drawing(760, 250, "Luong: attention after the step")
    xs, weights = [80, 165, 250, 335], (0.1, 0.65, 0.2, 0.05)
    for number, (x, weight) in enumerate(zip(xs, weights, strict=True), 1):
        draw.box(x, 200, f"h_{number}")
        draw.arrow((x, 182), (x, 152))
        draw.bar(x, 148, weight)
        draw.arrow((x, 107), (418, 66), kind="faint")
    draw.text(30, 130, "weights", kind="soft", size=13)
    draw.circle(436, 60, "Σ", radius=18)
    draw.arrow((454, 60), (497, 60))
    draw.box(525, 60, "c_t", "query")
    draw.box(525, 200, "s_t", "value")
    draw.text(445, 200, "s_t-1")
    draw.arrow((468, 200), (496, 200))
    draw.text(525, 237, "y_t-1", size=13)
    draw.arrow((498, 188), (350, 160))
    draw.text(425, 160, "query", kind="soft", size=13)
    draw.box(670, 130, "h~ = tanh(W [c; s])", "net", width=168)
    draw.arrow((553, 66), (606, 111))
    draw.arrow((553, 194), (606, 149))
    draw.arrow((670, 112), (670, 74))
    draw.text(670, 58, "y_t")
    return draw


def local() -> Drawing:
    """A window with a bell."""
    draw = Drawing(760, 210, "Local attention: a window around a predicted position, and a bell")
    xs = [40 + 42 * number for number in range(17)]
    centre, sigma = 9.3, 1.6
    points = []
    for step in range(0, 165):
        place = step / 10
        points.append((40 + 42 * place, 120 - 72 * math.exp(-((place - centre) ** 2) / (2 * sigma**2))))
    draw.arrow(*points, kind="faint", head=False)
    for number, x in enumerate(xs):
        inside = abs(number - centre) <= 2 * sigma
        share = math.exp(-((number - centre) ** 2) / (2 * sigma**2)) * (0.55 + 0.4 * ((number * 7) % 3) / 2)
        draw.bar(x, 120, share if inside else 0, height=72)
        draw.box(x, 150, f"h_{number + 1}", width=36, height=28, size=12)
    left, right = 40 + 42 * (centre - 2 * sigma), 40 + 42 * (centre + 2 * sigma)
    draw.arrow((left, 178), (right, 178))
    draw.arrow((right, 178), (left, 178))
    draw.text((left + right) / 2, 194, "window of 2 D + 1 positions: nothing else is scored", kind="soft", size=13)
    draw.arrow((40 + 42 * centre, 28), (40 + 42 * centre, 44))
    draw.text(40 + 42 * centre, 16, "p_t = n · sigmoid(v' tanh(W h_t))", size=14)
    return draw


def lookup() -> Drawing:
    """Query, keys, values: the one operation."""
    draw = Drawing(760, 250, "Score, align, read: every attention is these three")
    draw.box(70, 120, "query", "query", width=76)
    for number, (y, weight) in enumerate(zip((50, 95, 140, 185), (0.1, 0.7, 0.05, 0.15), strict=True), 1):
        draw.box(220, y, f"key_{number}", width=76)
        draw.arrow((109, 120), (178, y), kind="faint")
        draw.arrow((259, y), (305, y))
        draw.circle(322, y, "·", radius=13)
        draw.arrow((336, y), (398, y))
        draw.cells(402, y - 12, [[weight]], side=24)
        draw.text(452, y, f"{weight:.2f}", size=13, kind="soft")
        draw.box(530, y, f"value_{number}", "value", width=76)
        draw.arrow((569, y), (644, 120), kind="faint")
    draw.circle(662, 120, "Σ", radius=18)
    draw.arrow((680, 120), (700, 120))
    draw.text(728, 120, "context", size=13)
    for x, name, more in (
        (322, "score", "how well it matches"),
        (430, "align", "softmax"),
        (662, "read", "weighted mean"),
    ):
        draw.text(x, 218, name, size=15)
        draw.text(x, 236, more, size=12, kind="soft")
    return draw


def self_attention() -> Drawing:
    """The lecture's apple."""
    words = ("she", "is", "eating", "a", "green", "apple")
    draw = Drawing(760, 310, "Self-attention: apple attends to the words before it")
    weights = (0.1, 0.1, 0.5, 0.1, 0.2)
    for number, word in enumerate(words):
        x = 70 + 110 * number
        draw.text(x, 288, word)
        draw.arrow((x, 275), (x, 252))
        last = number == 5
        draw.box(x - 34, 234, "q", "query" if last else "net", width=28, height=28)
        draw.box(x, 234, "k", "net" if last else "state", width=28, height=28)
        draw.box(x + 34, 234, "v", "net" if last else "value", width=28, height=28)
        if not last:
            draw.arrow((x, 218), (x, 186))
            draw.circle(x, 172, "·", radius=12)
            draw.arrow((x, 159), (x, 136))
            draw.bar(x, 132, weights[number], width=22)
            draw.text(x + 30, 115, f"{weights[number]}", size=13, kind="soft")
            draw.arrow((x + 34, 218), (x + 34, 150), (x + 14, 88), (560, 48), kind="faint")
    draw.arrow((586, 218), (586, 172), (524, 172))
    draw.text(600, 150, "query of apple", size=13, kind="soft")
    draw.circle(578, 44, "Σ", radius=18)
    draw.arrow((597, 44), (640, 44))
    draw.box(685, 44, "z_apple", "query", width=86)
    draw.text(170, 40, "a = softmax(q_apple · k_i)", kind="soft")
    return draw


def transformer() -> Drawing:
    """One layer of each side."""
    draw = Drawing(760, 340, "A Transformer: a layer of the encoder and one of the decoder")
    for x, name, parts in (
        (190, "encoder", ("self-attention", "feed-forward")),
        (550, "decoder", ("masked self-attention", "cross-attention", "feed-forward")),
    ):
        top, step = (150, 74) if len(parts) == 2 else (92, 66)
        draw.box(x, 172, "", "op", width=250, height=244)
        draw.text(x - 125, 34, name, kind="soft", anchor="start")
        for number, part in enumerate(reversed(parts)):
            y = top + number * step
            draw.box(x, y, part, "net" if "forward" in part else "state", width=180)
            draw.arrow((x, y + 17 + (step - 34)), (x, y + 19))
        bottom = top + (len(parts) - 1) * step
        draw.arrow((x, 318), (x, bottom + 19))
    draw.text(190, 328, "source words + positions", size=13)
    draw.text(550, 328, "target words so far + positions", size=13)
    draw.arrow((190, 132), (190, 74), (330, 74), (330, 158), (458, 158))
    draw.text(375, 145, "keys, values", size=13, kind="soft")
    draw.arrow((550, 73), (550, 20))
    draw.text(596, 22, "next word", size=13)
    return draw


def hierarchy() -> Drawing:
    """HAN."""
    draw = Drawing(760, 330, "Hierarchical attention: words, then sentences")
    sentences = (("The", "plot", "is", "thin"), ("But", "I", "loved", "it"))
    shades = ((0.1, 0.3, 0.1, 0.5), (0.1, 0.1, 0.7, 0.1))
    for side, (words, weights) in enumerate(zip(sentences, shades, strict=True)):
        left = 105 + 350 * side
        for number, (word, weight) in enumerate(zip(words, weights, strict=True)):
            x = left + 82 * number
            draw.text(x, 312, word)
            draw.arrow((x, 300), (x, 282))
            draw.box(x, 265, "h", width=40)
            draw.cells(x - 11, 212, [[weight]], side=22)
            draw.arrow((x, 247), (x, 236))
            draw.arrow((x, 211), (left + 123, 176), kind="faint")
        draw.box(left + 123, 158, f"s_{side + 1}", "value")
        draw.cells(left + 112, 108, [[(0.25, 0.75)[side]]], side=22)
        draw.arrow((left + 123, 140), (left + 123, 132))
        draw.arrow((left + 123, 107), (375, 74), kind="faint")
    draw.box(375, 56, "document", "query", width=92)
    draw.arrow((421, 56), (500, 56))
    draw.text(545, 56, "positive")
    draw.text(44, 223, "words", kind="soft", size=13)
    draw.text(90, 120, "sentences", kind="soft", size=13)
    return draw


def lstmn() -> Drawing:
    """An LSTMN step."""
    draw = Drawing(760, 270, "LSTMN: attention over the states of all words before")
    words = ("The", "FBI", "is", "chasing")
    for number, word in enumerate(words, 1):
        x = 60 + 105 * number
        draw.box(x, 62, f"h_{number}")
        draw.box(x, 106, f"c_{number}", "value")
        draw.text(x, 236, word)
        draw.cells(x - 11, 150, [[(0.05, 0.2, 0.15, 0.6)[number - 1]]], side=22)
        draw.arrow((x, 124), (x, 148))
        draw.arrow((x, 174), (585, 200), kind="faint")
    draw.text(60, 62, "tape of h", kind="soft", size=13)
    draw.text(60, 106, "tape of c", kind="soft", size=13)
    draw.text(60, 161, "weights", kind="soft", size=13)
    draw.box(620, 200, "h~, c~", "query", width=70)
    draw.box(620, 110, "LSTM gates", "net", width=104)
    draw.arrow((620, 182), (620, 129))
    draw.text(715, 236, "a")
    draw.arrow((715, 224), (715, 110), (674, 110))
    draw.arrow((620, 92), (620, 62))
    draw.text(620, 48, "h_5, c_5: the next of both tapes", size=14)
    return draw


def turing() -> Drawing:
    """NTM."""
    draw = Drawing(760, 250, "A neural Turing machine: attention that reads and writes")
    draw.text(60, 130, "x_t")
    draw.arrow((78, 130), (118, 130))
    draw.box(180, 130, "controller", "net", width=120, height=60)
    draw.arrow((180, 99), (180, 52))
    draw.text(180, 40, "y_t")
    for number in range(7):
        draw.box(600, 45 + 27 * number, f"M({number + 1})", "value", width=110, height=25, size=13)
        draw.cells(505, 33 + 27 * number, [[(0, 0.1, 0.8, 0.1, 0, 0, 0)[number]]], side=24)
        draw.cells(675, 33 + 27 * number, [[(0, 0, 0, 0.05, 0.9, 0.05, 0)[number]]], side=24)
    draw.arrow((240, 115), (498, 98))
    draw.text(370, 92, "read weights w_t", size=13)
    draw.arrow((240, 148), (430, 222), (687, 236), (687, 226))
    draw.text(310, 228, "write weights, erase, add", size=13)
    draw.arrow((498, 130), (242, 133))
    draw.text(375, 146, "r_t = Σ w_t(i) M(i)", size=13)
    draw.text(600, 238, "memory", kind="soft", size=13)
    return draw


def glimpses() -> Drawing:
    """RAM."""
    draw = Drawing(760, 240, "Glimpses: look, remember, decide where to look next")
    draw.cells(30, 60, [[0.0] * 6] * 6, side=20)
    draw.box(70, 100, "", "query", width=40, height=40)
    draw.box(90, 120, "", "empty", width=80, height=80)
    draw.text(90, 200, "image", kind="soft", size=13)
    for number, x in enumerate((300, 480, 660), 1):
        draw.box(x, 120, f"h_{number}", "state", width=64)
        draw.box(x, 195, "glimpse", "net", width=84)
        draw.arrow((x, 178), (x, 139))
        draw.arrow((x, 102), (x, 66))
        if number < 3:
            draw.text(x, 52, f"where_{number + 1}")
            draw.arrow((x + 30, 58), (x + 116, 130), (x + 150, 176), kind="faint")
            draw.arrow((x + 32, 120), (x + 146, 120))
        else:
            draw.text(x, 52, "class")
    draw.arrow((150, 120), (256, 190))
    draw.text(207, 137, "crop", kind="soft", size=13)
    return draw


def captioning() -> Drawing:
    """Show, attend and tell."""
    draw = Drawing(760, 270, "Image captioning: the cells of a grid take the place of the words of a source")
    draw.cells(30, 70, [[0.0] * 6] * 6, side=20)
    draw.text(90, 212, "image", kind="soft", size=13)
    draw.arrow((154, 130), (190, 130))
    draw.box(224, 130, "CNN", "net", width=64, height=90)
    draw.arrow((258, 130), (290, 130))
    shades = [[0.05, 0.1, 0.05, 0.0], [0.1, 0.8, 0.5, 0.0], [0.0, 0.4, 0.2, 0.0], [0.0, 0.0, 0.0, 0.0]]
    draw.cells(296, 76, shades, side=27)
    draw.text(350, 206, f"cells h_i with weights {ALPHA}_ti", kind="soft", size=13)
    draw.arrow((406, 116), (476, 96))
    draw.circle(494, 92, "Σ", radius=18)
    draw.arrow((512, 92), (556, 92))
    draw.text(534, 78, "c_t", size=14)
    draw.box(600, 92, "LSTM", "value", width=80, height=44)
    draw.arrow((600, 70), (600, 42))
    draw.text(600, 30, "frisbee")
    draw.arrow((560, 104), (520, 160), (408, 160))
    draw.text(500, 178, "query s_t-1", kind="soft", size=13)
    draw.text(716, 92, "a")
    draw.arrow((704, 92), (644, 92))
    draw.text(716, 116, "last word", kind="soft", size=12)
    return draw


def masks() -> Drawing:
    """Four masks."""
    draw = Drawing(760, 250, "Masks: coloured cells may be attended to")
    names = ("padding", "causal", "causal, strict", "window")
    calls = (
        "mask.padding(lengths)",
        "mask.causal(6)",
        "mask.causal(6, strict=True)",
        "mask.window(6, before=1, after=1)",
    )
    rules = (
        lambda q, k: k < 4,
        lambda q, k: k <= q,
        lambda q, k: k < q,
        lambda q, k: abs(q - k) <= 1,
    )
    for number, (name, call, rule) in enumerate(zip(names, calls, rules, strict=True)):
        x = 50 + 180 * number
        draw.text(x + 60, 38, name)
        draw.cells(x, 62, [[0.55 if rule(q, k) else 0.0 for k in range(6)] for q in range(6)], side=20)
        draw.text(x + 60, 205, call, size=10, kind="soft")
    draw.text(380, 230, "keys run to the right, queries downwards", size=12, kind="soft")
    return draw


def convolution() -> Drawing:
    """Filters and pooling."""
    draw = Drawing(760, 240, "Convolution and pooling")
    draw.cells(40, 50, [[0.0] * 7] * 7, side=18)
    draw.box(40 + 27, 50 + 27, "", "query", width=54, height=54)
    draw.text(103, 195, "32 x 32 x 3", size=13, kind="soft")
    draw.arrow((98, 77), (228, 92))
    draw.text(212, 62, "Σ x W + b", size=14)
    for layer in range(6):
        draw.box(280 + 9 * layer, 110 + 5 * layer, "", "state", width=86, height=86)
    draw.text(308, 195, "28 x 28 x 6: a map for each filter", size=13, kind="soft")
    draw.arrow((375, 130), (452, 130))
    draw.text(413, 116, "max pooling", size=13)
    for layer in range(6):
        draw.box(490 + 9 * layer, 115 + 5 * layer, "", "value", width=46, height=46)
    draw.text(520, 195, "14 x 14 x 6", size=13, kind="soft")
    draw.arrow((565, 130), (610, 130))
    draw.box(665, 130, "next layer", "net", width=100)
    draw.text(380, 224, "w_out = floor((w_in + 2p - k) / s) + 1", size=14)
    return draw


def soft_hard() -> Drawing:
    """Two ways to read."""
    draw = Drawing(760, 220, "Soft attention reads a mean of all cells, hard attention one of them")
    soft = [[0.05, 0.1, 0.1, 0.0], [0.1, 0.6, 0.4, 0.05], [0.05, 0.4, 0.3, 0.0], [0.0, 0.05, 0.0, 0.0]]
    hard = [[0.0] * 4, [0.0, 1.0, 0.0, 0.0], [0.0] * 4, [0.0] * 4]
    for x, name, shades, more in (
        (60, "soft", soft, (f"Σ {ALPHA}_i h_i: smooth, has a gradient", "reads all cells")),
        (430, "hard", hard, (f"h_i of one cell i, sampled from {ALPHA}", "reads one cell; REINFORCE to train")),
    ):
        draw.cells(x, 50, shades, side=26)
        draw.text(x + 52, 28, name)
        draw.arrow((x + 112, 102), (x + 160, 102))
        draw.box(x + 196, 102, "c", "query", width=60)
        for number, line in enumerate(more):
            draw.text(x + 120, 178 + 19 * number, line, size=13, kind="soft")
    return draw


DRAWINGS = (
    encoder_decoder, attention, luong, local, lookup, self_attention, transformer, hierarchy, lstmn, turing, glimpses,
    captioning, masks, convolution, soft_hard,
)  # fmt: skip


def write(folder: Path = FOLDER) -> None:
    """Write every drawing to the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for drawn in DRAWINGS:
        name = drawn.__name__.replace("_", "-")
        (folder / f"{name}.svg").write_text(drawn().svg(), encoding="utf-8")


if __name__ == "__main__":
    write()
