"""The networks of a reader, built as its config says: a language model, or what stands on top of a reader's states."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.attend import Attention
from regard.data.tokenizer import PAD
from regard.decoders.language_model import LanguageModel
from regard.encoders.lstmn_reader import LSTMNReader
from regard.encoders.readers import Bidirectional, LSTMReader, SelfAttentionReader, Sentences
from regard.layers.cells import uniform_
from regard.layers.dropout import DroppedWords, LockedDropout
from regard.parts import build_part
from regard.systems.assembly import build_align, build_embedding, build_score
from regard.systems.read.config import RECURRENT, ReadingConfig


@dataclass(frozen=True)
class Predictions:
    """What a classifier or tagger predicts for sentences."""

    logits: Float[Tensor, "b ... k"]
    """(b, k) of a sentence, (b, n, k) of its words."""
    sentences: Sentences
    """The sentences as read; of a pair, the hypotheses."""
    premises: Sentences | None = None
    between: Float[Tensor, "b n m"] | None = None
    """With fusion: what each word of a hypothesis attended to in its premise."""


class Tagger(nn.Module):
    """A label for each word."""

    def __init__(self, words: nn.Module, reader: nn.Module, num_labels: int, config: ReadingConfig) -> None:
        super().__init__()
        self.words, self.reader, self.labels_from = words, reader, config.labels_from
        self.dropout, self.output_dropout = LockedDropout(config.dropout), nn.Dropout(config.output_dropout)
        self.output = uniform_(nn.Linear(int(reader.dim), num_labels))  # type: ignore[arg-type]

    def forward(self, words: Int[Tensor, "b n"], lengths: Int[Tensor, "b"], *, weights: bool = False) -> Predictions:
        """Read sentences and label their words."""
        sentences = self.reader(self.dropout(self.words(words)), lengths, weights=weights)
        features = sentences.attended if self.labels_from == "attended" else sentences.states
        return Predictions(self.output(self.output_dropout(features)), sentences)


class SentenceClassifier(nn.Module):
    """The states of all words in one vector, then two layers with ReLU (Cheng et al. 2016, section 5.2)."""

    def __init__(self, words: nn.Module, reader: nn.Module, num_labels: int, config: ReadingConfig) -> None:
        super().__init__()
        self.words, self.reader, self.pool = words, reader, config.pool
        self.dropout = LockedDropout(config.dropout)
        self.head = _head(int(reader.dim), num_labels, config)  # type: ignore[arg-type]

    def forward(self, words: Int[Tensor, "b n"], lengths: Int[Tensor, "b"], *, weights: bool = False) -> Predictions:
        """Read sentences and classify them."""
        sentences = self.reader(self.dropout(self.words(words)), lengths, weights=weights)
        return Predictions(self.head(pooled(sentences.states, lengths, self.pool)), sentences)


class PairClassifier(nn.Module):
    """Two sentences, and how the second follows from the first (Cheng et al. 2016, sections 4 and 5.3).

    With shallow fusion, each state of the hypothesis attends to those of the premise after it was read; with deep
    fusion, the recurrence itself attends to the tapes of the premise. With "aligned", both sentences are read alike,
    and `Comparison` compares each word with what it attends to in the other sentence. Both sentences are then pooled
    to p and h, and [p; h; |p - h|; p * h] is classified.
    """

    def __init__(self, words: nn.Module, num_labels: int, config: ReadingConfig) -> None:
        super().__init__()
        self.words, self.pool, self.fusion = words, config.pool, config.fusion
        self.reader = build_reader(config, fusion=config.fusion == "deep")
        self.premise_reader = build_reader(config) if config.fusion in ("shallow", "deep") else None
        self.dropout = LockedDropout(config.dropout)
        dim = int(self.reader.dim)  # type: ignore[arg-type]
        self.attention = self.combine = self.compare = None
        if config.fusion == "shallow":
            self.attention = _attention(config, "additive", dim, config.attention_dim or dim)
            self.combine = uniform_(nn.Linear(2 * dim, dim))
        elif config.fusion == "aligned":
            self.compare = Comparison(dim, config.output_dropout, _attention(config, "dot", dim, dim))
        self.head = _head(4 * dim, num_labels, config)

    def forward(
        self,
        premise: Int[Tensor, "b m"],
        premise_lengths: Int[Tensor, "b"],
        words: Int[Tensor, "b n"],
        lengths: Int[Tensor, "b"],
        *,
        weights: bool = False,
    ) -> Predictions:
        """Read premises and hypotheses, and classify each pair."""
        if self.premise_reader is None:
            premises, sentences = self._read_alike(premise, premise_lengths, words, lengths, weights=weights)
        else:
            premises = self.premise_reader(self.dropout(self.words(premise)), premise_lengths, weights=weights)
            beside = premises if self.fusion == "deep" else None
            sentences = self.reader(self.dropout(self.words(words)), lengths, beside, weights=weights)
        first, second, between = premises.states, sentences.states, None
        if self.attention is not None and self.combine is not None:
            memory = self.attention.remember(premises.states, premises.exists)
            context, between = self.attention(second, memory, weights=weights)
            second = torch.tanh(self.combine(torch.cat([context, second], dim=-1)))
        elif self.compare is not None:
            first, _ = self.compare(premises.states, sentences.states, sentences.exists)
            second, between = self.compare(sentences.states, premises.states, premises.exists, weights=weights)
        elif sentences.source_maps:
            between = sentences.source_maps[-1].mean(1)
        first, second = pooled(first, premise_lengths, self.pool), pooled(second, lengths, self.pool)
        joined = torch.cat([first, second, (first - second).abs(), first * second], dim=-1)
        return Predictions(self.head(joined), sentences, premises, between)

    def _read_alike(
        self, premise: Tensor, premise_lengths: Tensor, words: Tensor, lengths: Tensor, *, weights: bool
    ) -> tuple[Sentences, Sentences]:
        """Read both sentences in one batch: a recurrence takes as long for many sentences as for few."""
        width = max(premise.shape[1], words.shape[1])
        ids = torch.cat([nn.functional.pad(side, (0, width - side.shape[1]), value=PAD) for side in (premise, words)])
        read = self.reader(self.dropout(self.words(ids)), torch.cat([premise_lengths, lengths]), weights=weights)
        rows = len(premise)
        return _part(read, slice(0, rows), premise.shape[1]), _part(read, slice(rows, None), words.shape[1])


def _part(sentences: Sentences, rows: slice, length: int) -> Sentences:
    """Some of the sentences, with as many words as the longest of them has."""
    maps = tuple(each[rows, :, :length, :length] for each in sentences.maps)
    exists = None if sentences.exists is None else sentences.exists[rows, :, :length]
    return Sentences(sentences.states[rows, :length], maps, exists=exists)


class Comparison(nn.Module):
    """Compares each state s with what it attends to in another sentence, c: ReLU(W [s; c; s - c; s * c] + b).

    The attention is the dot product, so that like words find each other from the beginning (Parikh et al. 2016; Chen
    et al. 2017, section 3.2).
    """

    def __init__(self, dim: int, dropout: float, attention: Attention) -> None:
        super().__init__()
        self.attention = attention
        self.layer = uniform_(nn.Linear(4 * dim, dim))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        states: Float[Tensor, "b n d"],
        others: Float[Tensor, "b m d"],
        exists: Bool[Tensor, "b 1 m"] | None,
        *,
        weights: bool = False,
    ) -> tuple[Float[Tensor, "b n d"], Float[Tensor, "b n m"] | None]:
        """Return the comparisons and, where asked for, the attention weights."""
        context, found = self.attention(states, self.attention.remember(others, exists), weights=weights)
        features = torch.cat([states, context, states - context, states * context], dim=-1)
        return torch.relu(self.layer(self.dropout(features))), found


def pooled(states: Float[Tensor, "b n d"], lengths: Int[Tensor, "b"], pool: str) -> Float[Tensor, "b d"]:
    """The states of a sentence in one vector: their mean, their maximum, or the last."""
    lengths = lengths.to(states.device, non_blocking=states.is_cuda)
    positions = torch.arange(states.shape[1], device=states.device)
    if pool == "last":
        return states.gather(1, (lengths - 1).view(-1, 1, 1).expand(-1, 1, states.shape[2])).squeeze(1)
    is_word = (positions < lengths.unsqueeze(1)).unsqueeze(-1)
    if pool == "max":
        return states.masked_fill(~is_word, -torch.inf).amax(1)
    return (states * is_word).sum(1) / lengths.unsqueeze(1)


def build_network(config: ReadingConfig, num_words: int, num_labels: int) -> Any:
    """The network of the config's task, for a vocabulary and a number of labels."""
    embedding = build_embedding(num_words, config.embedding)
    words = DroppedWords(embedding, config.word_dropout)
    if config.task == "language-model":
        output = _output(config, embedding, num_words)
        return LanguageModel(
            words, build_reader(config), output, dropout=config.dropout, output_dropout=config.output_dropout
        )
    if config.task == "tag":
        return Tagger(words, build_reader(config), num_labels, config)
    if config.task == "classify":
        return SentenceClassifier(words, build_reader(config), num_labels, config)
    return PairClassifier(words, num_labels, config)


def build_reader(config: ReadingConfig, *, fusion: bool = False) -> nn.Module:
    """The reader of the config's cell, of one direction or both."""
    if config.cell == "self-attention":
        return SelfAttentionReader(
            config.embedding,
            config.hidden,
            num_layers=config.layers,
            num_heads=config.heads,
            feedforward_dim=config.feedforward_dim or None,
            span=config.span,
            attend_to_words=config.attend_to == "words",
            bidirectional=config.direction == "both",
            look_back=config.look_back,
            dropout=config.layer_dropout,
            attention=lambda: _attention(config, "scaled_dot", config.hidden // config.heads, config.hidden),
        )
    sizes: dict[str, Any] = {
        "num_layers": config.layers,
        "skip": config.skip,
        "dropout": config.layer_dropout,
        "recurrent_dropout": config.recurrent_dropout,
    }
    if config.cell == "lstmn":
        sizes |= {"attention_dim": config.attention_dim or None, "span": config.span, "fusion": fusion}

    def build() -> nn.Module:
        if config.cell not in RECURRENT:
            custom: nn.Module = build_part(
                config.cell, {"input_dim": config.embedding, "hidden": config.hidden, **sizes, "span": config.span}
            )
            return custom
        return (LSTMNReader if config.cell == "lstmn" else LSTMReader)(config.embedding, config.hidden, **sizes)

    return Bidirectional(build(), build()) if config.direction == "both" else build()


def _attention(config: ReadingConfig, published: str, features: int, dim: int) -> Attention:
    """Attention between states of so many features, by the score of the paper or a custom one."""
    sizes = {"query_dim": features, "key_dim": features, "dim": dim}
    score = build_score(published if config.score == "auto" else config.score, sizes)
    return Attention(score, build_align(config.align, sizes))


def _output(config: ReadingConfig, embedding: nn.Embedding, num_words: int) -> nn.Module:
    if not config.share_embeddings:
        output = nn.Linear(config.hidden, num_words)
        nn.init.normal_(output.weight, std=config.hidden**-0.5)
        nn.init.zeros_(output.bias)
        return output
    output = nn.Linear(config.embedding, num_words)
    nn.init.zeros_(output.bias)
    output.weight = embedding.weight
    return (
        output
        if config.hidden == config.embedding
        else nn.Sequential(uniform_(nn.Linear(config.hidden, config.embedding)), output)
    )


def _head(dim: int, num_labels: int, config: ReadingConfig) -> nn.Sequential:
    inner = config.classifier_dim or config.hidden
    return nn.Sequential(
        nn.Dropout(config.output_dropout),
        uniform_(nn.Linear(dim, inner)),
        nn.ReLU(),
        nn.Dropout(config.output_dropout),
        uniform_(nn.Linear(inner, num_labels)),
    )
