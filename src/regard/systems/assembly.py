"""What several systems build as their configs say: embeddings, and attention whose parts may be custom."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from torch import nn

from regard.attention import align, score
from regard.attention.attend import AlignLike, ScoreLike, as_align, as_score
from regard.data.tokenizer import PAD
from regard.errors import OptionError
from regard.parts import build_part

Part = TypeVar("Part")
KEY_STRENGTH = 10.0
"""The key strength that a cosine score begins with, and learns: cosines alone, from -1 to 1, give a flat softmax."""


def build_embedding(size: int, dim: int) -> nn.Embedding:
    """An embedding whose vectors have about unit length; that of PAD is zero."""
    embedding = nn.Embedding(size, dim, padding_idx=PAD)
    nn.init.normal_(embedding.weight, std=dim**-0.5)
    with torch.no_grad():
        embedding.weight[PAD].zero_()
    return embedding


def build_score(name: str, sizes: Mapping[str, Any]) -> ScoreLike:
    """The score of this name: built in, or custom (`package.module:Name`), which takes what it asks for of `sizes`."""
    match name:
        case "additive" | "concat" | "projected":
            return score.SCORES[name](sizes["query_dim"], sizes["key_dim"], sizes["dim"])
        case "general" | "mlp":
            return score.SCORES[name](sizes["query_dim"], sizes["key_dim"])
        case "location":
            return score.Location(sizes["query_dim"], sizes["max_positions"])
        case "dot" | "scaled_dot":
            return score.SCORES[name]()
        case "cosine":
            return score.Cosine(nn.Parameter(torch.tensor(KEY_STRENGTH)))
        case path:
            return _checked(path, build_part(path, sizes), as_score)


def build_align(name: str, sizes: Mapping[str, Any]) -> AlignLike:
    """The alignment of this name: built in, or custom (`package.module:Name`), with `sizes` as for a score."""
    match name:
        case "local_m":
            return align.LocalMonotonic(sizes["window"])
        case "local_p":
            return align.LocalPredictive(sizes["query_dim"], window=sizes["window"])
        case "local_bell":
            return align.LocalBell(sizes["query_dim"], window=sizes["window"])
        case _ if name in align.ALIGNMENTS:
            return align.ALIGNMENTS[name]()
        case path:
            return _checked(path, build_part(path, sizes), as_align)


def _checked(path: str, built: Any, check: Callable[[Any], Part]) -> Part:
    """The part at an import path as a score or an alignment; the error of another part names the path."""
    try:
        return check(built)
    except OptionError as error:
        raise OptionError(f"{path!r}: {error}") from None
