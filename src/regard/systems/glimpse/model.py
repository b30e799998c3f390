"""Glimpser: a class from a few glimpses of an image (Mnih et al. 2014).

A recurrent core reads one glimpse after the other; from its state, a classifier says what the image shows, and a policy
says where to look next. The policy is a Gaussian around the output of a small network; it learns by REINFORCE.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from PIL import Image
from torch import Tensor, nn

from regard.data.images import ImageInput, open_image
from regard.errors import OptionError, ShapeError
from regard.files import replacing
from regard.layers.glimpse import GlimpseNetwork, What, window_offsets
from regard.parts import build_part
from regard.systems.folder import Labels
from regard.systems.glimpse.config import GlimpsesArguments, GlimpsesConfig, GlimpsesOptions, Policy, image_format
from regard.systems.glimpse.data import SquareView
from regard.systems.predictor import Result
from regard.systems.system import System
from regard.trace import Axis, Box, Map, Series, Trace
from regard.trace.data_uri import to_data_uri
from regard.work import proceed


@dataclass(frozen=True)
class Glimpses(Result):
    """What an image shows, and where the model looked."""

    label: str
    """The most probable class."""
    probability: float
    labels: tuple[str, ...] = field(repr=False)
    """All classes."""
    beliefs: tuple[tuple[float, ...], ...] = field(repr=False)
    """The probability of each class after each glimpse; the last are the answer."""
    path: tuple[tuple[float, float], ...] = field(repr=False)
    """The centre of each glimpse: x and y in pixels of the image."""
    crop_box: tuple[int, int, int, int]
    """The part of the image that was attended to: left, top, right, bottom in pixels. It holds the finest windows of
    all glimpses but the first, which is in the centre of every image."""


@dataclass(frozen=True)
class Path:
    """What happened while a batch was looked at; the tensors of one axis t have one entry per glimpse."""

    locations: Float[Tensor, "b t 2"]
    logits: Float[Tensor, "b t classes"]
    """The classes, as believed after each glimpse."""
    means: Float[Tensor, "b s 2"]
    """The mean of the policy for each glimpse but the first (s = t - 1)."""
    baselines: Float[Tensor, "b s"]
    """The reward that is expected before each of these was chosen."""


class Glimpser(System[ImageInput, Glimpses, GlimpsesOptions]):
    """A glimpse network, a recurrent core, a classifier, a location policy and its baseline.

    An input is an image: a path, a PIL image or an array (see `open_image`).
    """

    kind = "glimpse"
    Config = GlimpsesConfig
    takes_images = True
    assets: ClassVar[Mapping[str, Any]] = {"labels": Labels}
    config: GlimpsesConfig

    def __init__(self, config: GlimpsesConfig, labels: Sequence[str]) -> None:
        super().__init__(config)
        if not labels:
            raise OptionError("A glimpse model needs the names of its classes; got none.")
        self.labels = Labels(labels)
        hidden = config.hidden
        self.glimpse_network = GlimpseNetwork(
            channels=config.channels, size=config.glimpse_size, num_scales=config.num_scales, dim=config.glimpse_dim,
            out_dim=hidden, what=_build_what(config),
        )  # fmt: skip
        self.core = _build_core(config.core, hidden)
        self.classifier = nn.Linear(hidden, len(labels))
        self.locator = nn.Sequential(
            nn.Linear(hidden, config.locator_dim), nn.ReLU(), nn.Linear(config.locator_dim, 2), nn.Tanh()
        )
        self.baseline = nn.Linear(hidden, 1)

    def forward(self, images: Shaped[Tensor, "b c h w"]) -> Float[Tensor, "b classes"]:
        """A logit for each class, from pixels from 0 to 255, after looking where the policy says."""
        return self.look(images).logits[:, -1]

    def look(
        self,
        images: Shaped[Tensor, "b c h w"],
        *,
        first: Float[Tensor, "b 2"] | None = None,
        noise: Float[Tensor, "b s 2"] | None = None,
        locations: Float[Tensor, "b t 2"] | None = None,
        forced: Mapping[int, Float[Tensor, "b 2"]] | None = None,
        num_glimpses: int = 0,
    ) -> Path:
        """Take glimpses of images, pixels from 0 to 255.

        The policy chooses where, after the `first` location (the centre by default); `noise` is added to its mean.
        With `locations`, these are looked at instead; `forced` are locations of single glimpses, counted from 0, that
        replace what would have been looked at. Locations have no gradient: the policy learns from `means`.
        """
        if images.ndim != 4 or images.shape[1] != self.config.channels or 0 in images.shape[2:]:
            raise ShapeError(f"Images are (b, {self.config.channels}, h, w), not empty; got {tuple(images.shape)}.")
        pixels = images.float() / 255
        count = num_glimpses or self.config.num_glimpses
        if locations is not None:
            location, count = locations[:, 0], locations.shape[1]
        else:
            location = pixels.new_zeros(len(pixels), 2) if first is None else first
        forced = forced or {}
        location = forced.get(0, location)
        scene = self.glimpse_network.scene(pixels)
        state = pixels.new_zeros(len(pixels), self.config.hidden)
        cell, visited, states = state, [location], []
        means = []
        for step in range(count):
            proceed()
            seen = self.glimpse_network(scene, location)
            if isinstance(self.core, nn.LSTMCell):
                state, cell = self.core(seen, (state, cell))
            else:
                state = self.core(seen, state)
            states.append(state)
            if step + 1 == count:
                break
            mean = self.locator(state)
            means.append(mean)
            if locations is not None:
                location = locations[:, step + 1]
            else:
                location = mean.detach() if noise is None else (mean.detach() + noise[:, step]).clamp(-1, 1)
            location = forced.get(step + 1, location)
            visited.append(location)
        together = torch.stack(states, 1)
        return Path(
            torch.stack(visited, 1),
            self.classifier(together),
            torch.stack(means, 1) if means else pixels.new_zeros(len(pixels), 0, 2),
            self.baseline(together[:, :-1].detach()).squeeze(-1),
        )

    def look_by(
        self,
        policy: Policy,
        images: Shaped[Tensor, "b c h w"],
        *,
        generator: torch.Generator | None = None,
        num_glimpses: int = 0,
        sample: bool = False,
        share: bool = False,
        forced: Mapping[int, Float[Tensor, "b 2"]] | None = None,
    ) -> Path:
        """Take glimpses by a policy; random numbers come from `generator`, which is of the CPU.

        The learned policy looks at its mean, or with `sample` at locations drawn from it. With `share`, all images get
        the same random numbers, so that no result depends on the batch that an image is in. `forced` is as in `look`.
        """
        count = num_glimpses or self.config.num_glimpses
        rows = 1 if share else len(images)
        if policy == "learned":
            noise = None
            if sample:
                drawn = self.config.location_noise * torch.randn(rows, count - 1, 2, generator=generator)
                noise = drawn.to(images.device).expand(len(images), -1, -1)
            return self.look(images, noise=noise, num_glimpses=count, forced=forced)
        locations = torch.zeros(rows, count, 2)
        if policy == "random":
            locations = 2 * torch.rand(locations.shape, generator=generator) - 1
        return self.look(images, locations=locations.to(images.device).expand(len(images), -1, -1), forced=forced)

    glimpse = System.predict

    def crop(self, image: ImageInput, **options: Any) -> Image.Image:
        """Cut an image to the part that the model attends to (`Glimpses.crop_box`)."""
        return open_image(image, channels=3).crop(self.glimpse(image, **options).crop_box)

    def save_files(self, given: ImageInput, result: Glimpses, arguments: GlimpsesArguments) -> None:
        """Save the attended part of the image."""
        if arguments.crop is not None:
            with replacing(arguments.crop) as draft:
                open_image(given).crop(result.crop_box).save(draft, image_format(arguments.crop))

    def as_text(self, result: Glimpses, options: GlimpsesOptions) -> str:
        """The class, its probability, and where the model looked."""
        path = " ".join(f"({x:.0f},{y:.0f})" for x, y in result.path)
        return f"{result.label} {result.probability:.3f}, looked at {path}"

    def predict_batch(self, inputs: Sequence[ImageInput], options: GlimpsesOptions) -> list[Glimpses]:
        """The results of one batch of images."""
        views = [self.view(image) for image in inputs]
        pixels = torch.from_numpy(np.stack([view.pixels for view in views])).to(self.device)
        policy: Policy = self.config.policy if options.policy == "model" else options.policy
        generator = torch.Generator().manual_seed(options.seed)
        paths = [
            self.look_by(
                policy, pixels, generator=generator, num_glimpses=options.num_glimpses, sample=options.passes > 1,
                share=True,
            )
            for _ in range(options.passes)
        ]  # fmt: skip
        beliefs = torch.stack([path.logits.float().softmax(-1) for path in paths]).mean(0)
        rows = zip(views, paths[0].locations.float().cpu(), beliefs.cpu(), strict=True)
        results = [make_result(view, path, belief, self.config, self.labels) for view, path, belief in rows]
        return results if options.traces != "none" else [replace(result, trace=None) for result in results]

    def view(self, image: ImageInput) -> SquareView:
        """An image as this model looks at it."""
        opened = open_image(image, channels=self.config.channels)
        return SquareView.from_image(opened, self.config.image_size, light_on_dark=self.config.light_on_dark)


def _build_what(config: GlimpsesConfig) -> What | nn.Module:
    """The encoder of a glimpse: its name, or a custom module from (b, planes, size, size) to (b, dim)."""
    if config.what in ("linear", "convolution"):
        return cast(What, config.what)
    planes = config.channels * config.num_scales
    built: nn.Module = build_part(
        config.what, {"planes": planes, "size": config.glimpse_size, "dim": config.glimpse_dim}
    )
    return built


def _build_core(name: str, hidden: int) -> nn.Module:
    """The recurrent cell that reads one glimpse after the other."""
    match name:
        case "lstm":
            return nn.LSTMCell(hidden, hidden)
        case "rnn":
            return nn.RNNCell(hidden, hidden, True, "relu")
        case path:
            built: nn.Module = build_part(path, {"input_size": hidden, "hidden_size": hidden})
            return built


def make_result(
    view: SquareView,
    path: Float[Tensor, "t 2"],
    beliefs: Float[Tensor, "t classes"],
    config: GlimpsesConfig,
    labels: Sequence[str],
) -> Glimpses:
    """The result of one image, from the locations of its glimpses and the probabilities after each."""
    side = config.image_size
    points = ((path + 1) / 2 * side).tolist()
    probability, best = beliefs[-1].max(-1)
    finest = _windows(path, config, 0)
    attended = finest[1:] if len(finest) > 1 else finest
    left, top = view.to_image(*attended[:, :2].amin(0).tolist())
    right, bottom = view.to_image(*attended[:, 2:].amax(0).tolist())
    width, height = view.size
    start = min(int(left), width - 1), min(int(top), height - 1)
    return Glimpses(
        label=labels[int(best)],
        probability=float(probability),
        labels=tuple(labels),
        beliefs=tuple(map(tuple, beliefs.tolist())),
        path=tuple(view.to_image(x, y) for x, y in points),
        crop_box=(*start, max(start[0] + 1, round(right)), max(start[1] + 1, round(bottom))),
        trace=_trace(view, path, beliefs, config, labels),
    )


def _windows(path: Float[Tensor, "t 2"], config: GlimpsesConfig, scale: int) -> Int[Tensor, "t 4"]:
    """Left, top, right and bottom of what a scale sees in each glimpse, in pixels of the square, cut at its edges."""
    side, size = config.image_size, config.glimpse_size
    offsets = window_offsets(path, image=(side, side), size=size, scale=scale)
    return offsets.repeat(1, 2).add(offsets.new_tensor([0, 0, size * 2**scale, size * 2**scale])).clamp(0, side)


def _trace(
    view: SquareView,
    path: Float[Tensor, "t 2"],
    beliefs: Float[Tensor, "t classes"],
    config: GlimpsesConfig,
    labels: Sequence[str],
) -> Trace:
    """The square that was looked at; for each glimpse its point, a box per scale (finest first), and the belief."""
    axes = (
        Axis("glimpses", "steps", tuple(str(number) for number in range(1, len(path) + 1))),
        Axis("classes", "classes", tuple(labels)),
    )
    points = ((path + 1) / 2).tolist()
    windows = [(_windows(path, config, scale) / config.image_size).tolist() for scale in range(config.num_scales)]
    boxes = [Box("glimpses", step, *scale[step]) for step in range(len(path)) for scale in windows]
    series = (
        Series("x", "glimpses", [x for x, _ in points]),
        Series("y", "glimpses", [y for _, y in points]),
    )
    pixels = np.ascontiguousarray(view.pixels.transpose(1, 2, 0))
    return Trace(
        "glimpses",
        axes,
        (Map("belief", "glimpses", "classes", beliefs),),
        series,
        tuple(boxes),
        to_data_uri(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels),
        {"glimpse_size": config.glimpse_size, "num_scales": config.num_scales},
    )
