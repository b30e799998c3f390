"""Search: the one function that decodes, by beam search, greedily, or by sampling."""

from typing import Any

import torch

from regard.decoders.protocol import Decoder, select
from regard.kernels.threads import threads_for
from regard.search.beam import beam
from regard.search.choice import choose
from regard.search.hypothesis import Hypothesis, Rules
from regard.search.options import Search


@torch.no_grad()
def search(
    decoder: Decoder, state: Any, rules: Rules, options: Search, *, num_inputs: int, device: torch.device | str
) -> list[list[Hypothesis]]:
    """Decode from a state and return the outputs of each input.

    `state` is that of `decoder.start(encoded)`, or any other state of the decoder; `num_inputs` is the number of inputs
    in its batch and `device` where its tensors are. `rules` come from the system, which knows the vocabulary and the
    inputs. Beam search returns `options.nbest` outputs, best first; sampling returns that many independent samples, in
    the order in which they are drawn.
    """
    parameters = sum(map(torch.numel, decoder.parameters()))
    with threads_for(num_inputs * options.num_hypotheses * parameters):
        if options.sample:
            inputs = [row for row in range(num_inputs) for _ in range(options.nbest)]
            if options.nbest > 1:
                state = select(state, torch.tensor(inputs, device=device, dtype=torch.long))
            drawn = choose(decoder, state, rules.of_inputs(inputs), options, num_inputs=len(inputs), device=device)
            return [drawn[first : first + options.nbest] for first in range(0, len(drawn), options.nbest)]
        if options.beam == 1:
            return [[output] for output in choose(decoder, state, rules, options, num_inputs=num_inputs, device=device)]
        return beam(decoder, state, rules, options, num_inputs=num_inputs, device=device)
