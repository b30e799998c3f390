"""Scores of translations: sacrebleu's numbers, the same setting for all, and the lengths they come from."""

import math

import pytest
import sacrebleu

from regard.errors import OptionError
from regard.metrics.translation import LengthBucket, bleu_by_length, perplexity, translation_scores

REFERENCES = [
    "The animal did not cross the street.",
    "Two dogs play in the snow.",
    "A man rides a bicycle.",
    "Children sing.",
    "It was too tired.",
]
HYPOTHESES = [
    "The animal did not cross the road.",
    "two dogs play in the snow.",
    "A man is riding a bike.",
    "Children sing. ",
    "It was too tired.",
]


def test_scores_are_those_of_sacrebleu():
    scores = translation_scores(HYPOTHESES, REFERENCES)
    assert scores.bleu.value == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert scores.chrf.value == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert scores.ter.value == sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES], case_sensitive=True).score
    assert scores.exact_match == 2 / 5
    assert scores.count == 5


def test_each_score_carries_its_signature_and_case_is_the_same_for_all():
    mixed, lower = (
        translation_scores(HYPOTHESES, REFERENCES),
        translation_scores(HYPOTHESES, REFERENCES, lowercase=True),
    )
    assert mixed.bleu.signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert mixed.chrf.signature.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|")
    assert mixed.ter.signature.startswith("nrefs:1|case:mixed|tok:tercom|")
    assert all("case:lc" in score.signature for score in (lower.bleu, lower.chrf, lower.ter))
    assert lower.exact_match == 3 / 5
    assert lower.ter.value < mixed.ter.value
    assert "tok:char" in translation_scores(HYPOTHESES, REFERENCES, tokenize="char").bleu.signature


def test_a_perfect_translation_scores_full_marks():
    scores = translation_scores(REFERENCES, REFERENCES)
    assert scores.bleu.value == pytest.approx(100)
    assert scores.chrf.value == pytest.approx(100)
    assert scores.ter.value == 0
    assert scores.exact_match == 1


def test_buckets_hold_their_lengths_and_the_corpus_bleu_of_their_sentences():
    sources = ["w " * words for words in (2, 3, 4, 7, 11)]
    buckets = bleu_by_length(sources, HYPOTHESES, REFERENCES, edges=(3, 5, 6, 7))
    bounds = [(bucket.shortest, bucket.longest, bucket.count) for bucket in buckets]
    assert bounds == [(0, 3, 2), (4, 5, 1), (7, 7, 1), (8, None, 1)], "6 words: none, so left out"
    assert buckets[0].bleu == sacrebleu.corpus_bleu(HYPOTHESES[:2], [REFERENCES[:2]]).score
    assert buckets[-1].bleu == pytest.approx(100)
    assert [bucket.label for bucket in buckets] == ["≤3", "4-5", "7-7", ">7"]


def test_one_bucket_of_everything_is_the_corpus_score():
    (bucket,) = bleu_by_length(REFERENCES, HYPOTHESES, REFERENCES, lowercase=True)
    bleu = translation_scores(HYPOTHESES, REFERENCES, lowercase=True).bleu.value
    assert bucket == LengthBucket(0, 10, 5, bleu)


def test_counts_that_differ_are_shown():
    with pytest.raises(OptionError, match="3 hypotheses, 5 references"):
        translation_scores(HYPOTHESES[:3], REFERENCES)
    with pytest.raises(OptionError, match="5 sources, 3 hypotheses, 5 references"):
        bleu_by_length(REFERENCES, HYPOTHESES[:3], REFERENCES)
    with pytest.raises(OptionError, match="at least one sentence; got 0 hypotheses, 0 references"):
        translation_scores([], [])


def test_wrong_settings_are_explained():
    with pytest.raises(OptionError, match=r"one of none, zh, 13a, .*; got '13b'"):
        translation_scores(HYPOTHESES, REFERENCES, tokenize="13b")
    with pytest.raises(OptionError, match="hypotheses must be a list of sentences"):
        translation_scores("A dog.", "A cat.")
    for edges in ((), (0, 5), (7, 5), (5, 5)):
        with pytest.raises(OptionError, match="edges must increase"):
            bleu_by_length(REFERENCES, HYPOTHESES, REFERENCES, edges=edges)


def test_perplexity_of_an_even_choice_is_the_number_of_choices():
    assert perplexity(7 * math.log(31), 7) == pytest.approx(31)
    assert perplexity(0.0, 13) == 1
    assert perplexity(1e6, 3) == math.inf
    with pytest.raises(OptionError, match="tokens=0"):
        perplexity(1.0, 0)
