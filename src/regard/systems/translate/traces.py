"""The traces of translations: what was attended to for each token."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.data.batches import pad
from regard.data.tokenizer import START
from regard.search.hypothesis import Hypothesis
from regard.trace import Axis, Map, Series, Trace

if TYPE_CHECKING:
    from regard.systems.translate.model import Translator


def traces_of(
    model: "Translator", texts: Sequence[str], sources: Sequence[list[int]], found: Sequence[Hypothesis], which: str
) -> list[Trace | None]:
    """The traces of hypotheses, one for each text with its tokens: "main", "all" with every layer and head, "none"."""
    if which == "none" or any(one.weights is None for one in found):
        return [None] * len(found)
    every = _all_maps(model, sources, found) if which == "all" else [()] * len(found)
    return [
        _trace(model, text, source, one, maps)
        for text, source, one, maps in zip(texts, sources, found, every, strict=True)
    ]


def _trace(model: "Translator", text: str, source: list[int], hypothesis: Hypothesis, more: tuple[Map, ...]) -> Trace:
    end = ["</s>"] if hypothesis.finished else []
    pieces = (*model.target_tokenizer.pieces(hypothesis.tokens), *end)
    columns = Axis("source", "tokens", (*model.source_tokenizer.pieces(source[:-1]), "</s>"), text=text)
    rows = Axis("target", "tokens", pieces, text=model.target_tokenizer.decode(hypothesis.tokens))
    # What a decoder's self-attention looks back at: the tokens that were its inputs.
    history = (Axis("history", "tokens", ("<s>", *pieces[:-1])),) if more else ()
    if hypothesis.weights is None:
        raise TypeError("A trace needs attention weights.")
    weights = model.by_word(hypothesis.weights[: len(pieces), : len(source)]).float().cpu().numpy()
    log_probs = Series("log_prob", "target", tuple(hypothesis.log_probs[: len(pieces)]))
    maps = (Map("cross", "target", "source", weights), *more)
    return Trace("translation", (columns, rows, *history), maps, (log_probs,))


def _all_maps(model: "Translator", sources: Sequence[list[int]], found: Sequence[Hypothesis]) -> list[tuple[Map, ...]]:
    """Every layer's and head's attention, from one pass in which the tokens of the hypotheses are given."""
    if not model.has_heads:
        return [()] * len(found)
    source, lengths = pad(sources)
    targets, _ = pad([[START, *one.tokens] for one in found])
    encoded = model.encoder(source.to(model.device), lengths, weights=True)
    unrolled = model.decoder(encoded, targets.to(model.device), weights="all")
    kinds = {
        "encoder": ("source", "source", encoded.maps),
        "decoder": ("target", "history", unrolled.self_maps),
        "cross": ("target", "source", unrolled.source_maps),
    }
    maps: list[list[Map]] = [[] for _ in found]
    for kind, (rows, columns, layers) in kinds.items():
        for layer, tensor in enumerate(layers, 1):
            for place, heads in enumerate(tensor.float().cpu().numpy()):
                length = len(found[place].log_probs)
                sizes = {"source": len(sources[place]), "target": length, "history": length}
                maps[place] += [
                    Map(f"{kind} {layer}.{head}", rows, columns, table[: sizes[rows], : sizes[columns]], layer, head)
                    for head, table in enumerate(heads, 1)
                ]
    return [tuple(each) for each in maps]
