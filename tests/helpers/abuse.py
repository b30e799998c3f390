"""Every command, and every place in it where a file or folder is named: what the tests of wrong input go through."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from helpers import damage
from helpers.damage import READ, Damage
from helpers.files import idx, image_bytes, lines, zipped
from helpers.models import small_captioner, small_classifier, small_document_classifier, small_reader, small_translator
from regard.systems.pretrained import PRETRAINED
from regard.trace import Trace

GOLD = [{"src": ["a", "dog"], "tgt": ["un", "chien"], "sure": [[0, 0]], "possible": [[1, 1]]}] * 2
COCO = {
    "images": [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "b.jpg"}],
    "annotations": [{"image_id": 1, "caption": "a red star"}, {"image_id": 2, "caption": "two blue rings"}],
}
TRAIN = "--train.epochs 1 --model.embedding 4 --model.hidden 4 --out {new}/run"
CORE = {
    "missing", "a folder", "below a file", "a file", "empty", "binary", "Latin-1", "a cut gzip", "a line more", "BOM",
    "other types", "no JSON", "prose", "no TOML", "unknown field", "a cut PNG", "a bomb", "PNG I;16", "cut", "no tab",
    "another system", "cut parameters",
}  # fmt: skip
"""What is tried everywhere; the rest is tried once for each sort of file, and everywhere in `make fuzz`."""


@dataclass(frozen=True)
class Slot:
    """A command with one place, {x}, where something wrong is given; other names are of right files."""

    command: str
    kind: dict[str, Damage]
    right: str = ""
    """What is damaged: the name of a right file or folder; "" where the place is one to write to."""
    new: str = "new.png"
    """The name of what is written."""
    only_refused: bool = False
    """Leave out damage that the command may read all the same, because it would then compute for long."""

    def damages(self, *, whole: bool) -> dict[str, Damage]:
        """The damages to try, by name: all, or some of each sort."""
        return {
            name: each
            for name, each in self.kind.items()
            if (whole or name in CORE) and not (self.only_refused and READ in each.ends)
        }


MT = "--max-length 3 --beam 1"
TABLE: dict[str, list[Slot]] = {
    "translate": [
        Slot(f"translate -m {{translate}} {MT} --input {{x}}", damage.TEXT, "lines.txt"),
        Slot(f"translate -m {{x}} {MT} a", damage.MODEL, "translate"),
        Slot(f"translate -m {{translate}} {MT} a --output {{x}}", damage.OUTPUT),
        Slot(f"translate -m {{translate}} {MT} a --show {{x}}", damage.OUTPUT),
        Slot(f"translate -m {{translate}} {MT} --input {{lines.txt}} --output {{x}}/", damage.FOLDER),
    ],
    "align": [
        Slot("align {translate} {x} {lines.txt}", damage.PARALLEL, "lines.txt"),
        Slot("align {translate} {lines.txt} {x}", damage.PARALLEL, "lines.txt"),
        Slot("align {translate} --input {x}", damage.TEXT | {"no tab": damage.written(b"a\n")}, "pairs.tsv"),
        Slot("align {translate} --gold {x}", damage.JSON, "gold.jsonl"),
        Slot("align {x} {lines.txt} {lines.txt}", damage.MODEL, "translate"),
        Slot("align {translate} {lines.txt} {lines.txt} --reverse {x}", damage.MODEL, "translate"),
        Slot("align {translate} {lines.txt} {lines.txt} -o {x}", damage.OUTPUT),
    ],
    "align-corpus": [
        Slot("align-corpus {x} {lines.txt} --rounds 0 -o {new}/o", damage.PARALLEL, "lines.txt", only_refused=True),
        Slot("align-corpus {lines.txt} {lines.txt} --rounds 0 --links {x} -o {new}/o", damage.TEXT, "links.txt"),
        Slot("align-corpus {lines.txt} {lines.txt} --rounds 0 --gold {x} -o {new}/o", damage.JSON, "gold.jsonl"),
        Slot("align-corpus {lines.txt} {lines.txt} --recipe {x} -o {new}/o", damage.RECIPE, "recipe.toml"),
        Slot("align-corpus {lines.txt} {lines.txt} --rounds 0 -o {x}", damage.FOLDER),
    ],
    "caption": [
        Slot(f"caption -m {{caption}} {MT} {{x}}", damage.IMAGE, "image.png"),
        Slot(f"caption -m {{caption}} {MT} --input {{x}}", damage.TEXT, "list.txt", only_refused=True),
        Slot(f"caption -m {{x}} {MT} {{image.png}}", damage.MODEL, "caption"),
        Slot(f"caption -m {{caption}} {MT} {{image.png}} -o {{x}}", damage.OUTPUT),
    ],
    "gallery": [
        Slot("gallery {caption} --captions {x} --images {images.zip} -o {new}/g", damage.JSON, "coco.json"),
        Slot("gallery {caption} --captions {coco.json} --images {x} -o {new}/g", damage.IMAGES, "images.zip"),
        Slot("gallery {x} --captions {coco.json} --images {images.zip} -o {new}/g", damage.MODEL, "caption"),
        Slot("gallery {caption} --captions {coco.json} --images {images.zip} --beam 1 -o {x}", damage.FOLDER),
    ],
    "recognize": [
        Slot("recognize -m {recognize} {x}", damage.IMAGE, "image.png"),
        Slot("recognize -m {recognize} --input {x}", damage.TEXT, "list.txt", only_refused=True),
        Slot("recognize -m {x} {image.png}", damage.MODEL, "recognize"),
        Slot("recognize -m {recognize} {image.png} -o {x}", damage.OUTPUT),
    ],
    "glimpse": [
        Slot("glimpse {x}", damage.IMAGE, "image.png"),
        Slot("glimpse -m {x} {image.png}", damage.MODEL, "glimpse"),
        Slot("glimpse {image.png} --crop {x}", damage.OUTPUT),
        Slot("glimpse {image.png} --show {x}", damage.OUTPUT),
    ],
    "classify": [
        Slot("classify -m {classify} --input {x}", damage.TEXT, "lines.txt"),
        Slot("classify -m {classify} --file {x}", damage.TEXT, "lines.txt"),
        Slot("classify -m {x} text", damage.MODEL, "classify"),
        Slot("classify -m {classify} text -o {x}", damage.OUTPUT),
    ],
    "tape": [
        Slot("tape -m {x}", damage.MODEL, "tape"),
        Slot("tape 01100110 --show {x}", damage.OUTPUT),
    ],
    "read": [
        Slot("read -m {read} --input {x}", damage.TEXT, "lines.txt"),
        Slot("read -m {x} text", damage.MODEL, "read"),
        Slot("read -m {read} text -o {x}", damage.OUTPUT),
    ],
    "demo": [
        Slot("demo --photograph {x} -o {new}/d", damage.IMAGE, "image.png", only_refused=True),
        Slot("demo -o {x}", damage.FOLDER),
    ],
    "train": [
        Slot("train {x} --data.pairs {pairs.tsv} --out {new}/run", damage.RECIPE, "recipe.toml"),
        Slot(f"train --source {{x}} --target {{lines.txt}} {TRAIN}", damage.PARALLEL, "lines.txt", only_refused=True),
        Slot(f"train --data.pairs {{x}} {TRAIN}", damage.TEXT, "pairs.tsv", only_refused=True),
        Slot(f"train --from {{x}} --data.pairs {{pairs.tsv}} {TRAIN}", damage.MODEL, "translate", only_refused=True),
        Slot("train mnist-lenet --data.folder {x} --out {new}/run", damage.PLACE, "mnist"),
        Slot("train reviews --data.world '' --data.train {x} --out {new}/run", damage.TABLE, "documents.csv"),
        Slot("train --data.pairs {pairs.tsv} --train.epochs 1 --out {x}", damage.FOLDER),
        Slot("train --resume --out {x}", damage.PLACE, "mnist"),
    ],
    "evaluate": [
        Slot(f"evaluate {{translate}} {MT} --source {{x}} --reference {{lines.txt}}", damage.PARALLEL, "lines.txt"),
        Slot(f"evaluate {{translate}} {MT} --source {{lines.txt}} --reference {{x}}", damage.PARALLEL, "lines.txt"),
        Slot(f"evaluate {{translate}} {MT} --source {{lines.txt}} --reference {{lines.txt}} --gold {{x}}",
             damage.JSON, "gold.jsonl"),
        Slot(f"evaluate {{translate}} {MT} --source {{lines.txt}} --reference {{lines.txt}} -o {{x}}", damage.OUTPUT),
        Slot("evaluate {caption} --captions {x} --images {images.zip}", damage.JSON, "coco.json"),
        Slot("evaluate {caption} --captions {coco.json} --images {x}", damage.IMAGES, "images.zip"),
        Slot("evaluate {recognize} --folder {x} --format mnist", damage.PLACE, "mnist"),
        Slot("evaluate glimpse-digits --folder {x}", damage.PLACE, "mnist"),
        Slot("evaluate {classify} --documents {x}", damage.TABLE, "documents.csv"),
        Slot("evaluate {classify} --documents {x}", damage.JSON, "documents.jsonl"),
        Slot("evaluate {read} --file {x}", damage.TEXT, "lines.txt"),
        Slot("evaluate {x} --count 5", damage.MODEL, "tape", only_refused=True),
    ],
    "view": [
        Slot("view {x}", damage.JSON, "trace.json"),
        Slot("view {trace.json} -o {x}", damage.OUTPUT, new="page.html"),
        Slot("view {trace.json} -o {x}", damage.OUTPUT, new="figure.svg"),
    ],
    "export": [
        Slot("export {x} --out {new}/e", damage.MODEL, "recognize"),
        Slot("export {recognize} --out {x}", damage.FOLDER),
    ],
    "site": [Slot("site {x} scenes", damage.FOLDER)],
    "layers": [],
    "models": [],
    "recipes": [Slot("recipes {x}", damage.PLACE, "recipe.toml")],
    "serve": [Slot("serve {x} --port 0", damage.MODEL, "translate", only_refused=True)],
    "bench": [Slot("bench decoder --repeats 1 --json {x}", {"a folder": damage.OUTPUT["a folder"]})],
    "data get": [
        Slot("data get multi30k --from {x}", damage.PLACE, "mnist"),
        Slot("data get tatoeba-fra --from {x}", damage.PLACE, "mnist"),
    ],
    "data list": [],
    "data newsgroups": [
        Slot("data newsgroups --from {x} --out {new}/o", damage.PLACE, "news"),
        Slot("data newsgroups --from {news} --out {x}", damage.FOLDER),
    ],
    "data babel": [],
    "data scenes": [Slot("data scenes --count 9 --show 1 --out {x}", damage.OUTPUT)],
}  # fmt: skip
"""Every command, and every place in it where a file or folder is named."""
WRONG_OPTIONS = {
    **{command: ["--nonsense 1"] for command in TABLE},
    "serve": ["--nonsense 1", "--port -1", "--port 99999999", "--host nonsense.invalid"],
    "bench": ["--nonsense 1", "--repeats 0", "nonsense"],
    "data babel": ["--nonsense 1", "xx fr", "--count 0", "--show -1", "--seed nonsense"],
    "data scenes": ["--nonsense 1", "--count 0", "--out a.bmp"],
    "data get": ["--nonsense 1", "nonsense", "../../etc/passwd"],
    "layers": ["nonsense", "lenet5 --size nonsense", "vgg16 --size 3x0x3", "lenet5 --classes -1"],
    "recipes": ["--nonsense 1", "nonsense", "--fields nonsense"],
    "demo": ["--nonsense 1", "--minutes nan", "--minutes -1"],
    "tape": ["--nonsense 1", "012", "0", "tape-copy 01100110", "--length -1", "--length 99999999", "--device nonsense"],
    "translate": ["--nonsense 1", "--beam 0 a", "--beam 9999999 a", "--device nonsense a", "--temperature nan a"],
}
"""Further options that are wrong in themselves."""


def fill_shelf(folder: Path) -> None:
    """Write right files and models of every kind into a folder."""
    for name, model in {
        "translate": small_translator(),
        "caption": small_captioner(),
        "recognize": small_classifier(),
        "classify": small_document_classifier(),
        "read": small_reader("lstmn_model"),
    }.items():
        model.save(folder / name)
    for name, shipped in {"glimpse": "glimpse-digits", "tape": "tape-copy"}.items():
        shutil.copytree(PRETRAINED / shipped, folder / name)
    files = {
        "lines.txt": b"a dog\ntwo dogs run\n",
        "pairs.tsv": b"a dog\ttwo dogs\ntwo dogs run\ta\n",
        "links.txt": b"0-0 1-1\n0-0 1-1\n",
        "gold.jsonl": lines(GOLD),
        "image.png": image_bytes("PNG", size=(40, 30)),
        "images.zip": zipped({"a.png": image_bytes("PNG"), "b.jpg": image_bytes("JPEG")}),
        "coco.json": json.dumps(COCO).encode(),
        "recipe.toml": b"[model]\nhidden = 4\n",
        "documents.csv": b"text,label\na good film,positive\na bad film,negative\n",
        "documents.jsonl": lines([{"text": "a good film", "label": "positive"}, {"text": "b", "label": "negative"}]),
        "trace.json": Trace.from_weights(["a", "b"], ["c"], [[0.9, 0.1]]).to_json().encode(),
    }
    files["list.txt"] = f"{folder / 'image.png'}\n".encode()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / "mnist").mkdir()
    for part in ("train", "t10k"):
        (folder / "mnist" / f"{part}-images-idx3-ubyte").write_bytes(idx(np.ones((4, 28, 28))))
        (folder / "mnist" / f"{part}-labels-idx1-ubyte").write_bytes(idx(np.arange(4)))
    (folder / "news").mkdir()
    for part in ("train", "test"):
        (folder / "news" / f"{part}.jsonl").write_bytes(lines([{"text": "Subject: cats\n\nwords"}]))


def cases(*, whole: bool) -> Iterator[tuple[Slot, str]]:
    """Every slot with the names of the damages to try in it; `whole` for all of them in all slots."""
    seen: set[int] = set()
    for slot in (slot for row in TABLE.values() for slot in row):
        yield from ((slot, name) for name in slot.damages(whole=whole or id(slot.kind) not in seen))
        seen.add(id(slot.kind))
