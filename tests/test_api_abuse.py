"""Whatever is wrong with what a function of the public interface is given, it raises a RegardError that says so."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.models import small_captioner, small_classifier, small_document_classifier, small_reader, small_translator

import regard
from regard import Attention, MultiHead, Search, Trace, align, attend, mask, score, viewing
from regard.errors import RegardError

pytestmark = [pytest.mark.usefixtures("as_a_user"), pytest.mark.filterwarnings("ignore::UserWarning")]
NAN = math.nan
WRONG_TEXTS: list[Any] = [None, 3, b"a", [None], [3], {"a": 1}, [["a"]]]
WRONG_IMAGES: list[Any] = [
    *(None, 3, b"", b"no image", [None], "", "nowhere.png", "a\0b", np.zeros((0, 4, 3)), np.zeros((4, 4, 5))),
    *(np.full((4, 4, 3), NAN), np.full((4, 4), -1), np.zeros(4), np.array("a"), np.zeros((4, 4), complex)),
]
WRONG_OPTIONS: list[dict[str, Any]] = [
    *(
        {"nonsense": 1},
        {"beam": 0},
        {"beam": "5"},
        {"beam": 2.5},
        {"beam": 10**9},
        {"nbest": 0},
        {"nbest": 9, "beam": 3},
    ),
    *({"block_ngrams": -1}, {"length_penalty": NAN}, {"coverage_penalty": math.inf}, {"temperature": 0}, {"top_p": 7}),
    *({"max_length": -1}, {"min_length": 9, "max_length": 3}, {"seed": -1}, {"prefix": 3}, {"sample": "yes"}),
]
IMAGE, TRACE = np.zeros((9, 9), np.uint8), Trace.from_weights(["a"], ["b"], [[1]])
QUERY, KEY = torch.ones(2, 3, 5), torch.ones(2, 7, 5)


def asked(
    model: Any, verb: str, inputs: list[Any], options: list[dict[str, Any]], right: Any
) -> list[Callable[[Any], Any]]:
    """Calls of a verb with wrong inputs, and with a right one and wrong options."""
    ask = getattr(model, verb)
    wrong = [lambda _, each=each: ask(each) for each in inputs]
    return wrong + [lambda _, each=each: ask(right, **each) for each in options]


def stored(model: Any) -> list[Callable[[Any], Any]]:
    """Saving to where it must not, in a way that is none, and loading what is none."""
    load = type(model).load
    return [
        lambda folder: model.save(folder, store="float32"),
        lambda folder: model.save(folder / "file.txt"),
        lambda folder: model.save(folder / "new", store="int4"),
        lambda folder: load(folder),
        lambda folder: load(folder / "nowhere"),
        lambda folder: load(""),
        lambda folder: load("digits" if model.kind != "recognize" else "en-fr"),
        lambda folder: load("en-fr", device="nonsense"),
        lambda folder: load("en-fr", device=3.5),
    ]


TRANSLATOR, CAPTIONER, CLASSIFIER = small_translator(), small_captioner(), small_classifier()
DOCUMENTS, READER = small_document_classifier(), small_reader("lstmn_model")
GLIMPSER, MACHINE = regard.load("glimpse-digits", device="cpu"), regard.load("tape-copy", device="cpu")
CALLS: dict[str, list[Callable[[Path], Any]]] = {
    "Attended": [],
    "Attention": [
        lambda _: Attention("nonsense"),
        lambda _: Attention(score.Dot(), "nonsense"),
        lambda _: Attention(score.Dot())(QUERY, KEY[:1]),
        lambda _: Attention(score.Dot())(None, KEY),
        lambda _: Attention(score.Dot(), lambda logits: logits)(QUERY, KEY),
    ],
    "Captioner": asked(CAPTIONER, "caption", WRONG_IMAGES, WRONG_OPTIONS, IMAGE) + stored(CAPTIONER),
    "DocumentClassifier": asked(DOCUMENTS, "classify", WRONG_TEXTS, [{"nonsense": 1}, {"weights": 3}], "a")
    + stored(DOCUMENTS),
    "Glimpser": asked(GLIMPSER, "glimpse", WRONG_IMAGES, [{"nonsense": 1}, {"seed": -1}], IMAGE)
    + stored(GLIMPSER),
    "ImageClassifier": asked(CLASSIFIER, "recognize", WRONG_IMAGES, [{"top": 0}, {"top": "a"}], IMAGE)
    + stored(CLASSIFIER),
    "Memory": [],
    "MultiHead": [
        lambda _: MultiHead(0, 2),
        lambda _: MultiHead(5, 2),
        lambda _: MultiHead(6, -1),
        lambda _: MultiHead(6, 2)(QUERY, KEY),
    ],
    "Reader": asked(READER, "read", WRONG_TEXTS, [{"nonsense": 1}, {"max_length": -1}], "a") + stored(READER),
    "RegardError": [],
    "Report": [],
    "Search": [lambda _, each=each: Search(**each) for each in WRONG_OPTIONS if each != {"nonsense": 1}],
    "Trace": [
        lambda _: Trace.from_weights(["a"], ["b"], [[NAN]]),
        lambda _: Trace.from_weights(["a"], ["b"], [[1, 2]]),
        lambda _: Trace.from_weights(["a"], ["b"], "x"),
        lambda _: Trace.from_weights([1], ["b"], [[1]]),
        lambda _: Trace.from_image("nowhere.png", ["b"], [[1]]),
        lambda _: Trace.from_image(np.zeros((4, 6, 3), np.uint8), ["a"], np.full((1, 5), 0.2)),
        lambda _: Trace.from_dict(None),
        lambda _: Trace.from_json("[" * 100_000),
        lambda _: Trace.from_json("9" * 5000),
        lambda folder: Trace.load(folder),
        lambda folder: Trace.load(folder / "nowhere"),
    ],
    "Translator": asked(TRANSLATOR, "translate", WRONG_TEXTS, WRONG_OPTIONS, "a") + stored(TRANSLATOR),
    "TuringMachine": asked(MACHINE, "tape", [None, 3, "2", "01", "0110 011", [None], [[2] * 8], [[NAN] * 8]], [], "1")
    + stored(MACHINE),
    "__version__": [],
    "align": [
        lambda _: align.LocalMonotonic(-1),
        lambda _: align.LocalPredictive(4, window=0),
    ],
    "attend": [
        lambda _: attend(QUERY, KEY[..., :4]),
        lambda _: attend(QUERY, KEY[:1].expand(3, 7, 5)),
        lambda _: attend(QUERY.to("meta"), KEY),
        lambda _: attend(QUERY.long(), KEY.long()),
        lambda _: attend(QUERY, KEY, mask=torch.ones(2, 3, 7)),
        lambda _: attend(QUERY, KEY, mask=torch.ones(2, 3, 6, dtype=torch.bool)),
        lambda _: attend(QUERY, KEY, kernel="nonsense"),
        lambda _: attend(None, KEY),
        lambda _: attend([[1.0]], KEY),
        lambda _: attend(QUERY, KEY, score=lambda query, key: None),
    ],
    "errors": [],
    "evaluate": [
        lambda folder: regard.evaluate(folder),
        lambda _: regard.evaluate("nowhere"),
        lambda _: regard.evaluate("en-fr"),
        lambda _: regard.evaluate("en-fr", nonsense=1),
        lambda _: regard.evaluate("en-fr", world="babel:en-xx"),
        lambda _: regard.evaluate("en-fr", source=3, reference=4),
        lambda folder: regard.evaluate("scenes", captions=str(folder), images=str(folder)),
    ],
    "export": [
        lambda folder: regard.export("nowhere", folder / "e"),
        lambda folder: regard.export("digits", folder / "e", precision="int3"),
        lambda folder: regard.export(None, folder / "e"),
        lambda folder: regard.export("digits", None),
    ],
    "layer_table": [lambda _: regard.layer_table(None), lambda _: regard.layer_table("en-fr")],
    "load": [lambda _, name=name: regard.load(name) for name in ("", "nowhere", "a\0b", "x" * 5000, None, 3)],
    "mask": [
        lambda _: mask.padding(torch.tensor([-1, 2]), 3),
        lambda _: mask.padding(torch.tensor([4]), 3),
        lambda _: mask.padding(torch.tensor([1.5]), 3),
        lambda _: mask.padding(torch.tensor([1]), -3),
        lambda _: mask.causal(-1),
    ],
    "score": [],
    "train": [
        lambda folder: regard.train("nowhere", out=folder / "o"),
        lambda folder: regard.train(out=folder / "o"),
        lambda folder: regard.train(out=folder / "file.txt", data={"world": "babel:en-fr"}),
        lambda folder: regard.train(out=folder / "o", resume=True),
        lambda folder: regard.train(out=folder / "o", data={"world": "babel:en-fr"}, model={"hidden": -1}),
        lambda folder: regard.train(out=folder / "o", data={"world": "babel:en-fr"}, train={"learning_rate": NAN}),
        lambda folder: regard.train(out=folder / "o", data={"nonsense": 1}),
        lambda folder: regard.train(out=folder / "o", data=3),
        lambda folder: regard.train(out=folder / "o", data={"source": str(folder), "target": str(folder)}),
    ],
    "faithfulness": [
        lambda _: regard.faithfulness(TRANSLATOR, None),
        lambda _: regard.faithfulness(TRANSLATOR, "a", nonsense=1),
        lambda _: regard.faithfulness(CAPTIONER, "nowhere.png"),
    ],
    "view": [lambda _, given=given: regard.view(given) for given in (None, 3, "a", {}, [])],
    "viewing": [
        lambda folder: viewing.save(viewing.matrix.figure(TRACE), folder / "x.nonsense"),
        lambda folder: viewing.save(viewing.matrix.figure(TRACE), folder / "file.txt" / "a.png"),
    ],
}  # fmt: skip
"""Calls that are wrong, of everything that `import regard` offers."""


def test_every_public_name_has_a_row():
    assert set(CALLS) == set(regard.__all__), "Add new public names to CALLS, with calls that are wrong."


@pytest.mark.parametrize(("name", "number"), [(name, n) for name, row in CALLS.items() for n in range(len(row))])
def test_what_is_wrong_raises_a_regard_error(name, number, tmp_path):
    (tmp_path / "file.txt").write_text("mine")
    with pytest.raises((RegardError, OSError)) as raised:
        CALLS[name][number](tmp_path)
    assert 10 < len(str(raised.value)) < 3000
    assert (tmp_path / "file.txt").read_text() == "mine"


def test_texts_that_cannot_be_encoded_are_answered():
    for text in ("\ud800", "a \udfff b", "\0", "\x1b[31m", "\u202e", "\ufeff", "", " ", "\n\n"):
        assert TRANSLATOR.translate(text, max_length=3) is not None
        assert READER.read(f"a {text}") is not None
        assert DOCUMENTS.classify(f"a {text}") is not None


def test_an_image_whose_pixels_are_not_numbers_is_no_trace():
    with pytest.raises(RegardError, match="The image of a trace"):
        Trace.from_image("nowhere.png", ["b"], [[1]])
