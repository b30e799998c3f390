"""Caption metrics: BLEU-1 to 4, ROUGE-L, CIDEr-D and METEOR, each caption against all of its references.

Captions are compared as words in lower case without punctuation, as in the evaluation of COCO captions (Chen et al.
2015). Scores are from 0 to 100, CIDEr-D from 0 to 10.
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
# The width of the length penalty of CIDEr-D, and the weight of recall relative to precision in ROUGE-L.
SIGMA, BETA = 6.0, 1.2
GRADES = ("without errors", "with minor errors", "somewhat related", "unrelated")
"""The grades that people gave to captions of Show and Tell (Vinyals et al. 2015, section 4.3.6), best first."""
MIN_CIDER_D = (1.1, 0.6, 0.1)
"""The smallest CIDEr-D of each grade but the last.

Measured on the human captions of the 1,000 dev photographs of Flickr8k, the first caption of each against the other
four: a quarter scores 1.1 or more, and half scores 0.6 or more. Against the captions of another photograph, nine of ten
score below 0.1.
"""
_WORD = re.compile(r"\w+(?:'\w+)*")
Gram = tuple[str, ...]


@dataclass(frozen=True)
class CaptionScores:
    """Scores of a corpus of captions, each against one or more references."""

    bleu: tuple[float, float, float, float]
    """BLEU-1, 2, 3 and 4, without smoothing, with the reference of the closest length (Papineni et al. 2002)."""
    bleu_signature: str
    """The sacrebleu signature of BLEU-4 (Post 2018)."""
    rouge_l: float
    """F-score of the longest common subsequence with beta = 1.2 (Lin 2004)."""
    cider_d: float
    """Similarity to the references in n-grams that are rare in the corpus (Vedantam et al. 2015), 0 to 10."""
    meteor: float | None
    """Score from matches of words, stems and synonyms; None if it was not computed."""
    meteor_name: str
    """Which implementation of METEOR was used, or why none was."""
    exact_match: float
    """Fraction of captions equal to one of their references, 0 to 1."""
    count: int
    """Number of captions scored."""


def caption_words(caption: str) -> list[str]:
    """Return the words of a caption, in lower case and without punctuation."""
    return _WORD.findall(caption.lower())


def caption_scores(
    captions: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    words: Callable[[str], list[str]] = caption_words,
    meteor: bool = True,
) -> CaptionScores:
    """Compute all scores of a corpus; `references[i]` are the references of caption i, one or more.

    `words` splits a caption into words. METEOR is computed by NLTK, which is slow, and is left out if NLTK or WordNet
    is missing.
    """
    _check(captions, references)
    hypotheses = [words(caption) for caption in captions]
    expected = [[words(reference) for reference in each] for each in references]
    scored = list(zip(hypotheses, expected, strict=True))
    bleu, signature = _bleu(hypotheses, expected)
    score, name = _meteor(hypotheses, expected) if meteor else (None, "not requested")
    return CaptionScores(
        bleu=bleu,
        bleu_signature=signature,
        rouge_l=100 * _mean([rouge_l(hypothesis, others) for hypothesis, others in scored]),
        cider_d=_mean(cider_d(hypotheses, expected)),
        meteor=score,
        meteor_name=name,
        exact_match=sum(hypothesis in others for hypothesis, others in scored) / len(scored),
        count=len(scored),
    )


def rouge_l(caption: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """F = (1 + b^2) P R / (R + b^2 P), b = 1.2, where P and R are the longest common subsequence over the two lengths.

    Precision and recall are each the maximum over the references, as in the evaluation of COCO captions.
    """
    common = [_common_length(caption, reference) for reference in references]
    precision = max((length / len(caption) for length in common if caption), default=0.0)
    pairs = zip(common, references, strict=True)
    recall = max((length / len(reference) for length, reference in pairs if reference), default=0.0)
    if not precision or not recall:
        return 0.0
    return (1 + BETA**2) * precision * recall / (recall + BETA**2 * precision)


def cider_d(
    captions: Sequence[Sequence[str]],
    references: Sequence[Sequence[Sequence[str]]],
    corpus: Sequence[Sequence[Sequence[str]]] | None = None,
) -> list[float]:
    """Compute CIDEr-D of each caption (see CiderD).

    By default, document frequencies of n-grams are counted in the given references, so that a single image scores 0.
    Pass a larger `corpus` of references to score a few images as they would be scored among many.
    """
    scorer = CiderD(references if corpus is None else corpus)
    return [scorer([caption], each)[0] for caption, each in zip(captions, references, strict=True)]


class CiderD:
    """CIDEr-D (Vedantam et al. 2015, section 5): 10 times the mean, over n = 1..4 and the references, of

        sum_g min(c_g, r_g) r_g / (|c| |r|) * exp(-(words of c - words of r)^2 / (2 * 6^2))

    where c_g and r_g are the number of times that the n-gram g occurs in caption and reference, times
    ln(images / images whose references contain g), counted in a corpus of the references of each image.
    """

    def __init__(self, corpus: Sequence[Sequence[Sequence[str]]]) -> None:
        self._seen = Counter(gram for each in corpus for gram in {gram for words in each for gram in _grams(words)})
        self._log_images = math.log(max(1, len(corpus)))

    def __call__(self, captions: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> list[float]:
        """Return the scores of several captions of one image."""
        expected = [self._vector(words) for words in references]
        return [
            10 * _mean([_similarity(vector, other) for other in expected]) for vector in map(self._vector, captions)
        ]

    def _vector(self, words: Sequence[str]) -> "_Vector":
        weights = {
            gram: number * (self._log_images - math.log(max(1, self._seen[gram])))
            for gram, number in _grams(words).items()
        }
        squares = [math.fsum(weight**2 for gram, weight in weights.items() if len(gram) == n) for n in ORDERS]
        return _Vector(weights, [math.sqrt(square) for square in squares], len(words))


class _Vector(NamedTuple):
    """A sentence as TF-IDF weights of n-grams, with their norm for each n, and its number of words."""

    weights: dict[Gram, float]
    norms: list[float]
    words: int


def _similarity(caption: _Vector, reference: _Vector) -> float:
    inner = [0.0] * len(ORDERS)
    for gram, weight in caption.weights.items():
        if gram in reference.weights:
            inner[len(gram) - 1] += min(weight, reference.weights[gram]) * reference.weights[gram]
    cosines = [
        product / (first * second) if first and second else 0.0
        for product, first, second in zip(inner, caption.norms, reference.norms, strict=True)
    ]
    return _mean(cosines) * math.exp(-((caption.words - reference.words) ** 2) / (2 * SIGMA**2))


def _grams(words: Sequence[str]) -> Counter[Gram]:
    return Counter(tuple(words[start : start + n]) for n in ORDERS for start in range(len(words) - n + 1))


def _common_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the number of words of the longest common subsequence."""
    best = [0] * (len(second) + 1)
    for word in first:
        before = 0
        for index, candidate in enumerate(second, 1):
            kept = best[index]
            best[index] = before + 1 if word == candidate else max(kept, best[index - 1])
            before = kept
    return best[-1]


def _bleu(
    captions: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]]
) -> tuple[tuple[float, float, float, float], str]:
    metric = BLEU(smooth_method="none", tokenize="none", force=True)
    # sacrebleu takes the first references of all captions, then the second ones, and so on; None if there is none.
    streams = [list(stream) for stream in zip_longest(*([" ".join(words) for words in each] for each in references))]
    score = metric.corpus_score([" ".join(words) for words in captions], streams)
    precisions = [right / total if total else 0.0 for right, total in zip(score.counts, score.totals, strict=True)]

    def up_to(n: int) -> float:
        if not all(precisions[:n]):
            return 0.0
        return 100 * float(score.bp) * math.exp(_mean([math.log(precision) for precision in precisions[:n]]))

    return (up_to(1), up_to(2), up_to(3), up_to(4)), str(metric.get_signature())


def _meteor(
    captions: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]]
) -> tuple[float | None, str]:
    if find_spec("nltk") is None:
        return None, "NLTK is not installed: run pip install nltk and python -m nltk.downloader wordnet"
    nltk = import_module("nltk")
    try:
        nltk.data.find("corpora/wordnet")
    except LookupError:
        return None, f"NLTK {nltk.__version__} has no WordNet: run python -m nltk.downloader wordnet"
    meteor_score = import_module("nltk.translate.meteor_score").meteor_score
    scores = [
        float(meteor_score([list(words) for words in each], list(caption)))
        for caption, each in zip(captions, references, strict=True)
    ]
    return 100 * _mean(scores), f"NLTK {nltk.__version__}: words, Porter stems, WordNet synonyms; not METEOR 1.5"


def _mean(numbers: Sequence[float]) -> float:
    return math.fsum(numbers) / len(numbers)


def _check(captions: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    if isinstance(captions, str) or any(isinstance(each, str) for each in references):
        raise OptionError(
            "Captions must be a list of sentences, and references a list of lists: give [[reference], ...]."
        )
    if len(captions) != len(references) or not captions:
        raise OptionError(
            f"There must be references for each caption, and at least one caption; got {len(captions)} captions and "
            f"references for {len(references)}."
        )
    if empty := [index for index, each in enumerate(references) if not each]:
        raise OptionError(f"Each caption needs at least one reference; caption {empty[0]} has none.")


def grade(cider_d: float) -> str:
    """Return the grade of a caption with this CIDEr-D, from 0 to 10.

    It measures how closely the caption agrees with the wording of the references. A true statement that no reference
    makes is graded too low, and one wrong word in a common sentence too high: look at the images as well.
    """
    return next((name for name, minimum in zip(GRADES, MIN_CIDER_D, strict=False) if cider_d >= minimum), GRADES[-1])
