"""Grades of captions, from their CIDEr-D scores instead of human judgement."""

GRADES = ("without errors", "with minor errors", "somewhat related", "unrelated")
"""The grades that people gave to captions of Show and Tell (Vinyals et al. 2015, section 4.3.6), best first."""
MIN_CIDER_D = (1.1, 0.6, 0.1)
"""The smallest CIDEr-D of each grade but the last.

Measured on the human captions of the 1,000 dev photographs of Flickr8k, the first caption of each against the other
four: a quarter scores 1.1 or more, and half scores 0.6 or more. Against the captions of another photograph, nine of ten
score below 0.1.
"""


def grade(cider_d: float) -> str:
    """Return the grade of a caption with this CIDEr-D, from 0 to 10.

    It measures how closely the caption agrees with the wording of the references. A true statement that no reference
    makes is graded too low, and one wrong word in a common sentence too high: look at the images as well.
    """
    return next((name for name, minimum in zip(GRADES, MIN_CIDER_D, strict=False) if cider_d >= minimum), GRADES[-1])
