"""Whatever a file holds, reading it gives a result or a RegardError, never another exception."""

import gzip
import io
import json
import lzma
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.files import idx, image_bytes, lines, npz, tar, zipped
from helpers.fuzzing import BOUNDED, Parser, repeat
from helpers.models import (
    TEXTS,
    small_captioner,
    small_classifier,
    small_document_classifier,
    small_reader,
    small_translator,
)
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from rich.console import Console

import regard
from regard.data.alignments import read_gold, read_links
from regard.data.captions import read_captions
from regard.data.documents import BadRows, read_documents
from regard.data.images import Images, open_image
from regard.data.labelled_images import read_cifar10, read_idx, read_mnist
from regard.data.labelled_sentences import read_inference, read_labelled, read_tagged, read_trees
from regard.data.public.newsgroups import prepare
from regard.data.regions import read_regions
from regard.data.text import read_all, read_lines, read_pairs, read_text, read_tsv
from regard.data.tokenizer import Tokenizer
from regard.data.vocabulary import Vocabulary
from regard.data.word_vectors import read_vectors
from regard.errors import RegardError
from regard.systems.plan import read_recipe
from regard.trace import Trace
from regard.viewing.view import view

pytestmark = [
    pytest.mark.usefixtures("as_a_user"),
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning", "ignore::DeprecationWarning"),
]
LINES = "a dog\tun chien\nétait\tune maison\n\tx\n".encode()
GOLD = [{"src": ["a", "dog"], "tgt": ["un", "chien"], "sure": [[0, 0]], "possible": [[1, 1]]}] * 2
COCO = {
    "images": [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "b.jpg"}],
    "annotations": [{"image_id": 1, "caption": "a dog"}, {"image_id": 2, "caption": "two"}],
}
KARPATHY = {"images": [{"filename": "a.jpg", "filepath": "x", "split": "train", "sentences": [{"raw": "a dog"}]}] * 3}
DOCUMENTS = [
    {"text": "a good film", "label": "pos"},
    {"sentences": ["bad", "very"], "label": 0, "rationale_token_spans": [[0, 1]]},
]
SNLI = [{"sentence1": "a dog runs", "sentence2": "an animal moves", "gold_label": "entailment"}] * 2
POSTS = [{"text": "Subject: Re: cats\nFrom: x@y.z\n\nSome words about cats\n> quoted\n--\nme"}] * 2
RECIPE = (
    b'system = "translate"\n[data]\nworld = "babel:en-fr"\n[model]\nhidden = 8\nscore = "mlp"\n[train]\nepochs = 1\n'
)


def every(read: Callable[[Path], Iterable[Any]]) -> Callable[[Path], Any]:
    return lambda path: list(read(path))


def read_images(path: Path) -> None:
    images = Images(path)
    list(images.stream(images.names()))


def mnist_with(name: str, path: Path) -> Any:
    """MNIST in which one file is the damaged one."""
    files = {
        "train-images-idx3-ubyte": idx(np.ones((4, 5, 5))),
        "train-labels-idx1-ubyte": idx(np.arange(4)),
        "t10k-images-idx3-ubyte": idx(np.ones((4, 5, 5))),
        "t10k-labels-idx1-ubyte": idx(np.arange(4)),
    }
    for other, content in files.items():
        (path.parent / other).write_bytes(path.read_bytes() if other == name else content)
    return read_mnist(path.parent)


def view_trace(path: Path) -> None:
    """Read a trace, and draw it in the terminal where it can be read."""
    shown = view(Trace.load(path))
    Console(file=io.StringIO(), width=60).print(shown.terminal(width=60))


def read_two_vectors(path: Path) -> Any:
    return read_vectors(path, ["a", "dog"])


def skipping_bad(path: Path) -> Iterable[Any]:
    return read_documents(path, bad=BadRows(skip=True))


def read_news(path: Path) -> Any:
    (path.parent / "test.jsonl").write_bytes(lines(POSTS))
    return prepare(path.parent, path.parent / "out")


def entities_with(part: str, path: Path) -> Any:
    """Flickr30k Entities in which one file is the damaged one."""
    files = {"Annotations/1.xml": ANNOTATION, "Sentences/1.txt": SENTENCE}
    for name, content in files.items():
        (path.parent / name).parent.mkdir(exist_ok=True)
        (path.parent / name).write_bytes(path.read_bytes() if name.startswith(part) else content)
    return read_regions(path.parent)


ANNOTATION = b"""<annotation><size><width>400</width><height>300</height></size><object><name>7</name>
<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>30</xmax><ymax>40</ymax></bndbox></object></annotation>"""
SENTENCE = b"[/EN#7/animals A dog] runs .\n"
TRACE = Trace.from_weights(
    ["the", "dog"], ["le", "chien", "."], [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]], log_probs=[-1, 0, -2]
)
CAPTION = Trace.from_image(np.zeros((4, 6, 3), np.uint8), ["a", "dog"], np.full((2, 4), 0.25), choices=[0, 3])
CIFAR = np.arange(3 * 3073, dtype=np.uint8).tobytes()
CIFAR_FILES = {
    f"cifar-10-batches-bin/{name}.bin": CIFAR for name in (*(f"data_batch_{n}" for n in range(1, 6)), "test_batch")
}

VOCABULARY = {"regard_vocabulary": 1, "lowercase": False, "words": ["<pad>", "<s>", "</s>", "<unk>", "a"]}
IMAGES = [
    *(("PNG", "RGBA"), ("PNG", "1"), ("JPEG", "RGB"), ("JPEG", "CMYK"), ("GIF", "P"), ("BMP", "RGB"), ("TIFF", "I;16")),
    *(("TIFF", "F"), ("WEBP", "RGBA"), ("PPM", "RGB")),
]

PARSERS = [
    Parser("recipe", "r.toml", RECIPE, read_recipe),
    Parser("lines", "a.txt", LINES, every(read_lines)),
    Parser("text", "a.txt", LINES, read_text),
    Parser("gzip", "a.gz", gzip.compress(LINES), every(read_lines)),
    Parser("gzip whole", "a.gz", gzip.compress(LINES), read_all),
    Parser("xz", "a.xz", lzma.compress(LINES), every(read_lines)),
    Parser("zip", "a.zip", zipped({"a.txt": LINES}), every(read_lines)),
    Parser("pairs", "a.txt", LINES, every(lambda path: read_pairs(path, path))),
    Parser("tsv", "a.tsv", LINES, every(read_tsv)),
    Parser("gold", "a.jsonl", lines(GOLD), read_gold, "jsonl"),
    Parser("links", "a.txt", b"0-0 1-2\n\n3-1\n", every(read_links)),
    Parser("regions", "a.tsv", b"1.jpg\t0\t2\tdog\t1\t2\t30\t40\n1.jpg\t1\t0\ta\t5\t5\t9\t9\n", read_regions),
    Parser("annotations", "x", ANNOTATION, partial(entities_with, "Annotations")),
    Parser("sentences", "x", SENTENCE, partial(entities_with, "Sentences")),
    Parser("coco", "a.json", json.dumps(COCO).encode(), read_captions, "json"),
    Parser("karpathy", "a.json", json.dumps(KARPATHY).encode(), read_captions, "json"),
    Parser("flickr", "a.txt", b"a.jpg#0\ta dog\na.jpg#1\ttwo dogs\n", read_captions),
    Parser("captions csv", "a.csv", b'image,caption,split\na.jpg,"a, dog",train\nb.jpg,two,val\n', read_captions),
    Parser("captions tsv", "a.tsv", b"a.jpg\ttrain\t0\ta dog\nb.jpg\ttest\t0\ttwo\n", read_captions),
    Parser("documents csv", "a.csv", b'text,label\n"a, good",pos\nbad,neg\n', every(read_documents)),
    Parser("documents tsv", "a.tsv", b"text\tlabel\na good\tpos\nbad\tneg\n", every(read_documents)),
    Parser("documents jsonl", "a.jsonl", lines(DOCUMENTS), every(read_documents), "jsonl"),
    Parser("documents skipped", "a.jsonl", lines(DOCUMENTS), every(skipping_bad), "jsonl"),
    Parser("documents tar", "a.tar.gz", tar({"t/pos/1.txt": b"good", "t/n/2": b"bad"}, "w:gz"), every(read_documents)),
    Parser("documents tar.xz", "a.tar.xz", tar({"t/pos/1.txt": b"good"}, "w:xz"), every(read_documents)),
    Parser("trees", "a.txt", b"(3 (2 It) (4 works))\n(1 (1 no) (2 way))\n", every(read_trees)),
    Parser("labelled", "a.txt", b"pos\ta good film\nneg\tbad\n", every(read_labelled)),
    Parser("inference", "a.jsonl", lines(SNLI), every(read_inference), "jsonl"),
    Parser("inference tsv", "a.tsv", b"neutral\ta dog\ttwo dogs\n", every(read_inference)),
    Parser("tagged", "a.txt", b"a\tDET\ndog\tNOUN\n\nrun\tVERB\n", every(read_tagged)),
    Parser("news", "train.jsonl", lines(POSTS), read_news, "jsonl"),
    Parser("vectors", "a.txt", b"2 3\na 1 2 3\ndog 0.5 -1 2e3\n", read_two_vectors),
    Parser("vectors npz", "a.npz", npz(vectors=np.ones((2, 3)), words=np.array("a\nb")), read_two_vectors),
    Parser("vocabulary", "a.json", json.dumps(VOCABULARY).encode(), Vocabulary.load, "json"),
    Parser("idx", "a", idx(np.arange(12).reshape(3, 2, 2)), read_idx),
    Parser("idx gzip", "a.gz", gzip.compress(idx(np.arange(12).reshape(3, 2, 2))), read_idx),
    Parser("mnist images", "x", idx(np.ones((4, 5, 5))), partial(mnist_with, "train-images-idx3-ubyte")),
    Parser("mnist labels", "x", idx(np.arange(4)), partial(mnist_with, "t10k-labels-idx1-ubyte")),
    Parser("cifar", "cifar-10-binary.tar.gz", tar(CIFAR_FILES, "w:gz"), lambda path: read_cifar10(path.parent)),
    *(Parser(f"image {kind} {mode}", f"a.{kind}", image_bytes(kind, mode), open_image) for kind, mode in IMAGES),
    Parser("images zip", "a.zip", zipped({"a.png": image_bytes("PNG"), "x/b.jpg": image_bytes("JPEG")}), read_images),
    Parser("images tar", "a.tar", tar({"a.png": image_bytes("PNG"), "x/b.jpg": image_bytes("JPEG")}), read_images),
    Parser("trace", "a.json", TRACE.to_json().encode(), view_trace, "json"),
    Parser("trace of an image", "a.json", CAPTION.to_json().encode(), view_trace, "json"),
]  # fmt: skip


def check(read: Callable[[Path], Any], path: Path) -> None:
    """Read a file: a RegardError says something about it, and anything else is a fault."""
    message = None
    try:
        read(path)
    except RegardError as error:
        message = str(error)
    assert message is None or message.strip()
    assert message is None or len(message) < 3000, "a message is not a dump of the file"


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_a_damaged_file_is_read_or_explained(parser, tmp_path):
    folder = tmp_path / "valid"
    folder.mkdir()
    (folder / parser.file).write_bytes(parser.valid)
    parser.read(folder / parser.file)

    @BOUNDED
    @given(content=parser.damaged())
    def run(content: bytes) -> None:
        path = tmp_path / parser.file
        path.write_bytes(content)
        check(parser.read, path)

    repeat(run)


FOUND = [
    ("vocabulary", json.dumps(VOCABULARY | {"words": ["a" * 5000, "b", "c", "d"]}).encode()),
    ("trace", b"9" * 5000),
    ("coco", json.dumps(COCO).encode("utf-16")),
]
"""Files that were once read wrongly, or explained badly."""


@pytest.mark.parametrize(("name", "content"), FOUND, ids=[name for name, _ in FOUND])
def test_what_fuzzing_found_is_explained(name, content, tmp_path):
    parser = next(parser for parser in PARSERS if parser.name == name)
    (tmp_path / parser.file).write_bytes(content)
    with pytest.raises(RegardError) as raised:
        parser.read(tmp_path / parser.file)
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize(
    ("layers", "says"),
    [(1000, "far larger than its parameters")]
    + [(layers, f"layers must be at most 1,000; got {layers}") for layers in (10**9, 2**63, 10**30)],
)
def test_an_absurd_number_of_layers_takes_no_memory(layers, says, tmp_path):
    small_reader("lstmn_classifier").save(tmp_path / "model")
    config = tmp_path / "model" / "config.json"
    stored = json.loads(config.read_text())
    stored["config"]["layers"] = layers
    config.write_text(json.dumps(stored))
    with pytest.raises(RegardError, match=says):
        regard.load(tmp_path / "model", device="cpu")
    assert torch.is_grad_enabled(), "a refused model switches nothing off"


MODELS: dict[str, Callable[[], Any]] = {
    "translate": lambda: small_translator(Tokenizer.train(TEXTS * 3, size=60)),
    "transformer": lambda: small_translator(architecture="transformer", hidden=256, heads=2, feedforward_dim=24),
    "caption": small_captioner,
    "recognize": small_classifier,
    "glimpse": lambda: regard.load("glimpse-digits", device="cpu"),
    "classify": small_document_classifier,
    "tape": lambda: regard.load("tape-copy", device="cpu"),
    "read": lambda: small_reader("lstmn_classifier"),
}
INPUTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "translate": ("a dog", {"max_length": 3}),
    "caption": (Image.new("RGB", (20, 20)), {"max_length": 3}),
    "recognize": (Image.new("RGB", (20, 20)), {}),
    "glimpse": (Image.new("RGB", (20, 20)), {}),
    "classify": ("a good film", {}),
    "tape": ("01100110", {}),
    "read": ("a cat", {}),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_damaged_model_folder_is_loaded_or_explained(name, tmp_path):
    MODELS[name]().save(tmp_path / "model", store="int8" if name == "translate" else "float32")
    config = tmp_path / "model" / "config.json"
    # Whoever tampers with a model can state its checksums too, or leave them out.
    config.write_text(
        json.dumps({key: value for key, value in json.loads(config.read_text()).items() if key != "sha256"})
    )
    parts = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}

    def load(path: Path) -> None:
        loaded = regard.load(path.parent, device="cpu")
        verb = next(verb for verb in INPUTS if hasattr(loaded, verb))
        asked, options = INPUTS[verb]
        getattr(loaded, verb)(asked, **options)

    @BOUNDED
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        part = data.draw(st.sampled_from(sorted(parts)))
        form = "json" if part.endswith(".json") else "bytes"
        content = data.draw(Parser(part, part, parts[part], load, form).damaged())
        path = tmp_path / "model" / part
        path.write_bytes(content)
        try:
            check(load, path)
        finally:
            path.write_bytes(parts[part])

    repeat(run)
