"""What a translator answers."""

from dataclasses import dataclass, field

from regard.systems.system import Result


@dataclass(frozen=True)
class Translation(Result):
    """One translation."""

    source: str
    text: str
    score: float
    """Mean log-probability of a token, or whatever else the search ranked by."""
    finished: bool
    """False where the output was cut at the length limit."""
    alternatives: tuple["Translation", ...] = field(default=(), repr=False)
    """The next best translations, where `nbest` asked for them."""
    copied: tuple[str, ...] = ()
    """Parts of the source that were copied: what the vocabulary cannot spell, and names."""
