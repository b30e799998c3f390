"""Small encoders and decoders of every kind, for the tests of decoding."""

from collections.abc import Callable

import torch
from torch import nn

from regard import Attention, align, score
from regard.attention.coverage import Coverage
from regard.decoders.bahdanau import Bahdanau
from regard.decoders.captions import Adaptive, ShowAndTell, ShowAttendTell
from regard.decoders.luong import Luong
from regard.decoders.protocol import Decoder
from regard.decoders.transformer import TransformerDecoder
from regard.encoders.recurrent import RecurrentEncoder
from regard.encoders.transformer import TransformerEncoder

VOCABULARY, DIM, HIDDEN = 17, 8, 5
PAD, START, END = 0, 1, 2


def attention(alignment: align.Align = align.softmax) -> Attention:
    return Attention(score.Additive(HIDDEN, 2 * HIDDEN, 7), alignment)


def coverage(alignment: align.Align = align.softmax) -> Coverage:
    made = Coverage(score.Additive(HIDDEN, 2 * HIDDEN, 7), alignment, key_dim=2 * HIDDEN)
    nn.init.normal_(made.direction)  # as if trained: at 0 it would not show
    return made


def bahdanau(embedding: nn.Embedding, output: nn.Module, **options: object) -> Decoder:
    options = {"attention": attention(), **options}
    return Bahdanau(
        embedding, memory_dim=2 * HIDDEN, summary_dim=HIDDEN, hidden=HIDDEN, output=output, output_dim=DIM, **options
    )


def luong(embedding: nn.Embedding, output: nn.Module, **options: object) -> Decoder:
    options = {"attention": attention(), **options}
    return Luong(
        embedding,
        memory_dim=2 * HIDDEN,
        summary_dim=2 * HIDDEN,
        hidden=HIDDEN,
        output=output,
        output_dim=DIM,
        **options,
    )


def show_attend_tell(embedding: nn.Embedding, output: nn.Module, alignment: align.Align = align.softmax) -> Decoder:
    return ShowAttendTell(
        embedding, memory_dim=2 * HIDDEN, hidden=HIDDEN, attention=attention(alignment), output=output, dropout=0.3
    )


def adaptive(embedding: nn.Embedding, output: nn.Module) -> Decoder:
    return Adaptive(embedding, memory_dim=2 * HIDDEN, hidden=HIDDEN, attention=attention(), output=output, dropout=0.3)


def show_and_tell(embedding: nn.Embedding, output: nn.Module) -> Decoder:
    output = nn.Sequential(nn.Linear(HIDDEN, DIM), output)
    return ShowAndTell(embedding, memory_dim=2 * HIDDEN, hidden=HIDDEN, output=output, dropout=0.3)


def transformer(embedding: nn.Embedding, output: nn.Module, prenorm: bool = True) -> Decoder:
    return TransformerDecoder(
        embedding, memory_dim=DIM, num_layers=3, num_heads=2, inner=11, output=output, dropout=0.3, prenorm=prenorm
    )


MAKE_DECODER: dict[str, Callable[[nn.Embedding, nn.Module], Decoder]] = {
    "adaptive": adaptive,
    "bahdanau": bahdanau,
    "bahdanau_lstm": lambda e, o: bahdanau(e, o, cell="lstm"),
    "bahdanau_local_p": lambda e, o: bahdanau(e, o, attention=attention(align.LocalPredictive(HIDDEN, window=2))),
    "bahdanau_coverage": lambda e, o: bahdanau(e, o, attention=coverage()),
    "bahdanau_coverage_hard": lambda e, o: bahdanau(e, o, attention=coverage(align.Hard())),
    "conditional": lambda e, o: bahdanau(e, o, conditional=True),
    "output_after": lambda e, o: bahdanau(e, o, output_after=True),
    "hard": lambda e, o: bahdanau(e, o, attention=attention(align.Hard())),
    "luong": lambda e, o: luong(e, o, num_layers=2),
    "luong_gru": lambda e, o: luong(e, o, cell="gru"),
    "luong_local_m": lambda e, o: luong(e, o, attention=attention(align.LocalMonotonic(1))),
    "luong_coverage_local_m": lambda e, o: luong(e, o, attention=coverage(align.LocalMonotonic(1))),
    "luong_coverage_without_feeding": lambda e, o: luong(e, o, attention=coverage(), input_feeding=False),
    "luong_without_feeding": lambda e, o: luong(e, o, input_feeding=False, num_layers=2),
    "luong_local_m_without_feeding": lambda e, o: luong(
        e, o, attention=attention(align.LocalMonotonic(1)), input_feeding=False
    ),
    "plain": lambda e, o: luong(e, o, attention=None),
    "show_and_tell": show_and_tell,
    "show_attend_tell": show_attend_tell,
    "show_attend_tell_hard": lambda e, o: show_attend_tell(e, o, align.Hard()),
    "transformer": transformer,
    "transformer_postnorm": lambda e, o: transformer(e, o, prenorm=False),
}


WITHOUT_ATTENTION = {"plain", "show_and_tell"}


def make(name: str, *, sharpness: float = 3.0) -> tuple[nn.Module, Decoder]:
    """An encoder and a decoder with random weights, sharper than new ones, so that choices differ."""
    embedding, output = nn.Embedding(VOCABULARY, DIM), nn.Linear(DIM, VOCABULARY)
    if name.startswith("transformer"):
        encoder: nn.Module = TransformerEncoder(
            embedding, num_layers=2, num_heads=2, inner=11, dropout=0.3, prenorm=name == "transformer"
        )
    else:
        encoder = RecurrentEncoder(embedding, HIDDEN, dropout=0.3)
    decoder = MAKE_DECODER[name](embedding, output)
    with torch.no_grad():
        output.weight.mul_(sharpness)
        output.bias[END] += 1.0
    return encoder.eval(), decoder.eval()


def sources(count: int = 3, longest: int = 7) -> tuple[torch.Tensor, torch.Tensor]:
    lengths = torch.tensor([longest, *(int(n) for n in torch.randint(1, longest + 1, (count - 1,)))])
    source = torch.randint(3, VOCABULARY, (count, longest))
    return source.masked_fill(torch.arange(longest) >= lengths.unsqueeze(1), PAD), lengths
