"""Babel: sentences with one meaning in English, French, German and Persian, with gold word links for every direction.

    meaning  ->  words in each language, each with the nodes of the meaning that it expresses
    links    =   the pairs of words that express the same node

Words are separated by spaces and in lower case except for names and German nouns (as after truecasing). Punctuation
marks and elided French words (l', n', qu') are separate words, and Persian words keep their zero-width non-joiners.
"""

from regard.worlds.babel.closed_words import LANGUAGES
from regard.worlds.babel.corpus import Links, Pair, Statistics, crossing, pairs, statistics

__all__ = ["LANGUAGES", "Links", "Pair", "Statistics", "crossing", "pairs", "statistics"]
