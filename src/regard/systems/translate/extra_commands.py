"""Further commands of translators: link the words of sentence pairs by attention, and learn to align a corpus."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from cyclopts import Parameter, validators

from regard.cli.io import (
    TERMINAL,
    Drawing,
    InputOutput,
    draw,
    print_error,
    print_line,
    read_inputs,
    writing,
)
from regard.errors import DataError, OptionError, RegardError, counted
from regard.systems.translate.config import MAX_ALIGNED_TOKENS, Symmetrize

if TYPE_CHECKING:
    from regard.jobs.worker import Answer


def align(
    model: str,
    source: Path | None = None,
    target: Path | None = None,
    *,
    reverse: str | None = None,
    symmetrize: Symmetrize = "mutual",
    threshold: Annotated[float, Parameter(validator=validators.Number(gte=0, lte=1))] = 0.0,
    gold: Path | None = None,
    io: Annotated[InputOutput | None, Parameter(name="*")] = None,
    drawing: Annotated[Drawing | None, Parameter(name="*")] = None,
) -> None:
    """Align the words of sentence pairs with the attention of a translator, or measure the alignment error rate.

    Writes a line for each pair, such as 0-0 1-2 2-1: source word 1 is linked with target word 2. Words are separated by
    whitespace and counted from 0. A pair with an empty side has an empty line. With --input, files have lines with a
    source sentence, a tab and its translation; into a folder (--output out/), several workers align them.
    With --show FILE, the first pair with links is shown, with --show - all of them.

    Parameters
    ----------
    model
        A shipped model or a model folder.
    source
        Source sentences, one per line.
    target
        Their translations, line by line.
    reverse
        A model of the other direction; combining both is more accurate.
    symmetrize
        How the two directions are combined: mutual (words that choose each other in the mean of both maps),
        intersection, union, grow-diag or grow-diag-final-and of their links.
    threshold
        Leave out links with a smaller attention weight.
    gold
        Instead of sentences, JSON lines with the reference links (src, tgt, sure, possible): prints the error rate.
    """
    from regard.cli.jobs import run_job
    from regard.data.alignments import read_gold
    from regard.data.progress import track
    from regard.data.text import read_pairs
    from regard.systems.predictor import Result
    from regard.systems.translate.alignment import align_stream, alignment_error
    from regard.systems.translate.model import Translator
    from regard.viewing.view import MEASURED

    io, drawing = io or InputOutput(), drawing or Drawing()
    both = [path for path in (source, target) if path is not None]
    if len(both) == 1 or sum((bool(both), gold is not None, bool(io.input))) != 1:
        raise OptionError("Give the files SOURCE and TARGET or --input FILE to link words, or --gold FILE to measure.")
    if reverse is None and symmetrize != "mutual":
        raise OptionError(f"--symmetrize {symmetrize} combines two directions: give --reverse MODEL.")
    if io.into_folder(both):
        run_job(Links(model, reverse, symmetrize, threshold, io.json, io.device, io.trust), io, label="Align")
        return
    io.check_files([str(path) for path in (*both, *([gold] if gold else []))])
    forward = Translator.load(model, device=io.device, trust=io.trust)
    backward = None if reverse is None else Translator.load(reverse, device=io.device, trust=io.trust)
    if gold is not None:
        error = alignment_error(forward, read_gold(gold), backward, symmetrize=symmetrize, threshold=threshold)
        print_line(f"AER {error.error_rate:.3f}, precision {error.precision:.3f}, recall {error.recall:.3f}")
        return
    pairs = read_pairs(*both) if both else map(split_pair, read_inputs(io.input, sys.stdin.buffer))
    aligned = align_stream(forward, pairs, backward, symmetrize=symmetrize, threshold=threshold)
    skipped = count = shown = 0
    with writing(io.output) as out:
        for pair in track(aligned, "Align", "pairs", enabled=io.output is not None or not sys.stdout.isatty()):
            print_line(pair.to_json() if io.json else pair.to_text(), out)
            skipped, count = skipped + pair.is_too_long, count + 1
            if io.show is not None and pair.links and (io.show == TERMINAL or not shown):
                # In the terminal, how right the attention is stands once below all pairs.
                measured = forward.with_attention_quality(Result(trace=pair.trace)).trace
                draw(pair.trace if io.show == TERMINAL else measured, io.show, drawing)
                shown = count
    if io.show == TERMINAL and shown and forward.metrics.get(MEASURED):
        print_line(str(forward.metrics[MEASURED]))
    elif io.figure is not None:
        nothing = f"No pair has links: {io.figure} is not written."
        if count > 1 or not shown:
            print_error(f"It shows pair {shown} of {count}." if shown else nothing)
    if skipped:
        print_error(f"Without links, with more than {MAX_ALIGNED_TOKENS} tokens on a side: {counted(skipped, 'pair')}.")


@dataclass(frozen=True)
class Links:
    """Aligns the words of lines with a source sentence, a tab and its translation: what the workers of a job do."""

    model: str
    reverse: str | None = None
    symmetrize: Symmetrize = "mutual"
    threshold: float = 0.0
    json: bool = False
    device: str | None = None
    trust: bool = False
    chunk_size: ClassVar[int] = 4096

    def settings(self) -> dict[str, Any]:
        """The models, identified by their content, and the options."""
        from regard.cli.jobs import model_checksum

        return {
            "model": model_checksum(self.model),
            "reverse": None if self.reverse is None else model_checksum(self.reverse),
            "symmetrize": self.symmetrize,
            "threshold": self.threshold,
            "json": self.json,
        }

    def load(self, worker: int, workers: int) -> "Answer":
        """Load the models for a worker."""
        from regard.cli.jobs import worker_device
        from regard.systems.translate.alignment import align_stream
        from regard.systems.translate.model import Translator

        device = worker_device(worker, workers, self.device)
        forward = Translator.load(self.model, device=device, trust=self.trust)
        backward = None if self.reverse is None else Translator.load(self.reverse, device=device, trust=self.trust)
        options = {"symmetrize": self.symmetrize, "threshold": self.threshold}

        def answer(lines: Sequence[str]) -> list[str]:
            aligned = align_stream(forward, map(split_pair, lines), backward, **options)
            return [pair.to_json() if self.json else pair.to_text() for pair in aligned]

        return answer

    def refused(self, line: str, error: RegardError) -> str:
        """An empty line, or the error as JSON."""
        from regard.cli.jobs import refused

        return refused(line, error, json=self.json)


def split_pair(line: str) -> tuple[str, str]:
    """The two sentences of a line; both are empty in a blank line."""
    source, tab, target = line.partition("\t")
    if line.strip() and not tab:
        raise DataError(f"A line should be a source sentence, a tab and its translation; got {line[:60]!r}.")
    return source, target


def align_corpus(
    source: Path,
    target: Path,
    *,
    out: Annotated[Path, Parameter(alias="-o")] = Path("alignment"),
    rounds: Annotated[int, Parameter(validator=validators.Number(gte=0))] = 1,
    links: Path | None = None,
    recipe: str = "aligner",
    minutes: Annotated[float, Parameter(validator=validators.Number(gte=0))] = 0.0,
    symmetrize: Symmetrize = "mutual",
    gold: Path | None = None,
) -> None:
    """Learn to align the words of a parallel corpus without other data, and write the links.

    Round 0 takes a few minutes on a CPU: two hidden Markov models, one for each direction, are estimated so that they
    agree. Each further round trains a Transformer for each direction, guided by the links of the round before, which
    knows the context of a word and can align other text. Writes OUT/round-N/forward.links, such as 0-0 1-2.

    Parameters
    ----------
    source
        Source sentences, one per line.
    target
        Their translations, line by line.
    out
        Folder to write to; rounds that it already holds are not repeated.
    rounds
        Number of trainings; 0 for the links of the hidden Markov models alone.
    links
        Links of another aligner for each pair of lines, such as 0-0 1-2, which guide round 0; a line may be empty.
    recipe
        The recipe of the Transformers: a packaged one or a TOML file.
    minutes
        Maximum time of each training, by the end of which the learning rate falls; 0 for no limit.
    symmetrize
        How the two directions are combined from round 1 on.
    gold
        JSON lines with the reference links (src, tgt, sure, possible): prints the error rate after each round.
    """
    from regard.data.alignments import read_gold
    from regard.systems.translate import corpus_alignment

    done = corpus_alignment.align_corpus(
        source,
        target,
        out,
        rounds=rounds,
        links=links,
        recipe=recipe,
        tables={"train": {"minutes": minutes, "schedule_by": "clock"}} if minutes else None,
        symmetrize=symmetrize,
        gold=() if gold is None else read_gold(gold),
        report=print_line,
    )
    print_line(f"Wrote {done[-1].links}.")
    if rounds:
        print_line(f"Align more text: regard align {done[-1].forward} SOURCE TARGET --reverse {done[-1].backward}")
