"""Self-critical training: captions are drawn, and rewarded with their CIDEr-D (Rennie et al. 2017).

Cross-entropy teaches the next word of what people wrote; this, to say what is like what people wrote. The reward of a
caption counts against that of the others drawn for the same picture.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from regard.data.tokenizer import END, PAD, START
from regard.encoders.encoded import Encoded
from regard.metrics.captions import CiderD, caption_words
from regard.search.hypothesis import Hypothesis
from regard.systems.captioner import Captioner


class Critic:
    """CIDEr-D against the captions that people wrote of each picture, among all that they wrote."""

    def __init__(self, captions: Sequence[Sequence[str]]) -> None:
        self._wanted = [[caption_words(text) for text in each] for each in captions]
        self._score = CiderD(self._wanted)

    def __call__(self, place: int, captions: Sequence[str]) -> list[float]:
        """The rewards of some captions of the picture at a place."""
        return self._score([caption_words(text) for text in captions], self._wanted[place])


def critical_loss(
    model: Captioner, critic: Critic, encoded: Encoded, places: Int[Tensor, "b"], *, draws: int, max_length: int
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """-(reward - mean reward of the picture's other captions) log p(caption), for each word; and the mean reward.

    The model should be in evaluation mode, so that captions are drawn from what their probabilities are of.
    """
    encoded = repeated(encoded, draws)
    drawn = model.draw(encoded, max_length=max_length)
    texts = [model.tokenizer.decode(one.tokens) for one in drawn]
    by_place = [critic(place, texts[row :: len(places)]) for row, place in enumerate(places.tolist())]
    rewards = torch.tensor(by_place, device=places.device).T
    advantages = rewards - (rewards.sum(0) - rewards) / (draws - 1)
    target = _as_target(drawn, places.device)
    given, wanted = target[:, :-1], target[:, 1:]
    real = wanted != PAD
    logits = model.decoder.output(model.decoder(encoded, given).features[real]).float()
    nll = functional.cross_entropy(logits, wanted[real], reduction="none")
    weights = advantages.reshape(-1, 1).expand_as(wanted)[real]
    return (weights * nll).mean(), rewards.mean()


def repeated(encoded: Encoded, times: int) -> Encoded:
    """Each picture as often as that: all of them, and all of them again."""

    def again(part: Tensor) -> Tensor:
        return part.repeat(times, *[1] * (part.ndim - 1))

    return Encoded(*(again(part) for part in (encoded.states, encoded.mask, encoded.summary)))


def _as_target(drawn: Sequence[Hypothesis], device: torch.device) -> Int[Tensor, "r m"]:
    rows = [[START, *one.tokens, *([END] if one.finished else [])] for one in drawn]
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows], device=device)
