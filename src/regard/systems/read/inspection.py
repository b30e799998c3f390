"""What a language model expects next, word by word."""

from dataclasses import dataclass
from typing import Annotated

import torch
from msgspec import Meta

from regard.data.tokenizer import PAD, UNKNOWN
from regard.errors import OptionError
from regard.systems.endpoint import endpoint
from regard.systems.read.model import Reader


@dataclass(frozen=True)
class Expected:
    """A word that a model expects, and how probable it is."""

    word: str
    probability: float


@endpoint("expected", input="text", answer="expected", example={"text": "The dog is running.", "model": "reader-en"})
@torch.inference_mode()
def expected_words(
    model: Reader, text: str, *, top: Annotated[int, Meta(ge=1, le=50)] = 5
) -> list[tuple[Expected, ...]]:
    """The words that a language model expects in the place of each word of a text, the most probable first.

    One more entry, the last, is about what follows the text; "</s>" is the end of a sentence.

    Parameters
    ----------
    top
        Number of words for each place.
    """
    model.check_mode()
    if model.config.task != "language-model":
        raise OptionError(f"Only language models expect words; this reader has task {model.config.task!r}.")
    if top < 1:
        raise OptionError(f"top must be 1 or more; got {top}.")
    ids, lengths = model.padded([model.split(text)])
    logits = model.network.output(model.network(ids, lengths).features[0]).float()
    probabilities = logits.softmax(-1)
    # Padding and unknown words are not reported; the probabilities of the others stay as they are.
    probabilities[:, [PAD, UNKNOWN]] = 0
    values, indices = probabilities.topk(min(top, probabilities.shape[-1]), -1)
    return [
        tuple(Expected(model.vocabulary.words[index], value) for index, value in zip(row, highest, strict=True))
        for row, highest in zip(indices.tolist(), values.tolist(), strict=True)
    ]
