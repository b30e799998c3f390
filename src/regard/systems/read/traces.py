"""What a reader attended to, as traces."""

from collections.abc import Sequence

from torch import Tensor

from regard.encoders.readers import Sentences
from regard.systems.read.assembly import Judged
from regard.trace import Axis, Map, Series, Trace


def sentence_trace(
    sentences: Sentences,
    row: int,
    text: str,
    words: Sequence[str],
    which: str,
    *,
    surprisals: Sequence[float] | None = None,
) -> Trace | None:
    """What each word of a sentence attended to: word x word, with the surprisal of each word where it is known.

    A reader without attention has a trace without maps where there are surprisals to show, and none otherwise.
    """
    if which == "none" or (surprisals is None and not sentences.maps):
        return None
    axis = Axis("words", "words", tuple(words), text=text)
    series = () if surprisals is None else (Series("surprisal", "words", surprisals),)
    return Trace("reading", (axis,), _maps(sentences, row, "reading", "words", len(words), which), series)


def pair_trace(
    judged: Judged, row: int, texts: tuple[str, str], words: tuple[Sequence[str], Sequence[str]], which: str
) -> Trace | None:
    """What each word of a hypothesis attended to in the premise (with fusion) and in the hypothesis itself."""
    axes = [
        Axis(name, "words", tuple(own), text=text)
        for name, own, text in zip(("premise", "words"), words, texts, strict=True)
    ]
    maps: list[Map] = []
    if judged.between is not None:
        maps.append(Map("between", "words", "premise", _table(judged.between[row], len(words[1]), len(words[0]))))
    maps += _maps(judged.sentences, row, "reading", "words", len(words[1]), which)
    if judged.premises is not None and which == "all":
        maps += _maps(judged.premises, row, "premise", "premise", len(words[0]), which)
    return Trace("reading", tuple(axes), tuple(maps)) if maps and which != "none" else None


def _maps(sentences: Sentences, row: int, name: str, axis: str, length: int, which: str) -> tuple[Map, ...]:
    """The mean over the heads of the last layer; for "all", then each layer and head."""
    if not sentences.maps:
        return ()
    main = Map(name, axis, axis, _table(sentences.maps[-1][row].mean(0), length, length))
    if which != "all":
        return (main,)
    return main, *(
        Map(f"{name} {layer}.{head}", axis, axis, _table(table, length, length), layer, head)
        for layer, heads in enumerate(sentences.maps, 1)
        for head, table in enumerate(heads[row], 1)
    )


def _table(weights: Tensor, rows: int, columns: int) -> Tensor:
    return weights[:rows, :columns].detach().float().cpu()
