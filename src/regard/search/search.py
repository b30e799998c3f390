"""Search: the one function that decodes, by beam search or by sampling."""

from collections.abc import Sequence
from typing import Any

import torch

from regard.decoders.protocol import Decoder, select
from regard.search.beam import beam
from regard.search.choice import sample
from regard.search.hypothesis import Hypothesis, Rules
from regard.search.options import Search


@torch.no_grad()
def search(
    decoder: Decoder,
    state: Any,
    *,
    rows: int,
    device: torch.device | str,
    rules: Rules,
    options: Search,
    prefixes: Sequence[Sequence[int]] | None = None,
    limits: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Decode from a state and return the outputs of each input.

    `state` is that of `decoder.start(encoded)`, or any other state of the decoder; `rows` is the number of inputs in
    its batch and `device` where its tensors are. `rules`, `prefixes` (the tokens that each output must begin with) and
    `limits` (the maximum length of each input's outputs, in place of that of the rules) come from the system, which
    knows the vocabulary and the inputs. Beam search returns `options.nbest` outputs, best first; sampling
    returns that many independent samples, in the order in which they are drawn.
    """
    ranking: dict[str, Any] = {"length_penalty": options.length_penalty, "coverage_penalty": options.coverage_penalty}
    if not options.sample:
        return beam(
            decoder,
            state,
            rules,
            rows=rows,
            device=device,
            size=options.beam,
            nbest=options.nbest,
            prefixes=prefixes,
            limits=limits,
            **ranking,
        )
    generator = None if options.seed is None else torch.Generator(device).manual_seed(options.seed)
    owners = [row for row in range(rows) for _ in range(options.nbest)]
    drawn = sample(
        decoder,
        select(state, torch.tensor(owners, device=device, dtype=torch.long)) if options.nbest > 1 else state,
        rules,
        rows=len(owners),
        device=device,
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        generator=generator,
        prefixes=None if prefixes is None else [prefixes[owner] for owner in owners],
        limits=None if limits is None else [limits[owner] for owner in owners],
        **ranking,
    )
    return [drawn[first : first + options.nbest] for first in range(0, len(drawn), options.nbest)]
