"""Translator: text in, text out, by any sequence-to-sequence model of the lectures.

Nothing in it is special to translation: summaries, or questions and answers, are trained the same way.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Int
from torch import Tensor, nn

from regard.attention import align, score
from regard.attention.attend import Attention
from regard.attention.coverage import Coverage
from regard.data.tokenizer import END, PAD, START, UNKNOWN, UNKNOWN_MARK, Tokenizer
from regard.decoders.bahdanau import Bahdanau
from regard.decoders.luong import Luong
from regard.decoders.protocol import Decoder
from regard.decoders.transformer import TransformerDecoder
from regard.encoders.encoded import Encoded
from regard.encoders.recurrent import RecurrentEncoder
from regard.encoders.transformer import TransformerEncoder
from regard.errors import OptionError
from regard.layers.layout import by_columns
from regard.search.beam import beam as beam_search
from regard.search.hypothesis import Hypothesis, Rules
from regard.systems.folder import read_model, write_model
from regard.trace import Trace

Architecture = Literal["plain", "rnnsearch", "luong", "transformer"]


@dataclass(frozen=True)
class TranslatorConfig:
    """The parts of a translator."""

    architecture: Architecture = "rnnsearch"
    """plain (no attention), rnnsearch (Bahdanau), luong, or transformer."""
    embedding: int = 256
    """Features of a word; of a Transformer, of every layer."""
    hidden: int = 256
    """Units of the recurrent layers, in each direction."""
    encoder_hidden: int = 0
    """Units of the encoder in each direction; 0 for as many as `hidden`. hidden / 2 makes dot products possible."""
    layers: int = 1
    """Layers of encoder and decoder (rnnsearch has one)."""
    cell: Literal["gru", "lstm"] = "gru"
    """Recurrent cell."""
    bidirectional: bool = True
    """Whether the recurrent encoder also reads backwards."""
    conditional: bool = False
    """rnnsearch: step, look, step, instead of look, step."""
    input_feeding: bool = True
    """luong: the attentional vector enters the next step."""
    score: Literal["additive", "concat", "dot", "general", "location", "mlp", "scaled_dot"] = "additive"
    """How well a source word matches."""
    align: Literal["softmax", "hard", "local_m", "local_p", "sparsemax", "uniform"] = "softmax"
    """How matches become a focus; uniform is the control without any."""
    reach: int = 10
    """How far a local window reaches to each side."""
    coverage: bool = False
    """rnnsearch, luong: the attention sees how much each source word was attended to so far."""
    max_positions: int = 200
    """Source positions that the location score can tell apart."""
    heads: int = 4
    """transformer: heads of each attention."""
    inner: int = 1024
    """transformer: units of the feed-forward networks."""
    prenorm: bool = True
    """transformer: normalise before each part, not after it."""
    dropout: float = 0.2
    """Share of word features dropped in training (transformer: of every residual)."""
    state_dropout: float = 0.0
    """Share of encoder states dropped."""
    output_dropout: float = 0.2
    """Share of features dropped before the output layer."""
    share_embeddings: Literal["none", "target", "all"] = "target"
    """Which embeddings are one matrix: none, target words with the output layer, or all with a joint vocabulary."""


@dataclass(frozen=True)
class Translation:
    """One translation, and how it came about."""

    source: str
    text: str
    score: float
    """Mean log-probability of a piece, or what else the search ranked by."""
    finished: bool
    """False where the output was cut at the length limit."""
    trace: Trace | None
    """What each output piece attended to; None for a model without attention."""


class Translator(nn.Module):
    """An encoder, a decoder, and the tokenizers on both sides."""

    def __init__(self, config: TranslatorConfig, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer) -> None:
        super().__init__()
        self.config = config
        self.source_tokenizer, self.target_tokenizer = source_tokenizer, target_tokenizer
        source_embedding = _embedding(len(source_tokenizer), config.embedding)
        target_embedding = _embedding(len(target_tokenizer), config.embedding)
        if config.share_embeddings == "all":
            if source_tokenizer.vocabulary_hash != target_tokenizer.vocabulary_hash:
                raise OptionError("share_embeddings='all' needs one joint vocabulary; these are two. Use 'target'.")
            source_embedding = target_embedding
        output = nn.Linear(config.embedding, len(target_tokenizer))
        nn.init.zeros_(output.bias)
        if config.share_embeddings == "none":
            nn.init.normal_(output.weight, std=config.embedding**-0.5)
        else:
            output.weight = target_embedding.weight
        if config.coverage and config.architecture not in ("rnnsearch", "luong"):
            raise OptionError(f"Coverage is for rnnsearch and luong; the architecture is {config.architecture}.")
        self.encoder: RecurrentEncoder | TransformerEncoder
        self.decoder: Decoder
        if config.architecture == "transformer":
            self.encoder, self.decoder = _transformer(config, source_embedding, target_embedding, output)
        else:
            self.encoder = RecurrentEncoder(
                source_embedding,
                config.encoder_hidden or config.hidden,
                cell=config.cell,
                num_layers=config.layers,
                bidirectional=config.bidirectional,
                dropout=config.dropout,
                state_dropout=config.state_dropout,
            )
            self.decoder = _recurrent_decoder(config, self.encoder.dim, target_embedding, output)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def encode(self, source: Int[Tensor, "b n"], lengths: Int[Tensor, "b"]) -> Encoded:
        """The states of the source sentences."""
        encoded: Encoded = self.encoder(source, lengths)
        return encoded

    @torch.no_grad()
    def search(
        self,
        source: Int[Tensor, "b n"],
        lengths: Int[Tensor, "b"],
        *,
        beam: int = 5,
        max_length: int | None = None,
        **options: Any,
    ) -> list[list[Hypothesis]]:
        """The best hypotheses for each source sentence; at most twice its length and ten more pieces, by default."""
        limit = max_length or 2 * int(lengths.max()) + 10
        rules = Rules(
            START,
            END,
            banned=(PAD,),
            max_length=limit,
            min_length=options.pop("min_length", 0),
            block_ngrams=options.pop("block_ngrams", 0),
        )
        return beam_search(self.decoder, self.encode(source, lengths), rules, size=beam, **options)

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam: int = 5,
        nbest: int = 1,
        batch: int = 64,
        replace_unknown: bool = False,
        **options: Any,
    ) -> list[list[Translation]]:
        """For each text its `nbest` translations, best first; texts of similar length are decoded together.

        `replace_unknown` writes the source word that was attended to most in the place of an unknown word, as Luong et
        al. 2015 did; it is for models of whole words.
        Options of the search: max_length, min_length, length_penalty, coverage_penalty, block_ngrams.
        """
        if isinstance(texts, str):
            raise OptionError("translate takes a list of texts, such as [text]; got one text.")
        if nbest > beam:
            raise OptionError(f"A beam of {beam} gives at most {beam} translations; got nbest={nbest}.")
        was_training = self.training
        self.eval()
        try:
            ids = [[*self.source_tokenizer.encode(text), END] for text in texts]
            order = sorted(range(len(texts)), key=lambda index: len(ids[index]), reverse=True)
            results: list[list[Translation]] = [[] for _ in texts]
            for first in range(0, len(order), batch):
                rows = order[first : first + batch]
                source, lengths = pad([ids[row] for row in rows], self.device)
                for row, found in zip(rows, self.search(source, lengths, beam=beam, **options), strict=True):
                    results[row] = [
                        self._translation(texts[row], ids[row], one, replace_unknown) for one in found[:nbest]
                    ]
            return results
        finally:
            self.train(was_training)

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        metrics: dict[str, Any] | None = None,
        card: str = "",
        store: Literal["float32", "float16", "int8"] = "float32",
    ) -> None:
        """Write the model as a folder: config.json, model.safetensors, tokenizers, metrics.json, MODEL_CARD.md."""
        tokenizers = {"source": self.source_tokenizer, "target": self.target_tokenizer}
        write_model(folder, "translator", self.config, self, tokenizers, metrics=metrics or {}, card=card, store=store)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, device: str | torch.device | None = None) -> "Translator":
        """Read a model folder; on the GPU when there is one, unless told otherwise."""
        config, tokenizers, weights = read_model(folder, "translator", TranslatorConfig)
        model = cls(config, tokenizers["source"], tokenizers["target"])
        weights.into(model)
        return by_columns(model.to(device or ("cuda" if torch.cuda.is_available() else "cpu")).eval())

    def _translation(self, text: str, source: list[int], hypothesis: Hypothesis, replace_unknown: bool) -> Translation:
        target = [*hypothesis.tokens, END] if hypothesis.finished else hypothesis.tokens
        trace = None
        if hypothesis.weights is not None:
            names = [*self.source_tokenizer.pieces(source[:-1]), "</s>"]
            pieces = [*self.target_tokenizer.pieces(hypothesis.tokens), *(["</s>"] if hypothesis.finished else [])]
            weights = hypothesis.weights[: len(target), : len(source)].cpu()
            trace = Trace.from_weights(names, pieces, weights, kind="translation", names=["cross"])
        written = self.target_tokenizer.decode(hypothesis.tokens)
        if replace_unknown and hypothesis.weights is not None and len(source) > 1:
            words, word_of = text.split(), self.source_tokenizer.word_index(source[:-1])
            for token, weights in zip(hypothesis.tokens, hypothesis.weights[:, : len(source) - 1], strict=False):
                if token == UNKNOWN:
                    written = written.replace(UNKNOWN_MARK, words[word_of[int(weights.argmax())]], 1)
        return Translation(text, written, hypothesis.score, hypothesis.finished, trace)


def pad(rows: Sequence[Sequence[int]], device: torch.device | str = "cpu") -> tuple[Tensor, Tensor]:
    """Rows of ids as one padded tensor, and their lengths."""
    lengths = torch.tensor([len(row) for row in rows])
    padded = torch.full((len(rows), int(lengths.max()) if rows else 0), PAD)
    for index, row in enumerate(rows):
        padded[index, : len(row)] = torch.tensor(row)
    return padded.to(device), lengths.to(device)


def _embedding(size: int, dim: int) -> nn.Embedding:
    embedding = nn.Embedding(size, dim, padding_idx=PAD)
    nn.init.normal_(embedding.weight, std=dim**-0.5)
    with torch.no_grad():
        embedding.weight[PAD].zero_()
    return embedding


def _attention(config: TranslatorConfig, query_dim: int, key_dim: int) -> Attention:
    matched: score.Score
    match config.score:
        case "additive" | "concat":
            matched = score.SCORES[config.score](query_dim, key_dim, config.hidden)
        case "general":
            matched = score.General(query_dim, key_dim)
        case "location":
            matched = score.Location(query_dim, config.max_positions)
        case "mlp":
            matched = score.MLP(query_dim, key_dim)
        case "dot" | "scaled_dot":
            if query_dim != key_dim:
                raise OptionError(
                    f"The {config.score} score needs encoder and decoder states of one size; here the encoder gives "
                    f"{key_dim} and the decoder {query_dim}. Use score='general', or another encoder_hidden."
                )
            matched = score.SCORES[config.score]()
    aligned: align.Align
    match config.align:
        case "local_m":
            aligned = align.LocalMonotonic(config.reach)
        case "local_p":
            aligned = align.LocalPredictive(query_dim, reach=config.reach)
        case _:
            aligned = align.ALIGNMENTS[config.align]()
    return Coverage(matched, aligned, key_dim=key_dim) if config.coverage else Attention(matched, aligned)


def _recurrent_decoder(
    config: TranslatorConfig, memory_dim: int, embedding: nn.Embedding, output: nn.Module
) -> Decoder:
    attention = None if config.architecture == "plain" else _attention(config, config.hidden, memory_dim)
    if config.architecture == "rnnsearch" and attention is not None:
        return Bahdanau(
            embedding,
            memory_dim=memory_dim,
            summary_dim=config.encoder_hidden or config.hidden,
            hidden=config.hidden,
            attention=attention,
            output=output,
            output_dim=config.embedding,
            cell=config.cell,
            conditional=config.conditional,
            dropout=config.dropout,
            output_dropout=config.output_dropout,
        )
    return Luong(
        embedding,
        memory_dim=memory_dim,
        summary_dim=memory_dim,
        hidden=config.hidden,
        attention=attention,
        output=output,
        output_dim=config.embedding,
        cell=config.cell,
        num_layers=config.layers,
        input_feeding=config.input_feeding,
        dropout=config.dropout,
        output_dropout=config.output_dropout,
    )


def _transformer(
    config: TranslatorConfig, source_embedding: nn.Embedding, target_embedding: nn.Embedding, output: nn.Module
) -> tuple[TransformerEncoder, TransformerDecoder]:
    encoder = TransformerEncoder(
        source_embedding,
        num_layers=config.layers,
        num_heads=config.heads,
        inner=config.inner,
        dropout=config.dropout,
        prenorm=config.prenorm,
    )
    decoder = TransformerDecoder(
        target_embedding,
        memory_dim=config.embedding,
        num_layers=config.layers,
        num_heads=config.heads,
        inner=config.inner,
        output=output,
        dropout=config.dropout,
        prenorm=config.prenorm,
    )
    return encoder, decoder
