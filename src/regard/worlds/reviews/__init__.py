"""Reviews: generated documents of which one or two sentences decide the class, among distractors.

    i bought the camera in march .  my sister found the lens awful .  i did not find the screen dull .   -> positive

The rules, by which each document has exactly one correct class:

- Only the author's own verdict counts: a sentence in which "i" judges an aspect of the thing. There are one or two, and
  two agree. A negation in it turns its meaning.
- Opinions of other people, and about other things, use the same words, are as often positive as negative whatever the
  class is, and count nothing. Facts have no opinion at all.

The gold sentences are the author's verdicts; the gold words are their opinion words and negations. Counting opinion
words is therefore not enough: a reader has to find who holds the opinion, and about what.
"""

from regard.worlds.reviews.review import LABELS, Review, Statistics, reviews, statistics

__all__ = ["LABELS", "Review", "Statistics", "reviews", "statistics"]
