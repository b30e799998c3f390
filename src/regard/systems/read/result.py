"""What a reader answers for one sentence."""

from dataclasses import dataclass, field

from regard.systems.system import Result


@dataclass(frozen=True)
class Reading(Result):
    """A sentence as it was read."""

    text: str
    words: tuple[str, ...] = field(repr=False)
    unknown: tuple[str, ...] = field(default=(), repr=False)
    """Those of the words that the vocabulary does not have: each is read as any unknown word."""
    premise: str | None = None
    """Inference: the sentence that this one was compared with."""
    surprisals: tuple[float, ...] = field(default=(), repr=False)
    """Language models: -log2 p of each word given those before it, in bits."""
    perplexity: float | None = None
    """Language models: 2 to the mean surprisal of the words and of the end of the sentence."""
    label: str | None = None
    """Classifiers: the most probable label."""
    probabilities: dict[str, float] = field(default_factory=dict, repr=False)
    """Classifiers: the probability of each label."""
    tags: tuple[str, ...] = field(default=(), repr=False)
    """Taggers: the most probable label of each word."""
    score: float | None = None
    """Generated text: mean log-probability of a word, or what else the search ranked by."""
    alternatives: tuple["Reading", ...] = field(default=(), repr=False)
    """Generated text: the next best, or further samples, where `nbest` asked for them."""

    def line(self, *, generated: bool) -> str:
        """The text if it was generated; or else surprisals, tags or the label, as far as there are any."""
        if generated:
            return self.text
        if self.surprisals:
            marked = (f"{word}(unknown)" if word in self.unknown else word for word in self.words)
            words = (f"{word}/{bits:.1f}" for word, bits in zip(marked, self.surprisals, strict=True))
            return f"{self.perplexity:.1f}\t{' '.join(words)}"
        if self.tags:
            return " ".join(f"{word}/{tag}" for word, tag in zip(self.words, self.tags, strict=True))
        return "" if self.label is None else f"{self.label}\t{self.probabilities[self.label]:.3f}\t{self.text}"
