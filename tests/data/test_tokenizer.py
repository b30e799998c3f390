"""Text to ids and back, exactly, in scripts with joiners, apostrophes, accents and pictures."""

# ruff: noqa: RUF001

import pickle
import unicodedata
from collections import Counter
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.data.text import well_formed
from regard.data.tokenizer import END, INNER_UNKNOWN, PAD, START, UNKNOWN, Tokenizer, split_words
from regard.errors import DataError, OptionError

TEXTS = [
    "The animal didn't cross the street, because it was too tired.",
    "L'homme n'a pas vu l’été ; aujourd'hui, c’est l'automne !",
    "Die Straßen von Köln sind groß, über-füllt (und müde).",
    "می‌خواهم کتاب‌های تازه را بخوانم، نمی‌دانی؟ ۱۲۳",
    "I ❤️ 👨‍👩‍👧 and 3.14 <s> ▁ or <pad>... really?!",
]
ALPHABET = sorted(set("".join(TEXTS)) | {" "})


@pytest.fixture(scope="module")
def bpe() -> Tokenizer:
    return Tokenizer.train(TEXTS * 3, size=400)


@pytest.fixture(scope="module")
def words() -> Tokenizer:
    return Tokenizer.train(TEXTS, size=400, kind="word", minimum_count=1)


def spaced(text: str) -> str:
    return unicodedata.normalize("NFC", " ".join(text.split()))


@pytest.fixture(scope="module")
def in_bytes() -> Tokenizer:
    return Tokenizer.train(TEXTS[:3] * 3, size=480, byte_fallback=True, split_digits=True)


@given(st.text(), st.sampled_from([0.0, 0.5, 1.0]))
def test_with_byte_fallback_nothing_is_unknown_and_any_text_comes_back(in_bytes, text, dropout):
    ids = in_bytes.encode(text, dropout=dropout)
    assert not {PAD, START, END, UNKNOWN} & set(ids)
    assert in_bytes.decode(ids) == spaced(well_formed(text))
    assert "".join(in_bytes.unmerged(ids)).strip(" ") == spaced(well_formed(text))
    words = in_bytes.word_index(ids)
    assert words == sorted(words)
    assert sorted(set(words)) == list(range(len(text.split())))
    split = in_bytes.word_index(ids, split=True)
    assert split == sorted(split)
    assert sorted(set(split)) == list(range(len(split_words(text))))
    if not dropout:
        assert in_bytes.encode_batch([text]) == [ids]


def test_the_first_byte_of_a_character_is_labelled_with_it(in_bytes):
    ids = in_bytes.encode("a 🍕ż!")
    assert in_bytes.pieces(ids)[1:] == ["▁", "🍕", "", "", "", "ż", "", "!"]
    assert in_bytes.word_index(ids)[1:] == [1] * 8
    assert in_bytes.word_index(ids, split=True)[1:] == [1, 1, 1, 1, 1, 2, 2, 3]


def test_bytes_that_are_no_character_are_marked(in_bytes):
    first, *_, last = in_bytes.encode("🍕")[1:]
    letter = in_bytes.encode("a", dropout=1.0)[1]
    assert in_bytes.decode([first, letter, last]) == "\ufffda\ufffd"
    assert in_bytes.pieces([first, letter, last]) == ["\ufffd", "a", "\ufffd"]


def test_digits_are_pieces_of_their_own():
    tokenizer = Tokenizer.train(["in 1984, 1984 x86"] * 9, size=400, split_digits=True)
    assert tokenizer.pieces(tokenizer.encode("in 1984, x86")) == ["in", "1", "9", "8", "4", ",", "x", "8", "6"]
    whole = Tokenizer.train(["in 1984, 1984 x86"] * 9, size=400)
    assert whole.pieces(whole.encode("in 1984, x86")) == ["in", "1984", ",", "x86"]


def test_byte_fallback_is_saved_and_checked(in_bytes, tmp_path):
    path = in_bytes.save(tmp_path / "tokenizer.json")
    assert Tokenizer.load(path) == in_bytes
    assert Tokenizer.load(path).byte_fallback
    path.write_text(path.read_text().replace("<0x41>", "<0x4g>"))
    with pytest.raises(DataError, match="falls back to bytes, but the pieces after the special ones are not the bytes"):
        Tokenizer.load(path)
    with pytest.raises(OptionError, match="byte_fallback and split_digits are for kind='bpe'; got kind='word'"):
        Tokenizer.train(TEXTS, size=400, kind="word", split_digits=True)


def test_special_ids_never_change(bpe, words):
    assert (PAD, START, END, UNKNOWN) == (0, 1, 2, 3)
    for tokenizer in (bpe, words):
        assert tokenizer.pieces([0, 1, 2, 3]) == ["<pad>", "<s>", "</s>", "<unk>"]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("dropout", [0.0, 0.3, 1.0])
def test_decoding_gives_the_text_back(bpe, text, dropout):
    assert bpe.decode(bpe.encode(text, dropout=dropout)) == text


@given(st.text(st.sampled_from(ALPHABET) | st.sampled_from("\t\n\u00a0\u2009")), st.sampled_from([0.0, 0.5]))
def test_any_text_of_known_characters_comes_back(bpe, text, dropout):
    ids = bpe.encode(text, dropout=dropout)
    if UNKNOWN not in ids:  # a letter and a mark of the alphabet may compose into one that is not in it
        assert bpe.decode(ids) == spaced(text)


@given(st.text(), st.sampled_from([0.0, 0.5]))
def test_whatever_the_text_no_special_comes_out_and_every_piece_has_its_word(bpe, text, dropout):
    ids = bpe.encode(text, dropout=dropout)
    assert not {PAD, START, END} & set(ids)
    words = bpe.word_index(ids)
    assert sorted(set(words)) == list(range(len(text.split())))
    assert words == sorted(words)


@given(st.text(st.characters() | st.sampled_from(ALPHABET)))
def test_words_know_their_word_even_when_unknown(words, text):
    ids = words.encode(text)
    assert sorted(set(words.word_index(ids))) == list(range(len(text.split())))
    assert len(words.decode(ids).split()) == len(text.split())


def test_pieces_that_begin_a_word_bring_its_space(bpe, words):
    ids = bpe.encode("the dog's house")
    joined = "".join(" " * bpe.begins_word(each) + bpe.decode([each]) for each in ids)
    assert joined == " the dog's house"
    assert [words.begins_word(each) for each in words.encode("l'snark dort")] == [True, False, True]
    assert not bpe.begins_word(END)


@given(st.lists(st.integers(0, 60)))
def test_word_index_agrees_with_decoding_for_any_ids(bpe, words, ids):
    for tokenizer in (bpe, words):
        ids = [number for number in ids if number < len(tokenizer)]
        words = tokenizer.word_index(ids)
        assert len(words) == len(ids)
        assert set(words) - {-1} == set(range(len(tokenizer.decode(ids).split())))


@given(st.lists(st.sampled_from(TEXTS) | st.text(), max_size=5))
def test_a_batch_equals_one_by_one(bpe, words, texts):
    for tokenizer in (bpe, words):
        assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]


def whole(*texts: str) -> Tokenizer:
    """Trained until each piece between two borders is one id."""
    return Tokenizer.train(texts * 2, size=1000)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Hello, (big) world!!! ...", ["Hello", ",", "(", "big", ")", "world", "!!!", "..."]),
        ("l'homme d’été qu'un aujourd'hui", ["l'", "homme", "d’", "été", "qu'", "un", "aujourd'", "hui"]),
        ("don't John’s we'll I'M O'Neil's", ["don", "'t", "John", "’s", "we", "'ll", "I", "'M", "O'", "Neil", "'s"]),
        ("« l'été »", ["«", "l'", "été", "»"]),
        ("می‌خواهم، کتاب‌های؟", ["می‌خواهم", "،", "کتاب‌های", "؟"]),
        ("3.14 1,000 mp3", ["3", ".", "14", "1", ",", "000", "mp3"]),
        ("'quoted' 'em", ["'", "quoted", "'", "'", "em"]),
        ("❤️ 👩‍👧", ["❤️", "👩‍", "👧"]),
    ],
)
def test_merges_stop_between_words_and_marks(text, pieces):
    tokenizer = whole(text)
    assert tokenizer.pieces(tokenizer.encode(text)) == pieces


def test_word_index_counts_words_between_spaces():
    text = "Hello, l'homme (big)!"
    tokenizer = whole(text)
    ids = tokenizer.encode(text)
    assert tokenizer.pieces(ids) == ["Hello", ",", "l'", "homme", "(", "big", ")", "!"]
    assert tokenizer.word_index(ids) == [0, 0, 1, 1, 2, 2, 2, 2]
    assert tokenizer.word_index([START, *ids[:3], END, PAD]) == [-1, 0, 0, 1, -1, -1]


def test_unknown_characters_are_shown_and_the_rest_is_kept(bpe):
    ids = bpe.encode("The 鳥 was 鳥鳥!")
    assert ids.count(UNKNOWN) == 3
    assert bpe.decode([START, *ids, END, PAD]) == "The ⁇ was ⁇⁇!"
    assert "▁" in bpe.pieces(ids)


def test_unknown_words_keep_their_spacing(words):
    ids = words.encode("l'snark was (snark)")
    assert words.decode(ids) == "l'⁇ was (⁇)"
    assert words.word_index(ids) == [0, 0, 1, 2, 2, 2]
    ids = words.encode("The snark was L'snark")
    assert [ids[1], ids[4]] == [UNKNOWN, INNER_UNKNOWN]
    assert words.decode(ids) == "The ⁇ was L'⁇"
    assert words.word_index(ids) == [0, 1, 2, 3, 3]


def test_arrays_and_tensors_are_ids_too(bpe):
    ids = bpe.encode(TEXTS[0])
    for form in (np.array(ids, np.uint16), torch.tensor(ids), iter(ids), iter(torch.tensor(ids))):
        assert bpe.decode(form) == TEXTS[0]


def test_half_a_surrogate_pair_is_an_unknown_character(bpe):
    assert bpe.decode(bpe.encode("The \ud83d was")) == "The ⁇ was"
    assert bpe.encode("\ud83d\udc69‍") == bpe.encode("👩‍")


def test_names_of_specials_in_a_text_are_only_text(bpe, words):
    for tokenizer in (bpe, words):
        assert tokenizer.decode(tokenizer.encode("<s> or <pad>")) == "<s> or <pad>"


def test_lower_case_is_part_of_the_tokenizer(tmp_path):
    tokenizer = Tokenizer.train(["Éte Straße İ"] * 2, lowercase=True)
    assert tokenizer.decode(tokenizer.encode("ÉTE STRAßE")) == "éte straße"
    again = Tokenizer.load(tokenizer.save(tmp_path / "t.json"))
    assert again.lowercase
    assert again.encode("ÉTE") == tokenizer.encode("éte")
    assert again.vocabulary_hash != Tokenizer.train(["éte straße i̇"] * 2).vocabulary_hash


@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_a_saved_tokenizer_is_the_same(tmp_path, kind):
    tokenizer = Tokenizer.train(TEXTS, kind=kind, minimum_count=1)
    path = tokenizer.save(tmp_path / "tokenizer.json")
    for again in (Tokenizer.load(path), pickle.loads(pickle.dumps(tokenizer))):  # noqa: S301
        assert again == tokenizer
        assert hash(again) == hash(tokenizer)
        assert (again.kind, len(again), again.vocabulary_hash) == (kind, len(tokenizer), tokenizer.vocabulary_hash)
        assert again.encode_batch(TEXTS) == tokenizer.encode_batch(TEXTS)
        assert repr(again) == f"Tokenizer(kind='{kind}', size={len(tokenizer)}, lowercase=False)"
    assert [file.name for file in tmp_path.iterdir()] == ["tokenizer.json"]


def test_training_is_reproducible_and_streams():
    once, again = (Tokenizer.train(iter(TEXTS * 3), size=300) for _ in range(2))
    assert once == again
    assert once != Tokenizer.train(TEXTS * 3, size=200)
    assert len(once) <= 300
    assert once != "text"


def test_rare_words_are_unknown():
    tokenizer = Tokenizer.train(["often often rarely"], kind="word", minimum_count=2)
    assert tokenizer.encode("often rarely") == [5, UNKNOWN]


def test_dropout_varies_and_leaves_plain_encoding_alone(bpe):
    plain = bpe.encode(TEXTS[0])
    assert len({tuple(bpe.encode(TEXTS[0], dropout=0.5)) for _ in range(20)}) > 1
    assert bpe.encode(TEXTS[0]) == plain
    assert len(bpe.encode(TEXTS[0], dropout=1.0)) == len(TEXTS[0]) + 1


@pytest.mark.parametrize("text", TEXTS)
def test_a_seed_decides_which_merges_are_dropped(bpe, text):
    first, second, other = (bpe.encode(text * 3, dropout=0.5, random=Random(seed)) for seed in (1, 1, 2))  # noqa: S311
    assert first == second
    assert first != other
    assert bpe.encode(text, dropout=1e-30, random=Random(1)) == bpe.encode(text), "the merges have the same order"  # noqa: S311


def test_each_possible_merge_is_dropped_with_the_given_probability():
    tokenizer = Tokenizer.train(["ab ab ab"], size=9)
    assert tokenizer.pieces(tokenizer.encode("ab")) == ["ab"]
    random, count = Random(1), 20_000  # noqa: S311
    found = Counter(len(tokenizer.encode("ab", dropout=0.3, random=random)) for _ in range(count))
    # " a" and "b", or " " and "ab", whichever merge comes first: the second is possible only after the first.
    assert found[3] / count == pytest.approx(0.3, abs=0.02)
    assert found[2] / count == pytest.approx(0.7 * 0.3, abs=0.02)
    assert found[1] / count == pytest.approx(0.7 * 0.7, abs=0.02)


def test_invalid_training_options_are_refused():
    with pytest.raises(DataError, match="no text to train a tokenizer on"):
        Tokenizer.train(["", "  "])
    with pytest.raises(OptionError, match="size=9 is too small: the text has 11 different characters"):
        Tokenizer.train(["abcdefghij"], size=9)
    with pytest.raises(OptionError, match="4 special ones included; got 4"):
        Tokenizer.train(["a"], size=4)
    with pytest.raises(OptionError, match="got one string, 'abc'"):
        Tokenizer.train("abc")
    with pytest.raises(OptionError, match="minimum_count must be 1 or more; got 0"):
        Tokenizer.train(["a"], minimum_count=0)


@pytest.mark.usefixtures("as_a_user")
def test_an_unknown_kind_is_refused():
    with pytest.raises(OptionError, match="kind must be 'bpe' or 'word'; got 'char'"):
        Tokenizer.train(["a"], kind="char")


def test_an_invalid_dropout_is_refused(bpe, words):
    with pytest.raises(OptionError, match=r"between 0 and 1; got 1.5"):
        bpe.encode("a", dropout=1.5)
    with pytest.raises(OptionError, match=r"dropout=0.1 skips merges, which only a tokenizer of kind='bpe' has"):
        words.encode("a", dropout=0.1)


def test_an_id_outside_the_vocabulary_is_refused(bpe):
    for ids in ([len(bpe)], [-1]):
        with pytest.raises(DataError, match=rf"The id {ids[0]} is outside the vocabulary of {len(bpe)} pieces"):
            bpe.decode(ids)


NOT_A_TOKENIZER = "t.json is not a tokenizer that this version of regard can read"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (None, None, r"There is no tokenizer at .*t.json"),
        (None, b"{", NOT_A_TOKENIZER),
        (None, b"[]", NOT_A_TOKENIZER),
        (None, b"{}", NOT_A_TOKENIZER),
        (None, b"\xff", NOT_A_TOKENIZER),
        (b'"regard_tokenizer": 1', b'"regard_tokenizer": 99', "its format is 99, not 1"),
        (b'"model": {', b'"modal": {', "it is damaged"),
        (b'"continuing_subword_prefix": null', b'"continuing_subword_prefix": "long"', "it is damaged: PanicException"),
        (b'"<pad>": 0', b'"<pod>": 0', "first pieces are"),
        (b'"unk_token": "<unk>"', b'"unk_token": ""', "its unknown piece is '', not '<unk>'"),
    ],
)
def test_a_file_that_is_not_a_tokenizer_is_refused(tmp_path, bpe, old, new, message):
    path = tmp_path / "t.json"
    if new is not None:
        content = bpe.save(path).read_bytes()
        assert old is None or content.count(old) == 1
        path.write_bytes(new if old is None else content.replace(old, new))
    with pytest.raises(DataError, match=message):
        Tokenizer.load(path)


def test_words_can_be_counted_with_punctuation_and_elisions_apart():
    text = "L'accord sur l'espace... a été signé (don't!)"
    units = ["L'", "accord", "sur", "l'", "espace", "...", "a", "été", "signé", "(", "don", "'t", "!", ")"]
    assert split_words(text) == units
    tokenizer = Tokenizer.train([text] * 3, size=60)
    ids = tokenizer.encode(text)
    index = tokenizer.word_index(ids, split=True)
    joined = ["" for _ in units]
    for number, piece in zip(index, tokenizer.pieces(ids), strict=True):
        joined[number] += piece
    assert joined == units
    assert tokenizer.word_index([START, *ids[:1], END], split=True) == [-1, 0, -1]
