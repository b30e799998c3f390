"""What a recipe for a captioner says."""

from dataclasses import dataclass, field
from typing import Literal

from regard.systems.captioner import CaptionerConfig


@dataclass(frozen=True)
class CaptionDataConfig:
    """Which pictures and captions to learn from."""

    folder: str = "."
    """Folder that the other paths are relative to."""
    captions: str = ""
    """File with the captions: Flickr8k or Flickr30k tokens, COCO or Karpathy JSON, or a table; see read_captions."""
    images: tuple[str, ...] = ()
    """Folders, tar or zip archives with the pictures (may have * in their names); not needed where `store` is there."""
    store: str = ""
    """Folder for the features of the pictures under a frozen encoder; made if it is not there."""
    world: Literal["", "scenes"] = ""
    """Or generated pictures: scenes."""
    examples: int = 20_000
    """How many pictures of a world to generate."""
    held_out: int = 1000
    """Pictures held out for validation, where the captions name no split."""
    held_out_test: int = 0
    """Pictures held out for a test, where the captions name no split."""
    vocabulary: int = 10_000
    """Most words that captions are made of."""
    minimum_count: int = 5
    """Words that are rarer are unknown."""
    max_length: int = 40
    """Longest caption in words; longer ones are not learned from."""


@dataclass(frozen=True)
class CaptionTrainConfig:
    """How to learn to caption."""

    epochs: int = 20
    """Most passes over the captions."""
    minutes: float = 0.0
    """Most time, 0 for any; the step size then falls with the time, so that training ends well where it ends."""
    max_tokens: int = 2000
    """Words in a batch, padding counted."""
    alike: bool = True
    """Whether a batch is of captions of like length, which saves padding; where the length of a caption tells what is
    seen, mixed batches learn much faster, since each is a fair sample of what there is."""
    learning_rate: float = 1e-3
    """The highest step size."""
    schedule: Literal["one_cycle", "inverse_sqrt", "constant", "plateau"] = "one_cycle"
    """How the step size rises and falls; plateau: halved after each validation without a better BLEU, down to 1 %."""
    warmup: float = 0.1
    """Share of the steps in which the step size rises."""
    label_smoothing: float = 0.0
    """Probability given to all other words."""
    clip: float = 1.0
    """Largest norm of the gradients."""
    weight_decay: float = 0.0
    """Decay of the weights."""
    average: float = 0.0
    """Decay of the running average of the weights that is evaluated and kept; 0 for none."""
    doubly: float = 1.0
    """Weight of the doubly stochastic penalty: the mean over captions and cells of (1 - sum_t alpha_ti)^2."""
    reward: float = 1.0
    """Hard attention: weight of the REINFORCE term."""
    entropy: float = 0.01
    """Hard attention: weight of the entropy bonus."""
    soft: float = 0.3
    """Hard attention: share of the training in which it still is soft, so that its first choices are worth a reward."""
    coin: float = 0.5
    """Hard attention: how likely a caption is still read with soft attention after that."""
    samples: int = 1
    """Hard attention: choices drawn for each caption; from two on, the others are the baseline of each."""
    critical: float = 0.0
    """Share of the training, at its end, in which captions are drawn and rewarded with their CIDEr-D, instead of
    learning word by word what people wrote; 1 where a model that can caption already goes on (--from). Hard attention
    then looks where it likes best, and learns no more where to look."""
    draws: int = 5
    """Captions drawn of each picture then; the others' mean reward is the baseline of each."""
    validate_every: int = 1
    """Epochs between validations, which decode the validation pictures."""
    valid_beam: int = 1
    """Beam of these validations."""
    patience: int = 0
    """Validations without a better BLEU-4 before training ends; 0 for no early end."""
    max_output: int = 30
    """Longest caption in words, when validating and testing."""
    checkpoint_minutes: float = 30.0
    """Minutes between checkpoints within an epoch, for --resume; 0 for only one after each epoch."""
    precision: Literal["auto", "32-true", "bf16-mixed", "16-mixed"] = "auto"
    """auto: float32."""
    seed: int = 1
    """Decides everything that is random."""


@dataclass(frozen=True)
class CaptionRecipe:
    """A whole experiment with captions."""

    data: CaptionDataConfig = field(default_factory=CaptionDataConfig)
    model: CaptionerConfig = field(default_factory=CaptionerConfig)
    train: CaptionTrainConfig = field(default_factory=CaptionTrainConfig)


CAPTION_TABLES: dict[str, type] = {"data": CaptionDataConfig, "model": CaptionerConfig, "train": CaptionTrainConfig}
