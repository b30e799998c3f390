"""Splitting text into sentences, and long sentences into parts."""

import re
import unicodedata

from regard.data.text import well_formed

_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


def split_sentences(text: str, *, lines: bool = False) -> list[str]:
    """The sentences of a text in any language, in order, without the whitespace around them.

    Sentences end where the rules of sentencex say so (abbreviations and decimal points do not end one), and at blank
    lines. HTML line breaks count as line ends. With `lines`, each line is a sentence instead.
    """
    text = _LINE_BREAK.sub("\n" if lines else "\n\n", unicodedata.normalize("NFC", well_formed(text)))
    if lines:
        found = text.splitlines()
    else:
        # Imported here, because documents that are already split need no splitter.
        from sentencex import segment

        found = segment("en", text)
    return [sentence for sentence in (each.strip() for each in found) if sentence]
