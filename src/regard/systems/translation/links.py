"""Word links of lines of sentence pairs: what `regard align` writes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from regard.errors import DataError, RegardError
from regard.jobs.worker import Answer
from regard.systems.folder import model_checksum
from regard.systems.jobs import worker_device
from regard.systems.translation.evaluation import WordPair, link_words
from regard.systems.translation.model import Translator


@dataclass(frozen=True)
class Links:
    """Links the words of lines of source<TAB>target, such as 0-0 1-2 2-1."""

    model: str
    reverse: str | None = None
    """A model of the other direction: only links on which both agree are kept."""
    device: str | None = None
    trust: bool = False
    json: ClassVar[bool] = False
    part_size: ClassVar[int] = 512

    def settings(self) -> dict[str, Any]:
        """The models, identified by their content."""
        reverse = None if self.reverse is None else model_checksum(self.reverse)
        return {"links of": model_checksum(self.model), "reverse": reverse}

    def load(self, worker: int = 0, workers: int = 1) -> Answer:
        """Load the models for a worker."""
        device = worker_device(worker, workers, self.device)
        forward = Translator.load(self.model, device=device, trust=self.trust)
        backward = None if self.reverse is None else Translator.load(self.reverse, device=device, trust=self.trust)

        def answer(lines: Sequence[str]) -> list[str]:
            pairs = [_words(line) for line in lines]
            found = iter(link_words(forward, [pair for pair in pairs if all(pair)], backward))
            # A sentence without words has no links.
            return [" ".join(f"{i}-{j}" for i, j in sorted(next(found))) if all(pair) else "" for pair in pairs]

        return answer

    def refused(self, line: str, error: RegardError) -> str:
        """An empty line."""
        return ""


def _words(line: str) -> WordPair:
    source, tab, target = line.partition("\t")
    if line.strip() and not tab:
        raise DataError(f"A line should be source<TAB>target; got {line[:60]!r}.")
    return source.split(), target.split()
