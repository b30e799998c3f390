"""Write the files of this version of regard that later versions must read: python tests/formats/record.py

Makes the folder of the minor version, such as `0.1/`, beside this file, and `traces-3.json` with the traces of their
version, once: what was released is never written again. Everything is tiny: models of a few thousand parameters,
trained for a second.
"""

import json
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from helpers.models import photograph  # noqa: E402
from helpers.runs import SYSTEMS, small_recipe  # noqa: E402
from helpers.traces import KINDS  # noqa: E402

import regard  # noqa: E402
from regard.serving.app import create_app  # noqa: E402
from regard.systems.run import train  # noqa: E402
from regard.trace.trace import VERSION  # noqa: E402

STORES = {"recognize": "int8", "caption": "float16"}
"""How the parameters are stored, where it is not float32."""
INPUTS = {
    "translate": "2 three four five",
    "caption": photograph(40, 40),
    "recognize": photograph(28, 28),
    "classify": "two is bad. So 2.",
    "read": "the two sat on six .",
    "tape": "0110 1001",
    "glimpse": photograph(30, 30),
}
UNKEPT = ("logs", "model", ".*lock")
"""What is left out of the run folder: it is made again, or kept elsewhere."""


def asked(model: Any, system: str) -> dict[str, Any]:
    """The answer of a model to its input, without what depends on the last bits."""
    options = {"max_length": 5} if system in ("translate", "caption") else {}
    given = "01 10" if system == "tape" else INPUTS[system]
    found = getattr(model, system)(given, **options).to_dict()
    return {name: value for name, value in found.items() if isinstance(value, str)}


def routes() -> dict[str, Any]:
    """Every route with the fields of its request and of its answer, as the OpenAPI document states them."""
    document = create_app().openapi()
    found = {}
    for path, methods in document["paths"].items():
        for method, about in methods.items():
            body = _json_schema(about.get("requestBody", {}), document)
            answer = _json_schema(about["responses"].get("200", {}), document)
            found[f"{method.upper()} {path}"] = {
                "request": sorted(body.get("properties", ())),
                "required": sorted(body.get("required", ())),
                "answer": sorted(answer.get("properties", ())),
            }
    return dict(sorted(found.items()))


def _json_schema(about: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    schema = about.get("content", {}).get("application/json", {}).get("schema", {})
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def record(folder: Path) -> None:
    answers = {}
    for system in sorted(set(SYSTEMS.values())):
        data, out = Path(system, "data"), Path(system, "run")
        trained = train(small_recipe(system, data, epochs=2), out=out, progress=False)
        place = folder / "models" / system
        trained.model.save(place, metrics={"score": 0.5}, store=STORES.get(system, "float32"))
        answers[system] = asked(regard.load(place, device="cpu"), system)
        (folder / "recipes").mkdir(exist_ok=True)
        shutil.copy(out / "recipe.toml", folder / "recipes" / f"{system}.toml")
        if system == "translate":
            shutil.copytree(out, folder / "run", ignore=shutil.ignore_patterns(*UNKEPT))
            (folder / "run" / "checkpoints" / "step-7.ckpt").unlink()
            shutil.copy(data / "pairs.tsv", folder / "pairs.tsv")
    for name, content in (("answers", answers), ("routes", routes())):
        (folder / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    if not (file := HERE / f"traces-{VERSION}.json").exists():
        file.write_text(json.dumps({name: make().to_dict() for name, make in KINDS.items()}) + "\n", encoding="utf-8")


def main() -> None:
    folder = HERE / regard.__version__.rpartition(".")[0]
    if folder.exists():
        raise SystemExit(f"{folder} exists: what was released is not written again.")
    folder.mkdir()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)  # so that recipes name no place of this machine
        record(folder)


if __name__ == "__main__":
    main()
