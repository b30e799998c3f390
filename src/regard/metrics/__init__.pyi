from .alignment import (
    AlignmentScores as AlignmentScores,
)
from .alignment import (
    GoldAlignment as GoldAlignment,
)
from .alignment import (
    alignment_error_rate as alignment_error_rate,
)
from .alignment import (
    links_from_weights as links_from_weights,
)
from .alignment import (
    symmetrize as symmetrize,
)
from .attention import (
    entropy as entropy,
)
from .captions import CaptionScores as CaptionScores
from .captions import caption_scores as caption_scores
from .captions import grade as grade
from .faithfulness import (
    Erasure as Erasure,
)
from .faithfulness import (
    erasure as erasure,
)
from .faithfulness import (
    leave_one_out as leave_one_out,
)
from .faithfulness import (
    permutation_test as permutation_test,
)
from .regions import (
    attention_correctness as attention_correctness,
)
from .regions import (
    pointing_game as pointing_game,
)
from .translation import (
    TranslationScores as TranslationScores,
)
from .translation import (
    perplexity as perplexity,
)
from .translation import (
    translation_scores as translation_scores,
)
