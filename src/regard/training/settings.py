"""The [train] fields that every system has; each system's own table extends them."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from regard.config import Checked, Count, Fraction, NonNegativeFloat, PositiveFloat, PositiveInt, parse_numbers
from regard.errors import OptionError

Schedule = Literal["one_cycle", "inverse_sqrt", "constant", "plateau"]
Logger = Literal["csv", "tensorboard", "wandb", "mlflow"]
Precision = Literal["auto", "32-true", "bf16-mixed", "16-mixed"]


@dataclass(frozen=True)
class TrainSettings(Checked):
    """Fields of [train] common to all systems; those of one system are in systems/NAME/config.py."""

    changeable: ClassVar[frozenset[str]] = frozenset(
        {
            "epochs",
            "minutes",
            "schedule_by",
            "learning_rate",
            "patience",
            "checkpoint_minutes",
            "keep_checkpoints",
            "logger",
            "accumulate",
        }
    )
    """The fields that a resumed run may change."""

    epochs: PositiveInt = 20
    """Maximum number of epochs."""
    minutes: NonNegativeFloat = 0.0
    """Maximum training time in minutes, 0 for no limit; the best model so far is kept."""
    learning_rate: PositiveFloat = 1e-3
    """The highest learning rate."""
    learning_rates: str = ""
    """Factors of the learning rate for parts of the model, such as encoder=0.1,decoder.output=2: for the parameters
    whose names begin so. 0 keeps a part as it is, such as one that --from has trained."""
    schedule: Schedule = "one_cycle"
    """How the learning rate changes: one_cycle (rises, then falls along a cosine), inverse_sqrt (rises, then falls with
    the square root of the steps), constant (rises, then stays), plateau (halved after each validation that is not
    better than the best before it, down to 1 %)."""
    schedule_by: Literal["updates", "clock"] = "updates"
    """What the schedule follows: updates, of which epochs decide the number, on fast and slow machines alike; or the
    clock, so that the learning rate has fallen when the minutes are up, however few updates there were."""
    warmup: Fraction = 0.1
    """Fraction of the steps in which the learning rate rises."""
    label_smoothing: Fraction = 0.0
    """Probability mass that is spread over all classes or words."""
    gradient_clip: NonNegativeFloat = 1.0
    """Maximum gradient norm; 0 disables clipping."""
    weight_decay: NonNegativeFloat = 0.0
    """Weight decay of the optimizer."""
    accumulate: PositiveInt = 1
    """Parts in which each batch is computed, one after the other; more parts need less memory and give the same result
    (but for rounding, what is drawn at random, and batch normalisation)."""
    average_decay: Fraction = 0.0
    """Decay of the running average of the parameters that is validated and saved; 0 for none. 0.999 suits most."""
    validate_every: PositiveInt = 1
    """Number of epochs between validations; the last epoch is always validated."""
    patience: Count = 0
    """Number of validations without improvement after which training stops; 0 disables early stopping."""
    checkpoint_minutes: NonNegativeFloat = 30.0
    """Minutes between checkpoints within an epoch, for --resume; 0 for one after each epoch only."""
    keep_checkpoints: PositiveInt = 2
    """How many of the newest checkpoints are kept; with two or more, a damaged one costs little."""
    logger: Logger = "tensorboard"
    """Where the curves of the training go beside logs/metrics.csv: nowhere else (csv), to TensorBoard, Weights & Biases
    or MLflow."""
    precision: Precision = "auto"
    """Precision of the arithmetic; auto chooses bfloat16 on a GPU for the systems that tolerate it."""
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 1
    """Random seed."""

    def check(self) -> None:
        """Raise an OptionError where fields contradict each other."""
        parse_numbers("learning_rates", self.learning_rates, such_as="encoder=0.1,decoder.output=2")
        if self.schedule_by == "clock" and not self.minutes:
            raise OptionError("schedule_by 'clock' needs minutes above 0, in which the schedule ends; got minutes 0.")
        if self.schedule == "inverse_sqrt" and not self.warmup:
            raise OptionError("schedule 'inverse_sqrt' needs a warmup above 0; got warmup 0.0.")


@dataclass(frozen=True)
class Devices(Checked):
    """What to train on. It is no part of a recipe: processes that train together divide the batches of the recipe."""

    devices: PositiveInt = 1
    """GPUs of each machine that train together or, on machines without GPUs, processes."""
    nodes: PositiveInt = 1
    """Machines that train together; the command is then started on each of them with torchrun, or by SLURM (srun)."""

    @property
    def count(self) -> int:
        """How many processes train together."""
        return self.devices * self.nodes
