"""Writing the site: the page, the viewer, the runtime, and models as ONNX graphs.

A page that was opened from a disk may load scripts and nothing else, so that everything is a script: the files of
models and of the runtime in base64, and the components of `viewing/web` joined as for a page in one file.
"""

import base64
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from regard.errors import OptionError
from regard.files import replacing_folder, write_text
from regard.graphs.graph import Precision
from regard.site.runtime import runtime_folder
from regard.systems import registry
from regard.systems.export import export
from regard.systems.folder import CARD
from regard.systems.pretrained import card_summary
from regard.trace.data_uri import to_data_uri
from regard.viewing.page import script

SYSTEMS = ("translate", "caption", "recognize", "classify")
"""The systems whose models run in a page."""
DEFAULT_MODELS = ("en-fr", "scenes-hard", "reviews-en", "digits")
PAGE = ("index.html", "site.css", "tokenizer.js", "search.js", "images.js", "models.js", "files.js", "app.js")
MAX_EXAMPLES = 8


@dataclass(frozen=True)
class Listed:
    """A model as the page lists it."""

    name: str
    system: str
    summary: str
    examples: tuple[str, ...]
    """Texts, or images as data URIs."""


def build_site(
    out: Path, models: Sequence[str] = (), *, precision: Precision = "int8", runtime: str = "", trust: bool = False
) -> Path:
    """Write a folder that any static host can serve; models are shipped ones, model folders, or exported models."""
    chosen = list(dict.fromkeys(models or DEFAULT_MODELS))
    source = runtime_folder(runtime)
    web = files("regard.site").joinpath("web")
    with replacing_folder(out, refuse=_refuse_to_replace) as draft:
        listed: list[Listed] = []
        for each in chosen:
            listed.append(_add_model(draft, each, precision, trust=trust))
            if len({one.name for one in listed}) < len(listed):
                raise OptionError(f"Two models are called {listed[-1].name!r}, the name of their folders. Rename one.")
        for name in PAGE:
            write_text(draft / name, web.joinpath(name).read_text(encoding="utf-8"))
        write_text(draft / "viewer.js", script())
        write_text(draft / "ort.js", (source / "ort.wasm.min.js").read_text(encoding="utf-8"))
        _write_script(draft, "runtime/ort.mjs", (source / "ort-wasm-simd-threaded.mjs").read_bytes())
        _write_script(draft, "runtime/ort.wasm", (source / "ort-wasm-simd-threaded.wasm").read_bytes())
        write_text(draft / "list.js", f"const MODELS = {json.dumps([vars(one) for one in listed])};\n")
    return out


def _add_model(draft: Path, given: str, precision: Precision, *, trust: bool) -> Listed:
    """Export a model, unless it is exported already, and write its files as scripts."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(given)
        if not _is_exported(folder):
            folder = export(given, Path(place) / "exported", precision=precision, trust=trust)
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        system, name = config["system"], Path(given).absolute().name
        if system not in SYSTEMS:
            raise OptionError(f"{given}: models that {system} do not run in a page yet; {', '.join(SYSTEMS)} do.")
        paths = ["config.json", *config["assets"].values(), *config["export"]["graphs"].values()]
        for path in dict.fromkeys(paths):
            _write_script(draft, f"models/{name}/{path}", (folder / path).read_bytes())
        card = folder / CARD
        summary = card_summary(card.read_text(encoding="utf-8")) if card.is_file() else ""
        return Listed(name, system, summary, tuple(_examples(system, name)))


def _refuse_to_replace(folder: Path) -> str:
    """Why a folder must not be replaced: it holds something else than a site."""
    return "" if (folder / "list.js").is_file() and (folder / "viewer.js").is_file() else "it holds no site of regard"


def _is_exported(folder: Path) -> bool:
    config = folder / "config.json"
    return config.is_file() and "export" in json.loads(config.read_text(encoding="utf-8"))


def _examples(system: str, name: str) -> list[str]:
    """Inputs to try: those that are for a shipped model of this name, or for all models that read its language."""
    function, languages = registry.entry(system).examples, ("", name.partition("-")[0])
    found: list[Any] = [] if function is None else list(function())
    own = [each for each in found if each.model == name or (not each.model and each.language in languages)]
    own = own or [each for each in found if hasattr(each, "image")]
    return [each.text if hasattr(each, "text") else to_data_uri(each.image) for each in own[:MAX_EXAMPLES]]


def _write_script(draft: Path, name: str, content: bytes) -> None:
    """A file as a script that hands over its content."""
    path = draft / f"{name}.js"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, f"siteFile({json.dumps(name)}, {json.dumps(base64.b64encode(content).decode())});\n")
