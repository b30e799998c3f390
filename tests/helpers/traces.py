"""A small trace of each kind, with numbers that can be told apart."""

import numpy as np

from regard import Trace
from regard.trace import Axis, Box, Map, Series

HOSTILE = [
    "</script><script>alert(1)</script>",
    '"quoted" & <b>bold</b>',
    "😀👩‍🚀", "سلام", "\u202eevil", "tab\tline\n", "]]>",
    "'--><img src=x onerror=alert(1)>",
]  # fmt: skip


def rows(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Random weights, none of them tiny, whose rows add up to 1."""
    drawn = np.random.default_rng(seed).gamma(0.5, 1.0, (height, width)).astype(np.float32) + np.float32(0.05)
    return drawn / drawn.sum(1, keepdims=True)


def translation() -> Trace:
    source, target = ["The", "Europe", "an", "area", "</s>"], ["La", "zone", "europ", "éenne", "</s>"]
    axes = (
        Axis("source", "tokens", tuple(source), text="The European area"),
        Axis("target", "tokens", tuple(target), text="La zone européenne"),
    )
    heads = [(layer, head, rows(5, 5, 10 * layer + head)) for layer in (1, 2) for head in (1, 2, 3)]
    maps = [Map("cross", "target", "source", rows(5, 5))]
    maps += [Map(f"cross {layer}.{head}", "target", "source", weights, layer, head) for layer, head, weights in heads]
    series = (Series("log_prob", "target", [-0.1, -0.2, -0.3, -0.4, -0.5]),)
    return Trace("translation", axes, tuple(maps), series)


def hostile() -> Trace:
    return Trace.from_weights(HOSTILE, HOSTILE[::-1], rows(8, 8, 3))


def persian() -> Trace:
    return Trace.from_weights(["این", "کتاب", "است", "</s>"], ["This", "is", "a", "book"], rows(4, 4, 5))


def large(size: int = 1000) -> Trace:
    weights = np.random.default_rng(1).random((size, size), dtype=np.float32) ** 8
    return Trace.from_weights([f"in{i}" for i in range(size)], [f"out{i}" for i in range(size)], weights)


def caption() -> Trace:
    image = np.zeros((30, 40, 3), np.uint8)
    image[:, 20:] = 90
    weights = np.zeros((3, 12))
    weights[[0, 1, 2], [0, 5, 11]] = (0.9, 0.8, 0.7)
    weights[:, 6] += 0.1
    words = ["a", "red", "star"]
    return Trace.from_image(image, words, weights, grid=(3, 4), gates=[0.2, 0.9, 0.5], text="a red star")


def document() -> Trace:
    words = ["Good", "film", ".", "Bad", "sound", ".", "Fine", "."]
    axes = (
        Axis("label", "classes", ("positive",)),
        Axis("sentences", "sentences", ("Good film .", "Bad sound .", "Fine .")),
        Axis("words", "words", tuple(words)),
    )
    maps = (
        Map("sentences", "label", "sentences", [[0.6, 0.3, 0.1]]),
        Map("words", "label", "words", [[0.7, 0.2, 0.1, 0.5, 0.4, 0.1, 0.8, 0.2]]),
    )
    series = (Series("sentence", "words", [0, 0, 0, 1, 1, 1, 2, 2]),)
    return Trace("document", axes, maps, series, extras={"probability": 0.875})


def reading() -> Trace:
    words = ["The", "animal", "was", "too", "tired"]
    weights = np.tril(rows(5, 5, 7), -1)
    axes = (Axis("words", "words", tuple(words), text=" ".join(words)),)
    series = (Series("surprisal", "words", [1.5, 7.25, 2.0, 4.0, 9.5]),)
    return Trace("reading", axes, (Map("reading", "words", "words", weights),), series)


def tape() -> Trace:
    steps, bits, slots = 6, 3, 10
    generator = np.random.default_rng(2)
    given = np.zeros((steps, bits))
    given[:3] = generator.integers(0, 2, (3, bits))
    target = np.zeros((steps, bits))
    target[3:] = given[:3]
    output = target.copy()
    output[4, 1] = 1 - output[4, 1]
    heads = np.eye(slots)[[2, 3, 4, 5, 5, 5]], np.eye(slots)[[0, 0, 0, 2, 3, 4]]
    axes = (
        Axis("steps", "steps", tuple(f"x{t}" for t in range(1, steps + 1))),
        Axis("bits", "features", tuple("123")),
        Axis("slots", "slots", tuple(str(slot) for slot in range(1, slots + 1))),
        Axis("features", "features", tuple("1234")),
    )
    maps = (
        Map("read 1", "steps", "slots", heads[1]),
        Map("write 1", "steps", "slots", heads[0]),
        Map("input", "steps", "bits", given),
        Map("output", "steps", "bits", output),
        Map("target", "steps", "bits", target),
        Map("adds 1", "steps", "features", generator.normal(size=(steps, 4))),
        Map("memory", "slots", "features", generator.normal(size=(slots, 4))),
    )
    series = (Series("bits lost", "steps", [0, 0, 0, 0.1, 2.5, 0.2]), Series("scored", "steps", [0, 0, 0, 1, 1, 1]))
    return Trace("tape", axes, maps, series)


def glimpses() -> Trace:
    image = np.zeros((20, 20), np.uint8)
    image[5:15, 8:12] = 255
    axes = (Axis("glimpses", "steps", ("1", "2", "3")), Axis("classes", "classes", ("zero", "one", "two")))
    points = [(0.5, 0.5), (0.25, 0.75), (0.6, 0.4)]
    boxes = [
        Box("glimpses", step, x - size, y - size, x + size, y + size)
        for step, (x, y) in enumerate(points)
        for size in (0.1, 0.2)
    ]
    beliefs = [[0.5, 0.3, 0.2], [0.2, 0.7, 0.1], [0.05, 0.9, 0.05]]
    series = Series("x", "glimpses", [x for x, _ in points]), Series("y", "glimpses", [y for _, y in points])
    whole = Trace.from_image(image, ["a"], [[1.0]])
    maps = (Map("belief", "glimpses", "classes", beliefs),)
    return Trace("glimpses", axes, maps, series, tuple(boxes), whole.image, {"glimpse_size": 4})


EVERY_KIND = {
    "matrix": translation,
    "lines": translation,
    "heads": translation,
    "image": caption,
    "document": document,
    "reading": reading,
    "tape": tape,
    "glimpses": glimpses,
}
"""A trace for each element."""
KINDS = {make.__name__: make for make in EVERY_KIND.values()}
"""A trace of each kind, by its name."""
