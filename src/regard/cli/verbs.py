"""The commands of the verbs, one for each system: `translate`, `caption`, `recognize`, `classify`, `read`, ...

Each is generated from what its system declares: the summary, the options of the verb and the hooks of `System` that
say what an input and a line of output are. `regard.cli.verbs.NAME` is the command of the system NAME.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import fields, replace
from inspect import Parameter as Argument
from inspect import Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.io import (
    TERMINAL,
    Drawing,
    InputOutput,
    draw,
    print_error,
    print_line,
    read_inputs,
    result_text,
    warn_of_files,
    writing,
)
from regard.errors import OptionError
from regard.systems import registry
from regard.systems.config import Arguments, Options
from regard.systems.pretrained import load_as

if TYPE_CHECKING:
    from regard.systems.predictor import Predictor, Result

PIPE_WINDOW = 64
"""Inputs of a pipe or of the command line that are read before the first are answered."""
BATCHES_PER_READ = 16
"""Batches of a file that are read before the first is answered; inputs of like cost are put together among these."""
LISTED = "With --input, the images are those that text files list, one path per line. "
CONTINUES = "Into a folder (--output out/), several workers answer files; run again, an interrupted command continues."


def __getattr__(name: str) -> Callable[..., None]:
    if name not in registry.MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return verb_command(registry.entry(name))


def verb_command(found: registry.Entry) -> Callable[..., None]:
    """The command of a system, with the signature and the docstring that its help is made from."""
    declaration = found.declaration
    kinds = {"arguments": found.arguments, "options": found.options, "io": InputOutput, "drawing": Drawing}

    def command(*given: str, model: str = declaration.default_model, **tables: Any) -> None:
        run_verb(found, given, model, **{name: tables.get(name) or kind() for name, kind in kinds.items()})

    named = Annotated[str, Parameter(alias="-m")]
    command.__dict__["__signature__"] = Signature([
        Argument(declaration.inputs, Argument.VAR_POSITIONAL, annotation=str),
        Argument("model", Argument.KEYWORD_ONLY, default=declaration.default_model or Argument.empty, annotation=named),
        *(
            Argument(name, Argument.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, Parameter(name="*")])
            for name, kind in kinds.items()
            if fields(kind)
        ),
    ])  # fmt: skip
    parameters = command.__dict__["__signature__"].parameters.values()
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__name__ = found.name
    about = f"{declaration.about} {LISTED if declaration.inputs == 'images' else ''}{CONTINUES}".strip()
    command.__doc__ = (
        f"{declaration.summary}\n\n{about}\n\nParameters\n----------\n"
        f"{declaration.inputs}\n    {declaration.about_inputs}\n"
        "model\n    A shipped model (`regard models` lists them) or a model folder.\n"
    )
    return command


def run_verb(
    found: registry.Entry,
    given: Sequence[str],
    model: str,
    io: InputOutput,
    drawing: Drawing,
    arguments: Arguments,
    options: Options,
) -> None:
    """Answer what is given, line by line or as a job, and write, draw and save what was asked for."""
    from regard.data.progress import track
    from regard.systems.predictor import Predictor

    options = arguments.completed(options)
    takes_files = found.declaration.inputs == "images" or options.takes_documents
    if found.declaration.inputs == "texts" and not takes_files:
        warn_of_files(given, "--file" if hasattr(arguments, "file") else "--input")
    if io.show is None and drawing.given:
        raise OptionError(f"--{next(iter(drawing.given))} is for --show: add --show - or --show FILE.")
    if io.show is not None and options.traces == "none":
        raise OptionError("--show needs what was attended to, which --traces none leaves out.")
    for_one = [f"{option} {path}" for option, path in {"--show": io.figure, **arguments.writes}.items() if path]
    if options.takes_documents and (io.input or len(given) > 1):
        raise OptionError("One document at a time: name it, or pipe it in; --input takes files with one text per line.")
    quiet = options if io.json or io.show else replace(options, traces="none")
    if io.into_folder((*given, *arguments.reads)):
        if for_one or io.show or arguments.line_files:
            raise OptionError(f"{(*for_one, *arguments.line_files, '--show -')[0]} is not for an output folder.")
        from regard.cli.jobs import VerbPredictor, run_job

        job = VerbPredictor(found, model, quiet, io.json, io.device, io.trust)
        run_job(job, io, label=found.name.capitalize())
        return
    if found.declaration.inputs == "images" and not given and not io.input:
        raise OptionError(f"No images given. Usage: regard {found.name} IMAGE ...")
    io.check_files([*arguments.reads, *(given if takes_files else ())], {**arguments.writes, **arguments.line_files})
    system = load_as(found, model, device=io.device, trust=io.trust)
    named = None if io.input else system.read_arguments(given, arguments, options, sys.stdin.buffer)
    if named is None:
        lines = read_inputs(io.input, sys.stdin.buffer)
        inputs: Iterable[Any] = (system.parse(line, options) for line in lines)
        window = BATCHES_PER_READ * system.max_batch if io.input else 1 if sys.stdin.isatty() else PIPE_WINDOW
    else:
        inputs, window = named, PIPE_WINDOW
    if for_one:
        inputs = _only(inputs, for_one[0])
    detail = named is not None and len(named) == 1 and type(system).as_detail is not Predictor.as_detail
    results = system.stream_some(inputs, options if detail else quiet, read_ahead=window)
    long_work = io.output is not None or (bool(io.input) and not sys.stdout.isatty())
    tracked = track(results, found.name.capitalize(), found.declaration.inputs, enabled=long_work)

    def text_of(one: Any, result: "Result | None") -> str:
        text = result_text(system, one, result, options, json=io.json, detail=detail)
        if io.json or named is None or len(named) == 1 or not isinstance(one, Path):
            return text
        return "\n".join(f"{one}: {line}" for line in text.split("\n"))

    is_drawn = write_all(tracked, text_of, system, io, drawing, arguments)
    if io.figure is not None and not is_drawn:
        raise OptionError(f"The answer is empty, so there is nothing to show: {io.figure} is not written.")


def write_all(
    results: "Iterable[tuple[Any, Result | None]]",
    text_of: "Callable[[Any, Result | None], str]",
    system: "Predictor[Any, Any, Any]",
    io: InputOutput,
    drawing: Drawing,
    arguments: Arguments,
) -> bool:
    """Write the text of each result, and draw and save what was asked for; whether anything was drawn."""
    is_drawn = False
    with ExitStack() as files:
        out = files.enter_context(writing(io.output))
        beside = {option: files.enter_context(writing(path)) for option, path in arguments.line_files.items()}
        for one, result in results:
            for option, lines in beside.items():
                print_line("" if result is None else system.line(option, result), lines)
            if io.json or io.output is not None or io.show != TERMINAL or not system.names_view:
                print_line(text_of(one, result), out)
                if out is sys.stdout and not io.input:
                    out.flush()
            if result is None:
                continue
            if caution := getattr(result, "caution", ""):
                print_error(f"{one}: {caution}" if isinstance(one, Path) else caution)
            if io.show is not None and result.trace is None:
                raise OptionError(f"This {type(system).__name__} has no attention to show.")
            if io.show is not None and result.trace is not None and result.trace.weights.size:
                draw(result.trace, io.show, drawing)
                is_drawn = True
            system.save_files(one, result, arguments)
            for path in arguments.writes.values():
                print_error(f"Wrote {path}")
    return is_drawn


def _only(inputs: Iterable[Any], asked: str) -> list[Any]:
    """The inputs, where one of them, and blank lines beside it, is what an option asks for."""
    inputs = list(inputs)
    count = len(inputs) if len(inputs) == 1 else sum(one is not None and one != "" for one in inputs)
    if count != 1:
        terminal = " To draw several in the terminal, use --show -." if asked.startswith("--show") else ""
        raise OptionError(f"{asked} needs exactly one input (got {count}).{terminal}")
    return inputs
