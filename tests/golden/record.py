"""Record again what shipped models do, after they were replaced by others: python record.py en-fr fa-en photo-en

`python record.py losses` records the first losses of every packaged recipe again, in losses.json.

Inputs and options stay as they are; only the outputs of these models are replaced: of translators in translations.json,
maps.npz, evaluations.json and, of en-fr, in alignments.json and search.json; of captioners of photographs in
captions.json and maps.npz.
"""

import json
import platform
import sys
import tempfile
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import tokenizers
import torch
from inputs import photograph

import regard
from regard.metrics.alignment import GoldAlignment
from regard.systems.translate.alignment import align_words, alignment_error, link_words
from regard.systems.translate.config import RAW
from regard.worlds import babel

GOLDEN = Path(__file__).parent
sys.path.insert(0, str(GOLDEN.parent))


def main() -> None:
    torch.set_num_threads(1)
    for name in sys.argv[1:]:
        if name == "losses":
            record_losses()
            continue
        model = regard.load(name, device="cpu")
        if name.startswith("photo-"):
            record_captions(name, model)
            continue
        record_translations(name, model)
        record_evaluation(name, model)
        if name == "en-fr":
            record_alignments(model)
            record_search(model)


def record_losses() -> None:
    from helpers.losses import UPDATES, first_losses

    from regard.training.recipes import recipe_names

    made_by = {
        "torch": torch.__version__,
        "numpy": np.__version__,
        "pillow": PIL.__version__,
        "tokenizers": tokenizers.__version__,
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
    }
    with tempfile.TemporaryDirectory() as folder:
        losses = {name: first_losses(name, Path(folder) / name) for name in recipe_names()}
    _write("losses", {"made_by": made_by, "updates": UPDATES, "losses": losses})


def record_translations(name: str, model: Any) -> None:
    golden = _read("translations")
    rows = golden["models"][name]
    with np.load(GOLDEN / "maps.npz") as stored:
        maps = dict(stored)
    for search, beam in (("beam5", 5), ("greedy", 1)):
        chosen = [row for row in rows if search in row]
        found = model.translate([row["source"] for row in chosen], beam=beam, **RAW)
        for row, translation in zip(chosen, found, strict=True):
            row[search] = _output(translation)
            if search == "beam5" and "map" in row:
                trace, key = translation.trace, row["map"]["key"]
                row["map"] = {"key": key, "source": trace.source, "target": trace.target} | _peaks(trace.weights)
                maps[key] = trace.weights.astype(np.float16)
    _write("translations", golden)
    np.savez_compressed(GOLDEN / "maps.npz", **maps)


def record_captions(name: str, model: Any) -> None:
    golden = _read("captions")
    with np.load(GOLDEN / "maps.npz") as stored:
        maps = dict(stored)
    for row in golden["models"][name]:
        image = photograph(row["image"])
        caption = model.caption(image, beam=5)
        trace = caption.trace
        row |= {"beam5": _output(caption), "grid": list(trace.axis("cells").grid), "words": list(trace.target)}
        row |= _peaks(trace.weights)
        row |= {
            "gates": _rounded(trace.values("gate"), 5),
            "choices": _rounded(trace.values("choice"), 0),
            "log_probs": _rounded(trace.values("log_prob"), 6),
            "greedy": _output(model.caption(image, beam=1)),
        }
        maps[row["key"]] = trace.weights.astype(np.float16)
    _write("captions", golden)
    np.savez_compressed(GOLDEN / "maps.npz", **maps)


def record_evaluation(name: str, model: Any) -> None:
    golden = _read("evaluations")
    world = golden["world"]
    drawn = islice(babel.pairs(*name.split("-"), split=world["split"], seed=world["seed"]), world["count"])
    with tempfile.TemporaryDirectory() as folder:
        files = {"source": Path(folder) / "source", "reference": Path(folder) / "reference"}
        texts = [(" ".join(pair.source), " ".join(pair.target)) for pair in drawn]
        for side, file in enumerate(files.values()):
            file.write_text("".join(f"{pair[side]}\n" for pair in texts), encoding="utf-8")
        report = regard.evaluate(model, **files, beam=golden["beam"])
    scores = {
        theirs: {"value": report[ours], "signature": report.scores[ours].note}
        for ours, theirs in {"BLEU": "bleu", "chrF": "chrf", "TER": "ter"}.items()
    }
    golden["models"][name] = {
        "perplexity": report["perplexity"],
        "entropy": report["entropy"],
        "scores": scores | {"exact_match": report["exact match"] / 100, "count": len(report.outputs)},
        "by_length": [asdict(bucket) for bucket in report.by_length],
    }
    _write("evaluations", golden)


def record_alignments(model: Any) -> None:
    golden = _read("alignments")
    drawn = list(islice(babel.pairs("en", "fr", **golden["world"]), len(golden["pairs"])))
    words = [(pair.source, pair.target) for pair in drawn]
    for row, weights, links in zip(golden["pairs"], align_words(model, words), link_words(model, words), strict=True):
        row |= {"links": sorted(map(list, links))} | _peaks(weights)
    gold = [GoldAlignment(pair.source, pair.target, pair.sure, pair.possible) for pair in drawn]
    golden["scores"] = asdict(alignment_error(model, gold))
    _write("alignments", golden)


def record_search(model: Any) -> None:
    golden = _read("search")
    for run in golden["runs"]:
        if run.get("model") != "scenes":
            found = model.translate(golden["sources"], **run["options"])
            every = [[best, *best.alternatives] for best in found]
            run["outputs"] = [[list(_output(one).values()) for one in outputs] for outputs in every]
    _write("search", golden)


def _output(translation: Any) -> dict[str, Any]:
    return {"text": translation.text, "score": round(translation.score, 7), "finished": translation.finished}


def _rounded(values: Any, digits: int) -> list[float] | None:
    return None if values is None else [round(float(value), digits) for value in values]


def _peaks(weights: np.ndarray) -> dict[str, Any]:
    peaks = [round(float(peak), 4) for peak in weights.max(1, initial=0)]
    return {"argmax": weights.argmax(1).tolist() if weights.size else [0] * len(weights), "max": peaks}


def _read(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))


def _write(name: str, content: Any) -> None:
    (GOLDEN / f"{name}.json").write_text(_lines(content) + "\n", encoding="utf-8")


def _lines(value: Any, depth: int = 1) -> str:
    """JSON with a line for each row of a table."""
    pad = "\n" + " " * depth
    if isinstance(value, dict) and (depth < 3 or "by_length" in value):
        items = (f"{json.dumps(key)}: {_lines(each, depth + 1)}" for key, each in value.items())
        return "{" + ",".join(pad + item for item in items) + pad[:-1] + "}"
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return "[" + ",".join(pad + _lines(each, 9) for each in value) + pad[:-1] + "]"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    main()
