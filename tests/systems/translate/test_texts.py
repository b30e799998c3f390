"""Whole texts: empty ones, several sentences, addresses, names, numbers and capitals."""

import unicodedata
from dataclasses import replace

import numpy as np
import pytest
from helpers.models import TEXTS, TRANSFORMER, small_translator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import regard
from regard.data.text import well_formed
from regard.data.tokenizer import Tokenizer
from regard.systems.translate.sentences import MAX_SENTENCE_TOKENS, is_in_capitals, split
from regard.systems.translate.texts import MAX_CELLS, _combined, joined
from regard.systems.translate.translation import Translation

OPTIONS = {"max_length": 7, "min_length": 3}
quiet = pytest.mark.filterwarnings("ignore::regard.errors.RegardWarning")


@pytest.fixture(scope="module")
def shipped():
    return regard.load("en-fr", device="cpu")


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(TEXTS * 3, size=60)


def test_an_empty_text_stays_empty(tokenizer):
    model = small_translator(tokenizer)
    for blank in ("", "   ", "\n", "\u3000"):
        alone = model.translate(blank)
        assert (alone.source, alone.text, alone.finished, alone.score) == (blank, "", True, 0.0)
        assert len(alone.trace.source) == len(alone.trace.target) == 0
        assert model.translate(blank, traces="none").trace is None
    found = model.translate(["a dog", "", "two"], **OPTIONS)
    assert found[1].text == ""
    assert found[0].text
    assert found[2].text
    assert small_translator(tokenizer, architecture="plain").translate("").trace is None


def test_sentences_of_a_line_are_translated_one_by_one(shipped):
    sentences = ["He is happy.", "Where do you live?", "Good night!"]
    whole = shipped.translate("  ".join(sentences))
    alone = shipped.translate(sentences)
    assert whole.text == " ".join(one.text for one in alone)
    row = column = 0
    mask = np.zeros_like(whole.trace.weights, dtype=bool)
    for one in alone:
        height, width = one.trace.weights.shape
        block = slice(row, row + height), slice(column, column + width)
        np.testing.assert_allclose(whole.trace.weights[block], one.trace.weights, atol=1e-5)
        mask[block] = True
        row, column = row + height, column + width
    assert not whole.trace.weights[~mask].any(), "no sentence attends to another"
    assert whole.trace.target == sum((one.trace.target for one in alone), ())
    log_probs = whole.trace.values("log_prob")
    assert whole.score == pytest.approx(sum(log_probs) / len(log_probs), abs=1e-3)
    assert whole.trace.axis("source").text == " ".join(sentences)
    together = shipped.translate(whole.source, split=False)
    assert together.trace.source.count("</s>") == 1
    assert whole.trace.source.count("</s>") == 3
    assert shipped.translate("He is happy.\n\nGood night!").text == f"{alone[0].text}\n\n{alone[2].text}"


def test_alternatives_of_several_sentences_are_the_best_combinations(shipped):
    sentences = ["He is happy.", "Where do you live?"]
    found = shipped.translate(" ".join(sentences), beam=3, nbest=3)
    parts = [shipped.translate(text, beam=3, nbest=3) for text in sentences]
    possible = {
        f"{a.text} {b.text}" for a in (parts[0], *parts[0].alternatives) for b in (parts[1], *parts[1].alternatives)
    }
    texts = [found.text, *(one.text for one in found.alternatives)]
    assert len(set(texts)) == 3
    assert set(texts) <= possible
    scores = [found.score, *(one.score for one in found.alternatives)]
    assert scores == sorted(scores, reverse=True)
    assert texts[0] == f"{parts[0].text} {parts[1].text}"


def test_joining_takes_each_sentence_of_a_long_text_into_account_once(tokenizer, monkeypatch):
    model = small_translator(tokenizer)
    one = Translation("a dog", "a dog", -0.5, True)
    encode, texts = Tokenizer.encode, []
    monkeypatch.setattr(Tokenizer, "encode", lambda self, text: texts.append(text) or encode(self, text))
    found = _combined(model, [[one, replace(one, score=-0.7)]] * 50, model.options({"nbest": 2}))
    assert found[0] == [one] * 50
    assert len(texts) == 100


@pytest.mark.parametrize("config", [{}, TRANSFORMER])
def test_every_kind_of_search_joins_sentences(tokenizer, config):
    model = small_translator(tokenizer, **config)
    options = {"split": True, "max_length": 6}
    assert len(split("A dog. A cat.", tokenizer, by_sentence=True)) == 2
    text = "A dog. A cat."
    drawn = [model.translate(text, sample=True, nbest=3, seed=2, **options) for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert len(drawn[0].alternatives) == 2
    begun = model.translate(text, prefix="two dogs", **options)
    assert begun.text.startswith("two dogs")
    assert begun.text.count("two dogs") == 1
    every = model.translate(text, traces="all", **options).trace
    assert all(each.weights.shape == (len(every.axis(each.rows)), len(every.axis(each.columns))) for each in every.maps)


def test_a_text_without_letters_is_copied():
    german = regard.load("en-de", device="cpu")
    for text in ("12345", "$19.99", "3, 4, 7."):
        assert german.translate(text).text == text


@quiet
def test_a_prefix_begins_the_first_sentence_that_is_translated():
    german = regard.load("en-de", device="cpu")
    for first in ("https://example.org", "..."):
        result = german.translate([f"{first}\nA man is here.\nA man is here.", "A man is here."], prefix="Dieser")
        _, begun, rest = result[0].text.splitlines()
        assert begun.startswith("Dieser ")
        assert not rest.startswith("Dieser ")
        assert result[1].text == begun
    assert german.translate("A man is here.", prefix="Ein Mann und eine", max_length=1).text == "Ein Mann und eine"


@pytest.mark.parametrize(
    ("english", "french"),
    [
        (
            "The agreement on the European Economic Area was signed in August 1992.",
            "L'accord sur l'Espace économique européen a été signé en août 1992.",
        ),
        (
            "The animal didn't cross the street because it was too tired.",
            "L'animal ne traversa pas la rue parce qu'il était trop fatigué.",
        ),
        (
            "The marine environment is the least known of environments.",
            "L'environnement marin est le moins connu des environnements.",
        ),
    ],
)
def test_the_lectures_sentences_are_translated(shipped, english, french):
    assert shipped.translate(english).text == french


@pytest.mark.parametrize(
    "text", ["I live in Isfahan.", "My friend Gustafsson is here 😀", "He was born in 1987 in Łódź."]
)
def test_names_numbers_and_signs_come_out_as_they_went_in(text):
    result = regard.load("en-de", device="cpu").translate(text)
    for word in set(text.strip(".").split()) & {"Isfahan", "Gustafsson", "😀", "1987", "Łódź"}:
        assert word in result.text
    assert result.trace.axis("source").text == text
    assert result.trace.axis("target").text == result.text


def test_sentences_in_capitals_are_read_in_lower_case_and_answered_in_capitals(shipped):
    result = shipped.translate("I LOVE YOU. I live in Paris.")
    assert result.text == "JE T'AIME. Je vis à Paris."
    assert result.trace.axis("source").text == "i love you. I live in Paris."
    assert result.trace.axis("target").text == "Je t'aime. Je vis à Paris."
    assert is_in_capitals("OK, A B")
    assert not is_in_capitals("A B")
    assert not is_in_capitals("OK, then")
    assert not is_in_capitals("你好 123")


def test_a_rare_first_word_is_read_in_lower_case(shipped):
    def read(text):
        (sentence,) = split(text, shipped.source_tokenizer, by_sentence=True)
        return sentence.given

    text = "Destruction of the equipment means that Syria can no longer produce new chemical weapons."
    assert read(text) == "d" + text[1:]
    assert shipped.translate(text).text.startswith("La destruction de l'équipement signifie que la Syrie")
    for common in ("The dog is here.", "destruction of it", "NATO is here.", "42 dogs"):
        assert read(common) == common


def test_a_long_sentence_is_divided_so_that_time_grows_with_its_length(tokenizer):
    for text in ("a" * 2000, "two dogs run " * 300, "two dogs, a house " * 200, "a" * 150, "я" * 3000, "я, " * 999):
        parts = split(text, tokenizer, by_sentence=True)
        assert all(len(tokenizer.encode(part.given)) <= MAX_SENTENCE_TOKENS for part in parts)
        joined_text = "".join(part.before + part.given + part.after for part in parts)
        assert joined_text.split() == text.split()
    for space in ("\t", "\u00a0", "\u3000"):
        parts = split(space.join(["red", "houses", "dogs"] * 80), tokenizer, by_sentence=True)
        assert {word for part in parts for word in part.given.split()} == {"red", "houses", "dogs"}
    clauses = split("two dogs, a house " * 200, tokenizer, by_sentence=True)
    assert all(part.given.endswith(",") for part in clauses[:-1])


def test_only_line_feeds_end_a_line(tokenizer):
    """Line i of the output is that of line i of a file, so that parallel files stay parallel."""
    parts = split("a b.\rb a.\u2028a a.\r\na b.\nb b.", tokenizer, by_sentence=True)
    assert "".join(part.before + part.given + part.after for part in parts).count("\n") == 2


@given(st.text(alphabet=st.sampled_from("ab .!?,1\n\r🙂é\u200d好“\ud800\t"), max_size=60) | st.text(max_size=60))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_sentences_of_a_text_are_all_of_it(tokenizer, text):
    text = well_formed(text)
    for by_sentence in (True, False):
        parts = split(text, tokenizer, by_sentence=by_sentence)
        written = "".join(part.before + part.given + part.after for part in parts)
        if parts:
            assert plain(written) == plain(text)
        assert parts or not by_sentence or not any(map(str.isalpha, text))


def plain(text):
    """A text without spaces, in the signs and the case that a sentence may be read in."""
    return "".join(unicodedata.normalize("NFKC", text).lower().split())


def test_a_trace_that_would_be_too_large_is_left_out_and_the_result_says_so(tokenizer, monkeypatch):
    model = small_translator(tokenizer)
    traces = [model.translate("a dog", **OPTIONS).trace] * 3
    assert joined(traces) is not None
    monkeypatch.setattr("regard.systems.translate.texts.MAX_CELLS", 20)
    assert MAX_CELLS > 20
    assert joined(traces) is None
    found = model.translate(["A dog. A dog. A dog.", "a dog"], split=True, **OPTIONS)
    assert found[0].trace is None
    assert found[0].note == "A text of 3 sentences is too long for one trace; translate it in parts."
    assert found[1].trace is not None
    assert found[1].note == ""


def test_addresses_and_lines_without_letters_stand_between_sentences(tokenizer):
    def parts(text):
        return [(part.before, part.given, part.after) for part in split(text, tokenizer, by_sentence=True)]

    assert parts("a dog www.a.org/b_c, she. b") == [("", "a dog", ""), (" www.a.org/b_c", ", she.", ""), (" ", "b", "")]
    assert parts("https://a.org/x?y a dog x.y@a.b.") == [("https://a.org/x?y ", "a dog", " x.y@a.b.")]
    assert parts("a dog\n\n***\n1. b") == [("", "a dog", ""), ("\n\n***\n", "1. b", "")]
    assert parts("...") == parts("https://a.org") == []


def test_each_sentence_is_decoded_once(shipped, monkeypatch):
    lists, predict = [], type(shipped).predict_batch
    monkeypatch.setattr(
        type(shipped),
        "predict_batch",
        lambda self, texts, options: lists.append(list(texts)) or predict(self, texts, options),
    )
    shipped.translate("Destruction of Isfahan in 1984 😀. I LOVE YOU.", traces="none")
    assert [sorted(texts) for texts in lists] == [["destruction of Isfahan in 1984 😀.", "i love you."]]


def test_a_trace_holds_what_the_model_read_and_wrote(shipped):
    result = shipped.translate("He is happy: www.example.org\nGood night 😀!")
    assert "www.example.org\n" in result.text
    source, target = result.trace.axis("source"), result.trace.axis("target")
    assert source.text == "He is happy: Good night 😀!"
    assert "".join(target.labels).replace("</s>", "").replace("▁", "") == target.text.replace(" ", "")
    assert regard.Trace.from_json(result.trace.to_json()) == result.trace


def test_signs_without_a_piece_are_read_as_plain_ones():
    tokenizer = Tokenizer.train(['it\'s "a" dog - b'] * 3, size=400, byte_fallback=True)
    (sentence,) = split("it\u2019s \u201ca\u201d dog \u2014 bé", tokenizer, by_sentence=True)
    assert sentence.given == 'it\'s "a" dog - bé'
