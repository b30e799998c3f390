"""Tapes: sequences of bits to be copied, repeated, recalled, sorted or predicted (Graves et al. 2014, section 4).

A tape is what a machine reads, one vector at each step: first the sequence, then a mark, then nothing but zeros while
the machine answers. Tapes are generated on the device of a random generator, a batch of equal length at a time, and a
seed always gives the same tapes on one kind of device.

| task | the machine reads | it answers with |
|---|---|---|
| copy | n vectors of bits | the same vectors |
| repeat-copy | n vectors, and a number | the vectors so many times, then an end mark |
| recall | n items of some vectors each, and one of them again | the item that came after it |
| priority-sort | n vectors, each with a priority | those of the highest priorities, highest first |
| ngrams | n bits, each drawn with a probability that depends on the bits before it | at each step the next bit |
"""

from regard.worlds.tapes.task import Drawn, Tapes, Task
from regard.worlds.tapes.tasks import TASKS, Copy, NGrams, PrioritySort, Recall, RepeatCopy

__all__ = ["TASKS", "Copy", "Drawn", "NGrams", "PrioritySort", "Recall", "RepeatCopy", "Tapes", "Task"]
