"""Translator: text in, text out, by a plain encoder-decoder, RNNsearch, Luong's models or a Transformer."""

from collections.abc import Sequence

from jaxtyping import Int
from torch import Tensor, nn

from regard.data.batches import pad
from regard.data.tokenizer import START, Tokenizer
from regard.encoders.encoded import Encoded
from regard.errors import OptionError
from regard.search.hypothesis import Hypothesis
from regard.search.options import Search
from regard.search.search import search
from regard.systems.assembly import build_embedding
from regard.systems.system import System
from regard.systems.translate.assembly import build_decoder, build_encoder
from regard.systems.translate.config import TranslationConfig, TranslationOptions
from regard.systems.translate.translation import Translating, Translation
from regard.trace import Map


class Translator(Translating, System[str, Translation, TranslationOptions]):
    """An encoder, a decoder, and the tokenizers on both sides; an input is a text."""

    def __init__(self, config: TranslationConfig, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer) -> None:
        super().__init__(config)
        self.source_tokenizer, self.target_tokenizer = source_tokenizer, target_tokenizer
        source_embedding = build_embedding(len(source_tokenizer), config.embedding)
        target_embedding = build_embedding(len(target_tokenizer), config.embedding)
        if config.share_embeddings == "all":
            if source_tokenizer.vocabulary_hash != target_tokenizer.vocabulary_hash:
                raise OptionError("share_embeddings 'all' needs one joint vocabulary; these are two. Use 'target'.")
            source_embedding = target_embedding
        output = nn.Linear(config.embedding, len(target_tokenizer))
        nn.init.zeros_(output.bias)
        if config.share_embeddings == "none":
            nn.init.normal_(output.weight, std=config.embedding**-0.5)
        else:
            output.weight = target_embedding.weight
        self.encoder = build_encoder(config, source_embedding)
        self.decoder = build_decoder(config, self.encoder.dim, target_embedding, output)

    def encode(self, source: Int[Tensor, "b n"], lengths: Int[Tensor, "b"]) -> Encoded:
        """The states of the source sentences."""
        encoded: Encoded = self.encoder(source, lengths)
        return encoded

    def search(self, source: Int[Tensor, "b n"], lengths: Int[Tensor, "b"], options: Search) -> list[list[Hypothesis]]:
        """The best hypotheses for each source sentence; by default at most twice as long as it and ten tokens more."""
        encoded, rules = self.encode(source, lengths), self.rules(lengths.tolist(), options)
        rows, device = len(lengths), encoded.states.device
        return search(self.decoder, self.decoder.start(encoded), rules, options, num_inputs=rows, device=device)

    def hypotheses(self, sources: Sequence[list[int]], options: Search) -> list[list[Hypothesis]]:
        """The best hypotheses for each source sentence, whose ids end in END."""
        padded, lengths = pad(sources)
        return self.search(padded.to(self.device), lengths, options)

    def all_maps(self, sources: Sequence[list[int]], found: Sequence[Hypothesis]) -> list[tuple[Map, ...]]:
        """The attention of every layer and head, from one pass in which the tokens of the hypotheses are given."""
        if not self.has_heads:
            return [()] * len(found)
        source, lengths = pad(sources)
        targets, _ = pad([[START, *one.tokens] for one in found])
        encoded = self.encoder(source.to(self.device), lengths, weights=True)
        unrolled = self.decoder(encoded, targets.to(self.device), weights="all")
        kinds = {
            "encoder": ("source", "source", encoded.maps),
            "decoder": ("target", "history", unrolled.self_maps),
            "cross": ("target", "source", unrolled.source_maps),
        }
        maps: list[list[Map]] = [[] for _ in found]
        for kind, (rows, columns, layers) in kinds.items():
            for layer, tensor in enumerate(layers, 1):
                for index, heads in enumerate(tensor.float().cpu().numpy()):
                    length = len(found[index].log_probs)
                    sizes = {"source": len(sources[index]), "target": length, "history": length}
                    maps[index] += [
                        Map(
                            f"{kind} {layer}.{head}", rows, columns, table[: sizes[rows], : sizes[columns]], layer, head
                        )
                        for head, table in enumerate(heads, 1)
                    ]
        return [tuple(each) for each in maps]
