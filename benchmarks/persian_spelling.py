"""Put Persian-English subtitles and literature into ordinary spelling: "i dont know ." is "I don't know."."""

import re
from collections.abc import Iterable

CONTRACTIONS = {
    whole.replace("'", ""): whole
    for whole in [
        "i'm",
        "i've",
        "you've",
        "you're",
        "you'll",
        "you'd",
        "he's",
        "she's",
        "that's",
        "there's",
        "what's",
        "who's",
        "where's",
        "here's",
        "let's",
        "they're",
        "they've",
        "they'll",
        "we've",
        "don't",
        "doesn't",
        "didn't",
        "can't",
        "couldn't",
        "won't",
        "wouldn't",
        "shouldn't",
        "isn't",
        "aren't",
        "wasn't",
        "weren't",
        "haven't",
        "hasn't",
        "hadn't",
        "ain't",
    ]
}


def ordinary(pair: tuple[str, str]) -> tuple[str, str]:
    """A pair in ordinary spelling; subtitles, which are in lower case, also lack all apostrophes."""
    english, persian = pair
    if english.islower():
        english = re.sub(r"\w+", lambda word: CONTRACTIONS.get(word.group(), word.group()), english)
    english, persian = (sentence(text.split()) for text in (english, persian))
    return re.sub(r"\bi\b", "I", english), persian


def sentence(words: Iterable[str]) -> str:
    """The words as a written sentence: a capital letter first, no space before punctuation."""
    text = re.sub(r" (?=[.,?!؟،])", "", " ".join(words))
    return text[:1].upper() + text[1:]
