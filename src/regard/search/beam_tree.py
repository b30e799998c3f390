"""The search of a beam as a tree: every hypothesis that was extended or pruned, and those that became outputs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from regard.search.beam import BeamStep
from regard.search.hypothesis import Hypothesis

Fate = Literal["root", "kept", "pruned", "finished", "cut"]
"""What became of a hypothesis: it was extended, dropped, ended, or cut at the length limit."""


@dataclass(frozen=True)
class BeamNode:
    """A hypothesis of the search: that of its parent, and one token more."""

    parent: int | None
    """The place of its parent in `BeamTree.nodes`; None for the root, which is empty."""
    depth: int
    """Number of its tokens, that of the end included."""
    token: int | None
    log_prob: float
    """The log-probability of the token."""
    total: float
    """The sum of the log-probabilities of all its tokens."""
    fate: Fate
    rank: int | None = None
    """The place among the outputs, 0 for the best; None for what is no output."""
    score: float | None = None
    """What outputs are ranked by; None for what is no output."""
    attention: int | None = None
    """The row of `BeamTree.weights` with the attention of the step that predicted the token."""


@dataclass(frozen=True)
class BeamTree:
    """All hypotheses of a search, parents before their children, and their attention."""

    nodes: tuple[BeamNode, ...]
    weights: Float[Tensor, "r n"] | None
    """The attention of each step of each hypothesis that was extended; None for a decoder without attention."""

    def path(self, place: int) -> list[int]:
        """The places of the nodes from the first token to this node."""
        found: list[int] = []
        while (parent := self.nodes[place].parent) is not None:
            found.append(place)
            place = parent
        return found[::-1]

    def tokens(self, place: int) -> list[int]:
        """The tokens of a hypothesis, that of the end included."""
        return [token for each in self.path(place) if (token := self.nodes[each].token) is not None]

    def attention(self, place: int) -> Float[Tensor, "m n"] | None:
        """The attention of a hypothesis, one row per token."""
        if self.weights is None:
            return None
        rows = [row for each in self.path(place) if (row := self.nodes[each].attention) is not None]
        return self.weights[torch.tensor(rows, dtype=torch.long, device=self.weights.device)]


def beam_tree(steps: Sequence[BeamStep], outputs: Sequence[Hypothesis], *, end: int) -> BeamTree:
    """Build the tree of a recorded search; `outputs` are all its hypotheses, best first, as `beam` returns them."""
    nodes = [BeamNode(None, 0, None, 0.0, 0.0, "root")]
    rows, tables = [0], []  # the nodes that are the hypotheses of the step, by row
    first = 0
    for depth, step in enumerate(steps, 1):
        places: dict[int, int] = {}
        for rank, (parent, token) in enumerate(zip(step.parents, step.tokens, strict=True)):
            if step.totals[rank] == -torch.inf:
                continue
            fate: Fate = "kept" if rank in step.kept else "pruned"
            row = None if step.weights is None else first + parent
            places[rank] = len(nodes)
            node = BeamNode(rows[parent], depth, token, step.log_probs[rank], step.totals[rank], fate, attention=row)
            nodes.append(node)
        # At first, rows may stand for nothing: fewer tokens than hypotheses are possible.
        rows = [places.get(rank, 0) for rank in step.kept]
        if step.weights is not None:
            tables.append(step.weights.float())
            first += len(step.weights)
    children = {(node.parent, node.token): place for place, node in enumerate(nodes)}
    for rank, output in enumerate(outputs):
        place = 0
        for token in (*output.tokens, *([end] if output.finished else [])):
            place = children[place, token]
        fate = "finished" if output.finished else "cut"
        nodes[place] = replace(nodes[place], fate=fate, rank=rank, score=output.score)
    return BeamTree(tuple(nodes), torch.cat(tables) if tables else None)
