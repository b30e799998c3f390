"""Babel: one meaning in English, French, German and Persian, with gold word links for every direction.

    meaning  ->  words of each language, each with the nodes of the meaning that it stands for
    links    =   the pairs of words that stand for the same node

A sentence is words apart by spaces, lower case but for names and German nouns (as truecasing leaves them); punctuation
and French elided words (l', n', qu') are words of their own, and a Persian form keeps its zero-width non-joiner.
"""

from regard.worlds.babel.corpus import (
    LANGUAGES,
    Links,
    Pair,
    Statistics,
    ambiguity,
    crossing,
    diagonal,
    pairs,
    statistics,
)

__all__ = ["LANGUAGES", "Links", "Pair", "Statistics", "ambiguity", "crossing", "diagonal", "pairs", "statistics"]
