"""stories: sentences in which a word goes back to an earlier noun, and it is known to which.

    the animal did n't cross the street because it was too tired .

*It* is the animal, and *wide* instead of *tired* would make it the street. Someone who reads from left to right knows
this at *tired*; someone who sees the whole sentence knows it at *it*. A link therefore has two places, the word that
goes back and the word from which on the antecedent is known, and a reader is scored at the one that its direction
allows.

- Pronouns are *it*, *he*, *she* and *they*. Where number and gender leave one noun, the pronoun itself decides;
  elsewhere what is said with *too* does, which fits one of the nouns alone: an animal is tired, a street is wide.
- Verbs agree at a distance: in *the cars that the old man saw near the bridge are rusty*, only the subject has the
  number of the verb.
- A sentence has two to four nouns of different kinds. The antecedent is any of them; the nearest noun is right less
  than half of the time.

What a reader learns is `tags`: at the place where it can know, it names the noun; at all other words it says "-".
Nothing tells it where to look.
"""

from regard.worlds.stories.story import NONE, Link, Statistics, Story, statistics, stories

__all__ = ["NONE", "Link", "Statistics", "Story", "statistics", "stories"]
