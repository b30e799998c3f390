"""How a glimpse model learns: images drawn on the device, classes by cross-entropy, locations by REINFORCE."""

from typing import Any

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor
from torch.nn import functional

from regard.data.batches import BatchLoader
from regard.errors import DataError
from regard.systems.glimpse.config import GlimpsesData, GlimpsesTrain, Policy
from regard.systems.glimpse.data import DigitSplits, digit_world, read_splits
from regard.systems.glimpse.evaluation import measure
from regard.systems.glimpse.model import Glimpser, Path
from regard.systems.system import choose_device
from regard.training.batch_sizes import load_batches
from regard.training.experiment import Experiment, tensor_checksum
from regard.training.task import Task
from regard.worlds.digits import DIGITS

DigitBatch = tuple[UInt8[Tensor, "b 1 h w"], Int[Tensor, "b"]]
BATCH_SIZE = 512
"""Images in a batch, where their number is chosen automatically."""
DrawnBatch = tuple[
    UInt8[Tensor, "b 1 h w"], Int[Tensor, "b"], Float[Tensor, "b 2"], Float[Tensor, "b s 2"], Float[Tensor, ""]
]
"""Images and labels, the first locations, what the locations are drawn with, and the deviation of that noise."""
_VALIDATION_BATCH = 1000


class GlimpsesTask(Task):
    """The loss of a batch, and what a validation measures."""

    unit = "images"
    settings: GlimpsesTrain

    def __init__(self, model: Glimpser, settings: GlimpsesTrain, total_steps: int) -> None:
        super().__init__(settings, total_steps)
        self.model, self.is_recordable = model, not model.custom_parts
        self._validated = 0

    def prepared(self, batch: DigitBatch) -> DrawnBatch:
        """The images and labels, and random numbers for the locations."""
        images, labels = batch
        first, noise = self._drawn(len(images), images.device)
        return images, labels, first, noise, torch.full((), self._noise(), device=images.device)

    def amount(self, batch: DrawnBatch) -> int:
        """The number of images."""
        return len(batch[0])

    def loss(self, batch: DrawnBatch) -> Tensor:
        """Cross-entropy of the class, REINFORCE for the locations; the reward is 1 for the right class, otherwise 0."""
        images, labels, first, noise, deviation = batch
        learned = self.model.config.policy == "learned"
        if learned:
            path = self.model.look(images, first=first, noise=deviation * noise)
        else:
            path = self.model.look(images, locations=torch.cat([first[:, None], noise], 1))
        logits = path.logits.float()
        loss = functional.cross_entropy(logits[:, -1], labels, label_smoothing=self.settings.label_smoothing)
        if self.settings.belief_weight and logits.shape[1] > 1:
            earlier = functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels.repeat_interleave(len(noise[0])))
            loss = loss + self.settings.belief_weight * earlier
        if learned and len(noise[0]):
            loss = loss + self._policy_loss(path, labels, noise, deviation)
        self.log("loss", loss, batch_size=len(labels))
        right = logits[:, -1].detach().argmax(-1) == labels
        self.log("reward", right.float().mean(), batch_size=len(labels))
        return loss

    def validate(self, batch: DigitBatch) -> None:
        """Accuracy of one pass over images that are always the same."""
        images, labels = batch
        generator = torch.Generator().manual_seed(self._validated)
        self._validated += 1
        logits = self.model.look_by(self.model.config.policy, images, generator=generator).logits[:, -1].float()
        self.log("valid_loss", functional.cross_entropy(logits, labels), batch_size=len(labels))
        right = 100 * (logits.argmax(-1) == labels).float().mean()
        self.log("valid_accuracy", right, batch_size=len(labels))

    def validated(self) -> None:
        """Begin to count batches anew."""
        self._validated = 0

    def _noise(self) -> float:
        """The deviation of the locations at this point of the training: it falls linearly."""
        done = self.fraction_done(self.step)
        last = self.model.config.location_noise
        return last + (self.settings.first_noise - last) * (1 - done)

    def _drawn(self, count: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Random numbers of a step: the first locations, and what the locations are drawn with."""
        steps = self.model.config.num_glimpses
        match self.model.config.policy:
            case "learned":
                noise = torch.randn(count, steps - 1, 2, device=device)
            case "random":
                noise = 2 * torch.rand(count, steps - 1, 2, device=device) - 1
            case _:
                noise = torch.zeros(count, steps - 1, 2, device=device)
                return torch.zeros(count, 2, device=device), noise
        return 2 * torch.rand(count, 2, device=device) - 1, noise

    def _policy_loss(self, path: Path, labels: Tensor, noise: Tensor, deviation: Tensor) -> Tensor:
        """REINFORCE with a learned baseline (Mnih et al. 2014, equation 5): -(R - b_t) log p(l_t), and (R - b_t)^2.

        R is 1 if the last answer is right. The location l_t = mean + deviation * noise has log p = -|l_t - mean|^2 /
        (2 deviation^2), up to a constant, and only the mean has a gradient.
        """
        reward = (path.logits[:, -1].argmax(-1) == labels).float()[:, None]
        advantage = reward - path.baselines.float()
        chosen = path.means.detach() + deviation * noise
        log_prob = -(chosen - path.means).square().sum(-1) / (2 * deviation.square())
        reinforce = -(advantage.detach() * log_prob).sum(1).mean()
        settings = self.settings
        return settings.reinforce_weight * reinforce + settings.baseline_weight * advantage.square().mean()


class GlimpsesExperiment(Experiment[Glimpser]):
    """Digits in, a trained glimpse model out."""

    Data = GlimpsesData
    Train = GlimpsesTrain
    file_fields = ("folder",)
    score = "valid_accuracy"

    def read_data(self) -> DigitSplits:
        """The digits to train with, and the images to validate and test with, which are always the same."""
        return read_splits(self.recipe.data, self.recipe.model, choose_device())

    def checksums(self, splits: DigitSplits) -> dict[str, str]:
        """Of the digits to train with, and of the images to validate and test with."""
        return {name: tensor_checksum(part.images, part.labels) for name, part in vars(splits).items()}

    def build(self, splits: DigitSplits) -> Glimpser:
        """A new model of the ten digits."""
        return Glimpser(self.recipe.model, DIGITS)

    def check_model(self, model: Glimpser, splits: DigitSplits) -> None:
        """The classes must be the digits."""
        if tuple(model.labels) != DIGITS:
            raise DataError(f"The model knows the classes {list(model.labels)}, and the images show digits.")

    def task(self, model: Glimpser, splits: DigitSplits) -> tuple[Task, BatchLoader, BatchLoader]:
        """Batches of images that are drawn on the device."""
        settings, data, config = self.recipe.train, self.recipe.data, self.recipe.model
        examples = data.examples or (len(splits.train) if data.folder else 20_000)
        world = digit_world(data, config, data.distortion)
        train = load_batches(
            lambda size: world.loader(splits.train, examples=examples, batch_size=size, seed=settings.seed),
            settings.batch_size,
            usual=BATCH_SIZE,
        )
        valid = splits.valid.loader(max(_VALIDATION_BATCH, settings.batch_size))
        return GlimpsesTask(model, settings, total_steps=settings.epochs * len(train)), train, valid

    def test(self, model: Glimpser, splits: DigitSplits) -> dict[str, Any]:
        """Error of one pass, and how many glimpses fall on the digit, beside random and central ones."""
        assert splits.test is not None  # noqa: S101 - read() always makes it
        policy = model.config.policy
        policies: list[Policy] = list(dict.fromkeys((policy, "random", "center")))
        found = {name: measure(model, splits.test, name) for name in policies}
        return {
            "test_error": found[policy].error,
            "test_images": len(splits.test),
            "on_digit": found[policy].on_digit,
            "random_on_digit": found["random"].on_digit,
            "center_on_digit": found["center"].on_digit,
            "random_path_error": found["random"].error,
        }
