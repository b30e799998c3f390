"""Greedy search and sampling: one token is chosen at each step, the most likely one or a random one."""

import math
from typing import Any

from regard.search.hypothesis import Hypothesis, Ranking, Rules, check_finite
from regard.search.options import Search
from regard.search.steps import Steps
from regard.work import proceed


def choose(steps: Steps, state: Any, rules: Rules, options: Search, *, num_inputs: int) -> list[Hypothesis]:
    """Decode one output for each of the `num_inputs` inputs: a sample if `options.sample`, otherwise greedily."""
    random = steps.random(options.seed) if options.sample else None
    source_mask, limits = steps.source_mask(state) if options.coverage_penalty else None, rules.limits_of(num_inputs)
    alive = list(range(num_inputs))
    chosen: list[list[int]] = [[] for _ in alive]
    log_probs: list[list[float]] = [[] for _ in alive]
    weights: list[list[Any]] = [[] for _ in alive]
    for _ in range(max(limits, default=0) + 1):
        proceed()
        if not alive:
            break
        step = steps.step([chosen[owner][-1] if chosen[owner] else rules.start for owner in alive], state)
        rules.apply_(step.log_probs, [chosen[owner] for owner in alive], alive)
        if random is None:
            new = step.log_probs.most_likely()
        else:
            new = step.log_probs.draw(random.random(len(alive)), options.temperature, options.top_k, options.top_p)
        taken = step.log_probs.at(range(len(alive)), new)
        check_finite(taken)
        unfinished = []
        for row, (owner, token) in enumerate(zip(alive, new, strict=True)):
            if taken[row] == -math.inf or (token != rules.end and len(chosen[owner]) == limits[owner]):
                continue  # no token is possible, or the output is cut at its length limit: it has no end
            chosen[owner].append(token)
            log_probs[owner].append(taken[row])
            if step.weights is not None:
                weights[owner].append(step.weights[row])
            if token != rules.end:
                unfinished.append(row)
        state = step.state
        if len(unfinished) < len(alive):
            alive = [alive[row] for row in unfinished]
            state = steps.select(state, unfinished)
    ranking, outputs = Ranking(options.length_penalty, options.coverage_penalty), []
    for owner, output in enumerate(chosen):
        attention = steps.stack(weights[owner]) if weights[owner] else None
        exists = None if source_mask is None else source_mask[owner]
        outputs.append(
            Hypothesis(
                tokens=[token for token in output if token != rules.end],
                log_probs=log_probs[owner],
                score=ranking.score(log_probs[owner], attention, exists),
                finished=bool(output) and output[-1] == rules.end,
                weights=attention,
            )
        )
    return outputs
