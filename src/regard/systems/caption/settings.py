"""How to train a captioner: the fields of its [train] table."""

from dataclasses import dataclass

from regard.config import NonNegativeFloat, PositiveInt, Probability
from regard.errors import OptionError
from regard.training.settings import TrainSettings


@dataclass(frozen=True)
class CaptionTrain(TrainSettings):
    """How to train a captioner."""

    max_tokens: PositiveInt = 2000
    """Words in a batch, padding included."""
    bucket_by_length: bool = True
    """Whether the captions of a batch have similar lengths, which saves padding. Where the length of a caption depends
    on what it describes, mixed batches learn much faster, because each is a fair sample of the data."""
    doubly_stochastic_weight: NonNegativeFloat = 1.0
    """Weight of the doubly stochastic penalty: the mean over captions and cells of (1 - sum_t alpha_ti)^2."""
    guidance: NonNegativeFloat = 0.0
    """Weight of the loss that pulls the attention of a word towards what it names (data.regions, or the regions of the
    world); 0 for none."""
    matching: NonNegativeFloat = 0.0
    """Weight of the loss by which words and cells learn to match, from captions without boxes, and which pulls the
    attention of a word towards the cells that match it; 0 for none."""
    reinforce_weight: NonNegativeFloat = 1.0
    """hard: weight of the REINFORCE term."""
    entropy_weight: NonNegativeFloat = 0.01
    """hard: weight of the entropy bonus."""
    soft_fraction: Probability = 0.3
    """hard: fraction of the training, at its beginning, in which attention is soft, so that the first choices are worth
    a reward."""
    soft_probability: Probability = 0.5
    """hard: probability that a caption is still read with soft attention after that."""
    attention_samples: PositiveInt = 1
    """hard: cells sampled for each word; from two on, the other samples are the baseline of each."""
    self_critical_fraction: Probability = 0.0
    """Fraction of the training, at its end, in which captions are sampled and rewarded by their CIDEr-D instead of
    learned word by word; 1 to continue from a trained captioner (--from). Hard attention then takes the most likely
    cell, and no longer learns where to look."""
    num_samples: PositiveInt = 5
    """Captions sampled of each image in that phase; the mean reward of the others is the baseline of each."""
    valid_beam: PositiveInt = 1
    """Beam size of the validations."""
    max_output_length: PositiveInt = 30
    """Longest caption in words when validating and testing."""

    def check(self) -> None:
        """Rules between the fields."""
        super().check()
        if self.self_critical_fraction and self.num_samples < 2:
            raise OptionError(
                f"Captions are rewarded against each other: num_samples must be 2 or more; got {self.num_samples}."
            )
