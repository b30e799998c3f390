"""How good captions are: BLEU-1 to 4, ROUGE-L, CIDEr-D and METEOR, each caption against all that people wrote.

Captions are compared as words in lower case without punctuation, which is what the evaluation of the COCO captions
leaves of them (Chen et al. 2015). Scores are from 0 to 100, CIDEr-D from 0 to 10.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import zip_longest
from typing import NamedTuple

from sacrebleu.metrics.bleu import BLEU

from regard.errors import OptionError

ORDERS = (1, 2, 3, 4)
# The width of the length penalty of CIDEr-D, and how much more recall counts than precision in ROUGE-L.
SIGMA, BETA = 6.0, 1.2
_WORD = re.compile(r"\w+(?:'\w+)*")
Gram = tuple[str, ...]


@dataclass(frozen=True)
class CaptionScores:
    """Scores of the captions of a corpus, each against one or more references."""

    bleu: tuple[float, float, float, float]
    """BLEU-1, 2, 3 and 4, without smoothing, with the reference of the closest length (Papineni et al. 2002)."""
    bleu_signature: str
    """How sacrebleu made BLEU-4 (Post 2018)."""
    rouge_l: float
    """F-score of the longest common subsequence (Lin 2004), recall counting 1.2 times as much."""
    cider_d: float
    """Likeness to the references in what is rare elsewhere (Vedantam et al. 2015); more than 10 is not possible."""
    meteor: float | None
    """Matches of words, stems and synonyms; None where `meteor_name` says why there is none."""
    meteor_name: str
    exact_match: float
    """Share of captions equal to one of their references, 0 to 1."""
    count: int
    """Captions scored."""


def caption_words(caption: str) -> list[str]:
    """The words of a caption, in lower case and without punctuation."""
    return _WORD.findall(caption.lower())


def caption_scores(
    captions: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    words: Callable[[str], list[str]] = caption_words,
    meteor: bool = True,
) -> CaptionScores:
    """All scores of a corpus; `references[i]` are those of caption i, and their number may differ.

    `words` cuts a caption into words. METEOR is NLTK's, which is slow, and left out where NLTK or WordNet is missing.
    """
    _check(captions, references)
    said = [words(caption) for caption in captions]
    wanted = [[words(reference) for reference in each] for each in references]
    bleu, signature = _bleu(said, wanted)
    score, name = _meteor(said, wanted) if meteor else (None, "not asked for")
    return CaptionScores(
        bleu=bleu,
        bleu_signature=signature,
        rouge_l=100 * _mean([rouge_l(one, others) for one, others in zip(said, wanted, strict=True)]),
        cider_d=_mean(cider_d(said, wanted)),
        meteor=score,
        meteor_name=name,
        exact_match=sum(one in others for one, others in zip(said, wanted, strict=True)) / len(said),
        count=len(said),
    )


def caption_bleu(
    captions: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    words: Callable[[str], list[str]] = caption_words,
) -> tuple[float, float, float, float]:
    """BLEU-1 to BLEU-4 alone, which is quick."""
    _check(captions, references)
    return _bleu([words(one) for one in captions], [[words(one) for one in each] for each in references])[0]


def rouge_l(caption: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """F = (1 + b^2) P R / (R + b^2 P), b = 1.2, with P and R the longest common subsequence over either length.

    Precision and recall are each the best that any reference gives, as in the evaluation of the COCO captions.
    """
    common = [_common(caption, reference) for reference in references]
    precision = max((length / len(caption) for length in common if caption), default=0.0)
    recall = max((length / len(one) for length, one in zip(common, references, strict=True) if one), default=0.0)
    if not precision or not recall:
        return 0.0
    return (1 + BETA**2) * precision * recall / (recall + BETA**2 * precision)


def cider_d(
    captions: Sequence[Sequence[str]],
    references: Sequence[Sequence[Sequence[str]]],
    corpus: Sequence[Sequence[Sequence[str]]] | None = None,
) -> list[float]:
    """CIDEr-D of each caption (see CiderD). The references given are also the corpus in which n-grams are counted, so
    that of one image alone scores 0; a larger `corpus` of references makes the scores of a few images those that they
    have among many.
    """
    scorer = CiderD(references if corpus is None else corpus)
    return [scorer([caption], each)[0] for caption, each in zip(captions, references, strict=True)]


class CiderD:
    """CIDEr-D (Vedantam et al. 2015, section 5): 10 times the mean over n = 1..4 and the references of

        sum_g min(c_g, r_g) r_g / (|c| |r|) * exp(-(words of c - words of r)^2 / (2 * 6^2))

    where c_g and r_g are how often the n-gram g occurs, times ln(images / images whose references have g), as counted
    in a corpus of the references of each image.
    """

    def __init__(self, corpus: Sequence[Sequence[Sequence[str]]]) -> None:
        self._seen = Counter(gram for each in corpus for gram in {gram for words in each for gram in _grams(words)})
        self._log_images = math.log(max(1, len(corpus)))

    def __call__(self, captions: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> list[float]:
        """The scores of some captions of one image."""
        wanted = [self._vector(words) for words in references]
        return [10 * _mean([_likeness(said, one) for one in wanted]) for said in map(self._vector, captions)]

    def _vector(self, words: Sequence[str]) -> "_Vector":
        weights = {
            gram: number * (self._log_images - math.log(max(1, self._seen[gram])))
            for gram, number in _grams(words).items()
        }
        squares = [math.fsum(weight**2 for gram, weight in weights.items() if len(gram) == n) for n in ORDERS]
        return _Vector(weights, [math.sqrt(square) for square in squares], len(words))


class _Vector(NamedTuple):
    """A sentence as weights of n-grams, with the length of its vector for each n, and its number of words."""

    weights: dict[Gram, float]
    norms: list[float]
    words: int


def _likeness(caption: _Vector, reference: _Vector) -> float:
    inner = [0.0] * len(ORDERS)
    for gram, weight in caption.weights.items():
        if gram in reference.weights:
            inner[len(gram) - 1] += min(weight, reference.weights[gram]) * reference.weights[gram]
    cosines = [
        product / (one * other) if one and other else 0.0
        for product, one, other in zip(inner, caption.norms, reference.norms, strict=True)
    ]
    return _mean(cosines) * math.exp(-((caption.words - reference.words) ** 2) / (2 * SIGMA**2))


def _grams(words: Sequence[str]) -> Counter[Gram]:
    return Counter(tuple(words[start : start + n]) for n in ORDERS for start in range(len(words) - n + 1))


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Words of the longest common subsequence."""
    best = [0] * (len(other) + 1)
    for word in one:
        before = 0
        for place, candidate in enumerate(other, 1):
            kept = best[place]
            best[place] = before + 1 if word == candidate else max(kept, best[place - 1])
            before = kept
    return best[-1]


def _bleu(
    captions: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]]
) -> tuple[tuple[float, float, float, float], str]:
    metric = BLEU(smooth_method="none", tokenize="none", force=True)
    # sacrebleu takes the first references of all captions, then the second ones, ...; None where there is no more.
    streams = [list(stream) for stream in zip_longest(*([" ".join(words) for words in each] for each in references))]
    score = metric.corpus_score([" ".join(words) for words in captions], streams)
    shares = [right / total if total else 0.0 for right, total in zip(score.counts, score.totals, strict=True)]

    def up_to(n: int) -> float:
        if not all(shares[:n]):
            return 0.0
        return 100 * float(score.bp) * math.exp(_mean([math.log(share) for share in shares[:n]]))

    return (up_to(1), up_to(2), up_to(3), up_to(4)), str(metric.get_signature())


def _meteor(
    captions: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]]
) -> tuple[float | None, str]:
    if find_spec("nltk") is None:
        return None, "NLTK is not installed: pip install nltk, and fetch its WordNet: python -m nltk.downloader wordnet"
    nltk = import_module("nltk")
    try:
        nltk.data.find("corpora/wordnet")
    except LookupError:
        return None, f"NLTK {nltk.__version__} has no WordNet: python -m nltk.downloader wordnet"
    single = import_module("nltk.translate.meteor_score").meteor_score
    scores = [
        float(single([list(words) for words in each], list(caption)))
        for caption, each in zip(captions, references, strict=True)
    ]
    return 100 * _mean(scores), f"NLTK {nltk.__version__}: words, Porter stems, WordNet synonyms; not METEOR 1.5"


def _mean(numbers: Sequence[float]) -> float:
    return math.fsum(numbers) / len(numbers)


def _check(captions: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    if isinstance(captions, str) or any(isinstance(each, str) for each in references):
        raise OptionError("Captions are a list of sentences, and references a list of lists: give [[reference], ...].")
    if len(captions) != len(references) or not captions:
        raise OptionError(
            f"Each caption is scored against its references, and there is at least one; got {len(captions)} captions "
            f"and references for {len(references)}."
        )
    if bare := [place for place, each in enumerate(references) if not each]:
        raise OptionError(f"Each caption needs at least one reference; caption {bare[0]} has none.")
