"""Grades of captions in the words of the lectures, given by CIDEr-D in place of a person."""

GRADES = ("without errors", "with minor errors", "somewhat related", "unrelated")
"""What people said of the captions of Show and Tell (Vinyals et al. 2015, section 4.3.6), best first."""
LEAST = (1.1, 0.6, 0.1)
"""The CIDEr-D from which on a caption has each grade but the last.

Measured on what people wrote of the 1,000 dev photographs of Flickr8k, the first caption of each against the other
four: a quarter score 1.1 or more, and half of them 0.6. Against the captions of another photograph, nine of ten score
less than 0.1.
"""


def grade(cider_d: float) -> str:
    """The grade of a caption by its CIDEr-D, from 0 to 10.

    It tells how far the caption says what people said, in their words. What is true and was said by nobody is graded
    too low, and one wrong word in a usual sentence too high: look at the pictures.
    """
    return next((name for name, least in zip(GRADES, LEAST, strict=False) if cider_d >= least), GRADES[-1])
