"""The one function that decodes, by beam search, greedily, or by sampling, whatever computes the model."""

from typing import Any

from regard.search.beam import beam
from regard.search.choice import choose
from regard.search.hypothesis import Hypothesis, Rules
from regard.search.options import Search
from regard.search.steps import Steps


def decode(steps: Steps, state: Any, rules: Rules, options: Search, *, num_inputs: int) -> list[list[Hypothesis]]:
    """Decode from a state and return the outputs of each input.

    `num_inputs` is the number of inputs in the batch of the state. `rules` come from the system, which knows the
    vocabulary and the inputs. Beam search returns `options.nbest` outputs, best first; sampling returns that many
    independent samples, in the order in which they are drawn.
    """
    if options.sample:
        inputs = [row for row in range(num_inputs) for _ in range(options.nbest)]
        if options.nbest > 1:
            state = steps.select(state, inputs)
        drawn = choose(steps, state, rules.of_inputs(inputs), options, num_inputs=len(inputs))
        return [drawn[first : first + options.nbest] for first in range(0, len(drawn), options.nbest)]
    if options.beam == 1:
        return [[output] for output in choose(steps, state, rules, options, num_inputs=num_inputs)]
    return beam(steps, state, rules, options, num_inputs=num_inputs)
