"""Translation metrics: BLEU, chrF and TER by sacrebleu, BLEU by sentence length, perplexity."""

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from regard.errors import OptionError


@dataclass(frozen=True)
class Score:
    """A score with the sacrebleu signature that states exactly how it was computed (Post 2018)."""

    value: float
    signature: str


@dataclass(frozen=True)
class TranslationScores:
    """Scores of a corpus against one reference per sentence."""

    bleu: Score
    """Precision of n-grams with a brevity penalty, 0 to 100 (Papineni et al. 2002)."""
    chrf: Score
    """F-score of character n-grams, 0 to 100 (Popovic 2015)."""
    ter: Score
    """Edits per hundred reference words; lower is better, and values above 100 are possible (Snover et al. 2006)."""
    exact_match: float
    """Fraction of hypotheses equal to their reference, 0 to 1; spaces at the ends are ignored."""
    count: int
    """Number of sentences scored."""


@dataclass(frozen=True)
class LengthBucket:
    """The sentences whose source has `shortest` to `longest` words, both included; None is no upper limit."""

    shortest: int
    longest: int | None
    count: int
    bleu: float

    @property
    def label(self) -> str:
        """The bounds as text, such as ≤10, 11-20 or >60."""
        if self.longest is None:
            return f">{self.shortest - 1}"
        return f"≤{self.longest}" if self.shortest == 0 else f"{self.shortest}-{self.longest}"


def corpus_bleu(
    hypotheses: Sequence[str], references: Sequence[str], *, lowercase: bool = False, tokenize: str = "13a"
) -> Score:
    """Compute only BLEU, which is much faster than TER."""
    _check_counts(hypotheses=hypotheses, references=references)
    return _score(_bleu(lowercase, tokenize), list(hypotheses), list(references))


def translation_scores(
    hypotheses: Sequence[str], references: Sequence[str], *, lowercase: bool = False, tokenize: str = "13a"
) -> TranslationScores:
    """Compute BLEU, chrF and TER of detokenized sentences, with consistent settings.

    `lowercase` applies to all three; by default sacrebleu's TER ignores case, so compare the signatures. `tokenize` is
    the tokenizer of BLEU ("zh" for Chinese, "char" for characters, "none" for tokenized text).
    """
    _check_counts(hypotheses=hypotheses, references=references)
    hypotheses, references = list(hypotheses), list(references)
    bleu = _bleu(lowercase, tokenize)
    chrf, ter = CHRF(lowercase=lowercase), TER(case_sensitive=not lowercase)
    pairs = [
        (hypothesis.strip(), reference.strip()) for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
    if lowercase:
        pairs = [(hypothesis.lower(), reference.lower()) for hypothesis, reference in pairs]
    return TranslationScores(
        bleu=_score(bleu, hypotheses, references),
        chrf=_score(chrf, hypotheses, references),
        ter=_score(ter, hypotheses, references),
        exact_match=sum(hypothesis == reference for hypothesis, reference in pairs) / len(pairs),
        count=len(pairs),
    )


def bleu_by_length(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    edges: Sequence[int] = (10, 20, 30, 40, 50, 60),
    lowercase: bool = False,
    tokenize: str = "13a",
) -> list[LengthBucket]:
    """Compute corpus BLEU for each range of source lengths (Bahdanau et al. 2015, figure 2).

    Words are separated by whitespace; `edges` are the upper bounds of the ranges, included in them. Empty ranges are
    left out.
    """
    _check_counts(sources=sources, hypotheses=hypotheses, references=references)
    if not edges or edges[0] < 1 or any(low >= high for low, high in pairwise(edges)):
        raise OptionError(f"edges must increase and start at 1 word or more, as in (10, 20, 30); got {tuple(edges)}.")
    bleu = _bleu(lowercase, tokenize)
    members: dict[int, list[int]] = {}
    for row, source in enumerate(sources):
        members.setdefault(bisect.bisect_left(edges, len(source.split())), []).append(row)
    shortest, longest = [0, *(edge + 1 for edge in edges)], [*edges, None]
    return [
        LengthBucket(
            shortest[bucket],
            longest[bucket],
            len(rows),
            bleu.corpus_score([hypotheses[row] for row in rows], [[references[row] for row in rows]]).score,
        )
        for bucket, rows in sorted(members.items())
    ]


def perplexity(total_negative_log_likelihood: float, tokens: int) -> float:
    """exp(total negative log-likelihood in nats / tokens); 1 is a model that is always certain and right."""
    if tokens < 1:
        raise OptionError(f"Perplexity is a mean over tokens and needs at least one token; got tokens={tokens}.")
    try:
        return math.exp(total_negative_log_likelihood / tokens)
    except OverflowError:
        return math.inf


def _bleu(lowercase: bool, tokenize: str) -> BLEU:
    if tokenize not in BLEU.TOKENIZERS:
        raise OptionError(f"tokenize must be one of {', '.join(BLEU.TOKENIZERS)}; got {tokenize!r}.")
    # `force`: do not warn about sentences that look tokenized, with a space before the full stop.
    return BLEU(lowercase=lowercase, tokenize=tokenize, force=True)


def _score(metric: BLEU | CHRF | TER, hypotheses: list[str], references: list[str]) -> Score:
    score = metric.corpus_score(hypotheses, [references]).score
    return Score(float(score), str(metric.get_signature()))


def _check_counts(**corpora: Sequence[str]) -> None:
    counts = {name: len(sentences) for name, sentences in corpora.items()}
    given = ", ".join(f"{count} {name}" for name, count in counts.items())
    if whole := [name for name, sentences in corpora.items() if isinstance(sentences, str)]:
        raise OptionError(f"{whole[0]} must be a list of sentences, not one string: give [sentence].")
    if len(set(counts.values())) > 1:
        raise OptionError(f"Sentences are scored in pairs, so their numbers must be equal; got {given}.")
    if 0 in counts.values():
        raise OptionError(f"Scores need at least one sentence; got {given}.")
