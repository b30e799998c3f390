"""Whole texts: empty ones, several sentences, what cannot be spelled, names and capitals."""

import unicodedata
import warnings
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.models import TEXTS, TRANSFORMER, small_translator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import regard
from regard.data.text import well_formed
from regard.data.tokenizer import Tokenizer
from regard.errors import RegardWarning
from regard.systems.translate.joined_traces import MAX_CELLS, joined, label_spans, word_of_labels
from regard.systems.translate.model import Translation
from regard.systems.translate.retries import find_names, lost_numbers, placeholders
from regard.systems.translate.sentences import (
    MAX_SENTENCE_TOKENS,
    Sentence,
    is_in_capitals,
    recased,
    split,
    without_first_capital,
)
from regard.systems.translate.texts import _combined

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


def test_what_cannot_be_spelled_is_reported_once_and_copied(tokenizer):
    model = small_translator(tokenizer)
    with pytest.warns(RegardWarning, match="cannot spell '🙂'; such text is copied"):
        result = model.translate("a dog 🙂", **OPTIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = model.translate(["你好", "a dog 🙂"], **OPTIONS)
    assert result.copied == ("🙂",)
    assert result.text == f"{model.translate('a dog', **OPTIONS).text} 🙂"
    assert again[0].text == "你好"
    assert again[0].copied == ("你好",)
    assert again[1] == result


@pytest.mark.parametrize(
    ("english", "address"),
    [
        ("https://example.com/a?b=c", "https://example.com/a?b=c"),
        ("You can read more on www.example.org/a_b, she said.", "www.example.org/a_b"),
        ("Write to jane.doe+news@mail.example.com.", "jane.doe+news@mail.example.com"),
    ],
)
def test_addresses_are_copied_without_a_warning(shipped, english, address):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = shipped.translate(english)
    assert address in result.text
    assert result.copied == (address,)


@quiet
@pytest.mark.parametrize("config", [{}, TRANSFORMER, {"architecture": "plain"}])
def test_copied_parts_have_a_place_in_the_trace(tokenizer, config):
    model = small_translator(tokenizer, **config)
    plain = model.translate("a dog is running", traces="all", **OPTIONS)
    result = model.translate("🙂 a dog 😀🎈 is running 好", traces="all", **OPTIONS)
    assert result.copied == ("🙂", "😀🎈", "好")
    assert [word for word in result.text.split() if word in result.copied] != []
    assert result.text.startswith("🙂 ")
    if plain.trace is None:
        assert result.trace is None
        return
    trace = result.trace
    for copied in result.copied:
        row, column = trace.target.index(copied), trace.source.index(copied)
        assert trace.weights[row].tolist() == [float(index == column) for index in range(len(trace.source))]
        assert trace.weights[:, column].sum() == 1
        assert trace.values("log_prob")[row] == 0
    assert trace.axis("target").text == result.text
    if any(axis.name == "history" for axis in trace.axes):
        assert trace.axis("history").labels == ("<s>", *trace.target[:-1])
        (first, *_), (before, *_) = (
            [each.weights for each in one.maps if each.columns == "history"] for one in (trace, plain.trace)
        )
        own = [index for index, label in enumerate(trace.target) if label not in result.copied]
        seen = [0, *(index + 1 for index in own[:-1])]
        np.testing.assert_array_equal(first[np.ix_(own, seen)], before)
    assert [each.name for each in trace.maps] == [each.name for each in plain.trace.maps]
    assert regard.Trace.from_json(trace.to_json()) == trace


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
    assert whole.trace.axis("source").text == whole.source
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
    assert len(split("A dog. A cat.", tokenizer, by_sentence=True, copy=False)) == 2
    text = "A dog. A cat."
    with pytest.warns(RegardWarning):
        drawn = [model.translate(text, sample=True, nbest=3, seed=2, **options) for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert len(drawn[0].alternatives) == 2
    begun = model.translate(text, prefix="two dogs", **options)
    assert begun.text.startswith("two dogs")
    assert begun.text.count("two dogs") == 1
    every = model.translate(text, traces="all", **options).trace
    assert all(each.weights.shape == (len(every.axis(each.rows)), len(every.axis(each.columns))) for each in every.maps)


def test_names_come_out_as_they_went_in():
    german = regard.load("en-de", device="cpu")
    result = german.translate("I live in Isfahan.")
    assert result.text == "Ich lebe in Isfahan."
    assert result.copied == ("Isfahan",)
    assert "Isfahan" in result.trace.source
    assert "Isfahan" in result.trace.target
    assert result.trace.axis("target").text == result.text
    row, column = result.trace.target.index("Isfahan"), result.trace.source.index("Isfahan")
    assert result.trace.weights[row].argmax() == column
    assert "Isfahan" not in german.translate("I live in Isfahan.", copy_unknown=False).text
    with pytest.warns(RegardWarning):
        spelled = german.translate("I know Szczepański.")
    assert spelled.text == "Ich kenne Szczepański."
    assert german.translate("I live in Boston.").copied == ()


@quiet
def test_copied_parts_keep_their_place_after_names_of_several_words():
    german = regard.load("en-de", device="cpu")
    for text, translation in (
        ("Yesterday Zbigniew Wrzesniak bought a house 😀", "Gestern hat Zbigniew Wrzesniak ein Haus gekauft. 😀"),
        ("😀 Yesterday Zbigniew Wrzesniak bought a house.", "😀 Gestern hat Zbigniew Wrzesniak ein Haus gekauft."),
    ):
        result = german.translate(text)
        assert result.text == translation
        row, column = result.trace.target.index("😀"), result.trace.source.index("😀")
        assert result.trace.weights[row].argmax() == column
        assert "Zbigniew Wrzesniak" in result.trace.target
    inside = german.translate("Zbigniew Wrzesniak 😀 bought a house.")
    assert inside.text.startswith("Zbigniew Wrzesniak 😀 ")


@quiet
@pytest.mark.parametrize(
    ("english", "number", "copied"),
    [
        ("It costs $19.99.", "$19.99", True),
        ("I paid £1,249.50 for it.", "1,249.50", True),
        ("He was born in 1987.", "1987", False),
        ("It costs 19.99 dollars.", "19.99", False),
    ],
)
def test_numbers_keep_their_digits(english, number, copied):
    german = regard.load("en-de", device="cpu")
    result = german.translate(english)
    assert number in result.text
    assert (number in result.copied) == copied
    assert (number in result.trace.target) == copied
    if copied:
        assert number not in german.translate(english, copy_unknown=False).text


@pytest.mark.parametrize(
    ("given", "written", "lost"),
    [
        ("It costs $19.99.", "Es kostet 1,99.", ["$19.99"]),
        ("It costs $19.99.", "Ça coûte 19,99.", ["$19.99"]),
        ("It costs $19.99.", "Ça coûte 19,99 $.", []),
        ("It costs $19.99.", "Ça coûte 19,99 dollars.", []),
        ("It costs €20, or 25.", "Das kostet zwanzig.", ["€20"]),
        ("It costs 19.99 dollars, or 25.", "Cela coûte 19,99 dollars, ou vingt-cinq.", []),
        ("1,250,000 of 3.5 million", "1 250 000 sur 3,5 millions", []),
        ("1,250,000 of 4000", "1.250.000 von 40000", ["4000"]),
        ("the 1990s, A380 and 1234", "", ["1234"]),
        ("on 12/05/2021, call 1-800-555-0199", "le 12/05/2021, appelez 1855599", ["1-800-555-0199"]),
    ],
)
def test_a_number_is_lost_where_its_digits_are_missing(given, written, lost):
    sentence = Sentence(given, "")
    assert [given[slice(*span)] for span in lost_numbers(sentence, written)] == lost


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


@pytest.mark.parametrize(("end", "area"), [(".", "espace"), (" .", "Espace")])
def test_the_lectures_sentence_is_translated_and_no_common_word_of_it_is_taken_for_a_name(shipped, end, area):
    result = shipped.translate(f"The agreement on the European Economic Area was signed in August 1992{end}")
    assert result.text == f"L'accord sur l'{area} économique européen a été signé en août 1992{end}"
    assert result.copied == ()


def test_a_rare_first_word_is_read_in_lower_case(shipped):
    text = "Destruction of the equipment means that Syria can no longer produce new chemical weapons."
    result = shipped.translate(text)
    assert result.text.startswith("La destruction de l'équipement signifie que la Syrie")
    assert result.trace.source[:2] == ("Destruction", "of")
    assert result.trace.axis("source").text == text
    assert shipped.translate(text, recase=False).score < result.score
    for common in ("The dog is here.", "destruction of it", "NATO is here.", "42 dogs"):
        assert without_first_capital(common, shipped.source_tokenizer) is None


def test_names_are_words_with_a_capital_that_are_spelled_from_pieces(shipped):
    tokenizer = shipped.source_tokenizer

    def found(text):
        return [
            text[slice(*span)] for span in find_names(Sentence(text, "", tuple(tokenizer.unspellable(text))), tokenizer)
        ]

    assert found("I met Roger Okafor in Boston with Tom.") == ["Roger Okafor"]
    assert found("The dog is here.") == []
    assert found("I was in Paris, Ljubljana") == ["Ljubljana"]
    words = Tokenizer.train(["the dog"] * 3, kind="word", size=30)
    assert find_names(Sentence("I met Okafor", ""), words) == []


def test_sentences_in_capitals_are_answered_in_capitals(shipped):
    result = shipped.translate("I LOVE YOU.")
    assert result.text == "JE T'AIME."
    assert "LOVE" in result.trace.source
    assert result.trace.axis("target").text == result.text
    assert shipped.translate("I LOVE YOU.", recase=False).text != result.text
    assert list(recased("I SAW MARY AND A DOG", shipped.source_tokenizer)) == [
        "I saw Mary and a dog",
        "I saw Mary and A dog",
    ]
    assert list(recased("THE FBI IS IN TEHRAN", shipped.source_tokenizer)) == [
        "The FBI is in tehran",
        "The FBI is in Tehran",
    ]
    assert is_in_capitals("OK, A B")
    assert not is_in_capitals("A B")
    assert not is_in_capitals("OK, then")
    assert not is_in_capitals("你好 123")


@pytest.mark.parametrize(
    ("capitals", "french"),
    [
        ("HELLO WORLD, HOW ARE YOU?", "BON MONDE, COMMENT ÊTES-VOUS ?"),
        ("I LIVE IN TEHRAN.", "JE VIS À TÉHÉRAN."),
        ("WATCH CNN!", "ATTENTION DU CNN !"),
    ],
)
def test_capitals_that_the_vocabulary_has_to_spell_are_never_copied_unread(capitals, french, shipped):
    assert shipped.translate(capitals).text == french


def test_a_long_sentence_is_divided_so_that_time_grows_with_its_length(tokenizer):
    for text in ("a" * 2000, "two dogs run " * 300, "two dogs, a house " * 200, "a" * 150, "я" * 3000, "я, " * 999):
        parts = split(text, tokenizer, by_sentence=True, copy=True)
        assert all(len(tokenizer.encode(part.given)) <= MAX_SENTENCE_TOKENS for part in parts)
        joined_text = "".join(part.separator + part.given for part in parts)
        assert joined_text.split() == text.split()
    for space in ("\t", "\u00a0", "\u3000"):
        parts = split(space.join(["red", "houses", "dogs"] * 80), tokenizer, by_sentence=True, copy=True)
        assert {word for part in parts for word in part.given.split()} == {"red", "houses", "dogs"}
    clauses = split("two dogs, a house " * 200, tokenizer, by_sentence=True, copy=True)
    assert all(part.given.endswith(",") for part in clauses[:-1])


def test_only_line_feeds_end_a_line(tokenizer):
    """Line i of the output is that of line i of a file, so that parallel files stay parallel."""
    parts = split("a b.\rb a.\u2028a a.\r\na b.\nb b.", tokenizer, by_sentence=True, copy=True)
    assert "".join(part.separator + part.given for part in parts).count("\n") == 2


@given(st.text(alphabet=st.sampled_from("ab .!?,1\n\r🙂é\u200d好“\ud800\t"), max_size=60) | st.text(max_size=60))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_sentences_of_a_text_are_all_of_it(tokenizer, text):
    text = well_formed(text)
    for by_sentence in (True, False):
        parts = split(text, tokenizer, by_sentence=by_sentence, copy=False)
        written = "".join(part.separator + part.given for part in parts)
        assert "".join(written.split()) == "".join(unicodedata.normalize("NFC", text).split())
        for part in split(text, tokenizer, by_sentence=by_sentence, copy=True):
            assert tokenizer.unspellable(part.piece().read) == []


def test_labels_are_found_in_their_text(shipped):
    for text in ("He isn't here, is he?", "l'homme -- 3,5 km", "«\xa0Oui\xa0»"):
        ids = shipped.source_tokenizer.encode(text)
        labels = [*shipped.source_tokenizer.pieces(ids), "</s>"]
        normal = shipped.source_tokenizer.decode(ids)
        spans = label_spans(labels, normal)
        assert [normal[slice(*span)] or "▁" for span in spans[:-1]] == labels[:-1]


@pytest.mark.parametrize(
    ("labels", "text", "words"),
    [
        (["the", "<unk>", "man", "sleeps", "</s>"], "the snarkxyz man sleeps", [0, 1, 2, 3, -1]),
        (["<unk>", "<unk>", "man"], "snark boojum man", [0, 1, 2]),
        (["l'", "<unk>+", "man"], "l'snark man", [0, 0, 1]),
        (["the", "<unk>", "</s>"], "the snark", [0, 1, -1]),
        (["The", "<unk>", "man"], "The ⁇ man", [0, 1, 2]),
        (["a", "<unk>", "b", "c"], "a 好b c", [0, 1, 1, 2]),
        (["<unk>", "<unk>", "b", "c"], "好好b c", [0, 0, 0, 1]),
        (["a", "<unk>", "<unk>"], "a 好好", [0, 1, 1]),
        (["x", "<unk>", "ed"], "x snarked", [0, 1, 1]),
    ],
)
def test_unknown_labels_are_characters_of_pieces_or_whole_words(labels, text, words):
    assert word_of_labels(labels, text) == words


def test_a_trace_that_would_be_too_large_is_left_out_and_the_result_says_so(tokenizer, monkeypatch):
    model = small_translator(tokenizer)
    traces = [model.translate("a dog", **OPTIONS).trace] * 3
    assert joined(traces, "", "") is not None
    monkeypatch.setattr("regard.systems.translate.joined_traces.MAX_CELLS", 20)
    assert MAX_CELLS > 20
    assert joined(traces, "", "") is None
    with pytest.warns(RegardWarning, match="cannot spell"):
        found = model.translate(["a 🙂. A dog. A dog.", "a dog"], split=True, **OPTIONS)
    assert found[0].trace is None
    assert found[0].note == "A text of 3 sentences is too long for one trace; translate it in parts."
    assert found[1].trace is not None
    assert found[1].note == ""


def decodes_of(model, monkeypatch):
    """The lists of sentences that the model decodes from now on."""
    lists, predict = [], type(model).predict_batch
    monkeypatch.setattr(
        type(model),
        "predict_batch",
        lambda self, texts, options: lists.append(list(texts)) or predict(self, texts, options),
    )
    return lists


def test_a_text_is_decoded_once_unless_a_check_fails(shipped, monkeypatch):
    decoded = decodes_of(shipped, monkeypatch)
    shipped.translate("He is happy. Where do you live?", traces="none")
    assert [sorted(texts) for texts in decoded] == [["He is happy.", "Where do you live?"]]
    decoded.clear()
    shipped.translate("I LOVE YOU.")
    assert decoded == [["I LOVE YOU."], ["I love you."]]


def test_the_names_that_a_model_copies_are_found_once_for_each_model_and_anew_after_training(monkeypatch):
    model = regard.load("en-de", device="cpu")
    before = dict(vars(model))
    decoded = decodes_of(model, monkeypatch)
    names = placeholders(model)
    assert len(decoded) == 1
    assert placeholders(model) == names
    assert len(decoded) == 1
    copied = deepcopy(model)
    with torch.no_grad():
        copied.decoder.output.bias.zero_()
        copied.decoder.output.weight.zero_()
    assert placeholders(copied) == []
    assert placeholders(model) == names
    with torch.no_grad():
        model.decoder.output.weight.zero_()
    assert placeholders(model) == []
    assert vars(model) == before, "asking changes nothing about the model"
