"""The beam search of one translation as a tree, with the attention of each branch."""

from dataclasses import dataclass
from typing import Any

import torch

from regard.data.tokenizer import END
from regard.search.beam import BeamNode, BeamStep, BeamTree, beam_tree
from regard.search.hypothesis import Hypothesis
from regard.systems.translate.changes import Change
from regard.systems.translate.decoding import UNCHANGED, SentenceDecoder, checked_search
from regard.systems.translate.model import Translator, traces_of
from regard.trace import Trace


@dataclass(frozen=True)
class SearchTree:
    """All hypotheses of a beam search, with their texts."""

    decoder: SentenceDecoder
    tree: BeamTree

    @property
    def nodes(self) -> tuple[BeamNode, ...]:
        """The hypotheses, parents before their children; the first is the empty one."""
        return self.tree.nodes

    def label(self, place: int) -> str:
        """The last token of a hypothesis as a label, such as "accord"; that of the empty one is "<s>"."""
        token = self.nodes[place].token
        if token is None:
            return "<s>"
        return "</s>" if token == END else self.decoder.model.target_tokenizer.pieces([token])[0]

    def text(self, place: int) -> str:
        """The translation so far."""
        return self.decoder.model.target_tokenizer.decode(self.tree.tokens(place))

    def outputs(self) -> list[int]:
        """The places of the hypotheses that became outputs, best first."""
        ranks = {node.rank: place for place, node in enumerate(self.nodes) if node.rank is not None}
        return [ranks[rank] for rank in sorted(ranks)]

    def trace(self, place: int) -> Trace | None:
        """What a hypothesis attended to at each of its steps; None for a model without attention."""
        tokens = self.tree.tokens(place)
        finished = tokens[-1:] == [END]
        log_probs = [self.nodes[each].log_prob for each in self.tree.path(place)]
        weights = self.tree.attention(place)
        branch = Hypothesis(tokens[:-1] if finished else tokens, log_probs, sum(log_probs), finished, weights)
        decoder = self.decoder
        return traces_of(decoder.model, [decoder.sentence], [decoder.ids], [branch], "main")[0]


@torch.inference_mode()
def search_tree(model: Translator, sentence: str, change: Change = UNCHANGED, **options: Any) -> SearchTree:
    """Search for a translation, and keep every hypothesis that was extended or pruned.

    Each step has the best 2 x beam extensions of the hypotheses, of which the best `beam` go on; the others are pruned.
    `options` are those of the search (beam, max_length, ...), and the outputs are the same as without recording.
    """
    decoder = SentenceDecoder(model, sentence, change)
    steps: list[BeamStep] = []
    outputs = decoder.search(checked_search(options), steps)
    return SearchTree(decoder, beam_tree(steps, outputs, end=END))
