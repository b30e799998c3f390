"""Input and output shared by the commands: what they read, print, draw and write, and with which options."""

import json
import os
import shlex
import stat
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, runtime_checkable

from cyclopts import Group, Parameter
from rich.console import Console, ConsoleDimensions, ConsoleOptions, RenderableType
from rich.segment import Segment

from regard.config import Checked, Count
from regard.errors import OptionError, RegardWarning
from regard.viewing.tokens import printable_lines

if TYPE_CHECKING:
    from regard.data.text import ByteStream
    from regard.systems.predictor import Predictor, Result
    from regard.trace import Trace
    from regard.viewing.view import View

PIPE = "The standard input"
"""What errors call it."""
TERMINAL = "-"
"""What `--show` takes to draw in the terminal instead of saving a file."""
FILES = Group.create_ordered("Input and output")
DRAWING = Group.create_ordered("Drawing")
MARK = ".regard"
"""What the folders hold that regard wrote: files that belong to regard alone."""
Flag = Annotated[bool, Parameter(negative="", show_default=False)]
"""An option that is given or not."""
MIN_COLUMNS = 20
"""The narrowest terminal that is written for."""
_LINE_ENDS = (0x0B, 0x0C, 0x0D, 0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029)
_SPACES = dict.fromkeys(_LINE_ENDS, " ")
_ESCAPED = {end: f"\\u{end:04x}" for end in _LINE_ENDS}


@Parameter(name="*", group=FILES)
@dataclass(frozen=True)
class InputOutput(Checked):
    """What a command reads and writes, and what runs it: the options that all verbs share."""

    input: Annotated[
        tuple[str, ...], Parameter(alias="-i", negative="", consume_multiple=True, show_default=False)
    ] = ()
    """Files with one input per line (plain, .gz, .xz, .zip), or quoted patterns such as 'big/*.txt.gz'."""
    output: Annotated[str | None, Parameter(alias="-o")] = None
    """Write to this file instead of the standard output, or one file for each --input to a folder, such as out/."""
    overwrite: Flag = False
    """Replace files that exist."""
    json: Flag = False
    """Write one JSON object per input, with the whole result and what was attended to."""
    show: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None
    """Show what was attended to: "-" draws in the terminal, FILE.png, .svg or .pdf saves a figure, FILE.html an
    interactive page, and for a caption FILE.gif an animation."""
    workers: Count = 0
    """With an output folder: number of workers; 0 for one per GPU, or one per CPU core without a GPU."""
    engine: Literal["processes", "ray"] = "processes"
    """With an output folder: processes of this machine, or a Ray cluster (pip install 'regard[ray]')."""
    skip_errors: Flag = False
    """With an output folder: write an empty line for an input that fails, instead of stopping."""
    device: str | None = None
    """cpu, cuda or cuda:N; by default the GPU if there is one."""
    trust: Flag = False
    """Allow models that import custom code (package.module:Name)."""

    @property
    def figure(self) -> str | None:
        """The file that `--show` names; None where it draws in the terminal or is not given."""
        return None if self.show == TERMINAL else self.show

    def into_folder(self, given: Sequence[Any] = ()) -> bool:
        """Whether `--output` is a folder: it ends in "/", or is one, or belongs to several input files.

        `given` are inputs that stand on the command line themselves.
        """
        from regard.jobs.inputs import is_pattern

        if given and self.input:
            raise OptionError("Give the inputs themselves, or files of inputs with --input, not both.")
        is_several = len(self.input) > 1 or any(map(is_pattern, self.input))
        output = self.output
        is_folder = output is not None and (output.endswith("/") or Path(output).is_dir() or is_several)
        if is_folder and not self.input:
            raise OptionError(f"--output {output} is a folder: name the files to read with --input FILE ...")
        if not is_folder and (self.workers or self.engine != "processes" or self.skip_errors):
            raise OptionError("--workers, --engine and --skip-errors are for an output folder, such as --output out/.")
        return is_folder

    def check_files(self, reads: Sequence[str] = (), writes: Mapping[str, str | None] | None = None) -> None:
        """Refuse to write over what is read, and over what exists; `reads` and `writes` are further files."""
        from regard.jobs.inputs import find_files

        found = [path for name in self.input for path, _ in find_files(name)]
        outputs = {"--output": self.output, "--show": self.figure, **(writes or {})}
        check_outputs(outputs, inputs=(*found, *reads), overwrite=self.overwrite)


@Parameter(name="*", group=DRAWING)
@dataclass(frozen=True)
class Drawing(Checked):
    """How attention is drawn, by `--show` and by `regard view`; each kind of trace takes some of these options."""

    layer: int | None = None
    """Show the attention of this layer, counted from 1, where the trace has all layers (--traces all)."""
    head: int | None = None
    """Show the attention of this head, counted from 1."""
    name: str | None = None
    """Show the attention of this name, or whose name begins with these words, such as encoder."""
    style: str | None = None
    """Figures and pages: heat_map, heat_maps (all heads side by side) or lines; for readings also word_by_word."""
    title: str | None = None
    """The title of a figure or page."""
    pieces: Flag = False
    """Show the subwords of each word one by one instead of joined; on a page, a switch joins them."""
    cells: Flag = False
    """Over an image, draw the weights cell by cell instead of as a smooth overlay."""
    overlay: str | None = None
    """Over an image, "light", which dims what is not attended to, or "colour"."""
    columns: int | None = None
    """Images of a caption side by side in a figure."""
    side: int | None = None
    """The longer side of the image: in pixels of a .gif, in characters of the terminal."""
    seconds: float | None = None
    """How long a .gif shows each word."""
    raw: Flag = False
    """Shade the words of a document by their weight within the sentence alone."""
    width: float | None = None
    """Width of a .png, .svg or .pdf in inches; the figure is scaled, texts included."""
    height: float | None = None
    """Height of the figure in inches, instead of its width; heat maps take both, and make room for their texts."""
    font_size: float | None = None
    """Size of the labels in points, instead of the width; heat maps take both."""
    dpi: float | None = None
    """Pixels of an inch: of a .png, and of images inside an .svg or .pdf."""

    @property
    def given(self) -> dict[str, Any]:
        """The options that are not left to the view."""
        return {name: value for name, value in vars(self).items() if value not in (None, False)}

    def options(self, shown: "View", path: str | None) -> dict[str, Any]:
        """The options for a view, drawn in the terminal or saved to a path; those that it does not have are refused."""
        from regard.viewing.view import SIZES

        if self.style is not None and "style" in shown.options("figure.png"):
            shown.check_style(self.style)
        known = shown.options(path)
        for name in self.given:
            if name not in known and path is None and name in shown.options("figure.png"):
                kinds = "figures: save one as FILE.pdf or FILE.png"
                pages = "figures and pages: save one as FILE.png or FILE.html"
                raise OptionError(f"{_option(name)} is for {kinds if name in SIZES else pages}.")
            if name not in known:
                taken = ", ".join(map(_option, (each for each in vars(self) if each in known))) or "no options"
                raise OptionError(
                    f"{_option(name)} is not for this trace of kind {shown.trace.kind!r}, which takes {taken}."
                )
        return self.given


def _option(name: str) -> str:
    """A field as people type it."""
    return f"--{name.replace('_', '-')}"


@runtime_checkable
class Writer(Protocol):
    """Where lines are written: the standard output, or a file."""

    def write(self, text: str, /) -> Any:
        """Write text."""

    def flush(self) -> Any:
        """Pass on what was written."""


class SafeConsole(Console):
    """A console that makes the control characters of what it prints visible, so that no text can command a terminal.

    For a terminal that claims to have no columns, lines are 80 letters long; for others, at least `MIN_COLUMNS`.
    """

    @property
    def size(self) -> ConsoleDimensions:
        """The size of the terminal."""
        found = super().size
        return ConsoleDimensions(max(found.width, MIN_COLUMNS) if found.width > 0 else 80, found.height)

    @size.setter
    def size(self, new_size: tuple[int, int]) -> None:
        Console.size.fset(self, new_size)  # type: ignore[attr-defined]

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """The segments of what is printed, without control characters in their texts."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable_lines(text), style, control)


def print_line(text: str, out: Writer | None = None) -> None:
    """Write a text and a line end to the standard output, or to `out`.

    Where that is a terminal, control characters are made visible: inputs, names of files and what models answer may
    hold codes that a terminal obeys. Files and pipes get the text as it is.
    """
    out = out or sys.stdout
    isatty = getattr(out, "isatty", None)
    out.write((printable_lines(text) if isatty is not None and isatty() else text) + "\n")


def print_error(text: str) -> None:
    """Write a message to the standard error."""
    print_line(text, sys.stderr)


def as_json(content: Any) -> str:
    """JSON in one line for every program: also those that end a line at U+2028 and the like."""
    return json.dumps(content, ensure_ascii=False).translate(_ESCAPED)


def in_one_line(text: str) -> str:
    r"""The text with a space for whatever some programs end a line at, other than \n."""
    return text.translate(_SPACES)


def result_text(
    model: "Predictor[Any, Any, Any]",
    given: Any,
    result: "Result | None",
    options: Any,
    *,
    json: bool,
    detail: bool = False,
) -> str:
    """What is written for an input: the text of its result, or JSON; of a blank line, an empty line or null."""
    if json:
        before = {"image": str(given)} if isinstance(given, Path) else {}
        return as_json(None if result is None else before | result.to_dict())
    if result is None:
        return ""
    text = model.as_detail(result, options) if detail else model.as_text(result, options)
    # A document keeps its lines as they are; what is printed ends its last one.
    return text.removesuffix("\n") if options.takes_documents else in_one_line(text)


def check_outputs(
    outputs: Mapping[str, str | os.PathLike[str] | None], *, inputs: Iterable[Any] = (), overwrite: bool = False
) -> None:
    """Refuse files to write, given by the options that name them, that exist (unless `overwrite`) or are also read.

    regard cannot know who wrote a file, so that none is replaced unasked. A link to a file is the file itself. A folder
    is left to the command; a device or a pipe is written to as it is.
    """
    taken = {_identity(path): str(path) for path in inputs} | {_identity(sys.stdin): PIPE}
    if (reading := taken.get(_identity(sys.stdout))) is not None:
        raise OptionError(f"The standard output is the same file as {reading}. Choose another name.")
    for option, path in outputs.items():
        if path is None or Path(path).is_dir():
            continue
        identity = _identity(path)
        if identity in taken:
            raise OptionError(f"{option} {path} is the same file as {taken[identity]}. Choose another name.")
        if not overwrite and (isinstance(identity, tuple) or Path(path).is_symlink()):
            raise OptionError(f"{option} {path} exists. Add --overwrite to replace it, or choose another name.")
        taken[identity] = f"{option} {path}"


def _identity(file: Any) -> object:
    """What tells a regular file from all others whatever its name, (device, inode); equal only to itself for the rest.

    `file` is a path or a stream. A file that does not exist yet is identified by its path.
    """
    try:
        status = Path(file).stat() if isinstance(file, str | os.PathLike) else os.fstat(file.fileno())
    except (OSError, ValueError, AttributeError):  # a stream of a test or a notebook has no file
        return os.path.realpath(file) if isinstance(file, str | os.PathLike) else object()
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else object()


def check_folder(path: Path, *, overwrite: bool) -> None:
    """Refuse to write several files to a folder with other files than those of regard, unless `overwrite`."""
    if not overwrite and path.is_dir() and any(path.iterdir()) and not (path / MARK).exists():
        raise OptionError(f"{path} holds files that regard did not write. Add --overwrite, or choose another folder.")


def mark_folder(path: Path) -> Path:
    """Mark a folder as one that regard writes to, so that it may replace the files in it."""
    (path / MARK).mkdir(parents=True, exist_ok=True)
    return path


def read_inputs(files: Sequence[str], pipe: "ByteStream") -> Iterable[str]:
    """The lines of the files that `--input` names, or those of a pipe, which are decoded in the same way."""
    from regard.data.text import decode_lines, read_lines
    from regard.jobs.inputs import find_files

    if not files:
        return decode_lines(pipe, PIPE)
    return chain.from_iterable(read_lines(path) for name in files for path, _ in find_files(name))


def warn_of_files(texts: Sequence[str], option: str = "--input") -> None:
    """Warn where a text is also the name of a file, which `option` would read."""
    for text in texts:
        if "." in text or "/" in text:
            with suppress(OSError):  # a text may be too long for a name
                if Path(text).is_file():
                    message = f"{text!r} is taken as a text. It is also a file: {option} {shlex.quote(text)} reads it."
                    warnings.warn(message, RegardWarning, stacklevel=2)
                    return


@contextmanager
def writing(output: str | None) -> Iterator[Writer]:
    """The standard output, or a file that appears under its name when it is complete."""
    if output is None:
        yield sys.stdout
        return
    from regard.files import replacing

    with replacing(output) as draft, draft.open("w", encoding="utf-8") as stream:
        yield stream


def draw(trace: "Trace", show: str, drawing: Drawing) -> None:
    """Draw a trace in the terminal for "-", otherwise to a file of the kind that its name says."""
    from regard.viewing.view import view

    shown = view(trace)
    if show == TERMINAL:
        shown.show(SafeConsole(), **drawing.options(shown, None))
    else:
        print_error(f"Wrote {shown.save(show, **drawing.options(shown, show))}")
