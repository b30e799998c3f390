"""An exported translator: its encoder and a step of its decoder are graphs."""

from collections.abc import Sequence

import numpy as np

from regard.errors import OptionError
from regard.runtime.steps import GraphSteps
from regard.search.decode import decode
from regard.search.hypothesis import Hypothesis
from regard.search.options import Search
from regard.systems.exported import ExportedSystem
from regard.systems.translate.config import TranslationOptions
from regard.systems.translate.translation import Translating, Translation
from regard.trace import Map


class ExportedTranslator(Translating, ExportedSystem[str, Translation, TranslationOptions]):
    """A translator whose folder `regard export` wrote."""

    def hypotheses(self, sources: Sequence[list[int]], options: Search) -> list[list[Hypothesis]]:
        """The best hypotheses for each source sentence, whose ids end in END."""
        lengths = list(map(len, sources))
        exists = np.arange(max(lengths)) < np.array(lengths)[:, None]
        ids = np.zeros(exists.shape, np.int64)
        ids[exists] = np.concatenate(sources)
        encoded = self.graphs["encoder"]({"input_ids": ids, "attention_mask": exists.astype(np.int64)})
        steps = GraphSteps(self.graphs["decoder"])
        state = steps.begin(encoded, exists)
        return decode(steps, state, self.rules(lengths, options), options, num_inputs=len(sources))

    def all_maps(self, sources: Sequence[list[int]], found: Sequence[Hypothesis]) -> list[tuple[Map, ...]]:
        """None beside the attention that the model reports; refused where there are more."""
        if self.has_heads:
            raise OptionError(
                "An exported Transformer reports one attention. traces 'all', those of every layer and head, needs the "
                "model itself."
            )
        return [()] * len(found)
