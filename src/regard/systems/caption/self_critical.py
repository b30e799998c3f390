"""Self-critical training: sampled captions are rewarded by their CIDEr-D (Rennie et al. 2017).

Cross-entropy teaches the next word of what people wrote; this teaches whole captions that resemble what people wrote.
The baseline of a caption is the mean reward of the other captions sampled for the same image.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from regard.data.batches import pad
from regard.data.tokenizer import END, PAD, START
from regard.encoders.encoded import Encoded
from regard.metrics.captions import CiderD, caption_words
from regard.search.options import Search
from regard.systems.caption.model import Captioner
from regard.training.losses import advantage_over_others


class Critic:
    """CIDEr-D of captions against the references of each image, with document frequencies from all references."""

    def __init__(self, captions: Sequence[Sequence[str]]) -> None:
        self._references = [[caption_words(text) for text in references] for references in captions]
        self._score = CiderD(self._references)

    def __call__(self, index: int, captions: Sequence[str]) -> list[float]:
        """The rewards of captions of the image with this index."""
        return self._score([caption_words(text) for text in captions], self._references[index])


def self_critical_loss(
    model: Captioner, critic: Critic, encoded: Encoded, indices: Int[Tensor, "b"], *, num_samples: int, max_length: int
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """-(reward - mean reward of the image's other captions) log p(caption), per word; and the mean reward.

    The model should be in evaluation mode, so that captions are sampled from the distribution whose probabilities are
    trained.
    """
    encoded = repeated(encoded, num_samples)
    options = Search(sample=True, beam=1, max_length=max_length)
    samples = [best[0] for best in model.search_encoded(encoded, options)]
    texts = [model.tokenizer.decode(sample.tokens) for sample in samples]
    by_image = [critic(index, texts[row :: len(indices)]) for row, index in enumerate(indices.tolist())]
    rewards = torch.tensor(by_image, device=indices.device).T
    advantages = advantage_over_others(rewards)
    rows = [[*sample.tokens, *([END] if sample.finished else [])] for sample in samples]
    target = pad(rows, before=(START,))[0].to(indices.device)
    inputs, targets = target[:, :-1], target[:, 1:]
    real = targets != PAD
    logits = model.decoder.output(model.decoder(encoded, inputs).features[real]).float()
    nll = functional.cross_entropy(logits, targets[real], reduction="none")
    each = advantages.reshape(-1, 1).expand_as(targets)[real]
    return (each * nll).mean(), rewards.mean()


def repeated(encoded: Encoded, times: int) -> Encoded:
    """The batch of images repeated: all of them, and all of them again."""

    def again(part: Tensor) -> Tensor:
        return part.repeat(times, *[1] * (part.ndim - 1))

    return Encoded(again(encoded.states), again(encoded.mask), again(encoded.summary))
