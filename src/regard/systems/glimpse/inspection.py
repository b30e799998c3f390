"""Questions to a glimpse model: what it believes, and where it looks next, if it is made to look somewhere."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import torch

from regard.config import Count, Probability
from regard.data.images import ImageInput
from regard.errors import OptionError
from regard.search.options import Seed
from regard.systems.endpoint import endpoint
from regard.systems.glimpse.config import Policy
from regard.systems.glimpse.model import Glimpser, Glimpses, make_result


@endpoint("at", input="image")
@torch.inference_mode()
def glimpse_at(
    model: Glimpser,
    image: ImageInput,
    locations: Mapping[int, tuple[Probability, Probability]] = MappingProxyType({}),
    *,
    num_glimpses: Count = 0,
    seed: Seed = 0,
) -> Glimpses:
    """Look at an image with some glimpses forced to given locations, and the others where the policy then chooses.

    `locations` maps the number of a glimpse, from 0, to (x, y) in fractions of the square that the model looks at,
    which is the image of a trace: (0, 0) is its upper left corner, (0.5, 0.5) its centre. What follows a forced glimpse
    is chosen after what was seen there. Without locations, this is what `Glimpser.glimpse` gives.

    Parameters
    ----------
    locations
        Where single glimpses look: x and y, each from 0 to 1. The model chooses all others.
    num_glimpses
        Number of glimpses; 0 for as many as in training.
    """
    model.check_mode()
    count = num_glimpses or model.config.num_glimpses
    for number, location in locations.items():
        if not 0 <= number < count:
            raise OptionError(f"A glimpse to force has a number from 0 to {count - 1}; got {number}.")
        if not all(0 <= part <= 1 for part in location):
            raise OptionError(
                f"A location is (x, y), each a fraction of the image from 0 to 1; got {tuple(location)} for glimpse "
                f"{number}."
            )
    view = model.view(image)
    pixels = torch.from_numpy(np.stack([view.pixels])).to(model.device)
    forced = {
        number: pixels.new_tensor([location], dtype=torch.float32) * 2 - 1 for number, location in locations.items()
    }
    policy: Policy = model.config.policy
    path = model.look_by(
        policy, pixels, generator=torch.Generator().manual_seed(seed), num_glimpses=count, forced=forced
    )
    beliefs = path.logits.float().softmax(-1)
    result = make_result(view, path.locations[0].float().cpu(), beliefs[0].cpu(), model.config, model.labels)
    measured: Glimpses = model.with_attention_quality(result)
    return measured
