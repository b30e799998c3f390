"""Count the functions and files of regard that seven everyday flows pass through: `python benchmarks/flow_calls.py`.

A call is one entry into Python code below `src/regard`, lambdas and comprehensions included; files are the modules
entered. The counts depend on no clock, so a test holds them to the limits below.
"""

import argparse
import contextlib
import io
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

import regard

ROOT = str(Path(regard.__file__).parent)
SENTENCE = "A sentence."


@dataclass
class Calls:
    """The calls of a flow in order, each by the file of its function, with marks between its rounds."""

    files: list[str] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)

    def mark(self) -> None:
        """Begin a new round, such as a step of a search."""
        self.marks.append(len(self.files))

    def of_a_round(self) -> "Calls":
        """The calls of the round of median length, of those between two marks."""
        rounds = [self.files[start:stop] for start, stop in zip(self.marks, self.marks[1:], strict=False)]
        return Calls(sorted(rounds, key=len)[len(rounds) // 2])

    @property
    def num_files(self) -> int:
        """How many files were entered."""
        return len(set(self.files))


@contextlib.contextmanager
def counted(*also: str) -> Iterator[Calls]:
    """Count the calls of regard, and of packages in other folders, in this thread and in those that it starts."""
    calls = Calls()
    folders = (ROOT, *also)

    def profile(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(folders) and code.co_name != "<module>":
            calls.files.append(code.co_filename)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def attend() -> Calls:
    """One call of `attend` with an additive score and a mask."""
    query, states = torch.randn(2, 3, 5), torch.randn(2, 7, 11)
    additive = regard.score.Additive(5, 11, 13)
    mask = regard.mask.padding(torch.tensor([7, 4]))
    for _ in range(2):  # the first call imports and compiles
        with counted() as calls:
            regard.attend(query, states, score=additive, mask=mask)
    return calls


def beam_step() -> Calls:
    """A step of a beam search with the shipped English-French translator."""
    model = regard.load("en-fr", device="cpu")
    with counted() as calls:
        step = model.decoder.step

        def marked(*args: Any, **kwargs: Any) -> Any:
            calls.mark()
            return step(*args, **kwargs)

        model.decoder.step = marked
        model.translate("The old man saw the cat in the garden.", beam=4, traces="none")
    return calls.of_a_round()


@cache
def _trained() -> Calls:
    """The calls of a small training of RNNsearch, marked at each update: of a second one, for which all is imported."""
    lines = [f"{number} one two three\tun deux trois {number}\n" for number in range(60)]
    data: dict[str, Any] = {"vocabulary": 60, "held_out": 4}
    changes = {"data": data, "model": {"embedding": 8, "hidden": 8}, "train": {"max_tokens": 60, "epochs": 1}}
    engine = [str(Path(spec.origin).parent) for name in ("lightning_fabric", "lightning") if (spec := find_spec(name))]
    with tempfile.TemporaryDirectory() as folder:
        data["pairs"] = str(Path(folder) / "pairs.tsv")
        Path(data["pairs"]).write_text("".join(lines), encoding="utf-8")
        for run in ("first", "second"):
            with counted(*engine) as calls:
                hook = register_optimizer_step_post_hook(lambda *_, calls=calls: calls.mark())
                try:
                    regard.train(None, out=Path(folder) / run, progress=False, **changes)
                finally:
                    hook.remove()
    return calls


def training_step() -> Calls:
    """A training step of a small RNNsearch: from one update to the next."""
    return _trained().of_a_round()


def training_start() -> Calls:
    """From `regard.train` to the first update, reading the data included."""
    return Calls(_trained().files[: _trained().marks[0]])


def translate_and_show() -> Calls:
    """`regard translate TEXT --show x.html` once the model has been loaded."""
    from regard.cli import main

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        arguments = ["translate", SENTENCE, "--show"]
        for warm in (False, True):
            with counted() as calls, contextlib.suppress(SystemExit):
                main([*arguments, str(Path(folder) / f"{warm}.html")])
    return calls


def _answered(route: str, body: dict[str, Any]) -> Calls:
    """The calls of a warm request to the server."""
    from starlette.testclient import TestClient

    from regard.serving.app import create_app

    with counted() as calls, TestClient(create_app(), base_url="http://localhost") as client:
        for _ in range(2):
            calls.mark()
            client.post(route, json=body).raise_for_status()
        calls.mark()
    return Calls(calls.files[calls.marks[1] : calls.marks[2]])


def request() -> Calls:
    """POST /v1/translate, answered with a trace."""
    return _answered("/v1/translate", {"input": SENTENCE, "trace": True})


def forced_word() -> Calls:
    """A word forced on the Translate page, which knows the original translation."""
    encode = regard.load("en-fr", device="cpu").target_tokenizer.encode
    body = {"input": "The old man left.", "change": {"prefix": encode("Le vieil"), "word": "monsieur"}}
    return _answered("/v1/translate/change", body | {"before": encode("Le vieil homme est parti.")})


FLOWS: dict[str, tuple[Callable[[], Calls], int, int]] = {
    "`attend` with an additive score and a mask": (attend, 25, 7),
    "a step of beam search": (beam_step, 70, 16),
    "a training step": (training_step, 455, 32),
    "`regard.train` up to the first update": (training_start, 3_500, 70),
    "`regard translate --show x.html`, model loaded": (translate_and_show, 2_500, 57),
    "`POST /v1/translate` with a trace": (request, 900, 48),
    "a forced word on the Translate page": (forced_word, 2_000, 47),
}
"""Each flow with the most calls and files that it may take, to which a test holds it."""


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print("| flow | calls | files | at most |\n|---|---|---|---|")
    for name, (flow, calls, files) in FLOWS.items():
        with contextlib.redirect_stderr(io.StringIO()):
            found = flow()
        print(f"| {name} | {len(found.files):,} | {found.num_files} | {calls:,} calls, {files} files |")


if __name__ == "__main__":
    main()
