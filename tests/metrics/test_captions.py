"""Caption metrics: against values computed by hand, at their bounds, and invariant where they must be."""

import math
from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import OptionError
from regard.metrics.captions import caption_scores, caption_words, cider_d, rouge_l

WORDS = st.lists(
    st.sampled_from(["a", "dog", "cat", "runs", "sits", "on", "the", "red", "mat"]), min_size=1, max_size=9
)
CORPUS = st.lists(st.tuples(WORDS, st.lists(WORDS, min_size=1, max_size=3)), min_size=2, max_size=4)


def caption_bleu(captions, references) -> tuple[float, float, float, float]:
    return caption_scores(captions, references, meteor=False).bleu


def test_words_are_lower_case_and_without_punctuation():
    assert caption_words("A man 's dog , running . Don't!") == ["a", "man", "s", "dog", "running", "don't"]


def test_bleu_by_hand_takes_the_closest_reference_length():
    # 5 of 7 words, 4 of 6 pairs, 2 of 5 triples and 1 of 4 quadruples occur in a reference, none counted twice.
    caption = "the cat the cat on the mat"
    references = ["the cat is on the mat", "there is a cat on the mat today and here"]
    found = caption_bleu([caption], [references])
    # Lengths 6 and 10: 6 is the closest, so there is no brevity penalty.
    assert found[0] == pytest.approx(100 * 5 / 7)
    assert found[1] == pytest.approx(100 * math.sqrt(5 / 7 * 4 / 6))
    assert found[2] == pytest.approx(100 * (5 / 7 * 4 / 6 * 2 / 5) ** (1 / 3))
    assert found[3] == pytest.approx(100 * (5 / 7 * 4 / 6 * 2 / 5 * 1 / 4) ** (1 / 4))


def test_a_short_caption_gets_a_brevity_penalty():
    assert caption_bleu(["a dog"], [["a dog runs"]])[:2] == pytest.approx([100 * math.exp(1 - 3 / 2)] * 2)
    assert caption_bleu(["a dog"], [["a dog runs", "a dog"]])[:2] == pytest.approx([100, 100])


def test_the_number_of_references_may_differ():
    scores = caption_bleu(["a dog runs fast", "a cat sits here"], [["a dog runs fast", "x"], ["a cat sits here"]])
    assert scores == pytest.approx([100] * 4)


def test_rouge_by_hand():
    # "a dog on grass" is common to both: 4 of 5 words of the caption, 4 of 6 of the reference.
    precision, recall = 4 / 5, 4 / 6
    expected = (1 + 1.44) * precision * recall / (recall + 1.44 * precision)
    caption, reference = ["a", "dog", "runs", "on", "grass"], ["a", "brown", "dog", "on", "the", "grass"]
    assert rouge_l(caption, [reference]) == pytest.approx(expected)
    # A second reference gives a better recall, and the precision of the first is kept.
    both = rouge_l(caption, [reference, ["a"]])
    assert both == pytest.approx((1 + 1.44) * precision / (1 + 1.44 * precision))
    assert rouge_l([], [["a"]]) == 0
    assert rouge_l(["a"], [["b"]]) == 0


def test_cider_by_hand():
    # Of two images: "red" is in both references and weighs 0; "dog", "cat", "red dog" and "red cat" weigh ln 2.
    captions = [["red", "dog"], ["dog"]]
    references = [[["red", "dog"]], [["red", "cat"]]]
    first, second = cider_d(captions, references)
    # The caption equals its reference in 1- and 2-grams; there are no 3- and 4-grams.
    assert first == pytest.approx(10 * (1 + 1 + 0 + 0) / 4)
    assert second == 0
    # One word more, unknown to every reference (weight ln 2), and "dog" twice: it counts as often as the reference.
    (longer, _) = cider_d([["red", "dog", "dog"], ["x"]], references)
    one = 1 / 2  # vectors: caption dog 2, reference dog 1; min(2, 1) * 1 / (2 * 1)
    two = 1 / math.sqrt(2)  # "red dog" and "dog dog" against "red dog"
    assert longer == pytest.approx(10 * (one + two) / 4 * math.exp(-1 / 72))


def test_rare_words_count_more_than_those_of_every_caption():
    references = [[["a", "red", "star"]], [["a", "red", "ring"]], [["a", "blue", "moon"]]]
    rare, common = (cider_d([word.split(), ["x"], ["x"]], references)[0] for word in ("star", "red"))
    assert rare > common > 0
    assert cider_d([["a"], ["x"], ["x"]], references)[0] == 0


@given(CORPUS)
def test_scores_stay_in_their_bounds_and_do_not_depend_on_the_order_of_references(corpus):
    captions, references = [" ".join(words) for words, _ in corpus], [[" ".join(r) for r in each] for _, each in corpus]
    scores = caption_scores(captions, references, meteor=False)
    assert all(0 <= score <= 100 + 1e-9 for score in (*scores.bleu, scores.rouge_l))
    assert 0 <= scores.cider_d <= 10 + 1e-9
    assert 0 <= scores.exact_match <= 1
    turned = caption_scores(captions[::-1], [each[::-1] for each in references[::-1]], meteor=False)
    assert turned.bleu == pytest.approx(scores.bleu)
    assert turned.rouge_l == pytest.approx(scores.rouge_l)
    assert turned.cider_d == pytest.approx(scores.cider_d)


@given(st.lists(WORDS.filter(lambda words: len(words) > 3), min_size=2, max_size=4, unique_by=tuple))
def test_captions_equal_to_their_references_score_the_maximum(captions):
    texts = [" ".join(words) for words in captions]
    scores = caption_scores(texts, [[text] for text in texts], meteor=False)
    assert scores.bleu == pytest.approx([100] * 4)
    assert scores.rouge_l == pytest.approx(100)
    assert scores.exact_match == 1
    # Unless all of its n-grams are in every reference, and so weigh nothing.
    assert scores.cider_d <= 10 + 1e-9
    apart = [f"w{index} x{index} y{index} z{index}" for index in range(3)]
    assert caption_scores(apart, [[one] for one in apart], meteor=False).cider_d == pytest.approx(10)


def test_meteor_is_named_or_its_absence_explained():
    scores = caption_scores(["a dog runs fast"] * 2, [["a dog runs fast"], ["a cat sits"]])
    if scores.meteor is None:
        assert "nltk" in scores.meteor_name
        assert find_spec("nltk") is None or "WordNet" in scores.meteor_name
    else:
        assert scores.meteor_name.startswith("NLTK")
        assert 50 < scores.meteor < 100
    assert caption_scores(["a"], [["a"]], meteor=False).meteor_name == "not requested"


def test_bleu_has_a_signature():
    signature = caption_scores(["a"], [["a", "b"]], meteor=False).bleu_signature
    assert "nrefs:2" in signature
    assert "smooth:none" in signature


def test_invalid_captions_are_explained():
    with pytest.raises(OptionError, match="got 1 captions and references for 2"):
        caption_scores(["a"], [["a"], ["b"]])
    with pytest.raises(OptionError, match="caption 1 has none"):
        caption_scores(["a", "b"], [["a"], []])
    with pytest.raises(OptionError, match=r"give \[\[reference\], \.\.\.\]"):
        caption_scores(["a"], ["a"])
    with pytest.raises(OptionError, match="at least one caption; got 0"):
        caption_bleu([], [])
