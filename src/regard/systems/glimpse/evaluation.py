"""How good a glimpse model is: its error, and whether it looks at the digit, beside random and central glimpses."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.errors import counted
from regard.systems.glimpse.config import GlimpsesTest, Policy
from regard.systems.glimpse.data import draw_tests
from regard.systems.glimpse.model import Glimpser
from regard.systems.report import Measure, Report
from regard.worlds.digits import DigitImages

_BATCH = 1000


@dataclass(frozen=True, eq=False)
class Measured:
    """What a policy achieves on a set of images."""

    beliefs: Float[Tensor, "n t classes"]
    """The probability of each class after each glimpse."""
    right: Bool[Tensor, "n t"]
    """Whether the most probable class after each glimpse is the right one."""
    hits: Bool[Tensor, "n t"]
    """Whether the centre of each glimpse is in the digit's box."""

    @property
    def error(self) -> float:
        """Wrong answers after the last glimpse, in percent."""
        return 100 * (1 - float(self.right[:, -1].double().mean()))

    @property
    def on_digit(self) -> float:
        """Glimpses that fall on the digit, in percent; of several, all but the first, which is in the centre."""
        chosen = self.hits[:, 1:] if self.hits.shape[1] > 1 else self.hits
        return 100 * float(chosen.double().mean())


@torch.inference_mode()
def measure(model: Glimpser, digits: DigitImages, policy: Policy, *, passes: int = 1, seed: int = 0) -> Measured:
    """Look at every image by a policy; with several passes, their probabilities are averaged."""
    generator = torch.Generator().manual_seed(seed)
    parts = []
    for start in range(0, len(digits), _BATCH):
        here = slice(start, start + _BATCH)
        images = digits.images[here].to(model.device)
        paths = [model.look_by(policy, images, generator=generator, sample=passes > 1) for _ in range(passes)]
        beliefs = torch.stack([path.logits.float().softmax(-1) for path in paths]).mean(0)
        right = beliefs.argmax(-1) == digits.labels[here, None].to(model.device)
        size = images.shape[3], images.shape[2]
        hits = on_box(paths[0].locations, digits.boxes[here].to(model.device), size)
        parts.append((beliefs.cpu(), right.cpu(), hits.cpu()))
    return Measured(*(torch.cat(each) for each in zip(*parts, strict=True)))


def on_box(locations: Float[Tensor, "n t 2"], boxes: Int[Tensor, "n 4"], size: tuple[int, int]) -> Bool[Tensor, "n t"]:
    """Whether each location lies in the box of its image, given in pixels of an image of (width, height)."""
    x, y = ((locations[..., axis] + 1) / 2 * size[axis] for axis in (0, 1))
    left, top, right, bottom = boxes[:, None].unbind(-1)
    return (x >= left) & (x <= right) & (y >= top) & (y <= bottom)


def evaluate(model: Glimpser, test_set: GlimpsesTest, *, name: str = "model") -> Report:
    """Let a model look at images of digits, by its own policy and by the baselines."""
    digits = draw_tests(model, test_set)
    own = model.config.policy
    policies: list[Policy] = list(dict.fromkeys((own, "random", "center")))
    found = {policy: measure(model, digits, policy, passes=test_set.passes) for policy in policies}
    mine = found[own]
    passes = "one pass" if test_set.passes == 1 else f"mean of {test_set.passes} passes"
    scores = {
        "error": Measure(mine.error, note=f"percent, {passes}"),
        "glimpses on the digit": Measure(mine.on_digit, "{:.1f}", "percent of those after the first"),
        "random glimpses on the digit": Measure(found["random"].on_digit, "{:.1f}", "percent"),
        "central glimpses on the digit": Measure(found["center"].on_digit, "{:.1f}", "percent"),
    }
    steps: list[dict[str, Any]] = [
        {
            "glimpse": step + 1,
            "error": 100 * (1 - float(mine.right[:, step].double().mean())),
            "on the digit": 100 * float(mine.hits[:, step].double().mean()),
        }
        for step in range(mine.right.shape[1])
    ]
    by_policy: list[dict[str, Any]] = [
        {"locations": policy, "error": each.error, "on the digit": each.on_digit} for policy, each in found.items()
    ]
    outputs = [
        {"label": model.labels[int(label)], "predicted": model.labels[int(belief.argmax())]}
        for label, belief in zip(digits.labels, mine.beliefs[:, -1], strict=True)
    ]
    tables = {"After each glimpse": steps, "This model with other locations": by_policy}
    notes = (
        "A model that was trained with random locations (--model.policy random) is the fair baseline of the error; "
        "this model never learned from such locations.",
    )
    clutter = f", {counted(test_set.pieces, 'piece')}" if test_set.pieces else ""
    title = f"{counted(len(digits), 'image')} of {model.config.image_size} x {model.config.image_size} pixels{clutter}"
    return Report(name, title, scores, tables, outputs, notes=notes)
