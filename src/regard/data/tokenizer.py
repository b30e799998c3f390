"""Tokenizers that turn text into ids and back: byte-pair encoding (Sennrich et al. 2016, section 3.2) or words."""

import bisect
import codecs
import functools
import hashlib
import json
import operator
import os
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, Literal, SupportsIndex, TypeAlias

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from regard.data.merge_dropout import MergeDropout
from regard.data.text import well_formed
from regard.errors import DataError, OptionError
from regard.files import write_text

PAD, START, END, UNKNOWN = 0, 1, 2, 3
INNER_UNKNOWN = 4
"""Word tokenizers only: an unknown piece that does not begin a word (the snark in l'snark)."""

UNKNOWN_MARK = "⁇"
"""How an unknown piece is written in decoded text."""

SPECIALS = ("<pad>", "<s>", "</s>", "<unk>")
BYTES = tuple(f"<0x{number:02X}>" for number in range(256))
"""With byte fallback, the pieces after the special ones."""
BYTE_IDS = range(len(SPECIALS), len(SPECIALS) + len(BYTES))
ALPHABET = 160
"""With byte fallback, how many characters have a piece of their own: the most frequent ones."""
FORMAT = 1

# The space in front of a word is part of its first piece. No piece has any other space, since whitespace is first
# normalized to single spaces: no character has to be reserved as a marker, and joining the pieces restores the text.
_LETTERS = r"\p{L}\p{M}\p{N}\x{200C}\x{200D}\x{AD}"  # with the joiners and the soft hyphen, which occur inside words
_APOSTROPHE = r"['\x{2019}]"
_CLITIC = rf"{_APOSTROPHE}(?i:s|t|re|ve|ll|d|m)(?![{_LETTERS}])"
SPLIT = "|".join(
    [
        rf" ?[{_LETTERS}]++(?:(?!{_CLITIC}){_APOSTROPHE}(?=\p{{L}}))?+",  # l'|homme
        _CLITIC,  # don|'t, John|'s
        rf" ?([^ {_LETTERS}])\1*+[\p{{M}}\x{{200D}}]*+",  # a punctuation mark, or the same one repeated: ... !!!
    ]
)
"""Merges never cross these boundaries: words, punctuation, after a French elision, before an English contraction."""

_SPLITTER = pre_tokenizers.Split(tokenizers.Regex(SPLIT), behavior="isolated")
_DIGITS = pre_tokenizers.Split(tokenizers.Regex(r" ?\p{N}"), behavior="isolated")

Ids: TypeAlias = Iterable[SupportsIndex]
"""Integers, or an array or tensor of integers."""


class Tokenizer:
    """Converts text to ids and back; use one tokenizer for both languages to share its vocabulary.

    PAD, START, END and UNKNOWN are always 0, 1, 2 and 3. `encode` never returns the first three: a literal "<s>" in the
    text is encoded as its characters. Create a tokenizer with `train` or `load`.
    """

    def __init__(self, engine: tokenizers.Tokenizer, *, lowercase: bool = False) -> None:
        self._engine = engine
        self.kind: Literal["bpe", "word"] = "bpe" if isinstance(engine.model, models.BPE) else "word"
        self.lowercase = lowercase
        vocabulary = engine.get_vocab(with_added_tokens=False)
        self._pieces = sorted(vocabulary, key=vocabulary.__getitem__)
        self.byte_fallback: bool = getattr(engine.model, "byte_fallback", False)
        """Whether characters without a piece are spelled in bytes, so that nothing is unknown."""

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        *,
        size: int = 8000,
        kind: Literal["bpe", "word"] = "bpe",
        lowercase: bool = False,
        minimum_count: int = 2,
        byte_fallback: bool = False,
        split_digits: bool = False,
    ) -> "Tokenizer":
        """Learn a vocabulary of at most `size` pieces; those seen fewer than `minimum_count` times are left out.

        With "bpe", every character of the texts is a piece, so that only other characters are unknown. With
        `byte_fallback`, only the 160 most frequent ones are, 256 further pieces stand for bytes, and all other
        characters are spelled in the bytes of UTF-8: nothing is unknown. With `split_digits`, each digit is a piece of
        its own. The same texts always give the same vocabulary. The texts are read once and not kept in memory.
        """
        if isinstance(texts, str):
            raise OptionError(
                f"texts must be an iterable of strings, such as lines of a file; got one string, {texts[:40]!r}."
            )
        if kind not in ("bpe", "word"):
            raise OptionError(f"kind must be 'bpe' or 'word'; got {kind!r}.")
        if minimum_count < 1:
            raise OptionError(f"minimum_count must be 1 or more; got {minimum_count}.")
        if kind != "bpe" and (byte_fallback or split_digits):
            raise OptionError("byte_fallback and split_digits are for kind='bpe'; got kind='word'.")
        options: dict[str, Any] = {"vocab_size": size, "min_frequency": minimum_count, "show_progress": False}
        specials = [*SPECIALS] if kind == "bpe" else [*SPECIALS, "<unk>+"]
        if byte_fallback:
            specials += BYTES
            options["limit_alphabet"] = ALPHABET
        if size <= len(specials):
            raise OptionError(f"size is the number of pieces, {len(specials)} special ones included; got {size}.")
        model: Any
        if kind == "bpe":
            model = models.BPE(unk_token=SPECIALS[UNKNOWN], byte_fallback=byte_fallback)
            trainer: Any = trainers.BpeTrainer(special_tokens=specials, initial_alphabet=[" "], **options)
        else:
            model = models.WordLevel({}, unk_token=SPECIALS[UNKNOWN])
            trainer = trainers.WordLevelTrainer(special_tokens=specials, **options)
        engine = tokenizers.Tokenizer(model)
        # Where no merge with a digit is learned, none can be made later: texts need not be divided at their digits.
        engine.pre_tokenizer = pre_tokenizers.Sequence([_SPLITTER, _DIGITS]) if split_digits else _SPLITTER
        lines = filter(None, (_normalise(text, lowercase) for text in texts))
        first = next(lines, None)
        if first is None:
            raise DataError("There is no text to train a tokenizer on: there are no lines, or all are empty.")
        engine.train_from_iterator(chain([first], lines), trainer)
        engine.pre_tokenizer = _SPLITTER
        # The library would match its special tokens in the text; a plain vocabulary entry is never matched there.
        fields = json.loads(engine.to_str())
        fields["added_tokens"] = []
        trained = cls(tokenizers.Tokenizer.from_str(json.dumps(fields)), lowercase=lowercase)
        if len(trained) > size:
            raise OptionError(
                f"size={size} is too small: the text has {len(trained) - len(specials)} different characters, and "
                f"each needs a piece. Choose a size well above {len(trained)}, or clean the text."
            )
        return trained

    def encode(self, text: str, *, dropout: float = 0.0, random: Random | None = None) -> list[int]:
        """Return the ids of a text; `dropout` is the probability to skip a merge (Provilkov et al. 2020, section 3).

        Which merges are skipped depends on `random` alone; without it, on a new seed in every call.
        """
        if dropout:
            return self._encode_with_dropout(text, dropout, random or Random())  # noqa: S311 - not for secrets
        line = _normalise(text, self.lowercase)
        return self._ids(line, self._engine.encode(line, add_special_tokens=False))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode many texts at once, on all cores."""
        lines = [_normalise(text, self.lowercase) for text in texts]
        # Computing offsets takes time, and only word tokenizers need them.
        run = self._engine.encode_batch_fast if self.kind == "bpe" else self._engine.encode_batch
        encodings = run(lines, add_special_tokens=False)
        return [self._ids(line, encoding) for line, encoding in zip(lines, encodings, strict=True)]

    def check_dropout(self, dropout: float) -> None:
        """Raise an OptionError where this tokenizer cannot skip merges with this probability."""
        if not 0 <= dropout <= 1:
            raise OptionError(f"dropout must be a probability between 0 and 1; got {dropout}.")
        if dropout and self.kind != "bpe":
            raise OptionError(
                f"dropout={dropout} skips merges, which only a tokenizer of kind='bpe' has; this one is of kind='word'."
            )

    def decode(self, ids: Ids) -> str:
        """Return the text of the ids; PAD, START and END are skipped, and UNKNOWN is written as ⁇.

        decode(encode(text)) is the text in NFC, with single spaces, and in lower case if `lowercase` is set, unless it
        contains unknown pieces.
        """
        return " ".join("".join(self._texts(list(_numbers(ids)))).split())

    def pieces(self, ids: Ids) -> list[str]:
        """Return each id as a label for display, without its leading space; a space alone is shown as ▁.

        Of a character in bytes, the first has the character as its label, and the others an empty one.
        """
        numbers = list(_numbers(ids))
        texts = self._texts(numbers)
        return [
            text if self.byte_fallback and number in BYTE_IDS else self._piece(number).removeprefix(" ") or "▁"
            for number, text in zip(numbers, texts, strict=True)
        ]

    def begins_word(self, number: SupportsIndex) -> bool:
        """Whether an id begins with a space, and so begins a word; otherwise it continues the word before it."""
        return self._texts([operator.index(number)])[0].startswith(" ")

    @functools.cached_property
    def alphabet(self) -> frozenset[str]:
        """The characters that a "bpe" vocabulary can spell; empty for words, which it knows or does not know."""
        return frozenset({piece for piece in self._pieces if len(piece) == 1} if self.kind == "bpe" else ())

    def word_index(self, ids: Ids, *, split: bool = False) -> list[int]:
        """Return for each id the index of its word in `text.split()`, and -1 for PAD, START and END.

        With `split`, words are counted as in `split_words`, where punctuation, l' and 's are words of their own.
        """
        if split:
            return self._split_index(ids)
        index: list[int] = []
        word, filled = 0, False
        numbers = list(_numbers(ids))
        for number, text in zip(numbers, self._texts(numbers), strict=True):
            if number < UNKNOWN or not text:
                index.append(-1 if number < UNKNOWN else word)
                continue
            if text[0] == " " and filled:
                word, filled = word + 1, False
            filled = filled or text != " "
            index.append(word)
        # The output of a model may end in a space with no word after it.
        return index if filled else [-1 if owner == word else owner for owner in index]

    def __len__(self) -> int:
        return len(self._pieces)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokenizer) and self.vocabulary_hash == other.vocabulary_hash

    def __hash__(self) -> int:
        return hash(self.vocabulary_hash)

    def __repr__(self) -> str:
        return f"Tokenizer(kind={self.kind!r}, size={len(self)}, lowercase={self.lowercase})"

    @functools.cached_property
    def vocabulary_hash(self) -> str:
        """SHA-256 of everything that determines the ids of a text."""
        return hashlib.sha256(self._to_json().encode()).hexdigest()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Save the tokenizer as one JSON file."""
        return write_text(path, self._to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Tokenizer":
        """Load a tokenizer that `save` wrote."""
        try:
            return cls._from_json(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError(f"There is no tokenizer at {path}. Tokenizer.save creates one.") from None
        except (OSError, ValueError) as error:
            raise DataError(
                f"{path} is not a tokenizer that this version of regard can read: {error!s:.300}"
            ) from error

    def as_library_json(self) -> str:
        """The tokenizer as a tokenizer.json of the library tokenizers, which also prepares the text as `encode` does.

        `load` reads it too. With the library's special tokens, the end follows the text, as encoders are given it.
        """
        engine = tokenizers.Tokenizer.from_str(self._engine.to_str())
        # Again and again it changes nothing, so that a line may be normalised before.
        lower = [normalizers.Lowercase()] if self.lowercase else []
        spaces = normalizers.Replace(tokenizers.Regex(r"\s+"), " ")
        engine.normalizer = normalizers.Sequence(
            [*lower, spaces, normalizers.Strip(), normalizers.Prepend(" "), normalizers.NFC()]
        )
        engine.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[(SPECIALS[END], END)])
        spelled = [decoders.ByteFallback()] if self.byte_fallback else []
        engine.decoder = decoders.Sequence([*spelled, decoders.Fuse(), decoders.Strip(" ", 1, 0)])
        return engine.to_str()

    def __reduce__(self) -> tuple[Callable[[str], "Tokenizer"], tuple[str]]:
        return Tokenizer._from_json, (self._to_json(),)

    def _to_json(self) -> str:
        fields = {"regard_tokenizer": FORMAT, "lowercase": self.lowercase, "engine": json.loads(self._engine.to_str())}
        return json.dumps(fields, ensure_ascii=False, sort_keys=True)

    @classmethod
    def _from_json(cls, text: str) -> "Tokenizer":
        fields = _own_form(json.loads(text))
        version = fields.get("regard_tokenizer") if isinstance(fields, dict) else None
        if version != FORMAT:
            raise DataError(f"its format is {version}, not {FORMAT}.")
        try:
            tokenizer = cls(tokenizers.Tokenizer.from_str(json.dumps(fields["engine"])), lowercase=fields["lowercase"])
        except BaseException as error:
            # For what it cannot parse, the library raises a plain Exception, or it panics, which is no Exception.
            if isinstance(error, Exception) or type(error).__name__ == "PanicException":
                raise DataError(f"it is damaged: {error!r}.") from error
            raise
        if tuple(tokenizer._pieces[: len(SPECIALS)]) != SPECIALS:
            raise DataError(f"its first pieces are {tokenizer._pieces[: len(SPECIALS)]}, not {list(SPECIALS)}.")
        if (unknown := getattr(tokenizer._engine.model, "unk_token", None)) != SPECIALS[UNKNOWN]:
            raise DataError(f"its unknown piece is {unknown!r:.80}, not {SPECIALS[UNKNOWN]!r}.")
        if tokenizer.byte_fallback and tuple(tokenizer._pieces[BYTE_IDS[0] : BYTE_IDS[-1] + 1]) != BYTES:
            raise DataError("its model falls back to bytes, but the pieces after the special ones are not the bytes.")
        return tokenizer

    def merge_dropout(self) -> MergeDropout:
        """Splits words with this "bpe" vocabulary, by BPE dropout; with another kind, none can be split."""
        model = json.loads(self._engine.to_str())["model"]
        return MergeDropout(model.get("merges", ()) and model["vocab"], model.get("merges", ()), UNKNOWN)

    def unmerged(self, ids: Ids) -> list[str]:
        """Return the units of the ids that merges never cross: words with their leading space, and punctuation."""
        text = "".join(self._texts(list(_numbers(ids))))
        return [word for word, _ in self._engine.pre_tokenizer.pre_tokenize_str(text)]

    def _encode_with_dropout(self, text: str, dropout: float, random: Random) -> list[int]:
        self.check_dropout(dropout)
        words = self._engine.pre_tokenizer.pre_tokenize_str(_normalise(text, self.lowercase))
        return [number for word, _ in words for number in self._merge_dropout(word, dropout, random)]

    @functools.cached_property
    def _merge_dropout(self) -> MergeDropout:
        return self.merge_dropout()

    def _split_index(self, ids: Ids) -> list[int]:
        numbers = list(_numbers(ids))
        texts = self._texts(numbers)
        starts = [start for _, (start, _) in _SPLITTER.pre_tokenize_str("".join(texts))]
        index, position = [], 0
        for number, text in zip(numbers, texts, strict=True):
            # A further byte of a character belongs to where that stands.
            index.append(-1 if number < UNKNOWN else bisect.bisect_right(starts, max(0, position - (not text))) - 1)
            position += len(text)
        return index

    def _ids(self, line: str, encoding: tokenizers.Encoding) -> list[int]:
        ids: list[int] = encoding.ids
        if self.kind == "bpe" or UNKNOWN not in ids:
            return ids
        starts = (line[start] == " " for start, _ in encoding.offsets)
        return [
            INNER_UNKNOWN if number == UNKNOWN and not starts_word else number
            for number, starts_word in zip(ids, starts, strict=True)
        ]

    def _piece(self, number: int) -> str:
        if not 0 <= number < len(self._pieces):
            raise DataError(f"The id {number} is outside the vocabulary of {len(self)} pieces: 0 to {len(self) - 1}.")
        return self._pieces[number]

    def _texts(self, numbers: Sequence[int]) -> list[str]:
        """The text that each id stands for, with its leading space; that of a character in bytes is with the first."""
        try:
            texts = [self._written[number] for number in numbers]
        except KeyError as error:
            self._piece(error.args[0])
            raise
        is_byte = [self.byte_fallback and number in BYTE_IDS for number in numbers] + [False]
        if not any(is_byte):
            return texts
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        first = 0
        for position, number in enumerate(numbers):
            if not is_byte[position]:
                continue
            first = position if not decoder.getstate()[0] else first
            texts[position] = ""
            texts[first] += decoder.decode(bytes([number - BYTE_IDS[0]]), final=not is_byte[position + 1])
        return texts

    @functools.cached_property
    def _written(self) -> dict[int, str]:
        """The text that each id stands for, with its leading space; bytes are written as their names."""
        texts = dict(enumerate(self._pieces)) | dict.fromkeys((PAD, START, END), "")
        texts[UNKNOWN] = UNKNOWN_MARK if self.kind == "bpe" else f" {UNKNOWN_MARK}"
        return texts | ({INNER_UNKNOWN: UNKNOWN_MARK} if self.kind == "word" else {})


def _own_form(fields: Any) -> Any:
    """What `Tokenizer.save` would have written for a tokenizer.json of `as_library_json`; anything else unchanged."""
    if not isinstance(fields, dict) or "model" not in fields:
        return fields
    steps = (fields.get("normalizer") or {}).get("normalizers", ())
    engine = fields | dict.fromkeys(("normalizer", "post_processor", "decoder"))
    return {
        "regard_tokenizer": FORMAT,
        "lowercase": any(step.get("type") == "Lowercase" for step in steps),
        "engine": engine,
    }


def units_of(text: str) -> list[str]:
    """Split a text where no piece may cross: into words with their leading space, and what `split_words` names."""
    return [unit for unit, _ in _SPLITTER.pre_tokenize_str(_normalise(text, lowercase=False))]


def split_words(text: str) -> list[str]:
    """Split a text where no piece may cross: into words, punctuation marks, elided articles (l') and clitics ('s)."""
    return [unit.strip(" ") for unit in units_of(text)]


def unit_spans(text: str) -> list[tuple[int, int]]:
    """Where each unit of a text begins and ends, without the space before it; units are those of `split_words`."""
    # Line ends and the like count as spaces do, so that every place stays what it is.
    spaced = "".join(" " if letter.isspace() else letter for letter in text)
    spans = ((start, end) for _, (start, end) in _SPLITTER.pre_tokenize_str(spaced))
    return [(start + (spaced[start] == " "), end) for start, end in spans if spaced[start:end].strip(" ")]


def _numbers(ids: Ids) -> Iterable[int]:
    numbers: Iterable[int] = ids.tolist() if hasattr(ids, "tolist") else map(operator.index, ids)
    return numbers


def _normalise(text: str, lowercase: bool) -> str:
    """Put one space before each word of text.split(), normalize to NFC, and lower the case if `lowercase` is set."""
    text = well_formed(text)
    text = text.lower() if lowercase else text
    return unicodedata.normalize("NFC", "".join(" " + word for word in text.split()))
