"""A vocabulary of whole words, and how text is split into words."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from regard.data.tokenizer import SPECIALS, UNKNOWN
from regard.errors import DataError, OptionError
from regard.files import write_text

FORMAT = 1
NUMBER = "N"
"""The word that stands for every number in a text such as the Penn Treebank of Mikolov et al. 2010."""
_CLITICS = r"(?:s|re|ve|ll|d|m)\b"
_PIECES = re.compile(
    r"<\w+>"  # <unk>
    r"|(?:[^\W\d_]\.){2,}"  # U.S.
    rf"|\w+(?=n't\b)|n't\b|'{_CLITICS}"  # did|n't, it|'s
    rf"|\w+(?:[-./]\w+|'(?!{_CLITICS})\w+)*"  # well-known, 1.5, o'clock
    r"|\.{2,}|[^\w\s]",
    re.IGNORECASE,
)
_AFTER_SPACE = re.compile(rf" (n't\b|'{_CLITICS}|[.,;:!?%)\]}}]+(?= |$))", re.IGNORECASE)
_BEFORE_SPACE = re.compile(r"((?:^| )[$#(\[{]) ")
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u2018": "'"})
_IS_NUMBER = re.compile(r"[-+]?\d(?:[\d.,/:]*\d)?")


def treebank_words(text: str) -> list[str]:
    """Split text into words and punctuation as treebanks do: did|n't, it|'s, and a final full stop by itself."""
    return _PIECES.findall(text.translate(_APOSTROPHES))


def join_words(words: Sequence[str]) -> str:
    """Join words to text, the other way round: didn't, it's, and no space before a full stop."""
    text = " ".join(words)
    return _BEFORE_SPACE.sub(r"\1", _AFTER_SPACE.sub(r"\1", text))


class Vocabulary:
    """Words and their ids; the first four ids are those of `tokenizer.SPECIALS`, and <unk> is every unknown word.

    A word that is unknown is looked up in lower case and, if it is a number, as the word N.
    """

    def __init__(self, words: Sequence[str], *, lowercase: bool = False) -> None:
        if tuple(words[: len(SPECIALS)]) != SPECIALS:
            raise DataError(f"A vocabulary begins with {' '.join(SPECIALS)}; got {' '.join(words[:4])!r:.80}.")
        self.words, self.lowercase = tuple(words), lowercase
        self._ids = {word: number for number, word in enumerate(self.words)}
        if len(self._ids) != len(self.words):
            repeated = next(word for word, count in Counter(self.words).items() if count > 1)
            raise DataError(f"A vocabulary has each word once; {repeated!r} comes twice.")

    @classmethod
    def build(
        cls, sentences: Iterable[Sequence[str]], *, size: int = 0, minimum_count: int = 1, lowercase: bool = False
    ) -> "Vocabulary":
        """Collect the words of sentences, the most frequent first: at most `size`, with the special ones (0: all)."""
        if size and size <= len(SPECIALS):
            raise OptionError(f"size counts the {len(SPECIALS)} special words too; got {size}. Use 0 for all words.")
        counts = Counter(word.lower() if lowercase else word for words in sentences for word in words)
        for special in SPECIALS:
            counts.pop(special, None)
        if not counts:
            raise DataError("There are no words to build a vocabulary of.")
        order = sorted(
            (word for word in counts if counts[word] >= minimum_count), key=lambda word: (-counts[word], word)
        )
        kept = order[: size - len(SPECIALS)] if size else order
        return cls([*SPECIALS, *kept], lowercase=lowercase)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return self.id(word) != UNKNOWN or word == SPECIALS[UNKNOWN]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and (self.words, self.lowercase) == (other.words, other.lowercase)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} words, lowercase={self.lowercase})"

    def id(self, word: str) -> int:
        """Return the id of a word."""
        if not self.lowercase and word in self._ids:
            return self._known(word)
        lower = word.lower()
        if lower in self._ids:
            return self._known(lower)
        return self._ids.get(NUMBER, UNKNOWN) if _IS_NUMBER.fullmatch(word) else UNKNOWN

    def _known(self, word: str) -> int:
        number = self._ids[word]
        return number if number >= UNKNOWN else UNKNOWN

    def split(self, text: str) -> list[str]:
        """Split text into words: at spaces and, where that leaves an unknown word, as `treebank_words` does.

        Text that is split already, in the way of this vocabulary, stays as it is. Unknown punctuation is left out: a
        model that learned from text without punctuation has nothing to say about it.
        """
        words: list[str] = []
        for chunk in text.split():
            pieces = [chunk] if chunk in self else treebank_words(chunk)
            words += [piece for piece in pieces if piece in self or any(map(str.isalnum, piece))]
        return words

    def encode(self, words: Iterable[str]) -> list[int]:
        """Return the ids of words."""
        return [self.id(word) for word in words]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the words of ids, without the special ones before <unk>."""
        return [self.words[number] for number in ids if number >= UNKNOWN]

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the vocabulary as one JSON file."""
        fields = {"regard_vocabulary": FORMAT, "lowercase": self.lowercase, "words": list(self.words)}
        return write_text(path, json.dumps(fields, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Vocabulary":
        """Read a vocabulary that `save` wrote."""
        try:
            fields = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(f"{path} is not a vocabulary that regard can read: {error}.") from error
        words = fields.get("words") if isinstance(fields, dict) else None
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise DataError(f"{path} is not a vocabulary that regard can read: it has no list of words.")
        return cls(words, lowercase=bool(fields.get("lowercase")))
