"""Word links of lines of sentence pairs: what the workers of `regard align --output out/` write."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from regard.errors import DataError, RegardError
from regard.jobs.worker import Answer
from regard.systems.jobs import model_checksum, worker_device
from regard.systems.translate.alignment import align_stream
from regard.systems.translate.config import Symmetrize
from regard.systems.translate.model import Translator


@dataclass(frozen=True)
class Links:
    """Aligns the words of lines with a source sentence, a tab and its translation."""

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
        return {
            "model": model_checksum(self.model),
            "reverse": None if self.reverse is None else model_checksum(self.reverse),
            "symmetrize": self.symmetrize,
            "threshold": self.threshold,
            "json": self.json,
        }

    def load(self, worker: int, workers: int) -> Answer:
        """Load the models for a worker."""
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
        return json.dumps({"input": line, "error": str(error)}, ensure_ascii=False) if self.json else ""


def split_pair(line: str) -> tuple[str, str]:
    """The two sentences of a line; both are empty in a blank line."""
    source, tab, target = line.partition("\t")
    if line.strip() and not tab:
        raise DataError(f"A line should be a source sentence, a tab and its translation; got {line[:60]!r}.")
    return source, target
